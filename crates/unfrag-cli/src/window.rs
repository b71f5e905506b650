//! A window of time over a recording: `--from` and `--to`, and what an answer says of it.
//!
//! Invariant: each command takes the same moments, and says what its window is in the same words: a line before its text,
//! and `window` in its JSON. Nothing is said where all was asked for.

use crate::quantity::nanoseconds;
use chrono::{DateTime, Days, Local, NaiveDate, Offset, TimeZone};
use std::path::Path;
pub use unfrag_lab::report::window::{Within, below_line, line};
use unfrag_linux::segments::{Moment, Window};
use unfrag_linux::snapshots;

/// The window of a recording that is read.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct WindowArgs {
    /// Begin here: a time of day such as 02:00, the last one that was recorded; `yesterday 02:00`; a date such as
    /// 2026-11-28T06:00, by this host's clock, or in UTC with a Z behind it; or a time after the recording's beginning, such as 90m or
    /// 5400 (seconds)
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    from: Option<Moment>,
    /// End before this moment
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    to: Option<Moment>,
}

impl WindowArgs {
    /// The window.
    pub fn window(&self) -> Window {
        Window {
            from: self.from,
            to: self.to,
            ahead_of_utc,
        }
    }
}

/// Nanoseconds by which this host's clock is ahead of UTC at a date, in nanoseconds since 1970.
fn ahead_of_utc(date: u64) -> i64 {
    let date = DateTime::from_timestamp_nanos(i64::try_from(date).unwrap_or(i64::MAX));
    let offset = Local.offset_from_utc_datetime(&date.naive_utc());
    i64::from(offset.fix().local_minus_utc()) * 1_000_000_000
}

/// The date, in nanoseconds since 1970, of what this host's clock shows then; the earlier of two.
///
/// # Errors
/// Says why there is none: the clock was put forward over it, or no clock here goes so far.
fn by_own_clock(shown: u64) -> Result<u64, &'static str> {
    const FAR: &str = "is no time of this host's clock, which goes from 1970 to 2262";
    let shown = i64::try_from(shown).map_err(|_| FAR)?;
    let shown = DateTime::from_timestamp_nanos(shown).naive_utc();
    let date = Local
        .from_local_datetime(&shown)
        .earliest()
        .ok_or("is no time by this host's clock, which was put forward over it")?;
    let date = date
        .timestamp_nanos_opt()
        .and_then(|ns| u64::try_from(ns).ok());
    date.ok_or(FAR)
}

/// Directories of time zones, as the C library and others have them.
const ZONES: [&str; 3] = ["/usr/share/zoneinfo", "/lib/zoneinfo", "/etc/zoneinfo"];

/// Checks that the time zone that is set is one, as else times would silently be those of UTC.
///
/// # Errors
/// Names it.
fn check_zone(zone: Option<&str>) -> Result<(), String> {
    let Some(zone) = zone.filter(|z| !z.is_empty()) else {
        return Ok(());
    };
    let file = zone.strip_prefix(':').unwrap_or(zone);
    let is_file = match file.starts_with('/') {
        true => Path::new(file).is_file(),
        false => ZONES.iter().any(|d| Path::new(d).join(file).is_file()),
    };
    match is_file || ["UTC", "UTC0", "GMT", "localtime"].contains(&file) || is_rule(zone) {
        true => Ok(()),
        false => Err(format!(
            "TZ={zone} is no time zone of this host; give dates in UTC, such as 2026-11-28T06:00Z, or set TZ"
        )),
    }
}

/// Whether a time zone is stated as a rule: a name of three letters or more, or one in brackets, and how far it is behind
/// UTC, such as `CET-1CEST,M3.5.0,M10.5.0/3` or `<+03>-3`.
fn is_rule(zone: &str) -> bool {
    let rest = match zone.strip_prefix('<').and_then(|z| z.split_once('>')) {
        Some((name, rest)) if name.len() >= 3 => rest,
        Some(_) => return false,
        None => {
            let rest = zone.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            if zone.len() - rest.len() < 3 {
                return false;
            }
            rest
        }
    };
    let offset = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    offset.starts_with(|c: char| c.is_ascii_digit())
        && rest
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-:,./<>".contains(&b))
}

