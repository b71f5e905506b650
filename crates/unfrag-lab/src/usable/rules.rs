//! What counts of a zone's free memory, and the watermark test of the era.
//!
//! Invariant: there is one watermark formula, the eras'.

use super::view::{Request, ZoneView, pages as total};
use unfrag_eras::kernel::MarkCheck;
use unfrag_eras::zone::watermark::{View, block_exists, per_order};
use unfrag_eras::{AllocFlags, Gfp, Order, ZoneKind, highest_zone};

/// Whether requests with these flags may use zones of this kind. `spec: 1.6`
pub fn may_use(kind: ZoneKind, gfp: Gfp) -> bool {
    kind as usize <= highest_zone(gfp) as usize
}

/// The pages that a zone keeps from a request: the number in its `protection` that stands for the highest zone of
/// the request.
///
/// `zones` are the node's zones in the order of `protection`, as zoneinfo lists them. Old and new kernels leave out
/// unpopulated ones; the last number that there is then holds for all higher zones. `spec: 1.6`
pub fn kept(protection: &[u64], zones: &[&str], gfp: Gfp) -> u64 {
    let highest = highest_zone(gfp) as usize;
    let is_allowed =
        |name: &&&str| ZoneKind::from_name(name).is_some_and(|k| k as usize <= highest);
    // Zones go from low to high, so those that are allowed come first.
    let allowed = zones.iter().take_while(is_allowed).count();
    let at = if allowed == 0 { zones.len() } else { allowed };
    let at = at.saturating_sub(1);
    let number = protection.get(at).or(protection.last());
    number.copied().unwrap_or(0)
}

/// Free blocks by order that a zone would give to the request, watermarks aside. All are 0 if the request may not
/// use the zone.
pub fn blocks(zone: &ZoneView, request: &Request) -> Vec<u64> {
    if !may_use(zone.kind, request.gfp) {
        return vec![0; zone.free_by_order.len()];
    }
    let lists = zone.lists(request.rights);
    (0..zone.free_by_order.len())
        .map(|o| lists.iter().fold(0, |sum: u64, l| sum.saturating_add(l[o])))
        .collect()
}

/// Free pages that count for the request: those in [`blocks`] of every order.
pub fn pages(zone: &ZoneView, request: &Request) -> u64 {
    total(&blocks(zone, request))
}

/// The largest order of a free block that the zone would give to the request, watermarks aside.
pub fn largest_order(zone: &ZoneView, request: &Request) -> Option<u8> {
    let found = blocks(zone, request).iter().rposition(|&n| n > 0)?;
    u8::try_from(found).ok()
}

/// The watermark test of the zone for the request, in the form of its kernel's era. `spec: 1.5`
pub fn passes(zone: &ZoneView, request: &Request, check: MarkCheck) -> bool {
    let nr_free: Vec<u32> = zone
        .free_by_order
        .iter()
        .map(|&n| u32::try_from(n).unwrap_or(u32::MAX))
        .collect();
    let bits = |list: &[u64]| {
        let present = list.iter().enumerate().filter(|(_, n)| **n > 0);
        present.fold(0u32, |bits, (o, _)| {
            bits | 1u32.checked_shl(o as u32).unwrap_or(0)
        })
    };
    let view = View {
        free: i64::try_from(zone.free_pages).unwrap_or(i64::MAX),
        nr_free: &nr_free,
        ordinary: bits(&zone.ordinary()),
        highatomic: bits(&zone.highatomic_by_order),
        cma: bits(&zone.cma()),
        hidden: zone.highatomic_pages,
        cma_pages: zone.cma_pages,
    };
    let (order, mark, keep) = (Order(request.order), zone.min, zone.protection);
    match check {
        MarkCheck::BlockExists => block_exists(&view, order, mark, keep, request.rights),
        MarkCheck::PerOrder => {
            // Free pages of contiguous memory areas are taken off in the comparison of the sum alone. It is that
            // of an order-0 request for which the zone keeps the request's other pages too.
            let is_enough = request.rights.contains(AllocFlags::CMA) || {
                let free = view.free.saturating_sub_unsigned(zone.cma_pages);
                let keep = keep.saturating_add(u64::from(order.frames()) - 1);
                per_order(
                    &View { free, ..view },
                    Order::ZERO,
                    mark,
                    keep,
                    request.rights,
                )
            };
            is_enough && per_order(&view, order, mark, keep, request.rights)
        }
    }
}

/// Whether the zone gives the request a block: it may use the zone, the watermark test lets it pass, and one of the
/// blocks that count is large enough.
pub fn serves(zone: &ZoneView, request: &Request, check: MarkCheck) -> bool {
    largest_order(zone, request).is_some_and(|o| o >= request.order) && passes(zone, request, check)
}
