//! The table that sets kernels beside each other, as rows of text: the terminal and the page show
//! the same rows.
//!
//! Invariant: a row has one value for each column, or none at all if it is a heading.

use super::wording;
use super::wording::ZoneChoice;
use crate::geometry::Sizes;
use crate::replay::answer::Report;
use crate::replay::answer::report::{Failure, KernelReport, Sample, ZoneSample};
use crate::report::number::thousands;
use crate::report::table::{Row, SideBySide};
use std::collections::BTreeSet;

/// Shown where a source has no value.
const UNKNOWN: &str = "-";

/// The row of an ensemble.
const SPREAD: &str = "least - most of the replays";

/// One zone of one column: its states at the end, at the beginning, and between.
struct Column<'a> {
    end: Option<&'a ZoneSample>,
    begin: Option<&'a ZoneSample>,
    all: Vec<&'a ZoneSample>,
}

impl<'a> Column<'a> {
    fn of(zone: &ZoneChoice, samples: &'a [Sample]) -> Column<'a> {
        let all: Vec<&ZoneSample> = samples.iter().filter_map(|s| zone.of(s)).collect();
        Column {
            end: all.last().copied(),
            begin: all.first().copied(),
            all,
        }
    }
}

/// One zone: its state at the end, and beside it what stands at the beginning, since columns that begin differently
/// cannot be compared by their ends.
pub fn zone_table(report: &Report, zone: &ZoneChoice) -> SideBySide {
    let mut heads = Vec::new();
    let mut columns = vec![];
    if zone.last(&report.recorded).is_some() {
        heads.push("recorded".to_string());
        columns.push(Column::of(zone, &report.recorded));
    }
    heads.extend(kernel_names(report));
    columns.extend(answers(report).map(|k| Column::of(zone, &k.samples)));
    SideBySide {
        heads,
        rows: zone_rows(&columns, &report.recording.sizes),
    }
}

/// A number whose course over the replay is shown.
struct Course<'a> {
    of: &'a dyn Fn(&ZoneSample) -> Option<f64>,
    /// A value, and a change with its sign.
    text: fn(f64) -> String,
}

impl Course<'_> {
    /// Rows below that of its value at the end: the value at the beginning, the change, and the mean of all snapshots.
    fn rows(&self, columns: &[Column<'_>]) -> [Row; 3] {
        let row = |label: &str, value: &dyn Fn(&Column) -> Option<String>| Row {
            label: label.into(),
            depth: 1,
            values: columns
                .iter()
                .map(|c| value(c).unwrap_or_else(|| UNKNOWN.into()))
                .collect(),
        };
        let change = |c: &Column| {
            let change = (self.of)(c.end?)? - (self.of)(c.begin?)?;
            let text = (self.text)(change.abs());
            Some(match change {
                n if n > 0.0 => format!("+{text}"),
                n if n < 0.0 => format!("-{text}"),
                _ => text,
            })
        };
        let mean = |c: &Column| {
            let all: Vec<f64> = c.all.iter().filter_map(|z| (self.of)(z)).collect();
            (!all.is_empty()).then(|| (self.text)(all.iter().sum::<f64>() / all.len() as f64))
        };
        [
            row("at the beginning", &|c| {
                Some((self.text)((self.of)(c.begin?)?))
            }),
            row("change", &change),
            row("mean of the snapshots", &mean),
        ]
    }
}

/// A whole number, and an index.
fn whole(n: f64) -> String {
    thousands(n.round() as u64)
}

fn index_text(n: f64) -> String {
    format!("{n:.3}")
}

/// Totals of the whole replay.
pub fn totals_table(report: &Report) -> SideBySide {
    let kernels: Vec<&KernelReport> = answers(report).collect();
    // What a reader asks for first, then the rest by name.
    const FIRST: [&str; 3] = ["allocations", "frees", "fallbacks"];
    let rank = |name: &str| FIRST.iter().position(|f| *f == name).unwrap_or(FIRST.len());
    let names: BTreeSet<(usize, &String)> = kernels
        .iter()
        .flat_map(|k| k.totals.keys())
        .map(|name| (rank(name), name))
        .collect();
    let row = |label: String, value: &dyn Fn(&KernelReport) -> Option<u64>| Row {
        label,
        depth: 0,
        values: kernels.iter().map(|k| or_unknown(value(k))).collect(),
    };
    let mut rows: Vec<Row> = names
        .into_iter()
        .map(|(_, name)| row(capitalised(name), &|k| k.totals.get(name).copied()?))
        .collect();
    rows.push(row("Allocations that failed".into(), &|k| Some(k.failed())));
    SideBySide {
        heads: kernel_names(report).collect(),
        rows,
    }
}

