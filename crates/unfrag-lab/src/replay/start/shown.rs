//! Free lists as a snapshot shows them, checked against the zone that they are of.
//!
//! Invariant: what is read here adds up to no more pages than the zone spans, so that no sum over it overflows.

use crate::error::{Error, Result};
use unfrag_eras::frame::ORDER_SLOTS;

/// Orders of a free list, at most.
pub(crate) const ORDERS: usize = ORDER_SLOTS;

/// Frames of a zone whose extent is not known, at most.
pub(crate) const MOST_PAGES: u64 = 1 << 32;

/// Free blocks by order, of a zone that spans so many pages. `place` is where they are shown.
///
/// # Errors
/// If they are more than the zone can have.
pub(crate) fn by_order(
    blocks: impl ExactSizeIterator<Item = u64>,
    spanned: u64,
    place: impl Fn() -> String,
) -> Result<[u64; ORDERS]> {
    let orders = blocks.len();
    let mut all = [0; ORDERS];
    let mut pages = 0u64;
    for (order, blocks) in blocks.enumerate() {
        let Some(to) = all.get_mut(order) else {
            return Err(Error::contradiction(format!(
                "{} has {orders} orders, and {ORDERS} can be",
                place()
            )));
        };
        *to = blocks;
        pages = pages.saturating_add(blocks.saturating_mul(1 << order));
    }
    within(pages, spanned, || format!("{}: free pages", place()))?;
    Ok(all)
}

/// Whether a number of pages can be.
///
/// # Errors
/// If it is above `most`.
pub(crate) fn within(pages: u64, most: u64, what: impl Fn() -> String) -> Result<()> {
    if pages > most {
        return Err(Error::contradiction(format!(
            "{} are {pages}, and {most} can be at most",
            what()
        ))
        .help("the snapshot is damaged, or was changed: record the host again"));
    }
    Ok(())
}
