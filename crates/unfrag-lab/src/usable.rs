//! What a request may use of a zone: the one place where free memory is counted for a request. `spec: 1.4, 1.5, K.4`
//!
//! Free memory that does not count: contiguous memory areas (CMA) for all but movable requests, the high-atomic reserve
//! for all but those it is for. The rights and the watermark check are the core's, under the rules of an era.
//!
//! Invariant: what is not known is `None`, and never counts as there.

use unfrag::kernel::MarkCheck;
use unfrag::zone::watermark::{View, block_exists, lowered, per_order};
use unfrag::{AllocFlags, Gfp, MigrateType, Order, Rules};

/// A request, and the rules of the kernel that it is made to.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its flags.
    pub gfp: Gfp,
    /// Its order.
    pub order: u8,
    /// The kernel's rules.
    pub rules: &'a Rules,
}

/// A zone as far as it is known; amounts in pages.
#[derive(Clone, Debug, Default)]
pub struct ZoneView {
    /// Free pages.
    pub free_pages: Option<u64>,
    /// Free pages of contiguous memory areas.
    pub cma_pages: u64,
    /// Pages of the high-atomic reserve.
    pub highatomic_pages: u64,
    /// The min mark.
    pub min_pages: Option<u64>,
    /// Free blocks.
    pub blocks: Option<Blocks>,
}

/// Free blocks of a zone, and the lists that hold them: a bit for each order that a list has a block of.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// Blocks of each order, of all types.
    pub free: Vec<u32>,
    /// Orders on lists that any request may take from.
    pub ordinary: u32,
    /// Orders in the high-atomic reserve.
    pub highatomic: u32,
    /// Orders in contiguous memory areas.
    pub cma: u32,
}

/// The largest order that a check can be asked about.
const MAX_ORDER: u8 = 30;

/// The rights of a request in its last attempt.
pub fn rights(request: &Request) -> AllocFlags {
    let order = Order(request.order.min(MAX_ORDER));
    let rights = unfrag::rights::alloc_flags(request.gfp, order, request.rules);
    match request.gfp.mobility() {
        Some(MigrateType::Movable) => rights | AllocFlags::CMA,
        _ => rights,
    }
}

/// Pages that do not count for the request.
pub fn withheld(zone: &ZoneView, request: &Request) -> u64 {
    let rights = rights(request);
    let reserve =
        AllocFlags::NON_BLOCK | AllocFlags::MIN_RESERVE | AllocFlags::HIGHATOMIC | AllocFlags::OOM;
    let cma = if rights.contains(AllocFlags::CMA) {
        0
    } else {
        zone.cma_pages
    };
    let highatomic = if rights.intersects(reserve) {
        0
    } else {
        zone.highatomic_pages
    };
    cma.saturating_add(highatomic)
}

/// A min mark of this many pages as the request's rights lower it.
pub fn lowered_mark(min_pages: u64, request: &Request) -> u64 {
    let mark = lowered(
        request.rules.marks.check,
        min_pages.min(MOST),
        rights(request),
    );
    u64::try_from(mark).unwrap_or(0)
}

/// More pages than any machine has, and few enough to be added up.
const MOST: u64 = 1 << 60;

/// Whether the zone has memory enough for the request: the check's first test. `keep`: pages that it keeps from the
/// request. `with_cma`: as if contiguous memory areas counted. `None` if free memory or the mark is not known.
pub fn has_room(zone: &ZoneView, request: &Request, keep: u64, with_cma: bool) -> Option<bool> {
    let free = zone.free_pages?;
    let mut counted = free.saturating_sub(withheld(zone, request));
    if with_cma && !rights(request).contains(AllocFlags::CMA) {
        counted = counted.saturating_add(zone.cma_pages).min(free);
    }
    let larger = (1u64 << request.order.min(MAX_ORDER)) - 1;
    let needed = lowered_mark(zone.min_pages?, request).saturating_add(keep);
    Some(counted.saturating_sub(larger) > needed)
}

