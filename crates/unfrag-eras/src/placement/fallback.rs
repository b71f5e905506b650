//! Falling back to another type's lists, from 2.6.24 on.
//!
//! A request whose own lists are empty looks at the other types in a fixed order, largest blocks
//! first, and may take over a whole pageblock. Eras differ in the scan, in the right to claim and
//! its test, in when and where free blocks move, and in the owner of the remainder. `spec: 2.5, 2.6`

use super::block_request::{BlockRequest, Fallback, RmqueueMode, Taken};
use super::free_area::FreeArea;
use super::list::End;
use super::lists::{BlockCounts, FreeBlock};
use crate::frame::{FrameIx, Frames, MigrateType, Order};
use crate::kernel::{
    ClaimTest, Fallback as FallbackRule, PageblockRules, Remainder, ScanDown, Steal,
};
use MigrateType::{HighAtomic, Movable, Reclaimable, Reserve, Unmovable};

/// The types that a request may fall back to, in order (`fallbacks`).
const fn row(mt: MigrateType) -> [MigrateType; 2] {
    match mt {
        Movable => [Reclaimable, Unmovable],
        Reclaimable => [Unmovable, Movable],
        _ => [Reclaimable, Movable],
    }
}

/// A block of another type: where, of which order, on whose list.
#[derive(Clone, Copy)]
struct Found {
    ix: FrameIx,
    order: Order,
    victim: MigrateType,
}

impl Found {
    /// Whether it is smaller than a pageblock.
    fn is_part(&self, frames: &Frames) -> bool {
        self.order < frames.geometry.block_order
    }
}

/// What one fallback step did.
enum Step {
    /// Blocks moved to the lists of the request's type, where smallest fit finds one.
    Moved,
    /// The block found was taken directly.
    Direct(FrameIx, MigrateType),
}

impl FreeArea {
    pub(super) fn take_fallback(
        &mut self,
        frames: &Frames,
        rules: &PageblockRules,
        request: BlockRequest,
        mode: &mut RmqueueMode,
    ) -> Option<Taken> {
        let mut boosts = 0;
        let found = match &rules.fallback {
            FallbackRule::ClaimThenSteal { boost, steal } => {
                let mut found = None;
                if *mode == RmqueueMode::Normal {
                    let (claimed, tries) = self.claim_block(frames, (rules, *steal), request);
                    found = claimed;
                    boosts = if boost.is_some() { tries } else { 0 };
                }
                if found.is_none() && !request.nofragment {
                    let smallest = self.find_smallest(frames, request);
                    found = smallest.map(|found| self.steal(frames, request, found));
                    match steal {
                        Steal::Smallest => *mode = RmqueueMode::after(found.is_some()),
                        Steal::Largest => {
                            let small = smallest.is_some_and(|f| f.is_part(frames));
                            boosts += u32::from(boost.is_some() && small);
                        }
                    }
                }
                found
            }
            FallbackRule::ScanDown(scan) => {
                self.scan_down(frames, (rules, scan), request, &mut boosts)
            }
        };
        let Some((step, extfrag)) = found else {
            // MIGRATE_RESERVE is the last resort of any type (2.6.24 to 4.3).
            let ix = self.lists.smallest_fit(frames, request.order, Reserve)?;
            return Some(Taken {
                ix,
                list: Reserve,
                extfrag: None,
                boosts,
            });
        };
        let (ix, list) = match step {
            Step::Direct(ix, list) => (ix, list),
            Step::Moved => (
                self.lists.smallest_fit(frames, request.order, request.mt)?,
                request.mt,
            ),
        };
        Some(Taken {
            ix,
            list,
            extfrag: Some(extfrag),
            boosts,
        })
    }

    /// The block of this order on the first list of the row that has one.
    fn find(&self, order: Order, mt: MigrateType) -> Option<Found> {
        let victim = row(mt)
            .into_iter()
            .find(|&t| !self.lists.is_empty(order, t))?;
        let ix = self.lists.list(order, victim).head;
        Some(Found { ix, order, victim })
    }

