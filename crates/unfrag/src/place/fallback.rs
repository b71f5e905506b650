//! Falling back to another type's lists, from 2.6.24 on.
//!
//! A request whose own lists are empty looks at the other types in a fixed order, largest blocks
//! first, and may take over a whole pageblock. What differs between eras is a handful of rules:
//! the scan, who may claim, the test for it, when and where free blocks move, and whose the
//! remainder is. `spec: linux-mm 2.5, 2.6; linux-6.1 2.6`

use super::{Fallback, Memory, Place, Taken, Want};
use crate::frame::{Frames, Ix, MAX_ORDER, MigrateType};
use crate::kernel::{self, ClaimTest, PageblockRules, Remainder, ScanDown};
use MigrateType::{HighAtomic, Movable, Reclaimable, Reserve, Unmovable};

/// The types that a request may fall back to, in turn.
const fn row(mt: MigrateType) -> [MigrateType; 2] {
    match mt {
        Movable => [Reclaimable, Unmovable],
        Reclaimable => [Unmovable, Movable],
        _ => [Reclaimable, Movable],
    }
}

/// What one fallback step did.
enum Step {
    /// Blocks moved to the own lists: smallest fit will find one.
    Moved,
    /// The block found was taken directly.
    Direct(Ix, MigrateType),
}

