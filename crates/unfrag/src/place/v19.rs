//! Fallback in the V19 patches (October 2005): blocks of the largest order, four types, and an
//! eighth of memory kept for fallbacks.
//!
//! Where the mails are silent (part 3/7 was not found), the remainder of a whole block that is
//! relabelled goes to the lists of its label, because V19 frees by label too.
//! `spec: linux-mm 2.1-2.3`

use super::{Fallback, Place, Taken, Want};
use crate::frame::{Frames, MAX_BLOCK, MAX_ORDER, MigrateType};
use MigrateType::{Fallback as Spare, Movable, Reclaimable, Unmovable};

/// Order from which a kernel request takes over the block it falls back to (`MAX_ORDER / 2` with
/// `MAX_ORDER` = 11), and from which the OOM killer is not called.
pub const LARGE_ORDER: u8 = 5;

/// The four types in the order of their V19 numbers.
pub const V19_TYPES: [MigrateType; 4] = [Unmovable, Movable, Reclaimable, Spare];

/// V19's name of a type, as its statistics print it. `spec: linux-mm 2.3`
pub const fn v19_type_name(mt: MigrateType) -> &'static str {
    match mt {
        Movable => "EasyRclm",
        Reclaimable => "KernRclm",
        Spare => "Fallback",
        _ => "KernNoRclm",
    }
}

/// The beancounters of a zone (`CONFIG_ALLOCSTATS`), by the order of [`V19_TYPES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V19Stats {
    /// Requests of the core allocator, by their type.
    pub allocs: [u64; 4],
    /// Blocks of each type.
    pub reserve: [u64; 4],
    /// Requests, by their type, that found the reserve empty.
    pub fallbacks: [u64; 4],
    /// Kernel fallbacks that took the block over.
    pub full_steal: u64,
    /// Kernel fallbacks that did not.
    pub partial_steal: u64,
    /// Pages in blocks of the reserve.
    pub fallback_reserve: u64,
    /// Pages that the reserve should have: an eighth of the zone.
    pub fallback_needed: u64,
}

/// Number of a type in V19.
pub(crate) const fn number(mt: MigrateType) -> usize {
    match mt {
        Movable => 1,
        Reclaimable => 2,
        Spare => 3,
        _ => 0,
    }
}

const fn row(mt: MigrateType) -> [MigrateType; 3] {
    match mt {
        Movable => [Spare, Unmovable, Reclaimable],
        Reclaimable => [Spare, Unmovable, Movable],
        _ => [Spare, Reclaimable, Movable],
    }
}

impl V19Stats {
    /// Starts the counters of a zone with `present` pages, all of them in kernel blocks.
    pub(crate) fn start(present: u64) -> V19Stats {
        V19Stats {
            reserve: [present / u64::from(MAX_BLOCK), 0, 0, 0],
            fallback_needed: present / 8,
            ..V19Stats::default()
        }
    }

    fn relabel(&mut self, from: MigrateType, to: MigrateType) {
        let (f, t) = (&mut self.reserve[number(from)], 1);
        *f = f.saturating_sub(t);
        self.reserve[number(to)] += 1;
        let block = u64::from(MAX_BLOCK);
        if from == Spare {
            self.fallback_reserve = self.fallback_reserve.saturating_sub(block);
        }
        if to == Spare {
            self.fallback_reserve += block;
        }
    }
}

impl Place {
    pub(super) fn take_v19(&mut self, frames: &mut Frames, want: Want) -> Option<Taken> {
        self.steal_whole(frames, want)
            .or_else(|| self.fall_back(frames, want))
    }

    /// The label for a block that a request of type `mt` takes over.
    fn label(&self, mt: MigrateType) -> MigrateType {
        if self.v19.fallback_reserve < self.v19.fallback_needed {
            Spare
        } else {
            mt
        }
    }

    /// Takes a block of the largest order from any type, and with it the whole block.
    fn steal_whole(&mut self, frames: &mut Frames, want: Want) -> Option<Taken> {
        let victim = V19_TYPES
            .into_iter()
            .find(|&t| t != want.mt && !self.lists.is_empty(MAX_ORDER, t))?;
        let ix = self.lists.list(MAX_ORDER, victim).head;
        let old = frames.block_type(ix);
        let label = self.label(want.mt);
        self.lists.remove(frames, ix);
        frames.set_block_type(ix, label);
        self.v19.relabel(old, label);
        self.lists.expand(frames, ix, MAX_ORDER, want.order, label);
        Some(self.taken(want, ix, MAX_ORDER, victim, label, frames))
    }

    /// Takes the largest block that is larger than the request from the types in turn.
    fn fall_back(&mut self, frames: &mut Frames, want: Want) -> Option<Taken> {
        let mut reserve_empty = false;
        let mut found = None;
        'rows: for victim in row(want.mt) {
            for order in (want.order + 1..=MAX_ORDER).rev() {
                if !self.lists.is_empty(order, victim) {
                    found = Some((order, victim));
                    break 'rows;
                }
            }
            reserve_empty |= victim == Spare;
        }
        if reserve_empty {
            self.v19.fallbacks[number(want.mt)] += 1;
        }
        let (order, victim) = found?;
        let ix = self.lists.list(order, victim).head;
        self.lists.remove(frames, ix);
        let mut owner = victim;
        if want.mt == Unmovable {
            owner = Unmovable;
            if order >= LARGE_ORDER {
                let (old, label) = (frames.block_type(ix), self.label(want.mt));
                frames.set_block_type(ix, label);
                self.v19.relabel(old, label);
                self.v19.full_steal += 1;
            } else {
                self.v19.partial_steal += 1;
            }
        }
        self.lists.expand(frames, ix, order, want.order, owner);
        Some(self.taken(want, ix, order, victim, owner, frames))
    }

    fn taken(
        &self,
        want: Want,
        ix: u32,
        order: u8,
        victim: MigrateType,
        list: MigrateType,
        frames: &Frames,
    ) -> Taken {
        let f = Fallback {
            ix,
            alloc_order: want.order,
            fallback_order: order,
            alloc_mt: want.mt,
            fallback_mt: victim,
            change_ownership: frames.block_type(ix) == want.mt,
        };
        Taken {
            ix,
            list,
            extfrag: Some(f),
            boosts: 0,
        }
    }
}
