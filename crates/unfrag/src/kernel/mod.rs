//! An era of the allocator as a value: [`Rules`] (what the code of that kernel does) and
//! [`Sysctl`] (what its administrator can set).
//!
//! Every rule that changed between kernels is a value of its own, named for what it decides and
//! decided in one place of the core; no era has code of its own. Rules that say something only
//! together with another stand inside it, so that nonsense cannot be written; none is inferred from
//! another that changed in the same years. `spec: linux-6.1 era table`
//!
//! - `placement`: how types share memory, fallbacks, reserves.
//! - `marks`: the watermarks.
//! - `pcp`: per-CPU lists.
//! - `requests`: rights in the slow path, and how long a request goes on.
//! - `kswapd`, `reclaim`: what reclaim does.
//! - `presets`: the eras, each written out in full.

mod kswapd;
mod marks;
mod pcp;
mod placement;
mod presets;
mod reclaim;
mod requests;

pub use kswapd::{KswapdForm, KswapdNap, KswapdRules, KswapdSleep};
pub use marks::{MarkCheck, MarkGap, MarkRules, ZonePages};
pub use pcp::{Drain, Pcp};
pub use placement::{
    Boost, BoostRecheck, BoostWakes, ClaimTest, Fallback, HighAtomicLimit, Merge, PageblockRules,
    Placement, Remainder, Reserve, ScanDown,
};
pub use presets::{PRESETS, Preset, preset};
pub use reclaim::{
    ActiveFiles, CongestionWait, HighOrder, LruRules, LruShape, ReclaimRules, ScanBalance, SplitLru,
};
pub use requests::{
    LeavesCpuset, OomOrders, RealtimeRight, RetryDrain, RetryForm, RetryRules, RightsRules,
};

/// The rules of one kernel.
///
/// A variant of an era is a changed copy:
/// ```
/// let mut rules = unfrag::preset("2.6.31").unwrap().rules;
/// rules.retry.wake_on_restart = true;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// How types share memory.
    pub placement: Placement,
    /// Order of a pageblock: 9, or 10 for V19's blocks.
    pub block_order: u8,
    /// Freed blocks that will likely merge soon go to the tail of their list.
    pub tail_if_merge_likely: bool,
    /// Watermarks.
    pub marks: MarkRules,
    /// Per-CPU lists.
    pub pcp: Pcp,
    /// Most that a CPU's lists take for a quarter of what they move at a time, in KiB.
    pub pcp_batch_cap_kbytes: u64,
    /// What a request may use in the slow path.
    pub rights: RightsRules,
    /// What it does after reclaim.
    pub retry: RetryRules,
    /// kswapd.
    pub kswapd: KswapdRules,
    /// Reclaim.
    pub reclaim: ReclaimRules,
}

impl Rules {
    /// The rules of pageblocks, where memory is grouped by them.
    #[inline]
    pub const fn pageblocks(&self) -> Option<&PageblockRules> {
        match &self.placement {
            Placement::Pageblocks(p) => Some(p),
            Placement::Ungrouped | Placement::V19 => None,
        }
    }

    /// The rules of pageblocks, to be changed, where memory is grouped by them.
    pub const fn pageblocks_mut(&mut self) -> Option<&mut PageblockRules> {
        match &mut self.placement {
            Placement::Pageblocks(p) => Some(p),
            Placement::Ungrouped | Placement::V19 => None,
        }
    }

    /// What is set aside for requests that cannot wait.
    #[inline]
    pub const fn reserve(&self) -> Reserve {
        match self.pageblocks() {
            Some(p) => p.reserve,
            None => Reserve::None,
        }
    }

    /// What fallbacks do to the watermarks, if anything.
    #[inline]
    pub const fn boost(&self) -> Option<Boost> {
        match self.pageblocks() {
            Some(PageblockRules {
                fallback: Fallback::ScanDown(ScanDown { boost, .. }),
                ..
            }) => *boost,
            Some(PageblockRules {
                fallback: Fallback::ClaimThenSteal { boost },
                ..
            }) => *boost,
            None => None,
        }
    }

    /// Whether blocks of all types merge at pageblock order and above.
    #[inline]
    pub const fn merges_all(&self) -> bool {
        match self.pageblocks() {
            Some(p) => matches!(
                p.fallback,
                Fallback::ScanDown(ScanDown {
                    merge: Merge::All,
                    ..
                })
            ),
            None => true,
        }
    }

    /// Whether a free block always lies on the list of its pageblock's type.
    #[inline]
    pub const fn lists_follow_blocks(&self) -> bool {
        matches!(
            self.placement,
            Placement::Pageblocks(PageblockRules {
                fallback: Fallback::ClaimThenSteal { .. },
                ..
            })
        )
    }
}

/// Settings of the administrator, with Linux' names and defaults. 0 means "let the kernel choose"
/// where Linux has it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sysctl {
    /// `vm.min_free_kbytes`; 0: from the size of memory.
    pub min_free_kbytes: u64,
    /// `vm.watermark_scale_factor`, in 1/10000 of a zone (1 to 3000).
    pub watermark_scale_factor: u64,
    /// `vm.watermark_boost_factor`, in 1/10000 of the high mark; 0: no boost.
    pub watermark_boost_factor: u64,
    /// `vm.lowmem_reserve_ratio` by zone.
    pub lowmem_reserve_ratio: [u64; crate::frame::NR_ZONE_KINDS],
    /// `vm.percpu_pagelist_high_fraction` (before 5.14 `percpu_pagelist_fraction`); 0: by marks.
    pub percpu_pagelist_high_fraction: u64,
    /// `vm.defrag_mode` (6.15 and later), 0 or 1.
    pub defrag_mode: bool,
    /// `vm.page_group_by_mobility_disabled`; always so where memory is too small to group.
    pub group_by_mobility_disabled: bool,
    /// Transparent huge pages are on, so that khugepaged runs.
    pub transparent_hugepage: bool,
    /// `vm.swappiness`, 0 to 100 (200 since 5.8).
    pub swappiness: u64,
}

impl Sysctl {
    /// These settings, changed.
    /// ```
    /// let sysctl = unfrag::Sysctl::default().with(|s| s.min_free_kbytes = 8192);
    /// # assert_eq!(sysctl.min_free_kbytes, 8192);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Sysctl)) -> Sysctl {
        change(&mut self);
        self
    }
}

impl Default for Sysctl {
    fn default() -> Self {
        Sysctl {
            min_free_kbytes: 0,
            watermark_scale_factor: 10,
            watermark_boost_factor: 15000,
            lowmem_reserve_ratio: [256, 256, 32, 32, 0],
            percpu_pagelist_high_fraction: 0,
            defrag_mode: false,
            group_by_mobility_disabled: false,
            transparent_hugepage: true,
            swappiness: 60,
        }
    }
}
