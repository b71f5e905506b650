//! The answer as text for a terminal.
//!
//! Invariant: every number has its unit; what is cut off is counted; names of the recording cannot control the terminal.

use super::holders::purpose;
use super::report::{Blame, Interval, Next, Start};
use crate::profile::class::Class;
use crate::report::columns;
use crate::report::number::{bytes, duration, percent, thousands};
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Widest name of a holder.
const NAME: usize = 44;
/// Rows over time that a short answer has.
pub const MOMENTS: usize = 8;

/// How much is shown.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Holders.
    pub holders: usize,
    /// Intervals of each table over time; of more, neighbours are put together.
    pub intervals: usize,
}

/// The whole answer: first who it was, last the next command, of the input that the shell calls `path`.
pub fn render(b: &Blame, rows: Rows, path: &str, screen: &Screen) -> Text {
    let mut out = Text::new();
    let _ = writeln!(
        out,
        "{}, Linux {}: {} events in {}{}",
        printable(&b.source),
        printable(&b.kernel_release),
        thousands(b.events),
        duration(b.seconds),
        b.began
            .as_ref()
            .map_or(String::new(), |d| format!(", from {d} UTC")),
    );
    let mut paragraph = |text: &str| wrapped(&mut out, Place::Hanging("  "), screen.width, text);
    paragraph(&format!("WHO: {}.", printable(&b.answer.sentence)));
    if let Some(advice) = &b.answer.advice {
        paragraph(&format!("DO: {advice}."));
    }
    let (from, to) = (b.at_start, b.at_end);
    let size = b.sizes.bytes(1 << b.sizes.pageblock_order);
    paragraph(&format!(
        "HOW MUCH: kernel memory breaks up {} blocks of {} on average ({}): {} at the beginning, {} at the end. It takes fewer \
         than half of the pages in each, so that all the rest could move, and a huge page would fit but for these few. Others it \
         fills, and these are no loss: {} at the beginning, {} at the end.",
        blocks(b.spoilt_blocks),
        bytes(size),
        bytes((b.spoilt_blocks * size as f64) as u64),
        thousands(from.spoilt),
        thousands(to.spoilt),
        thousands(from.filled),
        thousands(to.filled)
    ));
    paragraph(&format!("KNOWN: {}", known(b.start)));
    if b.lost_events > 0 {
        paragraph(&format!(
            "At least {} events were lost, so some pages are missing here.",
            thousands(b.lost_events)
        ));
    }
    if let Some(after) = b.all_known_after_seconds.filter(|s| *s > 0.0) {
        paragraph(&format!(
            "Counted from {} after the first event on, when page flags were read first: before, it is not known what was in use.",
            duration(after)
        ));
    }
    tables(b, rows, screen, &mut out);
    let next = match b.answer.next {
        Next::Doctor => "NEXT, what the host itself can do about it:",
        Next::Summary => "NEXT, what else was asked for:",
        Next::RecordSlab => "NEXT, who allocates these objects:",
        Next::RecordLonger => "NEXT, who takes such memory:",
    };
    let command = printable(&b.answer.next.command(path));
    let _ = writeln!(out, "\n{next}\n  {command}");
    out
}

/// Who held them, by holder and over time.
fn tables(b: &Blame, shown: Rows, screen: &Screen, out: &mut Text) {
    if b.holders.is_empty() {
        return;
    }
    let over = duration(b.seconds);
    let title =
        format!("Who holds what breaks blocks up (blocks and share: means over these {over})");
    head(out, &title, screen);
    let mut rows = vec![
        [
            "program",
            "what for",
            "blocks",
            "share",
            "pages taken",
            "held at end",
        ]
        .map(String::from)
        .to_vec(),
    ];
    for h in b.holders.iter().take(shown.holders) {
        rows.push(vec![
            clip(h.who()),
            clip(&h.purpose),
            blocks(h.spoilt_blocks),
            percent(h.share),
            thousands(h.taken),
            thousands(h.held_at_end),
        ]);
    }
    columns::push(out, "  ", 2, &rows);
    let more = b.holders.len().saturating_sub(shown.holders);
    if more > 0 {
        let _ = writeln!(
            out,
            "  and {more} more; --top {} shows them",
            b.holders.len()
        );
    }
    let mut listed = b.holders.iter().take(shown.holders);
    if listed.any(|h| h.purpose == purpose(Class::Other)) {
        let text =
            "other kernel memory: pipes, sockets, drivers' pages: what no counter in /proc shows";
        wrapped(out, Place::Each("  "), screen.width, text);
    }
    if !b.days.is_empty() {
        over_time(out, b, &b.days, DAY, shown, screen);
    }
    // Hours of days are too many for a short answer, and several of them together tell little.
    if b.days.is_empty() || b.intervals.len() <= shown.intervals {
        over_time(out, b, &b.intervals, b.interval_seconds, shown, screen);
    } else {
        let _ = writeln!(
            out,
            "  --all shows {} more, {}",
            thousands(b.intervals.len() as u64),
            each(b.interval_seconds)
        );
    }
}

