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
pub fn score<'a>(zones: impl Iterator<Item = &'a Zone>, order: u8) -> Option<u64> {
    let each: Option<Vec<(u64, u64)>> = zones
        .map(|z| Some((z.told("present")?, z.outside(order)?)))
        .collect();
    Some(score_of(&each?))
}

/// The score of a node by the pages that its zones have and the percent of free memory outside large blocks in each.
/// `spec: 5.5`
pub(crate) fn score_of(zones: &[(u64, u64)]) -> u64 {
    let all = zones
        .iter()
        .fold(0, |sum: u64, (present, _)| sum.saturating_add(*present));
    let part = |(present, outside): &(u64, u64)| {
        (u128::from(*present) * u128::from(*outside) / (u128::from(all) + 1)) as u64
    };
    zones.iter().map(part).sum()
}
