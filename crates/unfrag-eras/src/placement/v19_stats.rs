//! Types and statistics of the V19 patches. `spec: 2.1-2.3`

use crate::frame::{MigrateType, Order};
use MigrateType::{Fallback as Spare, Movable, Reclaimable, Unmovable};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Order from which a kernel request takes over the block it falls back to (`MAX_ORDER / 2` with
/// `MAX_ORDER` = 11), and from which the OOM killer is not called.
pub(super) const LARGE_ORDER: Order = Order(5);

/// The four types in the order of their V19 numbers.
pub const V19_TYPES: [MigrateType; 4] = [Unmovable, Movable, Reclaimable, Spare];

/// V19's name of a type, as its statistics print it. `spec: 2.3`
pub const fn v19_type_name(mt: MigrateType) -> &'static str {
    match mt {
        Movable => "EasyRclm",
        Reclaimable => "KernRclm",
        Spare => "Fallback",
        _ => "KernNoRclm",
    }
}

/// The counters of a zone (`CONFIG_ALLOCSTATS`), by the order of [`V19_TYPES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct V19Stats {
    /// Requests of the allocator, by their type.
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
pub(super) const fn number(mt: MigrateType) -> usize {
    match mt {
        Movable => 1,
        Reclaimable => 2,
        Spare => 3,
        _ => 0,
    }
}

impl V19Stats {
    /// Starts the counters of a zone with `present` pages, all of them in kernel blocks.
    pub(crate) fn start(present: u64, block: u64) -> V19Stats {
        V19Stats {
            reserve: [present / block, 0, 0, 0],
            fallback_needed: present / 8,
            ..V19Stats::default()
        }
    }

    pub(super) fn relabel(&mut self, from: MigrateType, to: MigrateType, block: u64) {
        let (f, t) = (&mut self.reserve[number(from)], 1);
        *f = f.saturating_sub(t);
        self.reserve[number(to)] += 1;
        if from == Spare {
            self.fallback_reserve = self.fallback_reserve.saturating_sub(block);
        }
        if to == Spare {
            self.fallback_reserve += block;
        }
    }
}