/// Seconds of a day.
const DAY: u64 = 86_400;

/// `by hour`, `by 6 s`.
fn each(seconds: u64) -> String {
    match seconds {
        3600 => "by hour".to_owned(),
        DAY => "by day".to_owned(),
        s if s % DAY == 0 => format!("by {} days", s / DAY),
        s if s % 3600 == 0 => format!("by {} hours", s / 3600),
        s if s % 60 == 0 => format!("by {} min", s / 60),
        s => format!("by {s} s"),
    }
}

/// A table over time, with so many intervals at most.
fn over_time(
    out: &mut Text,
    b: &Blame,
    all: &[Interval],
    seconds: u64,
    shown: Rows,
    screen: &Screen,
) {
    let together = all.len().div_ceil(shown.intervals.max(1)).max(1);
    let title = each(seconds * together as u64);
    head(out, &title.replacen('b', "B", 1), screen);
    let merged: Vec<Interval> = all.chunks(together).map(mean).collect();
    times(out, b, &merged, screen);
    if together > 1 {
        let _ = writeln!(
            out,
            "  --all shows each of the {}",
            thousands(all.len() as u64)
        );
    }
}

/// Neighbouring intervals as one, with their mean.
fn mean(of: &[Interval]) -> Interval {
    let n = of.len().max(1) as f64;
    let mut by_holder = BTreeMap::new();
    for (&holder, blocks) in of.iter().flat_map(|i| &i.by_holder) {
        *by_holder.entry(holder).or_default() += blocks / n;
    }
    Interval {
        seconds: of.first().map_or(0.0, |i| i.seconds),
        date: of.first().and_then(|i| i.date.clone()),
        spoilt_blocks: of.iter().map(|i| i.spoilt_blocks).sum::<f64>() / n,
        by_holder,
    }
}

/// What is known of the beginning, in a sentence.
pub(super) fn known(start: Start) -> &'static str {
    match start {
        Start::PageFlags => {
            "Slab and page tables from before the recording are known by page flags; other kernel memory of that time is not."
        }
        Start::Unknown => {
            "Kernel memory from before the recording is not known: there are no page flags in it. Only pages that were taken in the recording count, and a block may hold more."
        }
    }
}

/// A row for each interval: a bar, and the holders with most.
fn times(out: &mut Text, b: &Blame, all: &[Interval], screen: &Screen) {
    let most = all.iter().map(|i| i.spoilt_blocks).fold(0.0, f64::max);
    let bar_width = (screen.width / 5).clamp(8, 30);
    let mut rows = vec![["from", "blocks", "", "mostly"].map(String::from).to_vec()];
    for i in all {
        let mut by: Vec<(usize, f64)> = i.by_holder.iter().map(|(&h, &n)| (h, n)).collect();
        by.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let name =
            |&(h, n): &(usize, f64)| format!("{} {}", clip(&b.holders[h].label()), blocks(n));
        let mostly: Vec<String> = by.iter().take(2).map(name).collect();
        let from = match &i.date {
            Some(date) => date.clone(),
            None => format!("+{}", duration(i.seconds)),
        };
        let bar = bar(i.spoilt_blocks, most, bar_width, screen.unicode);
        rows.push(vec![from, blocks(i.spoilt_blocks), bar, mostly.join("; ")]);
    }
    // The bar and the names are text, the number is not: its column is made of one width here.
    let widest = rows.iter().map(|r| r[1].len()).max().unwrap_or(0);
    for row in &mut rows {
        row[1] = format!("{:>widest$}", row[1]);
    }
    columns::push(out, "  ", 4, &rows);
}

/// A bar for a value.
fn bar(value: f64, most: f64, width: usize, unicode: bool) -> String {
    let eighths = if most > 0.0 {
        (value / most * width as f64 * 8.0).round() as usize
    } else {
        0
    };
    if !unicode {
        return "#".repeat(eighths.div_ceil(8));
    }
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

fn head(out: &mut Text, text: &str, screen: &Screen) {
    out.push('\n');
    out.push_head(screen, text);
}

/// A number of blocks.
fn blocks(n: f64) -> String {
    match n {
        n if n >= 100.0 => thousands(n.round() as u64),
        n => format!("{n:.1}"),
    }
}

fn clip(name: &str) -> String {
    let name = printable(name);
    match name.chars().count() > NAME {
        true => name.chars().take(NAME - 1).chain(['…']).collect(),
        false => name,
    }
}
