//! The values of settings that are advised: one rule for each, for the doctor of a host and for whoever reads its log.
//!
//! Invariant: a value follows from the present setting and the sizes of memory alone, so that two ways of reading one host
//! lead to the same.

use super::proactive::proactive_marks;
use crate::era::Era;

/// Steps of `compaction_proactiveness`: few, so that a score which moves a little leads to no other one.
pub(crate) const PROACTIVENESS: [u64; 3] = [20, 50, 80];

/// The next larger `min_free_kbytes`: twice as much, but never more than a twentieth of memory; `None` if that is no more.
///
/// In whole 64 KiB, as the marks of zones that a log shows are the setting less some pages for each zone.
pub(crate) fn min_free_kbytes(now: u64, managed_kib: u64) -> Option<u64> {
    let twice = now.saturating_mul(2);
    let twice = twice.checked_next_multiple_of(64).unwrap_or(twice);
    Some(twice.min(managed_kib / 20)).filter(|&value| value > now)
}

/// A mark, without the boost, as it would be under another `min_free_kbytes`: all follow it. `spec: 1.3`
pub(crate) fn mark_under(mark: u64, now: u64, value: u64) -> u64 {
    mark.saturating_mul(value) / now.max(1)
}

/// What a zone's marks follow from, in pages: those that the allocator manages, and the min mark without the boost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marked {
    /// Pages that the allocator manages.
    pub managed: u64,
    /// The min mark, without the boost.
    pub min: u64,
}

impl Marked {
    /// Pages between min and low: a share of the zone, a quarter of min at least.
    pub fn gap(self, factor: u64) -> u64 {
        let part = u128::from(self.managed) * u128::from(factor) / 10_000;
        (part as u64).max(self.min / 4)
    }
}

/// The next larger `watermark_scale_factor`, at which kswapd begins twice as early at least; `None` if none is. Without the
/// zones, five times as much.
pub(crate) fn watermark_scale_factor(now: u64, zones: Option<&[Marked]>) -> Option<u64> {
    /// Three hundredths of memory.
    const MOST: u64 = 300;
    let sum = |factor: u64| {
        let add = |sum: u64, z: &Marked| sum.saturating_add(z.gap(factor));
        Some(zones?.iter().fold(0, add))
    };
    // A quarter of a large min may be more than a small share: then a larger one.
    let doubles = |&value: &u64| {
        let known = sum(now).zip(sum(value)).filter(|(from, _)| *from > 0);
        value > now && known.is_none_or(|(from, to)| to / 2 >= from)
    };
    let steps = [now.saturating_mul(5), 100, 200, MOST];
    steps.into_iter().filter(|&v| v <= MOST).find(doubles)
}

/// The smallest larger step of `compaction_proactiveness` at which compaction begins below all scores that were seen;
/// `None` if none does.
pub(crate) fn compaction_proactiveness(now: u64, least_score: u64, era: Era) -> Option<u64> {
    /// A score so near above the beginning of compaction would be below it at times.
    const NEAR: u64 = 5;
    let begins = |p: u64| proactive_marks(p, era)[1];
    PROACTIVENESS
        .into_iter()
        .find(|&p| p > now && begins(p).saturating_add(NEAR) <= least_score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_and_the_marks_that_it_made_lead_to_one_value() {
        // A host of 323.6 MiB: 2,048 KiB were set, and the marks of its two zones keep 2,044.
        assert_eq!(min_free_kbytes(2048, 331_366), Some(4096));
        assert_eq!(min_free_kbytes(2044, 331_366), Some(4096));
        // One of 23.5 GiB: 67,584 set, 10 + 2,115 + 14,769 pages kept.
        assert_eq!(min_free_kbytes(67_584, 24_683_652), Some(135_168));
        assert_eq!(
            min_free_kbytes((10 + 2115 + 14_769) * 4, 24_683_652),
            Some(135_168)
        );
    }

    #[test]
    fn never_more_than_a_twentieth_is_kept_free() {
        assert_eq!(min_free_kbytes(1000, 24_000), Some(1200));
        assert_eq!(min_free_kbytes(1200, 24_000), None);
        assert_eq!(min_free_kbytes(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn kswapd_begins_twice_as_early() {
        let zones = [Marked {
            managed: 100_000,
            min: 4000,
        }];
        // 100 to 1,000 pages by shares, and never below a quarter of min: 1,000.
        assert_eq!(watermark_scale_factor(10, Some(&zones)), Some(200));
        assert_eq!(watermark_scale_factor(10, None), Some(50));
        assert_eq!(watermark_scale_factor(300, Some(&zones)), None);
    }

    #[test]
    fn the_smallest_step_that_begins_below_every_score() {
        let era = Era::newest();
        assert_eq!(compaction_proactiveness(20, 70, era), Some(50));
        assert_eq!(compaction_proactiveness(20, 40, era), Some(80));
        assert_eq!(compaction_proactiveness(20, 34, era), None);
        assert_eq!(compaction_proactiveness(0, 96, era), Some(20));
    }
}
