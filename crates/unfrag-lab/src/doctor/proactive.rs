//! The score of a node, and the scores at which proactive compaction begins and ends.

use crate::era::Era;
use crate::host::Zone;
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

/// The score of a node: the percent of free memory outside blocks of `order`, weighted by the size of each zone; `None` if a
/// zone does not tell. `spec: 5.5`
pub fn score<'a>(zones: impl Iterator<Item = &'a Zone> + Clone, order: u8) -> Option<u64> {
    let all: Option<u64> = zones.clone().map(|z| z.told("present")).sum();
    let part = |z: &Zone| {
        let outside = z.outside(order)?;
        Some((u128::from(z.told("present")?) * u128::from(outside) / u128::from(all? + 1)) as u64)
    };
    zones.map(part).sum()
}