/// Whether the request gets a block here: the kernel's check holds, and a list that it may take from has a block.
/// `None` if what decides is not known.
pub fn passes(zone: &ZoneView, request: &Request, keep: u64) -> Option<bool> {
    if !has_room(zone, request, keep, false)? {
        return Some(false);
    }
    let order = Order(request.order.min(MAX_ORDER));
    let Some(blocks) = &zone.blocks else {
        return (request.order == 0).then_some(true);
    };
    let rights = rights(request);
    let check = request.rules.marks.check;
    let hidden_before = match check {
        // The old check is given what counts; the later one takes off by itself.
        MarkCheck::PerOrder => withheld(zone, request),
        MarkCheck::BlockExists => 0,
    };
    let view = View {
        free: i64::try_from(zone.free_pages?.saturating_sub(hidden_before).min(MOST))
            .unwrap_or(i64::MAX),
        nr_free: &blocks.free,
        ordinary: blocks.ordinary,
        highatomic: blocks.highatomic,
        cma: blocks.cma,
        hidden: zone.highatomic_pages.min(MOST),
        cma_pages: zone.cma_pages.min(MOST),
    };
    let (mark, keep) = (zone.min_pages?.min(MOST), keep.min(MOST));
    let holds = match check {
        MarkCheck::PerOrder => per_order(&view, order, mark, keep, rights),
        MarkCheck::BlockExists => block_exists(&view, order, mark, keep, rights),
    };
    Some(holds && open_orders(blocks, rights) >> order.0 != 0)
}

/// The orders that a request with these rights finds a block of, a bit each.
pub fn open_orders(blocks: &Blocks, rights: AllocFlags) -> u32 {
    let mut open = blocks.ordinary;
    if rights.contains(AllocFlags::CMA) {
        open |= blocks.cma;
    }
    if rights.intersects(AllocFlags::HIGHATOMIC.union(AllocFlags::OOM)) {
        open |= blocks.highatomic;
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag::kernel::preset;

    fn request(kernel: &str, gfp: Gfp, order: u8) -> Request<'static> {
        Request {
            gfp,
            order,
            rules: &preset(kernel).unwrap().rules,
        }
    }

    /// 10,000 pages free, 9,000 of them in contiguous memory areas, which hold all blocks of order 3 and more.
    fn mostly_cma() -> ZoneView {
        ZoneView {
            free_pages: Some(10_000),
            cma_pages: 9_000,
            min_pages: Some(100),
            blocks: Some(Blocks {
                free: vec![500, 100, 75, 1125],
                ordinary: 0b0111,
                cma: 0b1000,
                ..Blocks::default()
            }),
            ..ZoneView::default()
        }
    }

    /// `spec: 1.5`
    #[test]
    fn contiguous_areas_are_for_movable_requests() {
        let zone = mostly_cma();
        assert_eq!(
            passes(&zone, &request("6.1", Gfp::ATOMIC_MASK, 3), 0),
            Some(false)
        );
        assert_eq!(
            passes(&zone, &request("6.1", Gfp::ATOMIC_MASK, 2), 0),
            Some(true)
        );
        assert_eq!(
            passes(&zone, &request("6.1", Gfp::HIGHUSER_MOVABLE, 3), 0),
            Some(true)
        );
        assert_eq!(withheld(&zone, &request("6.1", Gfp::KERNEL, 0)), 9_000);
    }

    /// `spec: 1.5`
    #[test]
    fn old_kernels_want_blocks_of_every_order() {
        let zone = ZoneView {
            free_pages: Some(200),
            min_pages: Some(100),
            blocks: Some(Blocks {
                free: vec![190, 0, 0, 1],
                ordinary: 0b1001,
                ..Blocks::default()
            }),
            ..ZoneView::default()
        };
        assert_eq!(
            has_room(&zone, &request("2.6.32", Gfp::KERNEL, 3), 0, false),
            Some(true)
        );
        assert_eq!(
            passes(&zone, &request("2.6.32", Gfp::KERNEL, 3), 0),
            Some(false)
        );
        assert_eq!(
            passes(&zone, &request("6.1", Gfp::KERNEL, 3), 0),
            Some(true)
        );
    }

    #[test]
    fn what_is_not_known_decides_nothing() {
        let zone = ZoneView {
            blocks: None,
            ..mostly_cma()
        };
        assert_eq!(passes(&zone, &request("6.1", Gfp::KERNEL, 1), 0), None);
        assert_eq!(
            passes(&zone, &request("6.1", Gfp::KERNEL, 0), 0),
            Some(true)
        );
        assert_eq!(
            passes(&zone, &request("6.1", Gfp::KERNEL, 1), 900),
            Some(false)
        );
        assert_eq!(
            passes(&ZoneView::default(), &request("6.1", Gfp::KERNEL, 0), 0),
            None
        );
    }
}
