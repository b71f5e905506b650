//! The answer as text for a terminal.
//!
//! Invariant: what the recording does not tell is said not to be known; names of it cannot control the terminal.

use super::report::{Measure, Row, Stacks, Wakes, Worked};
use super::words::{programs, time};
use crate::report::columns;
use crate::report::number::{counted, duration, percent, thousands};
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::fmt::Write as _;

/// The whole answer; so many callers are shown. The shell calls the input `path`.
pub fn render(w: &Wakes, shown: usize, path: &str, screen: &Screen) -> Text {
    let mut out = Text::new();
    let _ = writeln!(
        out,
        "{}, Linux {}: {} events in {}",
        printable(&w.source),
        printable(&w.kernel_release),
        thousands(w.events),
        duration(w.seconds)
    );
    let mut paragraph = |text: &str| wrapped(&mut out, Place::Hanging("  "), screen.width, text);
    paragraph(&format!("WHO: {}.", w.answer));
    paragraph(&format!("HOW MUCH: {}.", how_much(w)));
    paragraph(&format!("KNOWN: {}", known(w)));
    if w.lost_events > 0 {
        paragraph(&format!(
            "At least {} events were lost: wake-ups may be missing, and their time be given to the one before.",
            thousands(w.lost_events)
        ));
    }
    table(w, shown, screen, &mut out);
    let next = match w.stacks {
        Stacks::None => (
            "which driver or subsystem asked:",
            "unfrag record --system --stacks --for 5m -o stacks.unfrag".to_owned(),
        ),
        _ => (
            "a picture of it, with whole stacks:",
            format!("unfrag blame --wakes {path} --svg wakes.svg"),
        ),
    };
    let _ = writeln!(out, "\nNEXT, {}\n  {}", next.0, printable(&next.1));
    out
}

fn how_much(w: &Wakes) -> String {
    let of = |name: &str, worked: Option<Worked>, wakes: Option<u64>, how_often: &str| {
        let d = match (worked, wakes) {
            (Some(worked), _) => worked,
            (None, Some(n)) => {
                return format!(
                    "{name} {}, and not known how long it worked, as its waking and sleeping were not recorded",
                    counted(n, how_often)
                );
            }
            (None, None) => return format!("{name} not known, as its events were not recorded"),
        };
        let how = match d.measure {
            Measure::OnCpu => " on a CPU",
            Measure::Awake => " awake",
            Measure::BeginToEnd => "",
        };
        let parts = [
            (d.own_timer_seconds, "by its own timer"),
            (
                d.not_recorded_seconds,
                match d.measure {
                    Measure::BeginToEnd => "in runs that had begun before",
                    _ => "after wake-ups that were not recorded",
                },
            ),
            (
                d.unsure_seconds,
                "more at the beginning, in which it may have been awake",
            ),
        ];
        let parts = parts.iter().filter(|p| p.0 > 0.0);
        let parts: Vec<String> = parts
            .map(|(s, what)| format!("{} {what}", time(*s)))
            .collect();
        let at_end = d.at_work_at_end.then(|| "at work when it ends".to_owned());
        let parts: Vec<String> = parts.into_iter().chain(at_end).collect();
        let parts = match parts.is_empty() {
            true => String::new(),
            false => format!(" ({})", parts.join(", ")),
        };
        format!(
            "{name} {}{how}, {}{parts}",
            time(d.seconds),
            counted(d.count, how_often)
        )
    };
    [
        of("kswapd", w.kswapd, w.kswapd_wakes, "wake-up"),
        of("kcompactd", w.kcompactd, w.kcompactd_wakes, "wake-up"),
        of("requests that compacted themselves", w.direct, None, "run"),
    ]
    .join("; ")
}

