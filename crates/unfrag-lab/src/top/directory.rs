//! A view from the files of a directory: those that a pool writes (`Pool::write_procfs`), or those of `/proc`.

use super::{Area, View};
use crate::geometry::Sizes;
use crate::geometry::recorded::{Question, RecordedGeometry};
use crate::host::Host;
use crate::host::amounts::Amounts;
use crate::host::files::{Lacking, Reader};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use unfrag_linux::Error;
use unfrag_linux::procfs::vmstat::VmStat;
use unfrag_pool::cells::Cell;

/// Files that a view is of.
const SHOWN: [&str; 6] = [
    "buddyinfo",
    "zoneinfo",
    "meminfo",
    "vmstat",
    "unfrag_blocks",
    "unfrag_latency",
];

/// Reads the files as they are now. `seconds`: when that is.
///
/// # Errors
/// If there is no `buddyinfo`, a file that is there cannot be read, or the host's sizes contradict each other.
pub fn read(directory: &Path, seconds: f64) -> crate::error::Result<View> {
    let unreadable = RefCell::new(None);
    let files = |name: &str| {
        let read = fs::read(directory.join(name));
        read.inspect_err(|e| {
            if SHOWN.contains(&name) && e.kind() != ErrorKind::NotFound {
                let error = Error::from(io::Error::from(e.kind()));
                unreadable
                    .borrow_mut()
                    .get_or_insert(error.in_file(name.as_ref()));
            }
        })
    };
    let mut reader = Reader::new(&files, Lacking::UNSAID);
    let host = Host::read(&mut reader);
    let vmstat = reader.get("vmstat", VmStat::parse);
    let areas = reader.get("unfrag_blocks", blocks);
    let waits = reader.get("unfrag_latency", waits);
    // Of a host whose zones cannot be read, the free lists are shown all the same.
    let is_shown = |e: &Error| {
        let name = e.file.as_deref().and_then(Path::to_str);
        name.is_some_and(|n| n != "zoneinfo" && SHOWN.contains(&n))
    };
    let bad = reader.errors.into_iter().find(is_shown);
    if let Some(error) = unreadable.take().or(bad) {
        return Err(crate::error::Error::from(error).inside(directory));
    }
    let Some(buddyinfo) = &host.buddy else {
        return Err(Error::malformed("there is no file buddyinfo in it")
            .in_file(directory)
            .help("name a directory that a program gives to Pool::write_procfs, an .unfrag file, or /proc")
            .into());
    };
    let mut view = View {
        title: directory.display().to_string(),
        seconds,
        areas: areas.unwrap_or_default(),
        waits: waits.unwrap_or_default(),
        counters: vmstat.as_ref().map(counters).unwrap_or_default(),
        ..View::default()
    };
    for zone in &buddyinfo.zones {
        view.free.resize(view.free.len().max(zone.free.len()), 0);
        let all = view.free.iter_mut().zip(&zone.free);
        all.for_each(|(sum, n)| *sum = sum.saturating_add(*n));
    }
    let total = host.meminfo_bytes("MemTotal");
    view.memory = Amounts::of(&host);
    // A pool writes no zoneinfo, and its frames are of 4 KiB.
    let geometry = RecordedGeometry::of_host(host)
        .check(Question::View)
        .map_err(|e| e.in_file(directory))?;
    view.sizes = Sizes::of(geometry);
    // A pool tells its zones' sum alone.
    let all = view.memory.in_zones_bytes.or(total);
    view.frames = all.map(|bytes| bytes / view.sizes.page_bytes.max(1));
    Ok(view)
}

/// Counters that only grow: those that are no number of pages or the like at a moment.
pub(super) fn counters(vmstat: &VmStat) -> BTreeMap<String, u64> {
    let all = vmstat.counters.iter();
    let grow = all.filter(|(name, _)| !name.starts_with("nr_"));
    grow.map(|(name, n)| (name.to_owned(), n)).collect()
}

/// The lines of `unfrag_blocks`: an area for each node.
fn blocks(bytes: &[u8]) -> Result<Vec<Area>, Error> {
    let mut areas: Vec<Area> = Vec::new();
    for (i, line) in String::from_utf8_lossy(bytes).lines().enumerate() {
        let bad = || {
            let wanted = "a line such as 'node 0 frame 0x0 m8u1..--'";
            Error::malformed(format!("line {} is not {wanted}", i + 1))
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["node", node, "frame", _, cells] = words[..] else {
            return Err(bad());
        };
        let name = format!("Node {}", node.parse::<u32>().map_err(|_| bad())?);
        if areas.last().is_none_or(|a| a.name != name) {
            areas.push(Area {
                name,
                cells: Vec::new(),
                block_bytes: None,
            });
        }
        let cells: Option<Vec<Cell>> = cells.as_bytes().chunks(2).map(Cell::parse).collect();
        if let Some(area) = areas.last_mut() {
            area.cells.extend(cells.ok_or_else(bad)?);
        }
    }
    Ok(areas)
}

/// The lines of `unfrag_latency`.
fn waits(bytes: &[u8]) -> Result<BTreeMap<u64, u64>, Error> {
    let mut waits = BTreeMap::new();
    for (i, line) in String::from_utf8_lossy(bytes).lines().enumerate() {
        let read = || {
            let mut words = line.strip_prefix("allocstall ")?.split(' ');
            let below = words.next()?.parse::<u64>().ok()?;
            Some((below, words.next()?.parse::<u64>().ok()?))
        };
        let (below, n) = read().ok_or_else(|| {
            Error::malformed(format!(
                "line {} is not a line such as 'allocstall 4096 17'",
                i + 1
            ))
        })?;
        waits.insert(below, n);
    }
    Ok(waits)
}
