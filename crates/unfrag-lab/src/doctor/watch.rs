//! What was counted while the host was watched: between readings, and not since boot.
//!
//! Invariant: with one reading nothing was watched, and nothing is said of now. A counter that fell (a reboot, another
//! host) says nothing for its step.

use super::evidence::Evidence;
use super::work;
use serde::Serialize;
use unfrag_linux::procfs::VmStat;

/// Readings that a lasting setting needs.
pub const READINGS: usize = 3;
/// Seconds that they must be apart, from the first to the last.
pub const SPAN: f64 = 60.0;
/// Seconds before the last reading that count as now: what is done once is no answer to what was longer ago.
const RECENT: f64 = 900.0;

/// How long the host was watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Watched {
    /// Readings of its counters.
    pub readings: usize,
    /// Seconds from the first to the last; `null` with only one.
    pub seconds: Option<f64>,
}

/// The counters of a host over time.
pub(super) struct Watch<'a> {
    /// Earlier readings and the last one, with seconds since the first.
    readings: Vec<(f64, &'a VmStat)>,
}

impl<'a> Watch<'a> {
    /// The readings of an evidence.
    pub fn new(e: &'a Evidence) -> Watch<'a> {
        let mut readings: Vec<(f64, &VmStat)> = vec![];
        if let Some(last) = &e.vmstat {
            let earlier = e.readings.iter();
            readings.extend(earlier.filter_map(|r| Some((-r.seconds_before, r.vmstat.as_ref()?))));
            if readings.is_empty()
                && let Some((before, seconds)) = &e.earlier
            {
                readings.push((-seconds, before));
            }
            readings.push((0.0, last));
        }
        // Of one moment there is one reading.
        readings.dedup_by(|b, a| b.0 <= a.0);
        Watch { readings }
    }

    /// The part of it that is now.
    pub fn recent(&self) -> Watch<'a> {
        let recent = |(at, _): &&(f64, &VmStat)| *at >= -RECENT;
        Watch {
            readings: self.readings.iter().filter(recent).copied().collect(),
        }
    }

    /// How long.
    pub fn watched(&self) -> Watched {
        let seconds = self.readings.first().map(|(at, _)| -at);
        Watched {
            // A text without counters is a reading as well.
            readings: self.readings.len().max(1),
            seconds: seconds.filter(|&s| s > 0.0),
        }
    }

    /// Whether it was long enough for a setting.
    pub fn is_long(&self) -> bool {
        let Watched { readings, seconds } = self.watched();
        readings >= READINGS && seconds.is_some_and(|s| s >= SPAN)
    }

    /// By how much a counter rose; `None` if it was not watched, or fell.
    pub fn rose(&self, counter: &str) -> Option<u64> {
        let (first, last) = (self.readings.first()?, self.readings.last()?);
        (self.readings.len() > 1).then_some(())?;
        work::counted(last.1, counter)?.checked_sub(work::counted(first.1, counter)?)
    }

    /// Whether in at least half of the steps `holds` answers yes, given how far counters rose in it and its seconds.
    pub fn mostly(&self, holds: impl Fn(&Step) -> bool) -> bool {
        let steps = self.readings.windows(2).map(|pair| Step {
            from: pair[0].1,
            to: pair[1].1,
            seconds: pair[1].0 - pair[0].0,
        });
        let (yes, all) = steps.fold((0, 0), |(yes, all), s| {
            (yes + usize::from(holds(&s)), all + 1)
        });
        all > 0 && yes * 2 >= all
    }
}

/// The time between two readings.
pub(super) struct Step<'a> {
    from: &'a VmStat,
    to: &'a VmStat,
    /// Its length.
    pub seconds: f64,
}

impl Step<'_> {
    /// By how much a counter rose.
    pub fn rose(&self, counter: &str) -> Option<u64> {
        work::counted(self.to, counter)?.checked_sub(work::counted(self.from, counter)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Reading;
    use super::*;

    fn stat(stalls: u64) -> VmStat {
        VmStat::parse(format!("compact_stall {stalls}\n").as_bytes()).unwrap()
    }

    fn evidence(counts: &[(f64, u64)], last: u64) -> Evidence {
        let readings = counts.iter().map(|&(seconds_before, n)| Reading {
            seconds_before,
            vmstat: Some(stat(n)),
            zones: vec![],
        });
        Evidence {
            vmstat: Some(stat(last)),
            readings: readings.collect(),
            ..Evidence::default()
        }
    }

    #[test]
    fn one_reading_watches_nothing() {
        let e = evidence(&[], 7);
        let w = Watch::new(&e);
        assert_eq!((w.watched().readings, w.watched().seconds), (1, None));
        assert_eq!(w.rose("compact_stall"), None);
        assert!(!w.mostly(|_| true) && !w.is_long());
    }

    #[test]
    fn a_setting_needs_several_readings_over_a_minute() {
        assert!(!Watch::new(&evidence(&[(600.0, 1)], 7)).is_long());
        assert!(!Watch::new(&evidence(&[(30.0, 1), (15.0, 2)], 7)).is_long());
        assert!(Watch::new(&evidence(&[(60.0, 1), (30.0, 2)], 7)).is_long());
        let same = evidence(&[(60.0, 1), (60.0, 2)], 7);
        assert!(!Watch::new(&same).is_long(), "two of one moment are one");
    }

    #[test]
    fn what_was_an_hour_ago_is_not_now() {
        let e = evidence(&[(7200.0, 0), (3600.0, 50), (300.0, 51)], 51);
        let w = Watch::new(&e);
        assert_eq!(w.rose("compact_stall"), Some(51));
        assert_eq!(w.recent().rose("compact_stall"), Some(0));
    }

    #[test]
    fn half_of_the_steps_decide_and_a_fallen_counter_tells_nothing() {
        let e = evidence(&[(90.0, 0), (60.0, 5), (30.0, 5)], 9);
        let w = Watch::new(&e);
        assert_eq!(w.rose("compact_stall"), Some(9));
        assert!(w.mostly(|s| s.rose("compact_stall") > Some(0)));
        assert!(!w.mostly(|s| s.rose("compact_stall") > Some(4)));
        assert_eq!(
            Watch::new(&evidence(&[(9.0, 8)], 7)).rose("compact_stall"),
            None
        );
    }
}
