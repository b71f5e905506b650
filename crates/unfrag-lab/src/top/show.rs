//! A view and what happened since the one before, as numbers.

use super::View;
use crate::geometry::Sizes;
use crate::host::amounts::Amounts;
use serde::Serialize;
use std::collections::BTreeMap;

/// A view as `--json` writes it.
#[derive(Clone, Debug, Serialize)]
pub struct Shown<'v> {
    /// What it is of.
    pub title: &'v str,
    /// Seconds since some moment of the source.
    pub seconds: f64,
    /// Sizes of frames and blocks; left out where they are the usual ones (frames of 4 KiB, blocks of 2 MiB).
    #[serde(skip_serializing_if = "Sizes::are_usual")]
    pub sizes: Sizes,
    /// Frames of its zones; none if the source does not tell.
    pub frames: Option<u64>,
    /// How large the host is; left out where it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Amounts>,
    /// Free frames.
    pub free_frames: u64,
    /// Free blocks of the size of a huge page, in blocks of that size or larger.
    pub free_huge: u64,
    /// Free blocks by order.
    pub free_blocks: &'v [u64],
    /// Events a second since the view before, by name; those that happened.
    pub per_second: BTreeMap<&'v str, f64>,
    /// Allocations that waited since then.
    pub waits: Option<Waits>,
    /// Two characters for each block, by area, as in a pool's `unfrag_blocks`.
    pub blocks: BTreeMap<&'v str, String>,
}

/// Allocations that had to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Waits {
    /// How many.
    pub count: u64,
    /// Half of them took less than so many nanoseconds.
    pub half_below_ns: u64,
    /// 99 of 100 did.
    pub p99_below_ns: u64,
    /// All of them did.
    pub all_below_ns: u64,
}

impl<'v> Shown<'v> {
    /// A view, after `before`.
    pub fn new(view: &'v View, before: Option<&View>) -> Shown<'v> {
        Shown {
            title: &view.title,
            seconds: view.seconds,
            sizes: view.sizes,
            frames: view.frames,
            memory: Some(view.memory).filter(|m| m.in_zones_bytes.is_some()),
            free_frames: view.free_frames(),
            free_huge: view.free_huge(),
            free_blocks: &view.free,
            per_second: before.map_or_else(BTreeMap::new, |b| rates(view, b)),
            waits: before.and_then(|b| waits(view, b)),
            blocks: view
                .areas
                .iter()
                .map(|a| {
                    (
                        a.name.as_str(),
                        a.cells.iter().map(|c| c.letters()).collect(),
                    )
                })
                .collect(),
        }
    }
}

fn rates<'v>(view: &'v View, before: &View) -> BTreeMap<&'v str, f64> {
    let seconds = view.seconds - before.seconds;
    if seconds <= 0.0 {
        return BTreeMap::new();
    }
    let rate = |(name, now): (&'v String, &u64)| {
        let more = now.saturating_sub(*before.counters.get(name)?);
        (more > 0).then(|| (name.as_str(), more as f64 / seconds))
    };
    view.counters.iter().filter_map(rate).collect()
}

fn waits(view: &View, before: &View) -> Option<Waits> {
    let more = |(below, n): (&u64, &u64)| {
        let n = n.saturating_sub(before.waits.get(below).copied().unwrap_or(0));
        (n > 0).then_some((*below, n))
    };
    let all: Vec<(u64, u64)> = view.waits.iter().filter_map(more).collect();
    let count = all.iter().map(|(_, n)| n).sum();
    let below = |rank: u64| {
        let mut seen = 0;
        let mut places = all.iter();
        let found = places.find(|(_, n)| {
            seen += n;
            seen >= rank
        });
        found.map_or(0, |(below, _)| *below)
    };
    (count > 0).then(|| Waits {
        count,
        half_below_ns: below(count.div_ceil(2)),
        p99_below_ns: below((count * 99).div_ceil(100)),
        all_below_ns: below(count),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(seconds: f64, counter: u64, waits: &[(u64, u64)]) -> View {
        View {
            seconds,
            free: vec![3, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1],
            counters: [("pgfree".to_owned(), counter), ("oom_kill".into(), 1)].into(),
            waits: waits.iter().copied().collect(),
            ..View::default()
        }
    }

    #[test]
    fn rates_and_waits_are_those_since_the_view_before() {
        let before = view(1.0, 100, &[(1024, 5), (4096, 1)]);
        let now = view(3.0, 150, &[(1024, 5), (2048, 97), (4096, 3), (1 << 20, 1)]);
        let shown = Shown::new(&now, Some(&before));
        assert_eq!(shown.per_second, [("pgfree", 25.0)].into());
        let waits = shown.waits.expect("some");
        assert_eq!((waits.count, waits.half_below_ns), (100, 2048));
        assert_eq!((waits.p99_below_ns, waits.all_below_ns), (4096, 1 << 20));
        assert_eq!((shown.free_frames, shown.free_huge), (3 + 2048, 4));
        let first = Shown::new(&now, None);
        assert!(first.per_second.is_empty() && first.waits.is_none());
    }
}