/// What `--from` and `--to` take.
///
/// # Errors
/// Says what a moment looks like.
fn moment(text: &str) -> Result<Moment, String> {
    let zone = std::env::var_os("TZ").map(|z| z.to_string_lossy().into_owned());
    let is_of_utc = text.contains('-') && !with_zone(text).1.is_empty();
    if !is_of_utc && nanoseconds(text).is_err() {
        check_zone(zone.as_deref())?;
    }
    moment_on(text, Local::now().date_naive())
}

fn moment_on(text: &str, today: NaiveDate) -> Result<Moment, String> {
    let bad = || {
        format!(
            "`{text}` is no moment; give a time of day such as 02:00 or `yesterday 02:00`, a date such as \
             2026-11-28T06:00 or 2026-11-28T06:00Z, or a time after the beginning such as 90m or 26h"
        )
    };
    let at = |shown: u64| {
        let date = by_own_clock(shown).map_err(|why| format!("`{text}` {why}"));
        date.map(Moment::At)
    };
    let (day, rest) = match text.split_once(' ').unwrap_or((text, "")) {
        ("today", rest) => (Some(today), rest),
        ("yesterday", rest) => (today.checked_sub_days(Days::new(1)), rest),
        _ => (None, text),
    };
    if let Some(day) = day {
        let time = match rest.trim() {
            "" => 0,
            time => of_day(time).ok_or_else(bad)?,
        };
        let midnight = day
            .and_time(chrono::NaiveTime::MIN)
            .and_utc()
            .timestamp_nanos_opt();
        let midnight = midnight
            .and_then(|ns| u64::try_from(ns).ok())
            .ok_or_else(bad)?;
        return at(midnight.saturating_add(time));
    }
    if let Some(time) = of_day(text) {
        return Ok(Moment::OfDay(time));
    }
    if text.contains('-') {
        let (date, zone) = with_zone(text);
        // A date without seconds, or a day alone, is one as well.
        let forms = [
            date.to_owned(),
            format!("{date}:00"),
            format!("{date}T00:00:00"),
        ];
        let parsed = |zone: &str| {
            forms
                .iter()
                .find_map(|d| snapshots::date(&format!("{d}{zone}")))
        };
        let date = parsed(zone).ok_or_else(|| no_date(date).unwrap_or_else(bad))?;
        return match zone {
            "" => at(date),
            _ => Ok(Moment::At(date)),
        };
    }
    nanoseconds(text).map(Moment::After).map_err(|_| bad())
}

/// Why what looks like a date is none.
fn no_date(text: &str) -> Option<String> {
    let day = text.get(..10)?;
    let mut parts = day.split('-').map(|part| part.parse::<u32>().ok());
    let (Some(year), Some(month), Some(day_of), None) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next())
    else {
        return None;
    };
    let exists = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day_of).is_some();
    Some(match exists {
        false => format!("there is no day {day}; give one such as 2026-11-28, or 2026-11-28T06:00"),
        true if !(1970..2554).contains(&year) => {
            format!("{day} is out of range: dates go from 1970 to 2553, and without a zone to 2262")
        }
        true => return None,
    })
}

/// A date without its zone, and the zone, if there is one.
fn with_zone(text: &str) -> (&str, &str) {
    /// Characters of a day.
    const DAY: usize = 10;
    let at = match text.strip_suffix(['Z', 'z']) {
        Some(date) => Some(date.len()),
        None => text.rfind(['+', '-']).filter(|&at| at > DAY),
    };
    text.split_at(at.unwrap_or(text.len()))
}

