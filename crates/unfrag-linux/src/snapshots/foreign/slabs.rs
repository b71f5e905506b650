//! Tables of slab caches: of the kernel's `slabinfo` tool and of `slabtop`.
//!
//! Invariant: a cache's pages are those that the table tells; where it tells bytes, they are pages of
//! [`TABLE_PAGE`], and the version of the file says so.

use super::kinds::{SLAB_TOOL, SLABTOP};
use crate::procfs::slabinfo::{Cache, SlabInfo, TABLE_PAGE};

/// The kind of a line, and its key.
pub(super) fn claim(
    text: &str,
    current: Option<&'static str>,
) -> Option<(&'static str, Option<String>)> {
    let words: Vec<&str> = text.split_ascii_whitespace().take(16).collect();
    if words.starts_with(&["Name", "Objects", "Objsize"]) {
        return Some((SLAB_TOOL, Some(String::new())));
    }
    if words.starts_with(&["OBJS", "ACTIVE", "USE"]) {
        return Some((SLABTOP, None));
    }
    if text.starts_with("Active / Total Objects") {
        return Some((SLABTOP, Some(String::new())));
    }
    let of_head = ["Active / Total ", "Minimum / Average / Maximum Object"];
    if of_head.iter().any(|head| text.starts_with(head)) || row_of_slabtop(text).is_some() {
        return Some((SLABTOP, None));
    }
    let is_row = current == Some(SLAB_TOOL) && row_of_tool(text).is_some();
    is_row.then_some((SLAB_TOOL, None))
}

/// Rows `name objects objsize space slabs/partial/cpu objects-a-slab order …`.
fn row_of_tool(line: &str) -> Option<Cache> {
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
}

/// Rows `objects active use% object-size slabs objects-a-slab cache-size name`.
fn row_of_slabtop(line: &str) -> Option<Cache> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [
        objects,
        active,
        used,
        size,
        slabs,
        per_slab,
        space,
        ref name @ ..,
    ] = words[..]
    else {
        return None;
    };
    used.strip_suffix('%')?.parse::<f64>().ok()?;
    let num_slabs: u64 = slabs.parse().ok()?;
    let pages = bytes_of(space)? / TABLE_PAGE as f64;
    let pagesperslab = match num_slabs {
        0 => 0,
        n => (pages / n as f64).round() as u32,
    };
    // The size is told to ten bytes, and is a multiple of eight.
    let objsize = (bytes_of(size)? / 8.0).round() * 8.0;
    (!name.is_empty()).then_some(Cache {
        name: name.join(" "),
        active_objs: active.parse().ok()?,
        num_objs: objects.parse().ok()?,
        objsize: objsize as u32,
        objperslab: per_slab.parse().ok()?,
        pagesperslab,
        active_slabs: num_slabs,
        num_slabs,
        ..Cache::default()
    })
}

/// `45906648K`, `0.06K`, `43.8G` in bytes.
fn bytes_of(text: &str) -> Option<f64> {
    let unit = match text.chars().last()? {
        'K' => 1u64 << 10,
        'M' => 1 << 20,
        'G' => 1 << 30,
        'B' => 1,
        _ => return None,
    };
    let value: f64 = text[..text.len() - 1].parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value * unit as f64)
}

/// The table of the kernel's `slabinfo` tool as slabinfo.
pub(super) fn of_tool(text: &str) -> Option<String> {
    written(SlabInfo {
        caches: text.lines().filter_map(row_of_tool).collect(),
        ..SlabInfo::default()
    })
}

/// The output of `slabtop` as slabinfo.
pub(super) fn of_slabtop(text: &str) -> Option<String> {
    written(SlabInfo {
        version: SlabInfo::version_with_pages(TABLE_PAGE),
        caches: text.lines().filter_map(row_of_slabtop).collect(),
        ..SlabInfo::default()
    })
}

fn written(info: SlabInfo) -> Option<String> {
    (!info.caches.is_empty()).then(|| info.write())
}
