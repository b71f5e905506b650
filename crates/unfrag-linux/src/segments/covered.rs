//! What a window of time turned out to be: which part of a recording an answer is about.
//!
//! Invariant: what is answered is what was asked for, as far as it was recorded; where it is not, [`Covered::sentence`]
//! says what it is. An error names the range that there is.

use std::ops::Range;

use serde::Serialize;

use super::window::{Beginning, DAY, Moment, Window};
use crate::error::{Error, Result};
use crate::snapshots;

const SECOND: u64 = 1_000_000_000;

/// Dates are no earlier than this, in nanoseconds since 1970, and times of clocks that begin at boot no later: 2000-01-01.
pub const FIRST_DATE: u64 = 946_684_800 * SECOND;

/// From when to when something was recorded: dates in nanoseconds since 1970, or times of its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) is_dated: bool,
}

impl Recorded {
    /// From the first to the last of these times, which are of one clock; `None` without any.
    pub(super) fn of(times: impl Iterator<Item = u64> + Clone) -> Option<Recorded> {
        let (begin, end) = (times.clone().min()?, times.max()?);
        let is_dated = begin >= FIRST_DATE;
        Some(Recorded {
            begin,
            end,
            is_dated,
        })
    }
}

/// The part of a recording that an answer is about.
#[derive(Clone, Debug)]
pub struct Covered {
    recorded: Recorded,
    /// From when to when was asked for, where that was said.
    asked: (Option<u64>, Option<u64>),
    /// Where reading begins, if that is before the window.
    read_from: Option<u64>,
    /// What tells the state there.
    read_by: Beginning,
    /// When the boot began to be recorded that the answer is about.
    boot_from: u64,
    /// Boots in the window that are not in the answer, since their clocks have nothing in common with the last one's.
    boots_left_out: usize,
    /// The window in the clock of the events.
    times: Range<u64>,
    ahead_of_utc: fn(u64) -> i64,
}

/// The same as data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoveredData {
    /// When it begins, where the recording says at what date it was made.
    pub from: Option<String>,
    /// When it ends.
    pub to: Option<String>,
    /// When it begins, in seconds after the recording's beginning.
    pub from_seconds: f64,
    /// When it ends.
    pub to_seconds: f64,
    /// When the recording begins and ends, where it says at what date it was made.
    pub recorded_from: Option<String>,
    /// When the recording ends.
    pub recorded_to: Option<String>,
    /// Seconds of the recording.
    pub recorded_seconds: f64,
    /// Seconds before the window at which reading begins, where page flags tell the state of memory; 0 if with it.
    pub read_seconds_before: f64,
    /// Earlier boots in the window that are not in the answer.
    pub boots_left_out: usize,
}

impl Covered {
    /// What a window over what was recorded asks for.
    ///
    /// # Errors
    /// If it asks by dates, and there are none; if it ends before it begins, or lies outside.
    pub(super) fn of(window: &Window, recorded: Recorded) -> Result<Covered> {
        let mut covered = Covered {
            recorded,
            asked: (None, None),
            read_from: None,
            read_by: Beginning::Exact,
            boot_from: recorded.begin,
            boots_left_out: 0,
            times: 0..u64::MAX,
            ahead_of_utc: window.ahead_of_utc,
        };
        let to = window.to.map(|to| covered.time(to, None, false));
        let to = to.transpose()?;
        // From 23:00 to 02:00 is one night, even where only its morning was recorded.
        let may_be_night = matches!(window.to, Some(Moment::OfDay(_)));
        // What was taken before the first event is of the beginning as well.
        let from = window.from.filter(|from| *from != Moment::After(0));
        // Two times of a day are of one window, wherever it ends: one that begins after the recording is none of it.
        let limit = match window.to {
            Some(Moment::OfDay(_)) => to.unwrap_or(recorded.end),
            _ => to.unwrap_or(recorded.end).min(recorded.end),
        };
        let from = from.map(|from| covered.time(from, Some(limit), may_be_night));
        let from = from.transpose()?;
        covered.asked = (from, to);
        let show = |t| covered.moment(t);
        if let (Some(from), Some(to)) = (from, to)
            && from >= to
        {
            let what = format!(
                "the window ends before it begins: from {} to {}",
                show(from),
                show(to)
            );
            return Err(Error::malformed(what).help(covered.help()));
        }
        if from.is_some_and(|from| from > recorded.end) || to.is_some_and(|to| to <= recorded.begin)
        {
            return Err(covered.nothing("nothing was recorded"));
        }
        covered.times = from.unwrap_or(0)..to.unwrap_or(u64::MAX);
        Ok(covered)
    }