/// Nanoseconds after midnight of `02:00` or `02:00:30`.
fn of_day(text: &str) -> Option<u64> {
    let mut parts = text.split(':');
    let mut next = |below: u64| {
        let part = parts.next()?;
        let is_number = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        is_number
            .then(|| part.parse().ok())?
            .filter(|&n: &u64| n < below)
    };
    let (hour, minute) = (next(24)?, next(60)?);
    let second = match text.matches(':').count() {
        1 => 0,
        2 => next(60)?,
        _ => return None,
    };
    Some((hour * 3600 + minute * 60 + second) * 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_times_of_day_dates_and_times_after_the_beginning() {
        const HOUR: u64 = 3_600_000_000_000;
        let day = 1_795_824_000_000_000_000;
        let local = |ns| Moment::At(by_own_clock(ns).unwrap());
        let today = NaiveDate::from_ymd_opt(2026, 11, 29).unwrap();
        for (text, wanted) in [
            ("26h", Moment::After(26 * HOUR)),
            ("5400", Moment::After(HOUR * 3 / 2)),
            ("0.5s", Moment::After(500_000_000)),
            ("02:00", Moment::OfDay(2 * HOUR)),
            ("2:30", Moment::OfDay(HOUR * 5 / 2)),
            ("23:59:59", Moment::OfDay(24 * HOUR - 1_000_000_000)),
            ("2026-11-28T06:00:00Z", Moment::At(day + 6 * HOUR)),
            ("2026-11-28T06:00Z", Moment::At(day + 6 * HOUR)),
            ("2026-11-28 08:00+02:00", Moment::At(day + 6 * HOUR)),
            ("2026-11-28T01:00-0500", Moment::At(day + 6 * HOUR)),
            ("2026-11-28Z", Moment::At(day)),
            ("2026-11-28T06:00:00", local(day + 6 * HOUR)),
            ("2026-11-28 06:00", local(day + 6 * HOUR)),
            ("2026-11-28", local(day)),
            ("yesterday", local(day)),
            ("yesterday 06:00", local(day + 6 * HOUR)),
            ("today 06:00:00", local(day + 30 * HOUR)),
        ] {
            assert_eq!(moment_on(text, today), Ok(wanted), "{text}");
        }
        for bad in [
            "",
            "soon",
            "yesterday noon",
            "-1h",
            "1x",
            "99999999999999999999h",
            "24:00",
            "02:60",
            "2:3:4:5",
            ":",
            "02:",
            "2026-11-28T06:00X",
            "2026-11-28T24:00",
            "today 26h",
            "nan",
            "1e3",
        ] {
            let why = moment_on(bad, today).unwrap_err();
            assert!(why.contains("02:00"), "{bad}: {why}");
        }
        for (bad, part) in [
            ("2026-13-01", "there is no day 2026-13-01"),
            ("2026-02-29", "there is no day 2026-02-29"),
            ("2026-11-31T06:00Z", "there is no day 2026-11-31"),
            ("1969-12-31", "out of range"),
            ("9999-01-01T00:00Z", "out of range"),
            ("2600-01-01", "out of range"),
            ("2300-01-01T06:00", "goes from 1970 to 2262"),
            ("2262-04-13", "goes from 1970 to 2262"),
        ] {
            let why = moment_on(bad, today).unwrap_err();
            assert!(why.contains(part), "{bad}: {why}");
        }
        assert!(moment_on("2300-01-01T06:00Z", today).is_ok());
    }

    #[test]
    fn a_time_zone_that_is_none_is_named() {
        for zone in [
            None,
            Some(""),
            Some("UTC"),
            Some(":UTC"),
            Some("CET-1CEST,M3.5.0,M10.5.0/3"),
            Some("EST5EDT"),
            Some("<+03>-3"),
        ] {
            assert_eq!(check_zone(zone), Ok(()), "{zone:?}");
        }
        for zone in [
            "Mars/Olympus",
            "XY1",
            "alice",
            "<>1",
            "/nonexistent",
            "CET-",
        ] {
            let why = check_zone(Some(zone)).unwrap_err();
            assert!(why.contains(zone) && why.contains("06:00Z"), "{why}");
        }
    }
}