    /// The smallest block of another type that fits.
    fn find_smallest(&self, frames: &Frames, request: BlockRequest) -> Option<Found> {
        let mut orders = request.order.up_to(frames.geometry.max_order);
        orders.find_map(|order| self.find(order, request.mt))
    }

    /// Whether a block of this order lets the request take over its pageblock.
    fn may_claim(
        &self,
        frames: &Frames,
        rules: &PageblockRules,
        order: Order,
        mt: MigrateType,
    ) -> bool {
        order.0 >= frames.geometry.block_order.0 / 2
            || mt == Reclaimable
            || rules.unmovable_may_claim && mt == Unmovable
            || self.ungrouped
    }

    /// Whether a block of this order is on another type's list, and lets the request take over its pageblock.
    pub(super) fn may_claim_from(
        &self,
        frames: &Frames,
        rules: &PageblockRules,
        order: Order,
        mt: MigrateType,
    ) -> bool {
        self.find(order, mt).is_some() && self.may_claim(frames, rules, order, mt)
    }

    /// The smallest order that a search looks at.
    fn floor(frames: &Frames, request: BlockRequest) -> Order {
        if request.nofragment {
            request.order.max(frames.geometry.block_order)
        } else {
            request.order
        }
    }

    /// 2.6.24 to 6.9: one pass from the largest order down.
    fn scan_down(
        &mut self,
        frames: &Frames,
        (rules, scan): (&PageblockRules, &ScanDown),
        request: BlockRequest,
        boosts: &mut u32,
    ) -> Option<(Step, Fallback)> {
        let orders = Self::floor(frames, request).up_to(frames.geometry.max_order);
        let mut found = orders
            .rev()
            .find_map(|order| self.find(order, request.mt))?;
        let mut stealable = self.may_claim(frames, rules, found.order, request.mt);
        if scan.movable_ascends
            && !stealable
            && request.mt == Movable
            && found.order > request.order
        {
            found = self.find_smallest(frames, request)?;
            stealable = self.may_claim(frames, rules, found.order, request.mt);
        }
        if found.order < frames.geometry.block_order
            && scan.boost.is_some()
            && frames.block_type(found.ix) != HighAtomic
        {
            *boosts += 1;
        }
        let step = self.take_over(frames, (rules, scan), request, found, stealable);
        Some((step, fallback(frames, request, found)))
    }

    /// Takes over a block of another type, or its whole pageblock, as the rules allow.
    fn take_over(
        &mut self,
        frames: &Frames,
        (rules, scan): (&PageblockRules, &ScanDown),
        request: BlockRequest,
        found: Found,
        stealable: bool,
    ) -> Step {
        let Found { ix, order, victim } = found;
        let whole = order >= frames.geometry.block_order;
        let end = End::tail_if(rules.move_to_tail);
        if scan.remainder == Remainder::Victims {
            // 2.6.24 to 4.x: the block found is the one taken; its remainder has one owner.
            let owner = if stealable { request.mt } else { victim };
            if stealable {
                let n = self.lists.move_block(frames, ix, request.mt, end);
                if self.passes(frames, rules, request.mt, ix, n) {
                    frames.set_block_type(ix, request.mt);
                }
            }
            self.lists.remove(frames, ix);
            if whole {
                frames.set_block_types(ix, order, request.mt);
            }
            let mt = owner;
            self.lists
                .expand(frames, FreeBlock { ix, order, mt }, request.order);
            return Step::Direct(ix, owner);
        }
        if frames.block_type(ix) == HighAtomic {
            self.requeue_as(frames, ix, request.mt, end);
        } else if whole {
            frames.set_block_types(ix, order, request.mt);
            self.requeue_as(frames, ix, request.mt, end);
        } else if stealable {
            let n = self.lists.move_block(frames, ix, request.mt, end);
            if n.free == 0 {
                self.requeue_as(frames, ix, request.mt, end);
            } else if self.passes(frames, rules, request.mt, ix, n) {
                frames.set_block_type(ix, request.mt);
            }
        } else {
            self.requeue_as(frames, ix, request.mt, end);
        }
        Step::Moved
    }

