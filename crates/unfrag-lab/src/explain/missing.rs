//! Zones that a report lacks, and settings that follow from all of them. `spec: K.2, K.4, 1.3, 1.6`
//!
//! Each zone's `lowmem_reserve` grows with every populated zone above it, so it tells of zones whose lines were cut off.
//! The sum of free memory tells of others; that of present memory only keeps settings from being computed.
//!
//! Invariant: a setting or a share of memory is computed only where the text shows that all zones are in it.

use super::amounts::{kind_of, page_kib, sum};
use unfrag_eras::ZoneKind;
use unfrag_linux::kernel_log::{Memory, Report, Zone};

/// The zones that columns of `lowmem_reserve` stand for; `None` where more than one set of zones has so many.
fn columns(memory: &Memory) -> Option<Vec<ZoneKind>> {
    use ZoneKind::{Dma, Dma32, HighMem, Movable, Normal};
    let has = |kind| memory.zones.iter().any(|z| kind_of(&z.name) == kind);
    let n = memory
        .zones
        .iter()
        .filter_map(|z| Some(z.reserve.as_ref()?.len()))
        .max()?;
    let is_named = memory.zones.iter().any(|z| z.is_node_named);
    // Kernels of 32 bits have high memory, and seldom nodes.
    let is_narrow = has(HighMem) || !has(Dma32) && has(Dma) && !is_named;
    match (n, is_narrow) {
        // Device memory has the column behind Movable.
        (5, false) => Some(vec![Dma, Dma32, Normal, Movable, Movable]),
        (4, false) => Some(vec![Dma, Dma32, Normal, Movable]),
        (4, true) => Some(vec![Dma, Normal, HighMem, Movable]),
        (3, true) if has(Dma) => Some(vec![Dma, Normal, HighMem]),
        (3, true) => Some(vec![Normal, HighMem, Movable]),
        _ => None,
    }
}

/// Columns of `reserve` at which a populated zone above is counted.
fn steps(reserve: &[u64]) -> Vec<usize> {
    let mut most = 0;
    let mut at = vec![];
    for (i, &pages) in reserve.iter().enumerate() {
        if pages > most {
            most = pages;
            at.push(i);
        }
    }
    at
}

/// Whether lines of the zone's own amounts are there, and it has memory.
fn is_populated(z: &Zone) -> bool {
    z.size_kib() != Some(0) && z.name != "Device"
}

fn seen_above(z: &Zone, memory: &Memory) -> usize {
    let is_above =
        |o: &&Zone| o.node == z.node && kind_of(&o.name) > kind_of(&z.name) && is_populated(o);
    memory.zones.iter().filter(is_above).count()
}

/// Whether the zone's `lowmem_reserve` tells of more zones above it than are in the text.
pub fn lacks_above(z: &Zone, memory: &Memory) -> bool {
    let reserve = z.reserve.as_deref().unwrap_or_default();
    steps(reserve).len() > seen_above(z, memory)
}

/// What a zone keeps from requests for zones up to `highest`, by the columns alone; `None` where they do not tell.
pub fn kept_by_columns(z: &Zone, memory: &Memory, highest: ZoneKind) -> Option<u64> {
    let columns = columns(memory)?;
    let reserve = z.reserve.as_ref().filter(|r| r.len() == columns.len())?;
    let of_request = reserve
        .iter()
        .zip(&columns)
        .filter(|(_, kind)| **kind <= highest);
    of_request.map(|(pages, _)| *pages).max()
}

/// Whether zones of a node are missing that requests for zones up to `highest` may use.
fn lacks_usable(z: &Zone, memory: &Memory, highest: ZoneKind) -> bool {
    if !lacks_above(z, memory) {
        return false;
    }
    let Some(columns) = columns(memory) else {
        return true;
    };
    let is_seen = |kind| {
        let mut of_node = memory.zones.iter().filter(|o| o.node == z.node);
        of_node.any(|o| kind_of(&o.name) == kind)
    };
    let at = steps(z.reserve.as_deref().unwrap_or_default());
    let mut told = at.iter().filter_map(|i| columns.get(*i));
    told.any(|kind| *kind <= highest && !is_seen(*kind))
}

/// KiB of the smallest page of any machine.
const SMALLEST_PAGE_KIB: u64 = 4;

