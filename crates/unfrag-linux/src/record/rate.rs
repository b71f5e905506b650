//! How much a recording in segments writes, and how long what is kept lasts at that.
//!
//! Invariant: a rate is measured, of segments that were made, or of the raw trace so far; then it says so.

use std::time::Duration;

/// Bytes of segments in a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bytes.
    pub bytes: u64,
    /// The time.
    pub time: Duration,
    /// Whether the bytes follow from those of the raw trace, as no segment was made yet.
    pub is_estimate: bool,
}

impl Rate {
    /// Bytes in a minute.
    pub fn per_minute(&self) -> u64 {
        (self.bytes as f64 / self.time.as_secs_f64().max(1e-3) * 60.0) as u64
    }

    /// How long it takes to write so many bytes; `None` if nothing is written.
    pub fn lasts(&self, bytes: u64) -> Option<Duration> {
        let each = self.bytes as f64 / self.time.as_secs_f64().max(1e-3);
        (each > 0.0).then(|| Duration::from_secs_f64((bytes as f64 / each).min(1e12)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_gigabytes_at_27_megabytes_a_minute_are_twelve_hours() {
        let rate = Rate {
            bytes: 27_000_000,
            time: Duration::from_secs(60),
            is_estimate: false,
        };
        assert_eq!(rate.per_minute(), 27_000_000);
        let hours = rate.lasts(20_000_000_000).unwrap().as_secs() / 3600;
        assert_eq!(hours, 12);
        let none = Rate { bytes: 0, ..rate };
        assert_eq!(none.lasts(1), None);
        let at_once = Rate {
            time: Duration::ZERO,
            ..rate
        };
        assert!(at_once.lasts(u64::MAX).is_some());
    }
}
