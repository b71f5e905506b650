//! The reduction of a very long or very large report, so that a browser can open its page: fewer moments,
//! and neighbouring pageblocks folded into one.
//!
//! Invariant: the first and the last moment stay, moments that stay are unchanged, and a sentence says what
//! was left out.

use crate::replay::answer::Report;
use crate::replay::answer::report::{BlockMap, Sample};
use crate::report::moments::{MOMENTS, evenly_spread, fewer_moments, sentence};

/// Moments drawn in a map.
const MAP_MOMENTS: usize = 500;
/// Rows of a map.
const MAP_ROWS: usize = 1_024;

/// A reduced report, and the sentence that says so.
pub(super) struct Reduced {
    pub report: Report,
    pub sentence: String,
}

/// The reduced report, or nothing if it is small enough.
pub(super) fn reduce(report: &Report) -> Option<Reduced> {
    let maps = || report.kernels.iter().filter_map(|k| k.block_map.as_ref());
    let moments = report.kernels.iter().map(|k| k.samples.len());
    let moments = moments.chain([report.recorded.len()]).max().unwrap_or(0);
    let map_moments = maps().map(|m| m.types.len()).max().unwrap_or(0);
    let blocks = maps().filter_map(|m| m.types.first()).map(String::len);
    let blocks = blocks.max().unwrap_or(0);
    let mut said = Vec::new();
    said.extend(fewer_moments(moments));
    if map_moments > MAP_MOMENTS {
        said.push(format!(
            "{MAP_MOMENTS} of {map_moments} moments in the maps"
        ));
    }
    let fold = blocks.div_ceil(MAP_ROWS).max(1);
    if fold > 1 {
        said.push(format!(
            "{fold} neighbouring pageblocks as one in the maps (the commonest type, the mean fullness)"
        ));
    }
    if said.is_empty() {
        return None;
    }
    let mut report = report.clone();
    report.recorded = evenly_spread(&report.recorded, MOMENTS);
    for kernel in &mut report.kernels {
        kernel.samples = evenly_spread::<Sample>(&kernel.samples, MOMENTS);
        if let Some(accuracy) = &mut kernel.accuracy {
            accuracy.by_snapshot = evenly_spread(&accuracy.by_snapshot, 2 * MOMENTS);
        }
        if let Some(map) = &mut kernel.block_map {
            *map = folded(map, fold);
        }
    }
    Some(Reduced {
        report,
        sentence: sentence(&said),
    })
}

/// The map with `fold` neighbouring blocks as one.
fn folded(map: &BlockMap, fold: usize) -> BlockMap {
    let rows = |rows: &[String], one: fn(&[u8]) -> u8| -> Vec<String> {
        evenly_spread(rows, MAP_MOMENTS)
            .iter()
            .map(|row| {
                let chunks = row.as_bytes().chunks(fold);
                chunks.map(|c| char::from(one(c))).collect()
            })
            .collect()
    };
    BlockMap {
        first_pfn: map.first_pfn,
        block_pages: map.block_pages.saturating_mul(fold as u32),
        type_names: map.type_names.clone(),
        seconds: evenly_spread(&map.seconds, MAP_MOMENTS),
        types: rows(&map.types, commonest),
        fullness: rows(&map.fullness, mean),
    }
}

/// The commonest digit; `.` only where nothing else is.
fn commonest(digits: &[u8]) -> u8 {
    let count = |d: u8| digits.iter().filter(|x| **x == d).count();
    let known = (b'0'..=b'9').filter(|d| digits.contains(d));
    known.max_by_key(|d| count(*d)).unwrap_or(b'.')
}

/// The mean of the digits; `.` only where nothing else is.
fn mean(digits: &[u8]) -> u8 {
    let known: Vec<usize> = digits
        .iter()
        .filter(|d| d.is_ascii_digit())
        .map(|d| usize::from(d - b'0'))
        .collect();
    if known.is_empty() {
        return b'.';
    }
    let sum: usize = known.iter().sum();
    b'0' + ((2 * sum + known.len()) / (2 * known.len())) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_stay() {
        let items: Vec<usize> = (0..10_000).collect();
        let few = evenly_spread(&items, 100);
        assert_eq!((few.len(), few[0], few[99]), (100, 0, 9_999));
        assert!(few.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn folding_keeps_the_commonest_type_and_the_mean_fullness() {
        let map = BlockMap {
            first_pfn: 512,
            block_pages: 512,
            type_names: vec!["Unmovable".into(), "Movable".into()],
            seconds: vec![1.0],
            types: vec!["0110..1".into()],
            fullness: vec!["0990..3".into()],
        };
        let half = folded(&map, 3);
        assert_eq!(half.types, ["101"]);
        assert_eq!(half.fullness, ["603"]);
        assert_eq!(half.block_pages, 1_536);
    }
}
