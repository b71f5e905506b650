//! A view from the files of a directory: those that a pool writes (`Pool::write_procfs`), or those of `/proc`.

use super::{Area, View};
use crate::geometry::Sizes;
use crate::geometry::recorded::{Question, RecordedGeometry};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use unfrag::Geometry;
use unfrag_linux::Error;
use unfrag_linux::procfs::buddyinfo::BuddyInfo;
use unfrag_linux::procfs::meminfo::MemInfo;
use unfrag_linux::procfs::vmstat::VmStat;
use unfrag_linux::recording::{Snapshot, SnapshotFile};
use unfrag_pool::cells::Cell;

/// Reads the files as they are now. `seconds`: when that is.
///
/// # Errors
/// If there is no `buddyinfo`, a file that is there cannot be read, or the host's pages are not of 4 KiB.
pub fn read(directory: &Path, seconds: f64) -> crate::error::Result<View> {
    let file = |name: &str| -> Result<Option<Vec<u8>>, Error> {
        let path = directory.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::from(e).in_file(&path)),
        }
    };
    let named = |name: &'static str| move |e: Error| e.in_file(&directory.join(name));
    let Some(buddyinfo) = file("buddyinfo")? else {
        return Err(Error::malformed("there is no file buddyinfo in it")
            .in_file(directory)
            .help("name a directory that a program gives to Pool::write_procfs, an .unfrag file, or /proc")
            .into());
    };
    // A pool writes no zoneinfo, and its frames are of 4 KiB.
    let geometry = if let Some(zoneinfo) = file("zoneinfo")? {
        let files = [
            ("buddyinfo", Some(buddyinfo.clone())),
            ("zoneinfo", Some(zoneinfo)),
            ("meminfo", file("meminfo")?),
        ];
        let files = files.into_iter().filter_map(|(name, content)| {
            Some(SnapshotFile {
                name: name.into(),
                time: None,
                content: content?.into(),
            })
        });
        let files = Snapshot {
            name: String::new(),
            files: files.collect(),
        };
        RecordedGeometry::of_files(&files)
            .check(Question::View)
            .map_err(|e| e.in_file(directory))?
    } else {
        Geometry::PAGES_4K
    };
    let mut view = View {
        title: directory.display().to_string(),
        seconds,
        sizes: Sizes::of(geometry),
        ..View::default()
    };
    let buddyinfo = BuddyInfo::parse(&buddyinfo).map_err(named("buddyinfo"))?;
    for zone in &buddyinfo.zones {
        view.free.resize(view.free.len().max(zone.free.len()), 0);
        let all = view.free.iter_mut().zip(&zone.free);
        all.for_each(|(sum, n)| *sum = sum.saturating_add(*n));
    }
    if let Some(bytes) = file("vmstat")? {
        let vmstat = VmStat::parse(&bytes).map_err(named("vmstat"))?;
        view.counters = counters(&vmstat);
    }
    if let Some(bytes) = file("meminfo")? {
        let meminfo = MemInfo::parse(&bytes).map_err(named("meminfo"))?;
        view.frames = meminfo.get("MemTotal").map(|kb| geometry.pages(kb));
    }
    if let Some(bytes) = file("unfrag_blocks")? {
        view.areas = blocks(&bytes).map_err(named("unfrag_blocks"))?;
    }
    if let Some(bytes) = file("unfrag_latency")? {
        view.waits = waits(&bytes).map_err(named("unfrag_latency"))?;
    }
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