/// Allocations that found no page: `(order, gfp mask)` and how many of each kernel, the most first.
pub fn failures_by_kind(report: &Report) -> Vec<((u8, &str), Vec<u64>)> {
    let kinds = Failure::by_kind(report.kernels.iter().map(|k| &k.failures[..]));
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.iter().sum::<u64>()));
    kinds
}

/// The kernels that have an answer.
fn answers(report: &Report) -> impl Iterator<Item = &KernelReport> {
    report.kernels.iter().filter(|k| k.broke_down.is_none())
}

fn kernel_names(report: &Report) -> impl Iterator<Item = String> {
    answers(report).map(|k| k.kernel.clone())
}

fn zone_rows(columns: &[Column<'_>], sizes: &Sizes) -> Vec<Row> {
    let states: Vec<Option<&ZoneSample>> = columns.iter().map(|c| c.end).collect();
    let course = |of: &dyn Fn(&ZoneSample) -> Option<f64>, text| Course { of, text }.rows(columns);
    let large = sizes.large_order();
    let text = |depth, label: &str, value: &dyn Fn(&ZoneSample) -> Option<String>| Row {
        label: label.into(),
        depth,
        values: states
            .iter()
            .map(|s| s.and_then(value).unwrap_or_else(|| UNKNOWN.into()))
            .collect(),
    };
    let count = |depth, label: &str, value: &dyn Fn(&ZoneSample) -> Option<u64>| {
        text(depth, label, &|z| value(z).map(thousands))
    };
    let unusable = |z: &ZoneSample, order: u8| z.unusable_index.get(&order.to_string()).copied();
    let index = |order: u8| {
        let label = format!("Unusable index, order {order} ({})", sizes.of_order(order));
        text(0, &label, &|z| unusable(z, order).map(index_text))
    };
    let heading = |label: &str| Row {
        label: label.into(),
        depth: 0,
        values: Vec::new(),
    };
    let mut rows = vec![
        text(0, "Free memory, MiB", &|z| Some(sizes.mib(z.free_pages))),
        count(0, "Free pages", &|z| Some(z.free_pages)),
        text(1, SPREAD, &|z| {
            let [least, most] = z.spread.as_ref()?.free_pages;
            Some(format!("{} - {}", thousands(least), thousands(most)))
        }),
    ];
    rows.extend(course(&|z| Some(z.free_pages as f64), whole));
    rows.push(count(0, "On per-CPU lists, pages", &|z| z.pcp_pages));
    rows.push(count(
        0,
        &format!("Free {} blocks", sizes.of_order(large)),
        &|z| Some(z.free_huge_blocks),
    ));
    rows.extend(course(&|z| Some(z.free_huge_blocks as f64), whole));
    rows.push(index(3));
    rows.push(index(large));
    rows.extend(course(&|z| unusable(z, large), index_text));
    rows.push(heading("Free blocks"));
    let known = || states.iter().flatten().copied();
    if known().all(|z| z.spread.is_none()) {
        rows.retain(|r| r.label != SPREAD);
    }
    let orders = known().map(|z| z.free_blocks.len()).max().unwrap_or(0);
    rows.extend((0..orders).map(|order| {
        let label = format!("order {order}, {}", sizes.of_order(order as u8));
        count(1, &label, &|z| z.free_blocks.get(order).copied())
    }));
    rows.push(heading("Pageblocks"));
    for name in wording::pageblock_types(known()) {
        rows.push(count(1, &name, &|z| {
            Some(z.pageblocks.get(&name).copied().unwrap_or(0))
        }));
    }
    rows.push(count(1, "mixed", &|z| z.mixed_pageblocks));
    rows.push(heading("Unmovable pageblocks"));
    rows.extend(course(
        &|z| z.pageblocks.get("Unmovable").map(|n| *n as f64),
        whole,
    ));
    rows
}

fn or_unknown(value: Option<u64>) -> String {
    value.map_or_else(|| UNKNOWN.into(), thousands)
}

/// A name out of `totals` as words: `claimed_blocks` is `Claimed blocks`.
fn capitalised(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut chars = words.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
