//! The scores at which proactive compaction begins and ends.

use crate::era::Era;

/// Scores at which proactive compaction ends and begins. `spec: 5.5`
pub fn proactive_marks(proactiveness: u64, era: Era) -> [u64; 2] {
    let p = proactiveness.min(100);
    if era.preset() == "6.18" {
        let low = 100 - p;
        [low, (low + 10.min(low / 2)).min(100)]
    } else {
        let low = (100 - p).max(5);
        [low, (low + 10).min(100)]
    }
}