fn known(w: &Wakes) -> String {
    let daemons = [w.kswapd, w.kcompactd];
    let has = |measure| daemons.iter().flatten().any(|d| d.measure == measure);
    let mut all = vec![];
    if w.kswapd.is_some() || w.kcompactd.is_some() {
        all.push(
            "A daemon's time is that of the wake-up before it, and what kswapd has kcompactd do is that of whoever woke kswapd.",
        );
    }
    if has(Measure::OnCpu) {
        all.push("It is measured by the scheduler's events.");
    }
    if has(Measure::Awake) {
        all.push(
            "It is measured from waking to sleeping, as the recording has no switches of these tasks: what they waited for is \
             in it, a tenth of a second at the end of each of kswapd's too.",
        );
    }
    all.push(match w.stacks {
        Stacks::None => {
            "Kernel stacks were not recorded: who asked is known by program, order and flags."
        }
        Stacks::Names => "Who asked is told by kernel stacks.",
        Stacks::Addresses => {
            "Kernel stacks are there without names: the recorder was not shown any (kptr_restrict, or another tracer's file)."
        }
    });
    if w.of_command {
        all.push("Only a command was recorded: wake-ups by others are not in it.");
    }
    all.join(" ")
}

fn table(w: &Wakes, shown: usize, screen: &Screen, out: &mut Text) {
    if w.callers.is_empty() {
        return;
    }
    out.push('\n');
    let title = format!("Who asked (time over these {})", duration(w.seconds));
    out.push_head(screen, &title);
    let head = [
        match w.is_timed() {
            true => "share",
            false => "of wakes",
        },
        "kswapd",
        "kcompactd",
        "itself",
        "order",
        "may fail",
        "wakes",
        "requests",
        "failed",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(w.callers.iter().take(shown).map(cells));
    let mut table = String::new();
    columns::push(&mut table, "  ", 0, &rows);
    let mut lines = table.lines();
    let _ = writeln!(out, "{}", lines.next().unwrap_or_default());
    for (line, row) in lines.zip(&w.callers) {
        let _ = writeln!(out, "{line}");
        wrapped(out, Place::Each("    "), screen.width, &asked(row));
    }
    let more = w.callers.len().saturating_sub(shown);
    if more > 0 {
        let _ = writeln!(
            out,
            "  and {more} more; --top {} shows them",
            w.callers.len()
        );
    }
}

fn cells(row: &Row) -> Vec<String> {
    let of = |seconds: Option<f64>| seconds.map_or("not known".into(), time);
    let number = |n: Option<u64>| n.map_or("?".into(), thousands);
    let wakes = [row.kswapd_wakes, row.kcompactd_wakes];
    let wakes: Vec<u64> = wakes.into_iter().flatten().collect();
    vec![
        row.share.or(row.wakes_share).map_or("?".into(), percent),
        of(row.kswapd_seconds),
        of(row.kcompactd_seconds),
        of(row.direct_seconds),
        match row.order {
            None => "?".into(),
            Some(..0) => "all".into(),
            Some(order) => order.to_string(),
        },
        match (row.may_fail, row.is_no_request) {
            (Some(may_fail), _) => may_fail.text().into(),
            (None, true) => "-".into(),
            (None, false) => "?".into(),
        },
        number((!wakes.is_empty()).then(|| wakes.iter().sum())),
        number(row.requests),
        number(row.failed),
    ]
}

/// Who asked, on a line of its own.
fn asked(row: &Row) -> String {
    let mut text = programs(row);
    if let Some(functions) = &row.functions {
        let functions: Vec<String> = functions.iter().map(|f| printable(f)).collect();
        let _ = write!(text, ": {}", functions.join(" <- "));
        let module = row.module.as_ref().map(|m| format!("[{m}]"));
        if let Some(module) = module.filter(|m| !functions.iter().any(|f| f.contains(m))) {
            let _ = write!(text, " (in {})", printable(&module));
        }
    }
    match &row.flags {
        // The only such wake-up of order 0: a request stole a block of another type, and marks were raised for a while.
        Some(_) if row.is_no_request && row.order == Some(0) => {
            text += ", for no request: after a fallback raised the watermarks";
        }
        Some(flags) if !row.is_no_request => {
            let _ = write!(text, ", {}", printable(flags));
        }
        _ => {}
    }
    text
}
