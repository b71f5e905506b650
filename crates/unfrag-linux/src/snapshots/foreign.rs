//! Tables of other programs that hold the numbers of a procfs file, written as that file.
//!
//! What is read: the tables of the kernel's `slabinfo` tool and of `slabtop`, as slabinfo; the free lists that the
//! debugger `crash` prints for `kmem -f`, those of hotsos and a row of counts alone, as buddyinfo; what node_exporter
//! gives, as buddyinfo, meminfo and vmstat; the amounts of all nodes, as meminfo.
//!
//! Invariant: only rows with all numbers are taken; a table without any is an error that names it.

use std::collections::BTreeMap;

use super::line::is_number;
use super::lines::{
    CRASH, EXPORTED_AMOUNTS, EXPORTED_COUNTERS, EXPORTED_LISTS, NODE_AMOUNTS, SLAB_TOOL, SLABTOP,
};
use crate::error::{Error, Result};
use crate::procfs::buddyinfo::{BuddyInfo, Row};
use crate::procfs::slabinfo::{Cache, SlabInfo};

/// Name and text of the procfs file that a whole text stands for in which no line is one of procfs: free lists as hotsos
/// writes them, or a row of counts.
pub(super) fn of_whole(text: &str) -> Option<(&'static str, String)> {
    Some(("buddyinfo", hotsos(text).or_else(|| counts(text))?))
}

/// Name and text of the procfs file that a table of `kind` stands for; `None` if `kind` is no table of another program.
///
/// # Errors
/// If no row of the table has the numbers.
pub(super) fn convert(kind: &str, text: &str) -> Result<Option<(&'static str, String)>> {
    let (file, converted) = match kind {
        SLAB_TOOL => ("slabinfo", slabinfo(text)),
        SLABTOP => ("slabinfo", slabtop(text)),
        CRASH => ("buddyinfo", buddyinfo(text)),
        EXPORTED_LISTS => ("buddyinfo", exported_lists(text)),
        EXPORTED_AMOUNTS => ("meminfo", exported_amounts(text)),
        EXPORTED_COUNTERS => ("vmstat", exported_counters(text)),
        NODE_AMOUNTS => ("meminfo", sum_of_nodes(text)),
        _ => return Ok(None),
    };
    let converted = converted.map(|text| Some((file, text)));
    converted.ok_or_else(|| {
        Error::unsupported(format!(
            "this looks like {kind}, but no row has its numbers"
        ))
        .help("give /proc/slabinfo or /proc/buddyinfo itself")
    })
}

/// Rows `name objects objsize space slabs/partial/cpu objects-a-slab order …`.
fn slabinfo(text: &str) -> Option<String> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, objects, size, _space, slabs, per_slab, order, ..] = words[..] else {
            return None;
        };
        let mut counts = slabs.split('/');
        let on_lists: u64 = counts.next()?.parse().ok()?;
        let _partial: u64 = counts.next()?.parse().ok()?;
        let of_cpus: u64 = counts.next()?.parse().ok()?;
        let objperslab: u32 = per_slab.parse().ok()?;
        let num_slabs = on_lists.checked_add(of_cpus)?;
        Some(Cache {
            name: name.to_owned(),
            active_objs: objects.parse().ok()?,
            num_objs: num_slabs.checked_mul(u64::from(objperslab))?,
            objsize: size.parse().ok()?,
            objperslab,
            pagesperslab: 1u32.checked_shl(order.parse().ok()?)?,
            active_slabs: num_slabs,
            num_slabs,
            ..Cache::default()
        })
    };
    of_caches(text.lines().filter_map(row).collect())
}

/// The text of slabinfo with these caches; `None` if there are none.
fn of_caches(caches: Vec<Cache>) -> Option<String> {
    let info = SlabInfo {
        caches,
        ..SlabInfo::default()
    };
    (!info.caches.is_empty()).then(|| info.write())
}