impl Place {
    pub(super) fn take_fallback(
        &mut self,
        frames: &mut Frames,
        rules: &PageblockRules,
        want: Want,
        memory: &mut Memory,
    ) -> Option<Taken> {
        let mut boosts = 0;
        let found = match &rules.fallback {
            kernel::Fallback::ClaimThenSteal { boost } => {
                let mut found = None;
                if !memory.stealing {
                    found = self.claim(frames, rules, boost.is_some(), want, &mut boosts);
                }
                if found.is_none() && !want.nofragment {
                    found = self.steal(frames, want);
                    memory.stealing = found.is_some();
                }
                found
            }
            kernel::Fallback::ScanDown(scan) => {
                self.scan_down(frames, rules, scan, want, &mut boosts)
            }
        };
        let Some((step, extfrag)) = found else {
            // MIGRATE_RESERVE is the last resort of any type (2.6.24 to 4.3).
            let ix = self.lists.smallest_fit(frames, want.order, Reserve)?;
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
                self.lists.smallest_fit(frames, want.order, want.mt)?,
                want.mt,
            ),
        };
        Some(Taken {
            ix,
            list,
            extfrag: Some(extfrag),
            boosts,
        })
    }

    /// First type of the row with a block of this order.
    fn find(&self, order: u8, mt: MigrateType) -> Option<MigrateType> {
        row(mt)
            .into_iter()
            .find(|&t| !self.lists.is_empty(order, t))
    }

    /// Whether a block of this order lets the request take over its pageblock.
    fn may_claim(
        &self,
        rules: &PageblockRules,
        order: u8,
        block_order: u8,
        mt: MigrateType,
    ) -> bool {
        order >= block_order / 2
            || mt == Reclaimable
            || rules.unmovable_may_claim && mt == Unmovable
            || self.ungrouped
    }

    /// 2.6.24 to 6.9: one pass from the largest order down.
    fn scan_down(
        &mut self,
        frames: &mut Frames,
        rules: &PageblockRules,
        scan: &ScanDown,
        want: Want,
        boosts: &mut u32,
    ) -> Option<(Step, Fallback)> {
        let floor = if want.nofragment {
            want.order.max(frames.block_order)
        } else {
            want.order
        };
        let (mut order, mut victim) = (floor..=MAX_ORDER)
            .rev()
            .find_map(|o| Some((o, self.find(o, want.mt)?)))?;
        let mut stealable = self.may_claim(rules, order, frames.block_order, want.mt);
        if scan.movable_ascends && !stealable && want.mt == Movable && order > want.order {
            (order, victim) =
                (want.order..=MAX_ORDER).find_map(|o| Some((o, self.find(o, want.mt)?)))?;
            stealable = self.may_claim(rules, order, frames.block_order, want.mt);
        }
        let ix = self.lists.list(order, victim).head;
        if order < frames.block_order && scan.boost.is_some() && frames.block_type(ix) != HighAtomic
        {
            *boosts += 1;
        }
        let step = self.take_over(
            frames,
            rules,
            scan.remainder,
            want,
            ix,
            order,
            victim,
            stealable,
        );
        Some((step, self.fallback(frames, want, ix, order, victim)))
    }

    /// The block `ix` of another type was found: takes over what the rules allow.
    #[allow(clippy::too_many_arguments)]
    fn take_over(
        &mut self,
        frames: &mut Frames,
        rules: &PageblockRules,
        remainder: Remainder,
        want: Want,
        ix: Ix,
        order: u8,
        victim: MigrateType,
        stealable: bool,
    ) -> Step {
        let whole = order >= frames.block_order;
        if remainder == Remainder::Victims {
            // The block found is the one taken; its remainder has one owner.
            let owner = if stealable { want.mt } else { victim };
            if stealable {
                let n = self
                    .lists
                    .move_block(frames, ix, want.mt, rules.move_to_tail);
                if self.passes(frames, rules, want.mt, ix, n.free, n.movable) {
                    frames.set_block_type(ix, want.mt);
                }
            }
            self.lists.remove(frames, ix);
            if whole {
                frames.set_block_types(ix, order, want.mt);
            }
            self.lists.expand(frames, ix, order, want.order, owner);
            return Step::Direct(ix, owner);
        }
        if frames.block_type(ix) == HighAtomic {
            self.requeue_as(frames, ix, want.mt, rules);
        } else if whole {
            frames.set_block_types(ix, order, want.mt);
            self.requeue_as(frames, ix, want.mt, rules);
        } else if stealable {
            let n = self
                .lists
                .move_block(frames, ix, want.mt, rules.move_to_tail);
            if n.free == 0 {
                self.requeue_as(frames, ix, want.mt, rules);
            } else if self.passes(frames, rules, want.mt, ix, n.free, n.movable) {
                frames.set_block_type(ix, want.mt);
            }
        } else {
            self.requeue_as(frames, ix, want.mt, rules);
        }
        Step::Moved
    }

    /// Moves one free block to the lists of `mt`.
    fn requeue_as(&mut self, frames: &mut Frames, ix: Ix, mt: MigrateType, rules: &PageblockRules) {
        let (order, _) = self.lists.remove(frames, ix);
        self.lists.push(frames, ix, order, mt, rules.move_to_tail);
    }

    /// Whether a pageblock with so many free and movable frames may become one of type `mt`.
    fn passes(
        &self,
        frames: &Frames,
        rules: &PageblockRules,
        mt: MigrateType,
        ix: Ix,
        free: u32,
        movable: u32,
    ) -> bool {
        let size = 1u32 << frames.block_order;
        let alike = match rules.claim_test {
            ClaimTest::HalfFree => 0,
            ClaimTest::HalfFreeOrAlike if mt == Movable => movable,
            ClaimTest::HalfFreeOrAlike if frames.block_type(ix) == Movable => {
                size.saturating_sub(free + movable)
            }
            ClaimTest::HalfFreeOrAlike => 0,
        };
        free + alike >= size / 2 || self.ungrouped
    }

    /// 6.10 and later, first try: take over a whole pageblock, from the largest order down.
    fn claim(
        &mut self,
        frames: &mut Frames,
        rules: &PageblockRules,
        boost: bool,
        want: Want,
        boosts: &mut u32,
    ) -> Option<(Step, Fallback)> {
        let floor = if want.nofragment {
            want.order.max(frames.block_order)
        } else {
            want.order
        };
        for order in (floor..=MAX_ORDER).rev() {
            if !self.may_claim(rules, order, frames.block_order, want.mt) {
                break;
            }
            let Some(victim) = self.find(order, want.mt) else {
                continue;
            };
            let ix = self.lists.list(order, victim).head;
            if order >= frames.block_order {
                self.lists.remove(frames, ix);
                frames.set_block_types(ix, order, want.mt);
                self.lists.expand(frames, ix, order, want.order, want.mt);
                let f = self.fallback(frames, want, ix, order, victim);
                return Some((Step::Direct(ix, want.mt), f));
            }
            if boost {
                *boosts += 1;
            }
            let n = self.lists.count_block(frames, ix);
            if self.lists.holds_block(frames, ix)
                && self.passes(frames, rules, want.mt, ix, n.free, n.movable)
            {
                self.lists
                    .move_block(frames, ix, want.mt, rules.move_to_tail);
                frames.set_block_type(ix, want.mt);
                return Some((Step::Moved, self.fallback(frames, want, ix, order, victim)));
            }
        }
        None
    }

    /// 6.10 and later, second try: take the smallest block that fits and leave the rest alone.
    fn steal(&mut self, frames: &mut Frames, want: Want) -> Option<(Step, Fallback)> {
        let (order, victim) =
            (want.order..=MAX_ORDER).find_map(|o| Some((o, self.find(o, want.mt)?)))?;
        let ix = self.lists.list(order, victim).head;
        self.lists.remove(frames, ix);
        self.lists.expand(frames, ix, order, want.order, victim);
        Some((
            Step::Direct(ix, victim),
            self.fallback(frames, want, ix, order, victim),
        ))
    }

    fn fallback(
        &self,
        frames: &Frames,
        want: Want,
        ix: Ix,
        order: u8,
        victim: MigrateType,
    ) -> Fallback {
        Fallback {
            ix,
            alloc_order: want.order,
            fallback_order: order,
            alloc_mt: want.mt,
            fallback_mt: victim,
            change_ownership: frames.block_type(ix) == want.mt,
        }
    }
}
