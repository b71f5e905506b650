//! Dates in the names of directories and in logs.

const NS: u64 = 1_000_000_000;

/// Nanoseconds since 1970 of a date: seconds since 1970 (nine to eleven digits, or longer for
/// milli-, micro- and nanoseconds) with or without a fraction, or ISO 8601 with or without
/// separators and fraction, in UTC if no zone follows; seconds may be
/// missing where the day and the time are parted. `None` if `name` is no date.
pub(super) fn parse(name: &str) -> Option<u64> {
    epoch(name).or_else(|| iso(name))
}

/// Nanoseconds since 1970 of a number of seconds (or of finer units, if it is that long).
pub(super) fn epoch(text: &str) -> Option<u64> {
    let (whole, fraction) = text
        .split_once('.')
        .map_or((text, None), |(w, f)| (w, Some(f)));
    if !whole.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let unit = match (whole.len(), fraction) {
        (9..=11, _) => NS,
        (13, None) => 1_000_000,
        (16, None) => 1000,
        (19, None) => 1,
        _ => return None,
    };
    let whole: u64 = whole.parse().ok()?;
    whole
        .checked_mul(unit)?
        .checked_add(fraction.map_or(Some(0), nanos_of_fraction)?)
}

/// Nanoseconds of the digits after a decimal point; digits beyond the ninth are dropped.
pub(super) fn nanos_of_fraction(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = |value: u64, digit: u8| value * 10 + u64::from(digit - b'0');
    Some(
        digits
            .bytes()
            .chain(std::iter::repeat(b'0'))
            .take(9)
            .fold(0, scale),
    )
}

fn iso(text: &str) -> Option<u64> {
    let mut rest = text;
    let year = digits(&mut rest, 4)?;
    let month = after(&mut rest, "-_").and_then(|()| digits(&mut rest, 2))?;
    let day = after(&mut rest, "-_").and_then(|()| digits(&mut rest, 2))?;
    let is_parted = rest.starts_with(|c| "Tt-_ ".contains(c));
    let hour = after(&mut rest, "Tt-_ ").and_then(|()| digits(&mut rest, 2))?;
    let minute = after(&mut rest, ":-_").and_then(|()| digits(&mut rest, 2))?;
    let ends = matches!(rest, "" | "Z" | "z") || rest.starts_with('+');
    let second = match is_parted && ends {
        true => 0,
        false => after(&mut rest, ":-_").and_then(|()| digits(&mut rest, 2))?,
    };
    let mut nanos = 0;
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let end = fraction
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(fraction.len());
        nanos = nanos_of_fraction(&fraction[..end])?;
        rest = &fraction[end..];
    }
    let in_range = year >= 1970
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !in_range {
        return None;
    }
    let local = days_since_1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    let seconds = u64::try_from(local - zone_offset(rest)?).ok()?;
    seconds.checked_mul(NS)?.checked_add(nanos)
}

/// Days of a month.
fn days_of(year: i64, month: i64) -> i64 {
    let is_leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap_year),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Seconds by which the zone is ahead of UTC: nothing, `Z`, or `+hh:mm` in any of its forms.
fn zone_offset(text: &str) -> Option<i64> {
    if matches!(text, "" | "Z" | "z") {
        return Some(0);
    }
    let sign = match text.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let mut rest = &text[1..];
    let hours = digits(&mut rest, 2)?;
    let minutes = if rest.is_empty() {
        0
    } else {
        after(&mut rest, ":").and_then(|()| digits(&mut rest, 2))?
    };
    (rest.is_empty() && hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Takes exactly `count` digits from the front.
fn digits(rest: &mut &str, count: usize) -> Option<i64> {
    let taken = rest.get(..count)?;
    if !taken.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    *rest = &rest[count..];
    taken.parse().ok()
}

/// Takes one of `separators` from the front if one stands there.
fn after(rest: &mut &str, separators: &str) -> Option<()> {
    if let Some(inner) = rest.strip_prefix(|c| separators.contains(c)) {
        *rest = inner;
    }
    Some(())
}

/// Days from 1970-01-01 in the Gregorian calendar. Years begin in March here, so that a leap day is
/// the last day of a year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

/// The day of `seconds` since 1970, in UTC, such as `2026-11-21`.
pub(crate) fn date(seconds: u64) -> String {
    let day = (seconds / 86400).min(1 << 24) as i64;
    // A year has at least 365 days, so the first guess is at or after the year looked for.
    let year = (1970..=1970 + day / 365)
        .rev()
        .find(|&y| days_since_1970(y, 1, 1) <= day);
    let year = year.unwrap_or(1970);
    let months = (1..=12).rev().map(|m| (m, days_since_1970(year, m, 1)));
    let (month, first) = months
        .into_iter()
        .find(|(_, first)| *first <= day)
        .unwrap_or((1, 0));
    format!("{year:04}-{month:02}-{:02}", day - first + 1)
}

#[cfg(test)]
mod tests {
    use super::{date, parse};

    #[test]
    fn the_day_of_a_time_is_that_which_is_read_back() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (86_399, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_795_293_900, "2026-11-21"),
            (1_798_761_599, "2026-12-31"),
        ] {
            assert_eq!(date(seconds), day);
            let midnight = parse(&format!("{day}T00:00:00Z")).unwrap() / 1_000_000_000;
            assert_eq!(midnight, seconds / 86_400 * 86_400, "{day}");
        }
    }

    #[test]
    fn dates_are_read_in_every_common_form() {
        // date -u -d 2026-11-21T20:45:00Z +%s
        let expected = Some(1_795_293_900_000_000_000);
        for name in [
            "1795293900",
            "1795293900.000000000",
            "1795293900000",
            "2026-11-21T20:45:00Z",
            "2026-11-21T20:45:00",
            "2026-11-21T21:45:00+01:00",
            "2026-11-21T15:15:00.0-0530",
            "20261121-204500",
            "20261121T204500Z",
            "20261121204500",
            "2026-11-21_20-45-00",
            "2026-11-21 20:45:00",
            "2026-11-21T20:45",
            "2026-11-21_20-45",
            "20261121-2045Z",
            "2026-11-21T21:45+01:00",
        ] {
            assert_eq!(parse(name), expected, "{name}");
        }
        assert_eq!(parse("1795293900.25"), expected.map(|t| t + 250_000_000));
        assert_eq!(
            parse("2024-02-29T00:00:00.5Z"),
            Some(1_709_164_800_500_000_000)
        );
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(0));
    }

    #[test]
    fn other_names_are_no_dates() {
        for name in [
            "",
            "1009",
            "0000-idle",
            "s0004",
            "started",
            "2026-13-21T20:45:00Z",
            "202611212045",
            "2026-11-21",
            "2026-11-21T20",
            "9e9",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
        for name in [
            "20261121",
            "2026-11-21T20:45:00+1",
            "ä026-11-21T20:45:00",
            "99999999999.1",
        ] {
            assert!(parse(name).is_none_or(|t| t > 0), "{name}");
        }
    }
}