/// A line of numbers below `NODE`; below `ZONE NAME …` the zone; below `AREA …` a row an order, with
/// blocks last but one.
fn buddyinfo(text: &str) -> Option<String> {
    let (mut info, mut node, mut heading) = (BuddyInfo::default(), 0u32, "");
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [first @ ("NODE" | "ZONE" | "AREA"), ..] => heading = first,
            [number] if heading == "NODE" => node = number.parse().ok()?,
            [number, name, _, ..] if heading == "ZONE" => {
                number.parse::<u32>().ok()?;
                info.zones.push(Row {
                    node,
                    zone: name.to_owned(),
                    free: vec![],
                });
            }
            [order, _, _, blocks, _] if heading == "AREA" => {
                let free = &mut info.zones.last_mut()?.free;
                if order.parse() == Ok(free.len()) {
                    free.push(blocks.parse().ok()?);
                }
            }
            _ => {}
        }
    }
    info.zones.retain(|zone| !zone.free.is_empty());
    (!info.zones.is_empty()).then(|| info.write())
}

/// Rows `objects active used% size slabs objects-a-slab cache-size name`, sizes in KiB.
fn slabtop(text: &str) -> Option<String> {
    let kib = |word: &str| word.strip_suffix('K')?.parse::<f64>().ok();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [
            objects,
            active,
            _used,
            size,
            slabs,
            per_slab,
            whole,
            name,
            ..,
        ] = words[..]
        else {
            return None;
        };
        let (num_slabs, objperslab): (u64, u32) = (slabs.parse().ok()?, per_slab.parse().ok()?);
        let (object, whole) = (kib(size)?, kib(whole)? as u64);
        // The tool knows the size of a page, and counts in KiB.
        let pagesperslab = whole.checked_div(num_slabs).unwrap_or(0).div_ceil(4);
        // Two digits of a KiB are too few for small objects, where the slab tells more.
        let fitting = (pagesperslab << 12)
            .checked_div(objperslab.into())
            .unwrap_or(0) as f64;
        let objsize = match (fitting / 1024.0 - object).abs() < 0.006 {
            true => fitting,
            false => object * 1024.0,
        };
        Some(Cache {
            name: name.to_owned(),
            active_objs: active.parse().ok()?,
            num_objs: objects.parse().ok()?,
            objsize: objsize.round() as u32,
            objperslab,
            pagesperslab: u32::try_from(pagesperslab).ok()?,
            active_slabs: num_slabs,
            num_slabs,
            ..Cache::default()
        })
    };
    of_caches(text.lines().filter_map(row).collect())
}

/// Free blocks by zone, as rows of buddyinfo.
fn rows(zones: BTreeMap<(u32, String), BTreeMap<usize, u64>>) -> Option<String> {
    /// Orders that any kernel has at most.
    const MOST_ORDERS: usize = 24;
    let zones = zones.into_iter().filter_map(|((node, zone), free)| {
        let highest = *free.keys().next_back()?;
        // An order that is not told would be taken for one with nothing free.
        (highest < MOST_ORDERS && free.len() == highest + 1).then(|| Row {
            node,
            zone,
            free: free.into_values().collect(),
        })
    });
    let info = BuddyInfo {
        zones: zones.collect(),
        ..BuddyInfo::default()
    };
    (!info.zones.is_empty()).then(|| info.write())
}

/// The value of a metric, which may be written as a fraction.
fn whole_number(word: &str) -> Option<u64> {
    let value: f64 = word.parse().ok()?;
    (value >= 0.0 && value < 2f64.powi(63)).then_some(value as u64)
}

/// Lines `node_buddyinfo_blocks{node="0",size="1",zone="DMA"} 572`; the size is the order.
fn exported_lists(text: &str) -> Option<String> {
    let mut zones: BTreeMap<(u32, String), BTreeMap<usize, u64>> = BTreeMap::new();
    for line in text.lines() {
        let (labels, value) = line.split_once('{')?.1.rsplit_once('}')?;
        let label = |name: &str| {
            let mut all = labels.split(',').filter_map(|l| l.trim().split_once('='));
            let (_, value) = all.find(|(n, _)| *n == name)?;
            Some(value.trim_matches('"'))
        };
        let zone = (label("node")?.parse().ok()?, label("zone")?.to_owned());
        let order = label("size")?.parse().ok()?;
        let blocks = whole_number(value.split_ascii_whitespace().next()?)?;
        zones.entry(zone).or_default().insert(order, blocks);
    }
    rows(zones)
}

