//! Quantities as text: counts, bytes and sizes, written and read.

use unfrag_lab::geometry::PAGE_SIZES;
pub use unfrag_lab::report::number::{counted, decimal_bytes as bytes, thousands};

/// The whole part of a number such as `1.5`, and its decimals as so many digits; `None`, if it is none, or has more.
fn decimal(number: &str, digits: usize) -> Option<(u128, u128)> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || part.contains('.') || part.len() > digits || number.ends_with('.') {
        return None;
    }
    let part = format!("{part:0<digits$}");
    Some((whole.parse().ok()?, part.parse().ok()?))
}

/// A size of memory: a number with a unit of 1024 (`768M`, `1.5GiB`), or of bytes without one.
///
/// # Errors
/// Says what a size looks like.
pub fn size(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is no size; give a number and a unit, such as 768M or 1.5G");
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(bad()),
    };
    let (whole, part) = decimal(number, 6).ok_or_else(bad)?;
    let size = whole
        .checked_mul(1_000_000)
        .and_then(|w| w.checked_add(part))
        .and_then(|w| w.checked_mul(1 << shift))
        .map(|w| w / 1_000_000);
    match size.and_then(|s| u64::try_from(s).ok()) {
        Some(0) => Err(format!("`{text}` is no memory at all")),
        Some(size) => Ok(size),
        None => Err(format!("`{text}` is more than any machine has")),
    }
}

/// Nanoseconds of a time: a number with a unit, such as 0.5s, 60s, 5m, 36h or 7d; without one, of seconds.
///
/// # Errors
/// Says what a time looks like.
pub fn nanoseconds(text: &str) -> Result<u64, String> {
    let bad =
        || format!("`{text}` is no time; give a number and a unit, such as 60s, 5m, 36h or 7d");
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "s" | "" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(bad()),
    };
    let (whole, part) = decimal(number, 9).ok_or_else(bad)?;
    let ns = whole
        .checked_mul(1_000_000_000)
        .and_then(|w| w.checked_add(part))
        .and_then(|n| n.checked_mul(seconds));
    ns.and_then(|n| u64::try_from(n).ok()).ok_or_else(bad)
}

/// Whole seconds of a time.
///
/// # Errors
/// Says what a time looks like.
pub fn seconds(text: &str) -> Result<u64, String> {
    const SECOND: u64 = 1_000_000_000;
    match nanoseconds(text)? {
        ns if ns % SECOND == 0 => Ok(ns / SECOND),
        _ => Err(format!("`{text}` has a part of a second")),
    }
}

/// Seconds between two readings: a time, of no more than a day.
///
/// # Errors
/// Says what a time looks like, and what its bounds are.
pub fn interval(text: &str, least: f64) -> Result<f64, String> {
    let seconds = nanoseconds(text)? as f64 / 1e9;
    match (least..=86_400.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err(format!("a time from {least} s to a day, such as 10s or 5m")),
    }
}

/// A page size on the command line.
///
/// # Errors
/// If no host has pages of that size.
pub fn page_size(text: &str) -> Result<u64, String> {
    let size = size(text)?;
    match PAGE_SIZES.contains(&size) {
        true => Ok(size),
        false => Err("pages have 4K, 8K, 16K or 64K".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_thousands() {
        assert_eq!(counted(1_509_360, "event"), "1,509,360 events");
        assert_eq!(counted(1, "snapshot"), "1 snapshot");
    }

    #[test]
    fn times_are_read_with_and_without_units() {
        for (text, seconds) in [
            ("1", 1.0),
            ("0.5", 0.5),
            ("0.5s", 0.5),
            ("1.5m", 90.0),
            ("2h", 7200.0),
            ("1d", 86_400.0),
        ] {
            assert_eq!(interval(text, 0.0), Ok(seconds), "{text}");
        }
        for bad in [
            "",
            "s",
            ".5",
            "1.",
            "1.5.2",
            "-1",
            "1e3",
            "nan",
            "inf",
            "1x",
            "2d",
            "99999999999d",
        ] {
            assert!(interval(bad, 0.0).is_err(), "{bad}");
        }
        assert!(interval("0.001", 0.01).is_err());
        assert!(seconds("1.5").is_err() && seconds("1.5m") == Ok(90));
    }

    #[test]
    fn sizes_are_read_with_and_without_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("768M"), Ok(768 << 20));
        assert_eq!(size("1.5GiB"), Ok(3 << 29));
        assert_eq!(size("2g"), Ok(2 << 30));
        for bad in [
            "",
            "M",
            ".5G",
            "1.G",
            "1..5G",
            "-1",
            "1X",
            "0",
            "99999999T",
            "9999999999999999999999999999999999999999",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