/// Whether the zones of the text, which have `kib`, are the whole, of which it says that it is `pages`; `None` where nothing
/// tells, or they differ by up to `doubt` of them. Of pages of unknown size it is known that some zones are missing, not
/// that none is.
fn is_all(memory: &Memory, kib: u64, pages: Option<u64>, doubt: u64) -> Option<bool> {
    let pages = pages.filter(|n| *n > 0)?;
    let page = page_kib(memory);
    let whole = pages.saturating_mul(page.unwrap_or(SMALLEST_PAGE_KIB));
    if kib.saturating_add(doubt) < whole {
        return Some(false);
    }
    // Counters are read one after another.
    (page.is_some() && kib.saturating_add(kib / 64) >= whole).then_some(true)
}

/// Free memory of all zones against what the text says of the whole: whether some is missing, or all is there; `None` where
/// nothing tells.
fn is_counted(memory: &Memory) -> Option<bool> {
    let free = sum(memory, "free");
    let counted = memory.pages.get("free").copied();
    is_all(memory, free, counted, free / 3)
}

/// Whether the zones are as large as the machine's page frames.
fn is_all_ram(memory: &Memory) -> Option<bool> {
    let present = sum(memory, "present");
    let pages = memory.ram_pages.filter(|_| present > 0);
    is_all(memory, present, pages, present / 20)
}

/// Whether the text shows that it has all zones: each with its sizes, none above it missing, and none below it, which the
/// count of page frames tells, or the lowest zone of all.
pub fn has_all(memory: &Memory) -> bool {
    let zones = || memory.zones.iter().filter(|z| z.name != "Device");
    let columns = zones()
        .filter_map(|z| Some(z.reserve.as_ref()?.len()))
        .max();
    let is_whole = |z: &Zone| {
        let has_columns = z.reserve.as_ref().map(Vec::len) == columns;
        z.size_kib().is_some() && has_columns && !lacks_above(z, memory)
    };
    let has = |kind| zones().any(|z| kind_of(&z.name) == kind);
    // Of three columns with DMA32 and Normal one is Movable's, so that there is no DMA.
    let is_without_dma = columns == Some(3) && has(ZoneKind::Dma32) && has(ZoneKind::Normal);
    // A kernel with one column has one zone.
    let has_lowest = has(ZoneKind::Dma) || is_without_dma || columns == Some(1);
    columns.is_some()
        && zones().all(is_whole)
        && match (is_all_ram(memory), is_counted(memory)) {
            (Some(false), _) | (_, Some(false)) => false,
            (Some(true), _) => true,
            (None, _) => has_lowest,
        }
}

/// Whether zones that a request for zones up to `highest` may use are not in the text.
pub fn lacks(r: &Report, memory: &Memory, highest: ZoneKind) -> bool {
    if memory
        .zones
        .iter()
        .any(|z| lacks_usable(z, memory, highest))
    {
        return true;
    }
    // A request that is limited to nodes has the lines of those alone.
    let is_seen = |node: &u32| memory.zones.iter().any(|z| z.node == *node);
    let is_limited = [&r.nodemask, &r.mems_allowed]
        .iter()
        .any(|nodes| nodes.as_ref().is_some_and(|n| n.iter().all(is_seen)));
    !is_limited && is_counted(memory) == Some(false)
}

/// Whether any zone may be missing, those that the request may not use among them: nothing counts what is there, and a
/// `lowmem_reserve` tells of more or is itself missing.
pub fn may_lack_any(memory: &Memory) -> bool {
    let tells_of_more = |z: &Zone| z.reserve.is_none() || lacks_above(z, memory);
    is_counted(memory) != Some(true) && memory.zones.iter().any(tells_of_more)
}

/// Whether nothing above the zone can be missing that the request may use, though its `lowmem_reserve` is not there.
pub fn is_surely_highest(z: &Zone, memory: &Memory, highest: ZoneKind) -> bool {
    kind_of(&z.name) >= highest || is_counted(memory) == Some(true)
}

/// `vm.min_free_kbytes`: the sum of the marks without their boosts, of zones that share the setting. HighMem and Movable
/// have marks of their own. `spec: 1.3`
pub fn min_free_kbytes(memory: &Memory) -> Option<u64> {
    let has_marks = |z: &Zone| z.name == "Device" || z.kib("low").is_some();
    if !has_all(memory) || !memory.zones.iter().all(has_marks) {
        return None;
    }
    let own = |z: &Zone| Some(z.kib("min")?.saturating_sub(z.kib("boost").unwrap_or(0)));
    let shares = |z: &&Zone| !matches!(z.name.as_str(), "HighMem" | "Movable" | "Device");
    let sum = memory
        .zones
        .iter()
        .filter(shares)
        .try_fold(0u64, |sum, z| Some(sum.saturating_add(own(z)?)))?;
    (sum > 0).then_some(sum)
}