    /// When a moment is. A time of a day is the last one before `limit`, or else before the recording's end, of the days
    /// that the recording has a part of: no other day is meant by it, and one outside gives a window without anything. What
    /// lies less than half a day before `limit` may be of the evening before that, if `may_be_night`.
    fn time(&self, moment: Moment, limit: Option<u64>, may_be_night: bool) -> Result<u64> {
        let Recorded {
            begin,
            end,
            is_dated,
        } = self.recorded;
        match moment {
            Moment::After(ns) => Ok(begin.saturating_add(ns)),
            Moment::At(_) | Moment::OfDay(_) if !is_dated => Err(Error::unsupported(
                "the recording does not say at what time it was made, but for the day at most",
            )
            .help(format!(
                "give times from its beginning on, such as --from 90m --to 150m; {}",
                self.help()
            ))),
            Moment::At(date) => Ok(date),
            Moment::OfDay(ns) => {
                let latest = limit.unwrap_or(end);
                let last = self.last_of_day(ns, latest);
                // The day on which the clock is put back is longer than others.
                let after = [DAY, 2 * DAY].map(|d| self.last_of_day(ns, latest.saturating_add(d)));
                let next = after.into_iter().find(|t| *t > latest);
                let is_of_recording =
                    |t: &u64| (self.day(begin)..=self.day(end)).contains(&self.day(*t));
                Ok(match limit {
                    None if last < begin => next.filter(is_of_recording).unwrap_or(last),
                    Some(limit) if may_be_night && limit.saturating_sub(last) <= DAY / 2 => last,
                    Some(_) if !is_of_recording(&last) => next.unwrap_or(last),
                    _ => last,
                })
            }
        }
    }

    /// The day of a date by the clock that was asked in.
    fn day(&self, t: u64) -> u64 {
        t.saturating_add_signed((self.ahead_of_utc)(t)) / DAY
    }

    /// The last date up to a limit at which this clock shows so long after midnight. The clock may be put forward or back
    /// that day: of two such dates it is the later one that is not after the limit, and a day without it has none.
    fn last_of_day(&self, ns: u64, limit: u64) -> u64 {
        let ahead = self.ahead_of_utc;
        let local = limit.saturating_add_signed(ahead(limit));
        // The clock is put back by less than a day, so the day after may have begun and be over again.
        let today = (local - local % DAY).saturating_add(ns);
        let shown = [
            today.saturating_add(DAY),
            today,
            today.saturating_sub(DAY),
            today.saturating_sub(2 * DAY),
        ];
        // Its clock a day before and a day after: one of them is right, wherever in between it is changed.
        let dates = shown.into_iter().flat_map(|shown| {
            [shown.saturating_sub(DAY), shown.saturating_add(DAY)]
                .map(|near| (shown, shown.saturating_add_signed(-ahead(near))))
        });
        dates
            .filter(|&(shown, date)| {
                date <= limit && date.saturating_add_signed(ahead(date)) == shown
            })
            .map(|(_, date)| date)
            .max()
            .unwrap_or(0)
    }

    /// Notes where reading begins instead.
    pub(super) fn reads_from(&mut self, time: u64, by: Beginning) {
        self.read_by = by;
        self.read_from = (time < self.from()).then_some(time);
    }

    /// Notes the window in the clock of the events.
    pub(super) fn has_times(&mut self, times: Range<u64>) {
        self.times = times;
    }

    /// Notes that so many earlier boots in the window are left out, and when the recording of this one begins.
    pub(super) fn leaves_out_boots(&mut self, boots: usize, begin: u64) {
        self.boots_left_out = boots;
        self.boot_from = begin;
    }

