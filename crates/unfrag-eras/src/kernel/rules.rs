//! The rules of one kernel, as one value.

use super::compact::{Chooser, CompactRules};
use super::generations::GenerationRules;
use super::kswapd::KswapdRules;
use super::marks::MarkRules;
use super::pcp::Pcp;
use super::placement::{Boost, Fallback, Merge, PageblockRules, Placement, Reserve, ScanDown};
use super::reclaim::ReclaimRules;
use super::requests::{RetryRules, RightsRules};
use crate::frame::{MigrateType, Order};

/// The rules of one kernel.
///
/// A variant of an era is a changed copy:
/// ```
/// let mut rules = unfrag_eras::preset("2.6.31").unwrap().rules;
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
    /// Compaction, in kernels that have it.
    pub compact: Option<CompactRules>,
}

impl Rules {
    /// Whether the host's [`Source`](crate::source::Source) chooses frames, not lists.
    #[inline]
    pub fn is_sourced(&self) -> bool {
        self.compact.is_some_and(|c| c.chooser == Chooser::Source)
    }

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

    /// The rules of generations, where the kernel has them.
    #[inline]
    pub const fn generations(&self) -> Option<&GenerationRules> {
        match self.reclaim.lru.split() {
            Some(split) => split.generations.as_ref(),
            None => None,
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

    /// Requests of orders above this one set a pageblock aside, if they cannot wait.
    #[inline]
    pub const fn reserves_above(&self) -> Order {
        match self.pageblocks() {
            Some(p) if p.reserve_costly_only => Order::COSTLY,
            _ => Order::ZERO,
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
                fallback: Fallback::ClaimThenSteal { boost, .. },
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

    /// Type of a pageblock before anything was allocated in it.
    pub(crate) const fn initial_type(&self) -> MigrateType {
        match self.placement {
            Placement::Pageblocks(_) => MigrateType::Movable,
            Placement::Ungrouped | Placement::V19 => MigrateType::Unmovable,
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
