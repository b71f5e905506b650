//! One look at memory, and its numbers of a need.
//!
//! Invariant: a number that a zone does not tell is not known of all.

use crate::doctor::gate::Need;
use crate::error::{Error, Result};
use crate::inspect::{Moment, ZoneState};
use unfrag_linux::snapshots;

/// A snapshot of memory.
pub(super) struct Look<'a> {
    pub name: &'a str,
    /// Seconds; `None` where nothing says when it was taken.
    pub time: Option<f64>,
    pub moment: Moment,
}

/// The date of a directory, in nanoseconds since 1970; of the innermost that is named by one.
pub(super) fn date(directory: &str) -> Option<u64> {
    directory.rsplit('/').find_map(snapshots::date)
}

/// The order of the blocks that are needed, where lists have so many orders.
pub(super) fn order(moment: &Moment, orders: usize, need: Need) -> Result<u8> {
    let whole = moment.page_size > 0 && need.bytes.is_multiple_of(moment.page_size);
    let pages = if whole {
        need.bytes / moment.page_size
    } else {
        0
    };
    match pages.is_power_of_two() {
        true if orders == 0 || (pages.ilog2() as usize) < orders => Ok(pages.ilog2() as u8),
        _ => Err(Error::question(format!(
            "blocks of {} bytes are not made here: pages have {} bytes, and the largest block {} of them",
            need.bytes,
            moment.page_size,
            1_u64 << orders.saturating_sub(1)
        ))
        .help("give a need of smaller blocks, such as 64x2M")),
    }
}

/// The zones that the need may be met from.
pub(super) fn zones(moment: &Moment, need: Need) -> impl Iterator<Item = &ZoneState> {
    let zones = moment.zones.iter();
    zones.filter(move |z| need.node.is_none_or(|node| z.node == node))
}

/// Free blocks; `None` if a zone does not tell them.
pub(super) fn free(moment: &Moment, need: Need, order: u8) -> Option<u64> {
    zones(moment, need)
        .map(|z| Some(of_order(z.free_blocks.as_ref()?, order)))
        .sum()
}

/// Blocks of which the kernel has nothing: all of each pageblock that is movable, and what is free in the others. Of blocks that
/// are larger than a pageblock that is at most so many; nobody knows which pageblocks lie beside each other.
pub(super) fn at_best(moment: &Moment, need: Need, order: u8) -> Option<u64> {
    let pageblock = moment.pageblock_order.unwrap_or(moment.huge_order);
    let of_pageblocks = |n: u64| match pageblock.checked_sub(order) {
        Some(parts) => n.saturating_mul(1 << parts.min(63)),
        None => n >> (order - pageblock).min(63),
    };
    zones(moment, need)
        .map(|z| {
            let types = z.pageblocks.as_ref()?;
            let movable = types.get("Movable").copied().unwrap_or(0);
            let others = z.free_by_type.iter().flatten();
            let others = others.filter(|(kind, _)| *kind != "Movable");
            let elsewhere: u64 = others.map(|(_, f)| of_order(&f.blocks, order)).sum();
            let free = of_order(z.free_blocks.as_ref()?, order);
            Some((of_pageblocks(movable) + elsewhere).max(free))
        })
        .sum()
}

/// Blocks of an order, of which larger ones are several.
fn of_order(blocks: &[u64], order: u8) -> u64 {
    let order = usize::from(order);
    let blocks = blocks.iter().enumerate().skip(order);
    blocks.map(|(o, &n)| n << (o - order)).sum()
}
