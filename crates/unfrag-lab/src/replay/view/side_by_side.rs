//! The table that sets kernels beside each other, as rows of text: the terminal and the page show
//! the same rows.
//!
//! Invariant: a row has one value for each column, or none at all if it is a heading.

use super::wording;
use super::wording::ZoneChoice;
use crate::geometry::Sizes;
use crate::replay::answer::Report;
use crate::replay::answer::report::{Failure, KernelReport, ZoneSample};
use crate::report::number::thousands;
use crate::report::table::{Row, SideBySide};
use std::collections::BTreeSet;

/// Shown where a source has no value.
const UNKNOWN: &str = "-";

/// The row of an ensemble.
const SPREAD: &str = "least - most of the replays";

/// The end state of one zone.
pub fn zone_table(report: &Report, zone: &ZoneChoice) -> SideBySide {
    let recorded = zone.last(&report.recorded);
    let mut heads = Vec::new();
    if recorded.is_some() {
        heads.push("recorded".to_string());
    }
    heads.extend(kernel_names(report));
    let kernels = report.kernels.iter().map(|k| zone.last(&k.samples));
    let states: Vec<Option<&ZoneSample>> = recorded.map(Some).into_iter().chain(kernels).collect();
    SideBySide {
        heads,
        rows: zone_rows(&states, &report.recording.sizes),
    }
}

/// Totals of the whole replay.
pub fn totals_table(report: &Report) -> SideBySide {
    let kernels = &report.kernels;
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

fn kernel_names(report: &Report) -> impl Iterator<Item = String> {
    report.kernels.iter().map(|k| k.kernel.clone())
}

fn zone_rows(states: &[Option<&ZoneSample>], sizes: &Sizes) -> Vec<Row> {
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
    let index = |order: u8| {
        let label = format!("Unusable index, order {order} ({})", sizes.of_order(order));
        text(0, &label, &|z| {
            z.unusable_index
                .get(&order.to_string())
                .map(|v| format!("{v:.3}"))
        })
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
        count(0, "On per-CPU lists, pages", &|z| z.pcp_pages),
        count(0, &format!("Free {} blocks", sizes.of_order(large)), &|z| {
            Some(z.free_huge_blocks)
        }),
        index(3),
        index(large),
        heading("Free blocks"),
    ];
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
