//! The numbers of a run as tables; the screen and the page show the same rows.
//!
//! Invariant: a row has a value for each column, and every amount names its unit in the head.

use super::phrases::seconds;
use crate::report::number::{PAGE_BYTES, mib, order_size, percent, thousands};
use crate::report::table::{Row, SideBySide};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use unfrag_eras::MAX_ORDER;
use unfrag_machine::program::report::Line;
use unfrag_machine::scenario::{Held, Obstacles, Outcome};

/// A table with what stands over the labels of its rows.
pub(super) struct Table {
    /// Over the labels.
    pub corner: &'static str,
    /// The rest.
    pub cells: SideBySide,
}

impl Table {
    fn new<const N: usize>(corner: &'static str, heads: [&str; N]) -> Table {
        let heads = heads.map(str::to_owned).into();
        let rows = vec![];
        Table {
            corner,
            cells: SideBySide { heads, rows },
        }
    }

    fn row(&mut self, label: impl Into<String>, values: Vec<String>) {
        self.cells.rows.push(Row {
            label: label.into(),
            depth: 0,
            values,
        });
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.cells.rows.is_empty()
    }
}

/// The tasks of the scenario and their times, without those of what they forked.
pub(super) fn tasks(o: &Outcome) -> Table {
    let heads = ["number", "ended s", "why", "user s", "system s", "iowait s"];
    let mut table = Table::new("task", heads);
    let time = |ns| format!("{:.3}", seconds(ns));
    for t in &o.tasks {
        let why = match (&t.failed, t.ended_ns) {
            (Some(failed), _) => failed,
            (None, Some(_)) => "done",
            (None, None) => "still runs",
        };
        let mut values = vec![
            t.number.to_string(),
            t.ended_ns.map_or("-".into(), time),
            why.to_owned(),
        ];
        values.extend([t.user_ns, t.system_ns, t.iowait_ns].map(time));
        table.row(&t.name, values);
    }
    table
}

/// The lines that tasks printed, by task and text.
pub(super) fn lines(o: &Outcome) -> Table {
    let heads = ["line", "times", "median ms", "longest ms", "last at s"];
    let mut table = Table::new("printed by", heads);
    let mut by_text: BTreeMap<(&str, &str), Vec<&Line>> = BTreeMap::new();
    for l in &o.programs.lines {
        by_text.entry((&l.task, &l.text)).or_default().push(l);
    }
    for ((task, text), lines) in by_text {
        let mut took: Vec<_> = lines.iter().map(|l| l.latency_ns).collect();
        took.sort_unstable();
        let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
        let last = lines.iter().map(|l| l.at_ns).max().unwrap_or(0);
        let values = vec![
            text.to_owned(),
            thousands(lines.len() as u64),
            ms(took[took.len() / 2]),
            ms(took[took.len() - 1]),
            format!("{:.3}", seconds(last)),
        ];
        table.row(task, values);
    }
    table
}

/// Attempts at large blocks, and which zone served them.
pub(super) fn high_order(o: &Outcome) -> Table {
    let mut table = Table::new(
        "attempts",
        ["order", "size", "number", "succeeded", "share"],
    );
    let zones = o.zones.iter().map(|z| z.name);
    table
        .cells
        .heads
        .extend(zones.clone().map(|z| format!("from {z}")));
    for r in &o.programs.high_order {
        let (n, done) = (r.attempts.len(), r.successes());
        let mut values = vec![
            r.order.to_string(),
            order_size(r.order.into()),
            n.to_string(),
            done.to_string(),
            percent(done as f64 / n.max(1) as f64),
        ];
        let from = |zone| r.attempts.iter().filter(|a| a.zone == Some(zone)).count();
        values.extend(zones.clone().map(|z| from(z).to_string()));
        table.row(&r.name, values);
    }
    table
}

/// Blocks of the largest order in each zone, and how many of them could be had.
pub(super) fn blocks(obstacles: &[Obstacles]) -> Table {
    let mut table = Table::new("zone", ["blocks", "free", "can be freed"]);
    for o in obstacles {
        table.row(o.zone, [o.blocks, o.free, o.easy].map(thousands).into());
    }
    table
}

/// What spoils the most blocks of each zone, at most so many a zone.
pub(super) fn spoilers(obstacles: &[Obstacles], most: usize) -> Table {
    let heads = ["zone", "MiB", "in blocks", "alone in"];
    let mut table = Table::new("held by", heads);
    for o in obstacles {
        for (
            name,
            Held {
                pages,
                blocks,
                alone,
            },
        ) in o.spoilers().into_iter().take(most)
        {
            let values = [
                o.zone.to_owned(),
                mib(pages),
                thousands(blocks),
                thousands(alone),
            ];
            table.row(name, values.into());
        }
    }
    table
}

/// The slab caches with most pages, at most so many.
pub(super) fn slabs(o: &Outcome, most: usize) -> Table {
    let heads = [
        "object bytes",
        "slab order",
        "slabs",
        "MiB",
        "objects in use",
        "bytes in use",
    ];
    let mut table = Table::new("slab cache", heads);
    let mut slabs: Vec<_> = o.slabs.iter().filter(|s| s.pages > 0).collect();
    slabs.sort_by_key(|s| Reverse(s.pages));
    for s in slabs.into_iter().take(most) {
        let used = s.in_use as f64 * f64::from(s.size) / (s.pages * PAGE_BYTES) as f64;
        let values = [
            s.size.to_string(),
            s.order.to_string(),
            thousands(s.slabs),
            mib(s.pages),
            thousands(s.in_use),
            percent(used),
        ];
        table.row(s.name, values.into());
    }
    table
}

/// Counters that are not zero.
pub(super) fn counters(o: &Outcome) -> Table {
    let mut table = Table::new("counter", ["since the start"]);
    for (name, value) in o.counters.iter().filter(|(_, v)| **v > 0) {
        table.row(*name, vec![value.to_string()]);
    }
    table
}

/// What failed, and how often.
pub(super) fn failures(o: &Outcome) -> Table {
    let mut table = Table::new("what failed", ["times"]);
    for (what, times) in &o.programs.failures {
        table.row(what, vec![thousands(*times)]);
    }
    table
}

/// What the words of [`blocks`] and [`spoilers`] mean, in sentences.
pub(super) fn legend() -> [String; 2] {
    let size = order_size(MAX_ORDER.into());
    [
        format!(
            "A block is {size}, the largest order; one can be freed if only page cache, anonymous memory and free pages are in it."
        ),
        "Alone in a block: without it the block could be freed.".into(),
    ]
}
