//! Words that the answer and its text share.

use super::report::{Row, Wakes, Worked};
use crate::report::number::{counted, duration, percent};
use crate::report::screen::printable;

/// Who it was, in a sentence.
pub(super) fn sentence(w: &Wakes) -> String {
    let all = w.all_seconds();
    let over = duration(w.seconds);
    let works = [
        ("kswapd", w.kswapd, w.kswapd_wakes),
        ("kcompactd", w.kcompactd, w.kcompactd_wakes),
        ("requests that compacted", w.direct, None),
    ];
    let of = |which: &dyn Fn(&Option<Worked>) -> bool| {
        let which = works.iter().filter(|(_, worked, _)| which(worked));
        joined(&which.map(|(name, ..)| *name).collect::<Vec<_>>())
    };
    let measured = of(&Option::is_some);
    let is_first = |r: &&Row| r.share.is_some_and(|s| s > 0.0);
    let Some(first) = w.callers.first().filter(is_first) else {
        let unfinished = of(&|worked| worked.is_some_and(|w| w.at_work_at_end));
        let unknown = of(&Option::is_none);
        let has_untimed = works
            .iter()
            .any(|(_, worked, wakes)| worked.is_none() && wakes.is_some_and(|n| n > 0));
        return match () {
            () if all > 0.0 => format!(
                "nobody that the recording shows: the {} of work in these {over} had no recorded wake-up before it",
                time(all)
            ),
            () if !unfinished.is_empty() => format!(
                "not known: {unfinished} had work to do when the recording ends, which tells none of the time of it"
            ),
            () if !w.is_timed() || has_untimed => by_wakes(w),
            () if unknown.is_empty() => {
                format!("nobody: {measured} did nothing in these {over}")
            }
            () => format!(
                "nobody that is known: {measured} did nothing in these {over}; what {unknown} did was not recorded"
            ),
        };
    };
    let what = first
        .order
        .map_or(String::new(), |o| format!(", {}", order_words(o)));
    format!(
        "{}{what}: {} of the {} that {measured} took",
        who(first),
        percent(first.share.unwrap_or(0.0)),
        time(all)
    )
}

/// Who woke the daemons, where it is not known how long they worked.
fn by_wakes(w: &Wakes) -> String {
    let daemons = [("kswapd", w.kswapd_wakes), ("kcompactd", w.kcompactd_wakes)];
    let told = daemons.iter().filter(|(_, n)| n.is_some());
    let all: u64 = told.clone().filter_map(|(_, n)| *n).sum();
    let daemons = joined(&told.map(|(name, _)| *name).collect::<Vec<_>>());
    let why = "how long they had it work is not known";
    let first = w.callers.first().and_then(|r| Some((r, r.wakes_share?)));
    match first {
        Some((first, share)) => {
            let order = first.order.map(|o| format!(", {}", order_words(o)));
            format!(
                "{}{}: {} of {} of {daemons}; {why}",
                who(first),
                order.unwrap_or_default(),
                percent(share),
                counted(all, "wake-up")
            )
        }
        None => {
            format!("nobody: there were no wake-ups of {daemons}; what else these did is not known")
        }
    }
}

/// Names, as in a sentence.
fn joined(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
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
