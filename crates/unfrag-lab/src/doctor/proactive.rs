//! The scores at which proactive compaction begins and ends.

use crate::era::Era;
use unfrag_eras::compact::score::ScoreMarks;
use unfrag_eras::preset;

/// Scores at which proactive compaction ends and begins. `spec: 5.5`
pub fn proactive_marks(proactiveness: u64, era: Era) -> [u64; 2] {
    let p = proactiveness.min(100);
    // The rules of the era say it; a kernel without compaction ahead of demand has the marks of the first that has it.
    let rules = preset(era.preset()).and_then(|p| p.rules.compact?.proactive);
    let first = || preset("5.9").and_then(|p| p.rules.compact?.proactive);
    let marks = rules.or_else(first).map(|r| ScoreMarks::new(p as u8, &r));
    marks.map_or([0, 0], |m| [m.low, m.high])
}
