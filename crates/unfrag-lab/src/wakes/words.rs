//! Words that the answer and its text share.

use super::report::{Row, Wakes};
use crate::report::number::{counted, duration, percent};
use crate::report::screen::printable;

/// Who it was, in a sentence.
pub(super) fn sentence(w: &Wakes) -> String {
    let all = w.all_seconds();
    let over = duration(w.seconds);
    let Some(first) = w.callers.first().filter(|r| r.share > 0.0) else {
        return match all > 0.0 {
            true => format!(
                "nobody that the recording shows: the {} of work in these {over} had no recorded wake-up before it",
                time(all)
            ),
            false => {
                format!("nobody: kswapd, kcompactd and compaction did nothing in these {over}")
            }
        };
    };
    let what = first
        .order
        .map_or(String::new(), |o| format!(", {}", order_words(o)));
    format!(
        "{}{what}: {} of the {} that kswapd, kcompactd and requests that compacted took",
        who(first),
        percent(first.share),
        time(all)
    )
}

/// Program and innermost function, in words.
fn who(row: &Row) -> String {
    let program = programs(row);
    let function = row.functions.as_ref().and_then(|f| f.first());
    match function {
        Some(function) => format!("{program} by {}", printable(function)),
        None => program,
    }
}

/// The programs of a row, in words.
pub(super) fn programs(row: &Row) -> String {
    let first = row
        .programs
        .first()
        .map_or(String::new(), |p| printable(&p.name));
    match row.programs.len() {
        0 | 1 => first,
        n => format!("{first} and {} more", counted(n as u64 - 1, "program")),
    }
}

/// An order in words.
pub(super) fn order_words(order: i64) -> String {
    match order {
        ..0 => "all of memory".into(),
        order => format!("order {order}"),
    }
}

/// Seconds, with as many decimals as they need.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s <= 0.0 => "0".into(),
        s if s < 0.001 => format!("{:.2} ms", s * 1e3),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => duration(s),
    }
}