/// Lines `node_memory_MemFree_bytes 1.2e+10`, `node_memory_HugePages_Total 0`.
fn exported_amounts(text: &str) -> Option<String> {
    let line = |line: &str| {
        let (name, value) = line.trim().split_once(' ')?;
        let value = whole_number(value)?;
        let name = name.strip_prefix("node_memory_")?;
        Some(match name.strip_suffix("_bytes") {
            Some(name) => {
                let name = match name.rsplit_once('_') {
                    Some((name, list @ ("anon" | "file"))) => format!("{name}({list})"),
                    _ => name.to_owned(),
                };
                format!("{:<15} {:>8} kB\n", name + ":", value / 1024)
            }
            None => format!("{:<15} {value:>8}\n", format!("{name}:")),
        })
    };
    let text: String = text.lines().filter_map(line).collect();
    (!text.is_empty()).then_some(text)
}

/// Lines `node_vmstat_compact_stall 205761`.
fn exported_counters(text: &str) -> Option<String> {
    let line = |line: &str| {
        let (name, value) = line.trim().split_once(' ')?;
        let name = name.strip_prefix("node_vmstat_")?;
        Some(format!("{name} {}\n", whole_number(value)?))
    };
    let text: String = text.lines().filter_map(line).collect();
    (!text.is_empty()).then_some(text)
}

/// The amounts of a host, from lines `Node 0 MemTotal: 1030924 kB` of all its nodes.
pub(super) fn sum_of_nodes(text: &str) -> Option<String> {
    let mut names: Vec<&str> = vec![];
    let mut sums: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let ["Node", node, name, value, ref unit @ ..] = words[..] else {
            continue;
        };
        if !is_number(node) || !name.ends_with(':') {
            continue;
        }
        let value: u64 = value.parse().ok()?;
        let sum = sums.entry(name).or_insert_with(|| {
            names.push(name);
            (0, unit.first().copied().unwrap_or(""))
        });
        sum.0 = sum.0.saturating_add(value);
    }
    let line = |name: &&str| {
        let (value, unit) = sums[name];
        format!("{name:<15} {value:>8} {unit}")
            .trim_end()
            .to_owned()
            + "\n"
    };
    let text: String = names.iter().map(line).collect();
    (!text.is_empty()).then_some(text)
}

/// The counters of a host, from those of its nodes.
pub(super) fn sum_of_counters<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut names: Vec<&str> = vec![];
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for line in texts.flat_map(str::lines) {
        let (name, value) = line.trim().split_once(' ')?;
        let sum = sums.entry(name).or_insert_with(|| {
            names.push(name);
            0
        });
        *sum = sum.saturating_add(value.trim().parse().ok()?);
    }
    let text: String = names.iter().map(|n| format!("{n} {}\n", sums[n])).collect();
    (!text.is_empty()).then_some(text)
}

/// Free lists as hotsos writes them in YAML: below `nodes:` a node's number, below it `zones:`, names of zones, and
/// lines `order: blocks`.
fn hotsos(text: &str) -> Option<String> {
    let mut zones: BTreeMap<(u32, String), BTreeMap<usize, u64>> = BTreeMap::new();
    // Keys of the lines around, each with its indentation.
    let mut path: Vec<(usize, &str)> = vec![];
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        let indent = line.len() - line.trim_start().len();
        path.retain(|(outer, _)| *outer < indent);
        let Some((key, value)) = line.trim().split_once(':') else {
            continue;
        };
        let names: Vec<&str> = path.iter().map(|p| p.1).collect();
        if let [.., "nodes", node, "zones", zone] = names[..]
            && let (Ok(node), Ok(order), Ok(blocks)) =
                (node.parse(), key.parse(), value.trim().parse())
        {
            let zone = (node, zone.to_owned());
            zones.entry(zone).or_default().insert(order, blocks);
        }
        path.push((indent, key));
    }
    rows(zones)
}

/// A line `Count: 4063 4595 …`, of a zone that it does not name.
fn counts(text: &str) -> Option<String> {
    let row = |line: &str| {
        let (name, numbers) = line.trim().split_once(':')?;
        let is_count = ["count", "counts"].contains(&&name.to_ascii_lowercase()[..]);
        let all: Option<Vec<u64>> = numbers
            .split_ascii_whitespace()
            .map(|w| w.parse().ok())
            .collect();
        let free = all.filter(|all| is_count && (7..=24).contains(&all.len()))?;
        Some(free.into_iter().enumerate().collect())
    };
    let mut found = text.lines().filter_map(row);
    let (one, None) = (found.next()?, found.next()) else {
        return None;
    };
    rows([((0, "unnamed".to_owned()), one)].into())
}
