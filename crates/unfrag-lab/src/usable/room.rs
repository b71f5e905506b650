//! How many equal requests succeed one after the other, if nothing is freed meanwhile.
//!
//! Invariant: each one is tested as the kernel would, and takes its block by smallest fit from the lists that it may
//! use; the rest of a larger block stays on its list.

use super::rules::{may_use, passes};
use super::view::{Request, ZoneView};
use unfrag_eras::AllocFlags;
use unfrag_eras::kernel::MarkCheck;

/// Requests that succeed in a row. The two numbers differ where it is not known which blocks belong to contiguous memory
/// areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// If the largest blocks do.
    pub at_least: u64,
    /// If the smallest do.
    pub at_most: u64,
}

/// Requests that the zone serves in a row, counted to `most`.
pub fn room(zone: &ZoneView, request: &Request, check: MarkCheck, most: u64) -> Room {
    let with = |largest: bool| {
        let cma_by_order = match &zone.cma_by_order {
            Some(known) => Some(known.clone()),
            None => Some(zone.guess_cma(largest)),
        };
        let zone = ZoneView {
            cma_by_order,
            ..zone.clone()
        };
        in_a_row(&zone, request, check, most)
    };
    let at_least = with(true);
    Room {
        at_least,
        at_most: match zone.cma_by_order {
            Some(_) => at_least,
            None => with(false),
        },
    }
}

/// Requests that the zone serves in a row, counted to `most`. Where only the sum of contiguous memory areas is known,
/// the largest blocks are taken to be theirs.
pub fn in_a_row(zone: &ZoneView, request: &Request, check: MarkCheck, most: u64) -> u64 {
    if !may_use(zone.kind, request.gfp) {
        return 0;
    }
    let mut left = zone.within_free();
    let mut n = 0;
    while n < most && passes(&left, request, check) && take(&mut left, request) {
        n += 1;
    }
    n
}

/// Takes a block from the first list that has one: high-atomic, ordinary, contiguous. `spec: 1.2`
fn take(zone: &mut ZoneView, request: &Request) -> bool {
    let order = usize::from(request.order);
    let fit = |list: &[u64]| (order..list.len()).find(|&o| list[o] > 0);
    let reserve = request.rights.contains(AllocFlags::HIGHATOMIC);
    let areas = request.rights.contains(AllocFlags::CMA);
    let cma = zone.cma();
    let found = if let Some(o) = fit(&zone.highatomic_by_order).filter(|_| reserve) {
        split(&mut zone.highatomic_by_order, o, order);
        zone.highatomic_pages = zone.highatomic_pages.saturating_sub(1 << order);
        o
    } else if let Some(o) = fit(&zone.ordinary()) {
        o
    } else if let Some(o) = fit(&cma).filter(|_| areas) {
        let mut cma = cma;
        split(&mut cma, o, order);
        zone.cma_by_order = Some(cma);
        zone.cma_pages = zone.cma_pages.saturating_sub(1 << order);
        o
    } else {
        return false;
    };
    split(&mut zone.free_by_order, found, order);
    zone.free_pages = zone.free_pages.saturating_sub(1 << order);
    true
}

/// Takes a block of order `found` from a list, and gives back what is left of it beside a block of `order`.
fn split(list: &mut [u64], found: usize, order: usize) {
    list[found] -= 1;
    list[order..found]
        .iter_mut()
        .for_each(|n| *n = n.saturating_add(1));
}
