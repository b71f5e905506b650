//! A window of time over a recording: `--from` and `--to`.

use unfrag_linux::segments::{Moment, Window};
use unfrag_linux::snapshots;

/// The window of a recording that is read.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct WindowArgs {
    /// Begin here: a date in UTC, such as 2026-11-28T06:00:00, or a time after the recording's beginning, such as 90m or
    /// 26h; further back if page flags are, from which a replay can begin
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
        }
    }
}

/// Seconds of a time: a number with a unit, such as 60s, 5m, 36h or 7d; without one, seconds.
///
/// # Errors
/// Says what a time looks like.
pub fn seconds(text: &str) -> Result<u64, String> {
    let bad =
        || format!("`{text}` is no time; give a number and a unit, such as 60s, 5m, 36h or 7d");
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "s" | "" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(seconds).ok_or_else(bad)
}

fn moment(text: &str) -> Result<Moment, String> {
    // A date without seconds, or a day alone, is one as well.
    let dates = [
        text.to_owned(),
        format!("{text}:00"),
        format!("{text}T00:00:00"),
    ];
    if text.contains('-')
        && let Some(at) = dates.iter().find_map(|d| snapshots::date(d))
    {
        return Ok(Moment::At(at));
    }
    let ns = seconds(text)
        .ok()
        .and_then(|s| s.checked_mul(1_000_000_000));
    ns.map(Moment::After).ok_or_else(|| {
        format!(
            "`{text}` is no moment; give a date such as 2026-11-28T06:00, or a time after the beginning such as 90m or 26h"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_or_times_after_the_beginning() {
        const HOUR: u64 = 3_600_000_000_000;
        assert_eq!(moment("26h"), Ok(Moment::After(26 * HOUR)));
        let day = 1_795_824_000_000_000_000;
        for text in [
            "2026-11-28T06:00:00",
            "2026-11-28T06:00",
            "2026-11-28 06:00",
        ] {
            assert_eq!(moment(text), Ok(Moment::At(day + 6 * HOUR)), "{text}");
        }
        assert_eq!(moment("2026-11-28"), Ok(Moment::At(day)));
        for bad in ["", "yesterday", "-1h", "1x", "99999999999999999999h"] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }
}
