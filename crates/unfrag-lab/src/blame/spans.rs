//! The intervals of a recording, and the moments at which its state is looked at.

/// Nanoseconds of a second.
pub(super) const SECOND: u64 = 1_000_000_000;
/// Moments of an interval.
const MOMENTS: u64 = 12;
/// Intervals that a recording has at least, if one of the lengths allows it.
const FEWEST: u64 = 6;
/// Intervals that a recording has at most, so that the answer does not grow with the time between events.
const MOST: u64 = 1000;
/// Nanoseconds of a day.
pub(super) const DAY: u64 = 86_400 * SECOND;
/// Seconds of an interval: an hour for recordings of days.
const LENGTHS: [u64; 6] = [3600, 600, 60, 10, 1, 0];

/// Intervals of one length, on whole multiples of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    /// Nanoseconds of an interval.
    pub(super) length: u64,
    /// Nanoseconds from the clock of events to that of the intervals.
    offset: u64,
    /// When the first interval begins, in its clock.
    first: u64,
}

impl Spans {
    /// For events from `from` to `to`, in nanoseconds. Where they have a date, `epoch` are the nanoseconds from their clock
    /// to 1970; without one, intervals begin with the first event.
    pub(super) fn new(from: u64, to: u64, epoch: Option<i64>) -> Spans {
        let lasts = to.saturating_sub(from);
        let fits = |s: &&u64| lasts >= **s * SECOND * FEWEST;
        let seconds = LENGTHS.iter().find(fits).copied().unwrap_or(1).max(1);
        let length = match seconds * SECOND {
            few if lasts / few < MOST => few,
            // Whole days, as many as it takes: one event may be far from all others.
            _ => (lasts / MOST + 1).div_ceil(DAY).saturating_mul(DAY),
        };
        let offset = epoch.map_or(from.wrapping_neg(), |o| o as u64);
        let begin = from.wrapping_add(offset);
        Spans {
            length,
            offset,
            first: begin - begin % length,
        }
    }

    /// The number of the interval of a time.
    pub(super) fn number(&self, time: u64) -> usize {
        (time.wrapping_add(self.offset).saturating_sub(self.first) / self.length) as usize
    }

    /// When an interval begins, in the clock of events.
    pub(super) fn begin(&self, number: usize) -> u64 {
        let after = (number as u64).wrapping_mul(self.length);
        self.first.wrapping_add(after).wrapping_sub(self.offset)
    }

    /// Nanoseconds from one moment to the next.
    pub(super) fn step(&self) -> u64 {
        self.length / MOMENTS
    }
}

/// A date in UTC, from nanoseconds since 1970: `2026-11-28 06:00:00`.
pub(super) fn date(ns: u64) -> String {
    unfrag_linux::snapshots::day_and_time(ns / SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_days_have_hours_that_begin_on_the_hour() {
        // From 06:20 on the 28th.
        let epoch = 1_795_845_600 * SECOND as i64;
        let (from, to) = (1200 * SECOND, 1200 * SECOND + 48 * 3600 * SECOND);
        let spans = Spans::new(from, to, Some(epoch));
        assert_eq!(spans.length, 3600 * SECOND);
        assert_eq!((spans.number(from), spans.begin(0)), (0, 0));
        assert_eq!(spans.number(from + 2400 * SECOND), 1);
        assert_eq!(spans.number(to), 48);
        assert_eq!(date((from as i64 + epoch) as u64), "2026-11-28 06:20:00");
    }

    #[test]
    fn however_far_an_event_is_there_are_few_intervals() {
        for years in [1, 40, 292, 584] {
            for epoch in [None, Some(0), Some(i64::MAX), Some(i64::MIN)] {
                let to = (years * 365 * DAY).saturating_add(5);
                let spans = Spans::new(5, to, epoch);
                assert!(
                    spans.number(to) <= MOST as usize,
                    "{years} years: {spans:?}"
                );
                assert_eq!(spans.length % DAY, 0);
                // The first one may begin before the clock of the events does.
                let number = spans.number(to);
                assert!(
                    number == 0 || spans.begin(number) <= to,
                    "{years} years: {spans:?}"
                );
            }
        }
    }

    #[test]
    fn a_recording_without_a_date_begins_with_its_first_interval() {
        let spans = Spans::new(77 * SECOND, 177 * SECOND, None);
        assert_eq!(spans.length, 10 * SECOND);
        assert_eq!(
            (spans.number(77 * SECOND), spans.begin(1)),
            (0, 87 * SECOND)
        );
        let short = Spans::new(5, 7, None);
        assert_eq!((short.length, short.number(7)), (SECOND, 0));
    }
}
