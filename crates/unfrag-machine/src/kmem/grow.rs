//! Pages for new slabs: which orders are tried, and with which flags.
//! `spec: 4, 6.2, 6.5`

use super::allocator::Kmem;
use super::records::CacheId;
use unfrag_eras::Gfp;
use unfrag_slab::{Design, FirstAttempt};

/// How a cache grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowthPlan {
    /// Order of its slabs.
    pub order: u8,
    /// Least order that holds an object; equal to `order` unless the design is SLUB.
    pub min_order: u8,
    /// Whether a shrinker gives its objects back.
    pub reclaimable: bool,
}

/// One attempt at pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Try {
    /// Order.
    pub order: u8,
    /// Flags.
    pub gfp: Gfp,
    /// Only one pass over the free lists. `spec: 6.5 (d)`
    pub first_pass_only: bool,
}

impl Kmem {
    /// How a cache grows.
    ///
    /// # Panics
    /// If there is no such cache.
    pub fn plan(&self, cache: CacheId) -> GrowthPlan {
        let c = &self.caches[usize::from(cache.0)].common;
        let slub = self.rules.design == Design::Slub;
        GrowthPlan {
            order: c.order,
            min_order: if slub { c.min_order } else { c.order },
            reclaimable: c.reclaimable,
        }
    }

    /// The attempts of a cache to get a slab for a caller with these flags. SLUB tries its preferred order
    /// first, if its rules allow it with `free` of `total` pages free; then comes the least order.
    pub fn tries(&self, cache: CacheId, gfp: Gfp, free: u64, total: u64) -> (Option<Try>, Try) {
        let plan = self.plan(cache);
        let gfp = if plan.reclaimable {
            gfp | Gfp::RECLAIMABLE
        } else {
            gfp
        };
        let last = Try {
            order: plan.min_order,
            gfp,
            first_pass_only: false,
        };
        if plan.order == plan.min_order {
            return (None, last);
        }
        let polite = (gfp - Gfp::NOFAIL) | Gfp::NOWARN | Gfp::NORETRY;
        let rule = self.rules.slub.first_attempt;
        let gfp = match rule {
            FirstAttempt::Historic => polite,
            FirstAttempt::IfPlentyFree if free > total / 8 => polite,
            FirstAttempt::IfPlentyFree => return (None, last),
            FirstAttempt::NoWait => polite - Gfp::DIRECT_RECLAIM,
            FirstAttempt::NoWake | FirstAttempt::FirstPassOnly => {
                (polite - Gfp::DIRECT_RECLAIM - Gfp::KSWAPD_RECLAIM) | Gfp::NOMEMALLOC
            }
        };
        let first = Try {
            order: plan.order,
            gfp,
            first_pass_only: rule == FirstAttempt::FirstPassOnly,
        };
        (Some(first), last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_slab::{Rules, SlubRules};

    fn names(first_attempt: FirstAttempt) -> (Kmem, CacheId) {
        let slub = SlubRules::V2_6_28.first_attempt(first_attempt);
        let mut kmem = Kmem::new(Rules::S2.slub(slub), 8);
        let cache = kmem.create("names_cache", 4096, false);
        (kmem, cache)
    }

    #[test]
    // `spec: 6.2`
    fn first_attempt_of_2_6_28_reclaims() {
        let (kmem, cache) = names(FirstAttempt::Historic);
        let (first, last) = kmem.tries(cache, Gfp::KERNEL, 0, 100);
        let first = first.unwrap();
        assert_eq!((first.order, last.order), (3, 0));
        assert!(
            first
                .gfp
                .contains(Gfp::DIRECT_RECLAIM | Gfp::KSWAPD_RECLAIM)
        );
        assert!(first.gfp.contains(Gfp::NORETRY | Gfp::NOWARN));
        assert_eq!(last.gfp, Gfp::KERNEL);
    }

    #[test]
    // `spec: 6.5`
    fn each_rule_drops_one_more_flag() {
        let gfp = |rule| {
            let (kmem, cache) = names(rule);
            kmem.tries(cache, Gfp::KERNEL, 20, 100).0.unwrap().gfp
        };
        assert!(gfp(FirstAttempt::IfPlentyFree).contains(Gfp::DIRECT_RECLAIM));
        let b = gfp(FirstAttempt::NoWait);
        assert!(!b.contains(Gfp::DIRECT_RECLAIM) && b.contains(Gfp::KSWAPD_RECLAIM));
        let c = gfp(FirstAttempt::NoWake);
        assert!(!c.intersects(Gfp::DIRECT_RECLAIM | Gfp::KSWAPD_RECLAIM));
        let (kmem, cache) = names(FirstAttempt::FirstPassOnly);
        assert!(
            kmem.tries(cache, Gfp::KERNEL, 0, 100)
                .0
                .unwrap()
                .first_pass_only
        );
        let (kmem, cache) = names(FirstAttempt::IfPlentyFree);
        assert_eq!(
            kmem.tries(cache, Gfp::KERNEL, 12, 100).0,
            None,
            "an eighth is needed"
        );
    }
}