    /// The window in the clock that was asked in: dates, if the recording has any.
    pub(super) fn asked(&self) -> (Option<u64>, Option<u64>) {
        self.asked
    }

    /// The window in the clock of the events, whatever of it was recorded. What is read may begin before.
    pub fn times(&self) -> Range<u64> {
        self.times.clone()
    }

    /// The same, of what was asked for within what was recorded: in between, no event is a sign that nothing happened.
    pub fn within(&self) -> (Option<u64>, Option<u64>) {
        let (from, to) = self.asked;
        let begin = self.boot_from;
        (
            from.filter(|&t| t >= begin).map(|_| self.times.start),
            to.filter(|&t| t <= self.recorded.end)
                .map(|_| self.times.end),
        )
    }

    /// Whether all was asked for, and is in the answer.
    pub fn is_all(&self) -> bool {
        self.asked == (None, None) && self.boots_left_out == 0
    }

    fn from(&self) -> u64 {
        self.asked.0.unwrap_or(0).max(self.boot_from)
    }

    fn to(&self) -> u64 {
        self.asked.1.unwrap_or(u64::MAX).min(self.recorded.end)
    }

    /// The error of a window in which there is nothing.
    pub(super) fn nothing(&self, what: &str) -> Error {
        let side = |word: &str, at: Option<u64>| {
            at.map_or(String::new(), |t| format!(" {word} {}", self.moment(t)))
        };
        let window = side("from", self.asked.0) + &side("to", self.asked.1);
        Error::malformed(format!("{what}{window}")).help(self.help())
    }

    /// The range that there is.
    fn help(&self) -> String {
        let Recorded { begin, end, .. } = self.recorded;
        format!(
            "the recording is from {} to {}",
            self.moment(begin),
            self.moment(end)
        )
    }

    /// A moment, as it may be asked for.
    fn moment(&self, time: u64) -> String {
        if !self.recorded.is_dated {
            let after = time.saturating_sub(self.recorded.begin);
            return format!("{}s", number(seconds(after)));
        }
        date(time, self.ahead_of_utc)
    }

    /// What the answer is about, in sentences; none if it is about all. `begins` says what begins where page flags are,
    /// if that is before the window.
    pub fn sentence(&self, begins: &str) -> Option<String> {
        if self.is_all() {
            return None;
        }
        let (from, to) = (self.from(), self.to());
        let mut all = format!(
            "Window: from {} to {}, {} s.",
            self.moment(from),
            self.moment(to),
            number(seconds(to.saturating_sub(from)))
        );
        let begin = self.recorded.begin;
        if self.asked.0.is_some_and(|asked| asked < begin) && from == begin {
            all += " The recording begins only then.";
        }
        if self.asked.1.is_some_and(|asked| asked > to) {
            all += " The recording ends there.";
        }
        if let Some(read) = self.read_from {
            let flags = match self.read_by {
                Beginning::PageFlags => ", where page flags were read",
                _ => "",
            };
            all += &format!(" {begins} {}{flags}.", self.moment(read));
        }
        match self.boots_left_out {
            0 => {}
            1 => all += " An earlier boot is left out: its clock is another.",
            n => all += &format!(" {n} earlier boots are left out: their clocks are others."),
        }
        Some(all)
    }

