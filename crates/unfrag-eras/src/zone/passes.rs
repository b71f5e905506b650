//! The watermark check of a zone. `spec: 1.3, 1.5, 1.6`

use super::memory_zone::Zone;
use super::watermark::{View, block_exists, per_order};
use crate::frame::{Geometry, MigrateType, Order, ZoneKind};
use crate::gfp::AllocFlags;
use crate::kernel::{HighAtomicLimit, MarkCheck, Reserve, Rules};

impl Zone {
    /// Whether a request of `order` passes `mark` (which includes the boost). `highest` is the
    /// highest zone that the request could use.
    #[inline]
    pub(crate) fn passes(
        &self,
        rules: &Rules,
        order: Order,
        mark: u64,
        highest: ZoneKind,
        flags: AllocFlags,
    ) -> bool {
        let keep = self.protection[highest as usize];
        // Order 0, and no page hidden: the sum decides.
        if order == Order::ZERO
            && self.highatomic == 0
            && self.free_area.fits(MigrateType::Cma) == 0
            && self.counter > (mark + keep) as i64
        {
            return true;
        }
        let v = self.view(rules);
        match rules.marks.check {
            MarkCheck::PerOrder => per_order(&v, order, mark, keep, flags),
            MarkCheck::BlockExists => {
                block_exists(&v, order, mark, keep, flags)
                    || order == Order::ZERO
                        && self.marks.boost > 0
                        && flags.contains(AllocFlags::UNBOOSTED_RECHECK)
                        && !flags.intersects(AllocFlags::WMARK_LOW | AllocFlags::WMARK_HIGH)
                        && block_exists(&v, Order::ZERO, self.marks.min, keep, flags)
            }
        }
    }

    /// Whether an order-0 request passes `mark` with `free` pages in place of those that are free.
    pub(crate) fn passes_with(
        &self,
        rules: &Rules,
        free: i64,
        mark: u64,
        highest: ZoneKind,
        flags: AllocFlags,
    ) -> bool {
        let v = View {
            free,
            ..self.view(rules)
        };
        let keep = self.protection[highest as usize];
        match rules.marks.check {
            MarkCheck::PerOrder => per_order(&v, Order::ZERO, mark, keep, flags),
            MarkCheck::BlockExists => block_exists(&v, Order::ZERO, mark, keep, flags),
        }
    }

    /// Free frames in free blocks as large as a pageblock or larger (`NR_FREE_PAGES_BLOCKS`).
    pub(crate) fn free_in_blocks(&self, geometry: Geometry) -> u64 {
        let pages = |o: Order| u64::from(self.free_area.nr_free()[o.index()]) << o.0;
        let orders = geometry.block_order.up_to(geometry.max_order);
        orders.map(pages).sum()
    }

    /// Whether a request of `order` would pass the high mark if nothing else were free than whole pageblocks: what
    /// kswapd and kcompactd work for in defrag mode. `spec: 2.6`
    pub(crate) fn blocks_pass(
        &self,
        rules: &Rules,
        geometry: Geometry,
        order: Order,
        highest: ZoneKind,
    ) -> bool {
        let v = View {
            free: self.free_in_blocks(geometry) as i64,
            ..self.view(rules)
        };
        let high = AllocFlags::WMARK_HIGH;
        let (mark, keep) = (self.marks.of(high), self.protection[highest as usize]);
        block_exists(&v, order, mark, keep, high)
    }

    /// Whether the first attempt of any request certainly passes [`passes`](Self::passes), and the check has no
    /// side effect. In the form to 4.3, for order 0 only.
    #[inline]
    pub(crate) fn is_above_marks(&self, order: Order, highest: ZoneKind, tuned: bool) -> bool {
        let mark = if tuned && !self.below_high {
            self.marks.high
        } else {
            self.marks.low
        };
        let needed = mark + self.marks.boost + self.protection[highest as usize];
        self.highatomic == 0
            && self.free_area.fits(MigrateType::Cma) == 0
            && self.counter - i64::from(order.frames() - 1) > needed as i64
            && (order == Order::ZERO || self.free_area.ordinary() >> order.0 != 0)
    }

    fn view(&self, rules: &Rules) -> View<'_> {
        let l = &self.free_area;
        let mut ordinary = u32::from(l.ordinary());
        if rules.marks.check == MarkCheck::PerOrder {
            ordinary = u32::MAX;
        }
        let hidden = match rules.reserve() {
            Reserve::HighAtomic(HighAtomicLimit::PercentPlusBlock) => self.highatomic,
            Reserve::HighAtomic(HighAtomicLimit::PercentRoundedUp) => {
                l.pages_of(MigrateType::HighAtomic)
            }
            _ => 0,
        };
        View {
            free: self.counter,
            nr_free: l.nr_free(),
            ordinary,
            highatomic: l.fits(MigrateType::HighAtomic).into(),
            cma: l.fits(MigrateType::Cma).into(),
            hidden,
            cma_pages: l.pages_of(MigrateType::Cma),
        }
    }
}
