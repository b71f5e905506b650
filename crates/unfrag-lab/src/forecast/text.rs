//! The answer as text for a terminal.

use super::report::{Blocks, DatedBy, Forecast, NotRead, When, Why};
use crate::geometry::PageSizeFrom;
use crate::report::number::{bytes, counted, thousands};
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::fmt::Write as _;

/// The whole answer.
pub fn render(f: &Forecast, screen: &Screen) -> Text {
    let mut out = Text::new();
    let _ = writeln!(
        out,
        "{}: {} in {}",
        printable(&f.source),
        counted(f.looks, "look"),
        days(f.seconds / 86_400.0)
    );
    let mut paragraph = |text: &str| wrapped(&mut out, Place::Hanging("  "), screen.width, text);
    let need = &f.need;
    paragraph(&format!(
        "WHEN, if nothing reclaims or compacts for it: a need of {need} {}.{}",
        when(&f.free, f),
        past(&f.free)
    ));
    paragraph(&format!(
        "AT BEST, with reclaim and compaction: it {}.{}",
        when(&f.at_best, f),
        past(&f.at_best)
    ));
    if let Some(pays) = pays(f) {
        paragraph(&format!("COMPACTING: {pays}."));
    }
    let size = bytes(f.block_bytes);
    let number = |b: &Blocks| {
        let of = match b.looks {
            n if n < f.looks && n > 0 => {
                format!(", at the last of {} that tell it", counted(n, "look"))
            }
            _ => String::new(),
        };
        let last = b.last.map(|n| counted_blocks(n) + &of);
        last.unwrap_or_else(|| "not known".into())
    };
    paragraph(&format!(
        "NOW: {} of {size} free; without kernel memory in them: {}.{}{}",
        number(&f.free),
        number(&f.at_best),
        change("Free ones", &f.free),
        change("The others", &f.at_best),
    ));
    if let Some(n) = &f.not_read {
        paragraph(&not_read(n));
    }
    if f.undated > 0 {
        let what = counted(f.undated, "look");
        paragraph(&format!(
            "{what} more do not say when they were taken, and count nowhere."
        ));
    }
    if f.dated_by == DatedBy::Uptime {
        paragraph(
            "When they were taken is told by their uptime, as their names are no dates: looks of several boots lie over each other.",
        );
    }
    if f.page_size_from == PageSizeFrom::Assumed {
        paragraph(&format!(
            "A page of {} is assumed, as no look tells its size: {}, or give --page-size.",
            bytes(f.page_size),
            match f.dated_by {
                DatedBy::Series => "ask for unfrag_page_size_bytes too",
                _ => "copy meminfo too",
            }
        ));
    }
    out
}

fn not_read(n: &NotRead) -> String {
    let newer = match n.newest_days_after_last {
        Some(after) => format!(", {} after what NOW is of", days(after)),
        None => String::new(),
    };
    format!(
        "NOT READ: {} of {}, which count nowhere; the newest is {}{newer}: {}.",
        thousands(n.looks),
        counted(n.of, "look"),
        printable(&n.newest),
        printable(&n.why)
    )
}

/// What it has failed already.
fn past(blocks: &Blocks) -> String {
    match (blocks.when, blocks.last_below_days_before) {
        (When::Now, _) | (_, None) => String::new(),
        (_, Some(before)) => format!(
            " {} of {} had too few already, the last of them {} before the last look.",
            thousands(blocks.below),
            counted(blocks.looks, "look"),
            days(before)
        ),
    }
}

/// When the need fails, after its subject.
fn when(blocks: &Blocks, f: &Forecast) -> String {
    match blocks.when {
        When::Now => format!(
            "fails now: the last look has {}",
            counted_blocks(blocks.last.unwrap_or(0))
        ),
        When::Never => "does not fail: such blocks become more".into(),
        When::Later { beyond_days, .. } => format!(
            "fails later than can be told: they become fewer, and in nine of ten futures there are enough for {}",
            days(beyond_days)
        ),
        When::In {
            from_days,
            median_days,
            to_days,
            ..
        } => {
            let from = days(from_days);
            match (median_days, to_days) {
                (Some(median), Some(to)) => {
                    format!("fails in {} (80 %: {from} to {})", days(median), days(to))
                }
                (Some(median), None) => format!(
                    "fails in {} (80 %: {from} to later than can be told)",
                    days(median)
                ),
                (None, _) => format!("may fail from {from} on; when is not known"),
            }
        }
        When::NotKnown { why } => {
            let why = match why {
                Why::NotInLooks if f.dated_by == DatedBy::Series => {
                    "the range does not tell such blocks (unfrag_pageblocks does)".into()
                }
                Why::NotInLooks => {
                    "no look tells such blocks (copies of pagetypeinfo do, as root)".into()
                }
                Why::TooFewLooks => format!("20 looks are needed, and there are {}", blocks.looks),
                Why::Gaps => "most of the time between the first look and the last has none".into(),
                Why::NoTrend => format!(
                    "what was seen in {} may as well be no trend",
                    days(f.seconds / 86_400.0)
                ),
            };
            format!("fails at a time that is not known: {why}")
        }
    }
}

fn change(what: &str, blocks: &Blocks) -> String {
    match blocks.when {
        When::In { per_day, .. } | When::Later { per_day, .. } => {
            let which = if per_day > 0.0 { "more" } else { "fewer" };
            format!(" {what} become {} {which} a day.", few(per_day.abs()))
        }
        _ => String::new(),
    }
}

/// A number with two digits that count, at the least.
fn few(n: f64) -> String {
    match n {
        n if n < 0.01 => "less than 0.01".into(),
        n if n < 1.0 => format!("{n:.2}"),
        n if n < 1000.0 => format!("{n:.1}"),
        n => thousands(n.round() as u64),
    }
}

fn counted_blocks(n: u64) -> String {
    match n {
        1 => "1 block".into(),
        n => format!("{} blocks", thousands(n)),
    }
}

/// From when to when compacting helps.
fn pays(f: &Forecast) -> Option<String> {
    let from = match f.free.when {
        When::Now => "from now on".to_owned(),
        When::In { median_days, .. } => format!("from {} on", days(median_days?)),
        _ => return None,
    };
    match f.at_best.when {
        When::Now => Some("does not help: too many blocks have kernel memory in them".into()),
        When::Never | When::Later { .. } => Some(format!("pays {from}")),
        When::In { median_days, .. } => Some(match median_days {
            Some(until) => format!("pays {from}, until {} from the last look", days(until)),
            None => format!("pays {from}"),
        }),
        When::NotKnown { .. } => None,
    }
}

/// A time in the unit that reads best.
fn days(days: f64) -> String {
    let hours = days * 24.0;
    match hours * 3600.0 {
        s if s < 600.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        _ if hours < 48.0 => format!("{hours:.1} h"),
        _ if days < 10.0 => format!("{days:.1} days"),
        _ => format!("{days:.0} days"),
    }
}
