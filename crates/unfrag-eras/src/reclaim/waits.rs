//! Waits of reclaim and of the slow path, by era.

use super::scan_control::ScanControl;
use crate::kernel::CongestionWait;
use crate::lru::SWAP_CLUSTER_MAX;
use crate::need::{Answer, Class, Need, Throttle};

/// HZ/10 and HZ/50, the longest congestion waits, in milliseconds.
pub(super) const HZ_OVER_10_MS: u32 = 100;
pub(crate) const HZ_OVER_50_MS: u32 = 20;

/// A wait for congestion, or for progress.
pub(crate) fn congestion_wait(rule: CongestionWait, ms: u32) -> Need {
    match rule {
        CongestionWait::Sync => Need::CongestionWait {
            class: Class::Sync,
            ms,
        },
        CongestionWait::Throttle => Need::Throttle {
            why: Throttle::NoProgress,
            ms: 0,
        },
        CongestionWait::Async | CongestionWait::Both | CongestionWait::BothEverywhere => {
            Need::CongestionWait {
                class: Class::Async,
                ms,
            }
        }
    }
}

/// The second wait of a caller that waits for both classes, for the time that the first wait left.
pub(crate) fn second_wait(rule: CongestionWait, answer: Answer) -> Option<Need> {
    let both = matches!(rule, CongestionWait::Both | CongestionWait::BothEverywhere);
    match answer {
        Answer::Left(ms) if both && ms > 0 => Some(Need::CongestionWait {
            class: Class::Sync,
            ms,
        }),
        _ => None,
    }
}

/// Lets others run, and reports what was scanned and freed.
pub(super) fn turn(sc: &mut ScanControl) -> Need {
    let (scanned, freed) = core::mem::take(&mut sc.unreported);
    Need::Turn { scanned, freed }
}

/// Number of scanned pages that shrinkers get for a pass over the LRU lists. A pass that found nothing to scan
/// counts as one cluster, so that caches are shrunk when nothing else is left. `spec: 4.9`
pub(super) const fn pressure(scanned: u64) -> u64 {
    if scanned == 0 {
        SWAP_CLUSTER_MAX
    } else {
        scanned
    }
}
