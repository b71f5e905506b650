//! Tables of other programs that hold the numbers of a procfs file, written as that file.
//!
//! What is read: the table of the kernel's `slabinfo` tool, as slabinfo; the free lists that the
//! debugger `crash` prints for `kmem -f`, as buddyinfo.
//!
//! Invariant: only rows with all numbers are taken; a table without any is an error that names it.

use super::lines::{CRASH, SLAB_TOOL};
use crate::error::{Error, Result};
use crate::procfs::buddyinfo::{BuddyInfo, Row};
use crate::procfs::slabinfo::{Cache, SlabInfo};

/// Name and text of the procfs file that a table of `kind` stands for.
///
/// # Errors
/// If no row of the table has the numbers.
pub(super) fn convert(kind: &str, text: &str) -> Result<(&'static str, String)> {
    let (file, converted) = match kind {
        SLAB_TOOL => ("slabinfo", slabinfo(text)),
        CRASH => ("buddyinfo", buddyinfo(text)),
        _ => ("", None),
    };
    converted.map(|text| (file, text)).ok_or_else(|| {
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
    let caches: Vec<Cache> = text.lines().filter_map(row).collect();
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
