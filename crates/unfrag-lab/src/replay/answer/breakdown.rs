//! When a replay says nothing: the model fails requests that no kernel fails.
//!
//! A request for a few pages that may wait fails on a real host only after the OOM killer found nobody. Where the model
//! fails many of them and the recorded kernel did not, its load is no longer the recorded one: what follows is the state
//! of another host.

use super::report::Failure;
use crate::report::number::thousands;
use std::collections::BTreeMap;
use unfrag_eras::Order;
use unfrag_linux::gfp_text;

/// Such failures, of all allocations, that are too many: one in so many, and so many at least.
const ONE_IN: u64 = 10_000;
const AT_LEAST: u64 = 10;
/// Frees of what the model never gave, of all frees, that are too many.
const DROPPED_ONE_IN: u64 = 10;
const DROPPED_AT_LEAST: u64 = 1_000;
/// What whoever asked can do.
const WAY_OUT: &str = "Ask for a milder setting or more memory, or take the recorded kernel's reclaim as given (--reclaim given); a \
                       recording by `unfrag record` as root shows more of what can be reclaimed";

/// Why the replay says nothing, if it broke down.
pub(super) fn breakdown(
    totals: &BTreeMap<String, Option<u64>>,
    failures: &[Failure],
) -> Option<String> {
    let total = |name: &str| totals.get(name).copied().flatten().unwrap_or(0);
    let failed: u64 = failures
        .iter()
        .filter(|f| must_succeed(f))
        .map(|f| f.count)
        .sum();
    let unexpected = failed.saturating_sub(total("failures_recorded"));
    let allocations = total("allocations");
    if unexpected >= AT_LEAST && unexpected >= allocations / ONE_IN {
        return Some(format!(
            "the model ran out of memory: {} requests of few pages failed in it, which the recorded kernel served ({} \
             allocations in all). {WAY_OUT}",
            thousands(unexpected),
            thousands(allocations)
        ));
    }
    let (dropped, frees) = (total("frees_dropped"), total("frees"));
    let too_many = dropped >= DROPPED_AT_LEAST && dropped >= frees / DROPPED_ONE_IN;
    too_many.then(|| {
        format!(
            "the model lost the load: {} frees are of pages that it never gave ({} frees were carried out). {WAY_OUT}",
            thousands(dropped),
            thousands(frees)
        )
    })
}

/// Whether a kernel does all it can before it fails this request.
fn must_succeed(f: &Failure) -> bool {
    let gfp = gfp_text::Era::V5_1.parse(&f.gfp).unwrap_or(0);
    let gfp = unfrag_eras::Gfp::from_bits_retain(gfp as u32);
    let gives_up = unfrag_eras::Gfp::NORETRY | unfrag_eras::Gfp::RETRY_MAYFAIL;
    Order(f.order) <= Order::COSTLY
        && gfp.contains(unfrag_eras::Gfp::DIRECT_RECLAIM)
        && !gfp.intersects(gives_up)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broke(order: u8, gfp: &str, count: u64, recorded: u64) -> bool {
        let totals = [("allocations", 100_000), ("failures_recorded", recorded)];
        let totals = totals.map(|(n, v)| (n.to_string(), Some(v))).into();
        let gfp = gfp.into();
        breakdown(&totals, &[Failure { order, gfp, count }]).is_some()
    }

    #[test]
    fn frees_of_what_the_model_never_gave_break_a_replay_down() {
        let why = |dropped, frees| {
            let totals = [("frees", frees), ("frees_dropped", dropped)];
            breakdown(&totals.map(|(n, v)| (n.to_string(), Some(v))).into(), &[])
        };
        assert!(why(1_000, 10_000).is_some_and(|w| w.contains("1,000 frees")));
        assert_eq!(why(999, 1_000), None, "a few");
        assert_eq!(why(1_000, 10_010), None, "a few of many");
    }

    #[test]
    fn requests_that_no_kernel_fails_break_a_replay_down() {
        assert!(broke(0, "GFP_KERNEL", 44_122, 0));
        assert!(broke(2, "GFP_HIGHUSER_MOVABLE|__GFP_ZERO", 10, 0));
        assert!(!broke(0, "GFP_KERNEL", 9, 0), "a few");
        assert!(
            !broke(0, "GFP_KERNEL", 44_122, 44_120),
            "the recorded kernel did, too"
        );
        assert!(!broke(9, "GFP_TRANSHUGE", 500, 0), "huge pages fail");
        assert!(!broke(0, "GFP_ATOMIC", 500, 0), "it may not wait");
        assert!(
            !broke(0, "GFP_HIGHUSER_MOVABLE|__GFP_NORETRY", 500, 0),
            "it gives up"
        );
    }
}