    /// The same as data; none if it is about all.
    pub fn data(&self) -> Option<CoveredData> {
        let date = |t: u64| {
            self.recorded
                .is_dated
                .then(|| self.moment(t).replacen(' ', "T", 1).replace(' ', ""))
        };
        let Recorded { begin, end, .. } = self.recorded;
        let after = |t: u64| seconds(t.saturating_sub(begin));
        let read_before = self
            .read_from
            .map_or(0, |read| self.from().saturating_sub(read));
        (!self.is_all()).then(|| CoveredData {
            from: date(self.from()),
            to: date(self.to()),
            from_seconds: after(self.from()),
            to_seconds: after(self.to()),
            recorded_from: date(begin),
            recorded_to: date(end),
            recorded_seconds: after(end),
            read_seconds_before: seconds(read_before),
            boots_left_out: self.boots_left_out,
        })
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND as f64
}

/// A number with three digits after its point at most.
fn number(n: f64) -> String {
    let text = format!("{n:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A date by a clock that is ahead of UTC by what `ahead` says, with its zone: `2026-11-28 06:00:00 Z` or
/// `2026-11-28 07:00:00 +01:00`.
fn date(ns: u64, ahead: fn(u64) -> i64) -> String {
    let ahead = ahead(ns);
    let local = ns.saturating_add_signed(ahead) / SECOND;
    let minutes = ahead.unsigned_abs() / SECOND / 60;
    let zone = match ahead {
        0 => "Z".to_owned(),
        _ => {
            let sign = if ahead < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    };
    format!("{} {zone}", snapshots::day_and_time(local))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600 * SECOND;
    /// 2026-11-28 00:00 in UTC.
    const DAY_BEGINS: u64 = 1_795_824_000 * SECOND;

    fn covered(window: Window, from: u64, to: u64) -> Result<Covered> {
        Covered::of(
            &window,
            Recorded {
                begin: DAY_BEGINS + from * HOUR,
                end: DAY_BEGINS + to * HOUR,
                is_dated: true,
            },
        )
    }

    /// Each window over a recording from hour to hour, by a clock two hours ahead, and the hours that it asks for.
    #[test]
    fn a_time_of_day_is_the_last_one_that_was_recorded() {
        let of_day = |hour: u64| Some(Moment::OfDay(hour * HOUR));
        for (recorded, from, to, asked) in [
            ((0, 24), of_day(3), of_day(4), (Some(1), Some(2))),
            ((0, 48), of_day(3), of_day(4), (Some(25), Some(26))),
            ((20, 26), of_day(23), of_day(2), (Some(21), Some(24))),
            // Within 22:00 to 04:00 by this clock there is no 05:00: the next one after it is meant.
            ((20, 26), of_day(2), of_day(5), (Some(24), Some(27))),
            ((20, 26), of_day(21), None, (Some(19), None)),
            ((20, 26), None, of_day(1), (None, Some(23))),
        ] {
            let window = Window {
                from,
                to,
                ahead_of_utc: |_| 2 * HOUR as i64,
            };
            let found = covered(window, recorded.0, recorded.1).unwrap().asked;
            let hours = |t: Option<u64>| t.map(|t| (t - DAY_BEGINS) / HOUR);
            assert_eq!(
                (hours(found.0), hours(found.1)),
                asked,
                "{recorded:?} {from:?} {to:?}"
            );
        }
    }

    /// A recording from 00:45 to 01:15 by a clock two hours ahead, and one from 23:00 to 01:00: no day but theirs is meant.
    #[test]
    fn a_time_of_day_outside_is_none_of_the_recording() {
        let minute = |m: u64| Some(Moment::OfDay(m * 60 * SECOND));
        let ask = |begin: i64, end: i64, from: Option<u64>, to: Option<u64>| {
            let at = |m: i64| DAY_BEGINS.saturating_add_signed(m * 60 * SECOND as i64);
            let window = Window {
                from: from.and_then(minute),
                to: to.and_then(minute),
                ahead_of_utc: |_| 2 * HOUR as i64,
            };
            let recorded = Recorded {
                begin: at(begin - 120),
                end: at(end - 120),
                is_dated: true,
            };
            Covered::of(&window, recorded)
        };
        for (begin, end, from, to) in [
            (45, 75, Some(120), Some(180)),
            (45, 75, Some(10), Some(20)),
            (45, 75, Some(180), Some(120)),
            (45, 75, Some(60), Some(50)),
            (45, 75, Some(120), None),
            (45, 75, None, Some(20)),
            (-60, 60, Some(120), Some(180)),
            (-60, 60, Some(22 * 60), Some(22 * 60 + 30)),
        ] {
            let error = ask(begin, end, from, to).unwrap_err().to_string();
            let asked = format!("{begin} {end} {from:?} {to:?}: {error}");
            assert!(error.contains("the recording is from 2026-11-2"), "{asked}");
        }
        for (begin, end, from, to) in [
            (45, 75, Some(10), None),
            (45, 75, Some(50), Some(70)),
            (45, 75, Some(30), Some(120)),
            (45, 75, None, Some(180)),
            (45, 75, Some(23 * 60), Some(120)),
            (45, 75, Some(14 * 60 + 30), Some(120)),
            (-60, 60, Some(23 * 60 + 30), Some(30)),
            (-60, 60, Some(22 * 60), Some(180)),
            (-60, 60, Some(22 * 60), None),
            (-60, 60, None, Some(180)),
        ] {
            let asked = format!("{begin} {end} {from:?} {to:?}");
            assert!(ask(begin, end, from, to).is_ok(), "{asked}");
        }
    }

    /// A clock two hours ahead of UTC that is put back at 01:00 UTC by an hour, and one that is put forward then.
    #[test]
    fn a_time_of_day_is_one_that_the_clock_showed() {
        const CHANGES: u64 = DAY_BEGINS + HOUR;
        let back = |t: u64| if t < CHANGES { 2 } else { 1 } * HOUR as i64;
        let forward = |t: u64| if t < CHANGES { 1 } else { 2 } * HOUR as i64;
        let minutes = |m: i64| DAY_BEGINS.saturating_add_signed(m * 60 * SECOND as i64);
        type Clock = fn(u64) -> i64;
        let rows: [(Clock, i64, u64, i64); 8] = [
            // Until 02:15 for the second time: 02:30 was shown once, 02:10 twice.
            (back, 75, 150, 30),
            (back, 75, 130, 70),
            (back, 45, 130, 10),
            (back, 45, 175, -24 * 60 + 55),
            (back, 600, 30, -90),
            // 02:30 was not shown that day, but the day before.
            (forward, 65, 150, -24 * 60 + 90),
            (forward, 600, 150, -24 * 60 + 90),
            (forward, 600, 30, -30),
        ];
        for (ahead_of_utc, end, of_day, wanted) in rows {
            let window = Window {
                from: Some(Moment::OfDay(of_day * 60 * SECOND)),
                to: None,
                ahead_of_utc,
            };
            let recorded = Recorded {
                begin: minutes(-3000),
                end: minutes(end),
                is_dated: true,
            };
            let found = Covered::of(&window, recorded).unwrap().asked.0;
            assert_eq!(found, Some(minutes(wanted)), "{end} {of_day}");
        }
    }

    #[test]
    fn a_window_that_cannot_be_is_refused_with_the_range_that_there_is() {
        let after = |h: u64| Some(Moment::After(h * HOUR));
        let at = |h: u64| Some(Moment::At(DAY_BEGINS + h * HOUR));
        for (from, to) in [
            (after(9), None),
            (None, at(5)),
            (at(13), at(14)),
            (after(2), after(1)),
            (at(7), at(7)),
        ] {
            let window = Window {
                from,
                to,
                ..Window::default()
            };
            let e = covered(window, 6, 12).unwrap_err().to_string();
            let range = "from 2026-11-28 06:00:00 Z to 2026-11-28 12:00:00 Z";
            assert!(e.contains(range), "{from:?} {to:?}: {e}");
        }
    }

    #[test]
    fn what_was_not_recorded_of_a_window_is_said() {
        let window = Window {
            from: Some(Moment::At(DAY_BEGINS)),
            to: Some(Moment::At(DAY_BEGINS + 20 * HOUR)),
            ahead_of_utc: |_| -5 * HOUR as i64,
        };
        let mut covered = covered(window, 6, 12).unwrap();
        covered.leaves_out_boots(2, covered.recorded.begin);
        let said = covered.sentence("").unwrap();
        for part in [
            "from 2026-11-28 01:00:00 -05:00 to 2026-11-28 07:00:00 -05:00, 21600 s",
            "begins only then",
            "ends there",
            "2 earlier boots",
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert!(
            Covered::of(&Window::default(), covered.recorded)
                .unwrap()
                .sentence("")
                .is_none()
        );
    }
}