    /// Moves one free block to the lists of `mt`.
    fn requeue_as(&mut self, frames: &Frames, ix: FrameIx, mt: MigrateType, end: End) {
        let (order, _) = self.lists.remove(frames, ix);
        self.lists.push(frames, FreeBlock { ix, order, mt }, end);
    }

    /// Whether a pageblock with so many free and movable frames may become one of type `mt`.
    fn passes(
        &self,
        frames: &Frames,
        rules: &PageblockRules,
        mt: MigrateType,
        ix: FrameIx,
        n: BlockCounts,
    ) -> bool {
        let size = frames.geometry.block_order.frames();
        let alike = match rules.claim_test {
            ClaimTest::HalfFree => 0,
            ClaimTest::AlwaysIfFixed if mt != Movable => size,
            ClaimTest::HalfFreeOrAlike | ClaimTest::AlwaysIfFixed => match frames.block_type(ix) {
                _ if mt == Movable => n.movable,
                Movable => size.saturating_sub(n.free + n.movable),
                _ => 0,
            },
        };
        n.free + alike >= size / 2 || self.ungrouped
    }

    /// 6.10 and later, first try: take over a whole pageblock, from the largest order down, or where the era has it so steal
    /// from the first one that it may not have. Says how many pageblocks it tried.
    fn claim_block(
        &mut self,
        frames: &Frames,
        (rules, steal): (&PageblockRules, Steal),
        request: BlockRequest,
    ) -> (Option<(Step, Fallback)>, u32) {
        let mut tries = 0;
        let orders = Self::floor(frames, request).up_to(frames.geometry.max_order);
        for order in orders.rev() {
            if !self.may_claim(frames, rules, order, request.mt) {
                break;
            }
            let Some(found) = self.find(order, request.mt) else {
                continue;
            };
            let (ix, mt) = (found.ix, request.mt);
            if order >= frames.geometry.block_order {
                self.lists.remove(frames, ix);
                frames.set_block_types(ix, order, mt);
                self.lists
                    .expand(frames, FreeBlock { ix, order, mt }, request.order);
                let step = (Step::Direct(ix, mt), fallback(frames, request, found));
                return (Some(step), tries);
            }
            tries += 1;
            let n = self.lists.count_block(frames, ix);
            if self.lists.holds_block(frames, ix) && self.passes(frames, rules, mt, ix, n) {
                let end = End::tail_if(rules.move_to_tail);
                self.lists.move_block(frames, ix, mt, end);
                frames.set_block_type(ix, mt);
                return (Some((Step::Moved, fallback(frames, request, found))), tries);
            }
            if steal == Steal::Largest {
                return (Some(self.steal(frames, request, found)), tries);
            }
        }
        (None, tries)
    }

    /// 6.10 and later: takes what is asked for out of a block and leaves the rest alone.
    fn steal(&mut self, frames: &Frames, request: BlockRequest, found: Found) -> (Step, Fallback) {
        let Found { ix, order, victim } = found;
        self.lists.remove(frames, ix);
        let mt = victim;
        self.lists
            .expand(frames, FreeBlock { ix, order, mt }, request.order);
        let step = Step::Direct(ix, victim);
        (step, fallback(frames, request, found))
    }
}

fn fallback(frames: &Frames, request: BlockRequest, found: Found) -> Fallback {
    Fallback {
        ix: found.ix,
        alloc_order: request.order,
        fallback_order: found.order,
        alloc_mt: request.mt,
        fallback_mt: found.victim,
        change_ownership: frames.block_type(found.ix) == request.mt,
    }
}
