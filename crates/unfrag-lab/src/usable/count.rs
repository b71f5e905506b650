//! Free memory counted for a request, against the mark as its kernel lowers it. `spec: 1.5, K.4`
//!
//! Invariant: the rights decide what counts, as in the watermark test; sums saturate.

use super::view::{Request, ZoneView};
use unfrag_eras::AllocFlags;
use unfrag_eras::kernel::MarkCheck;
use unfrag_eras::zone::watermark::lowered;

/// More pages than any machine has, and few enough to be added up.
const MOST: u64 = 1 << 60;
/// The largest order that a size is computed for.
const MOST_ORDER: u8 = 40;

/// Pages that do not count for the request: contiguous memory areas, and the high-atomic reserve.
pub fn withheld(zone: &ZoneView, request: &Request) -> u64 {
    let reserve = AllocFlags::NON_BLOCK
        .union(AllocFlags::MIN_RESERVE)
        .union(AllocFlags::HIGHATOMIC)
        .union(AllocFlags::OOM);
    let cma = match request.rights.contains(AllocFlags::CMA) {
        true => 0,
        false => zone.cma_pages,
    };
    let highatomic = match request.rights.intersects(reserve) {
        true => 0,
        false => zone.highatomic_pages,
    };
    cma.saturating_add(highatomic)
}

/// The zone's min mark as the request's rights lower it, in pages.
pub fn lowered_mark(min: u64, request: &Request, check: MarkCheck) -> u64 {
    u64::try_from(lowered(check, min.min(MOST), request.rights)).unwrap_or(0)
}

/// Whether the zone has memory enough for the request: the first step of the watermark test. `with_cma`: as if
/// contiguous memory areas counted.
pub fn has_room(zone: &ZoneView, request: &Request, check: MarkCheck, with_cma: bool) -> bool {
    let mut request = *request;
    if with_cma {
        request.rights |= AllocFlags::CMA;
    }
    let counted = zone.free_pages.saturating_sub(withheld(zone, &request));
    let larger = (1u64 << request.order.min(MOST_ORDER)) - 1;
    let needed = lowered_mark(zone.min, &request, check).saturating_add(zone.protection);
    counted.saturating_sub(larger) > needed
}
