//! The tables that set kernels beside each other, as rows of text: the terminal and the page show
//! the same rows.
//!
//! Invariant: a row has one value for each column, or none at all if it is a heading.

use super::changes;
use super::changes::Standing;
use super::detail::Detail;
use super::total_words;
use super::wording;
use super::wording::ZoneChoice;
use crate::geometry::Sizes;
use crate::replay::answer::Report;
use crate::replay::answer::report::{Failure, KernelReport, Sample, ZoneSample};
use crate::replay::answer::what_if::quantity::QUANTITIES;
use crate::report::number::thousands;
use crate::report::table::{Row, SideBySide};
use std::collections::BTreeSet;

/// Shown where a source has no value.
const UNKNOWN: &str = "-";

/// The row of an ensemble.
const SPREAD: &str = "least - most of the replays";

/// One zone of one column: its states at the end, at the beginning, and between.
struct Column<'a> {
    /// Whose it is; `None` of the recorded host.
    kernel: Option<&'a KernelReport>,
    end: Option<&'a ZoneSample>,
    begin: Option<&'a ZoneSample>,
    all: Vec<&'a ZoneSample>,
}

impl<'a> Column<'a> {
    fn of(
        zone: &ZoneChoice,
        kernel: Option<&'a KernelReport>,
        samples: &'a [Sample],
    ) -> Column<'a> {
        let all: Vec<&ZoneSample> = samples.iter().filter_map(|s| zone.of(s)).collect();
        Column {
            kernel,
            end: all.last().copied(),
            begin: all.first().copied(),
            all,
        }
    }
}

/// One zone: its state at the end, and beside it what stands at the beginning, since columns that begin differently
/// cannot be compared by their ends. In short it has what the answer is of, and no kernel of which nothing can be said.
pub fn zone_table(report: &Report, zone: &ZoneChoice, detail: Detail) -> SideBySide {
    let mut heads = Vec::new();
    let mut columns = vec![];
    if zone.last(&report.recorded).is_some() {
        heads.push("recorded".to_string());
        columns.push(Column::of(zone, None, &report.recorded));
    }
    for kernel in report.kernels.iter() {
        if changes::is_shown(kernel, detail) {
            heads.push(head(kernel));
            columns.push(Column::of(zone, Some(kernel), &kernel.samples));
        }
    }
    let sizes = &report.recording.sizes;
    SideBySide {
        heads,
        rows: match detail {
            Detail::Short => short_rows(&columns, sizes),
            Detail::All => zone_rows(&columns, sizes),
        },
    }
}

/// A kernel over its column; one that begins with other memory than the host says so.
fn head(kernel: &KernelReport) -> String {
    match changes::standing(kernel) {
        Some(Standing::Apart) => format!("{} (other start)", kernel.kernel),
        _ => kernel.kernel.clone(),
    }
}

/// A table without the rows that are zero, or not known, in every column, and how many these were. A heading goes with the
/// last of its rows.
pub fn without_zeros(mut table: SideBySide) -> (SideBySide, usize) {
    let before = table.rows.iter().filter(|r| !r.values.is_empty()).count();
    let is_zero =
        |v: &String| v == UNKNOWN || !v.contains(|c: char| c.is_ascii_digit() && c != '0');
    table
        .rows
        .retain(|r| r.values.is_empty() || !r.values.iter().all(is_zero));
    let headings = table.rows.iter().enumerate().filter(|(i, r)| {
        let next = table.rows.get(i + 1);
        let has_rows = next.is_some_and(|n| !n.values.is_empty() && n.depth > r.depth);
        r.values.is_empty() && !has_rows
    });
    let bare: Vec<usize> = headings.map(|(i, _)| i).collect();
    for i in bare.into_iter().rev() {
        table.rows.remove(i);
    }
    let left = table.rows.iter().filter(|r| !r.values.is_empty()).count();
    (table, before - left)
}

/// Whether a number of what-ifs is said in a short table of these columns, and in which of them.
fn said(columns: &[Column<'_>], name: &str) -> Option<Vec<bool>> {
    let is_said = |c: &Column| {
        c.kernel
            .is_none_or(|k| changes::is_said(k, name, Detail::Short))
    };
    let all: Vec<bool> = columns.iter().map(is_said).collect();
    let mut kernels = columns.iter().zip(&all).filter(|(c, _)| c.kernel.is_some());
    kernels.any(|(_, said)| *said).then_some(all)
}

/// Rows in which the cells of columns that say nothing say so.
fn with_said(rows: Vec<Row>, said: &[bool]) -> Vec<Row> {
    let mut rows = rows;
    for row in &mut rows {
        for (value, _) in row.values.iter_mut().zip(said).filter(|(_, said)| !**said) {
            *value = changes::CANNOT_SAY.into();
        }
    }
    rows
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

/// Totals of the whole replay, beside those that the host counted. In short without kernels that cannot be compared.
pub fn totals_table(report: &Report, detail: Detail) -> SideBySide {
    let all = detail == Detail::All;
    let comparable = |k: &&KernelReport| {
        let apart = changes::standing(k) == Some(Standing::Apart);
        changes::is_shown(k, detail) && (all || !apart)
    };
    let kernels: Vec<&KernelReport> = report.kernels.iter().filter(comparable).collect();
    // What a reader asks for first, then the rest by name.
    const FIRST: [&str; 3] = ["allocations", "frees", "fallbacks"];
    let rank = |name: &str| FIRST.iter().position(|f| *f == name).unwrap_or(FIRST.len());
    let every: BTreeSet<&str> = kernels
        .iter()
        .flat_map(|k| k.totals.keys().map(|n| &n[..]))
        .collect();
    // What the host counted stands in a column of its own.
    const RECORDED: &str = "_recorded";
    let base = |name: &&str| {
        !name
            .strip_suffix(RECORDED)
            .is_some_and(|n| every.contains(n))
    };
    let names = every.iter().copied().filter(base);
    let names: BTreeSet<(usize, &str)> = names.map(|name| (rank(name), name)).collect();
    let has_recorded = every.len() > names.len();
    let itself = changes::shows_itself(report);
    let is_quantity = |name: &str| QUANTITIES.iter().any(|q| q.name == name);
    // In short a row is of what the host counted too, beside a kernel of which it says all; what is said of others stands in the
    // table of what would be different.
    let in_short = |name: &str| match has_recorded {
        false => true,
        true => itself && every.contains(&format!("{name}{RECORDED}")[..]),
    };
    let says_all = |k: &KernelReport| {
        let itself = matches!(changes::standing(k), None | Some(Standing::Apart));
        all || !has_recorded || itself
    };
    let total = |k: &KernelReport, name: &str| k.totals.get(name).copied().flatten();
    let recorded = |name: &str| {
        let name = format!("{name}{RECORDED}");
        kernels.iter().find_map(|k| total(k, &name))
    };
    let row =
        |label: String, recorded: Option<u64>, value: &dyn Fn(&KernelReport) -> Option<String>| {
            let host = has_recorded.then(|| or_unknown(recorded));
            let models = kernels
                .iter()
                .map(|k| value(k).unwrap_or_else(|| UNKNOWN.into()));
            Row {
                label,
                depth: 0,
                values: host.into_iter().chain(models).collect(),
            }
        };
    let mut rows: Vec<Row> = names
        .iter()
        .filter(|(_, name)| all || in_short(name))
        .map(|(_, name)| {
            row(
                total_words::label(name),
                recorded(name),
                &|k| match changes::is_said(k, name, detail) && (is_quantity(name) || says_all(k)) {
                    true => total(k, name).map(thousands),
                    false => Some(changes::CANNOT_SAY.into()),
                },
            )
        })
        .collect();
    if !names.iter().any(|(_, name)| *name == "failures") && (all || itself) {
        rows.push(row(total_words::label("failures"), None, &|k| {
            Some(thousands(k.failed()))
        }));
    }
    let host = has_recorded.then(|| "recorded".to_string());
    SideBySide {
        heads: host
            .into_iter()
            .chain(kernels.iter().map(|k| k.kernel.clone()))
            .collect(),
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

/// What the answer is of: free memory, huge pages over the whole time, and the share that is in small pieces.
fn short_rows(columns: &[Column<'_>], sizes: &Sizes) -> Vec<Row> {
    let large = sizes.large_order();
    let size = sizes.of_order(large);
    let course = |of: &dyn Fn(&ZoneSample) -> Option<f64>, text| Course { of, text }.rows(columns);
    let at_end = |label: String, value: &dyn Fn(&ZoneSample) -> Option<String>| Row {
        label,
        depth: 0,
        values: columns
            .iter()
            .map(|c| c.end.and_then(value).unwrap_or_else(|| UNKNOWN.into()))
            .collect(),
    };
    let unusable = |z: &ZoneSample| z.unusable_index.get(&large.to_string()).copied();
    let mut rows = vec![];
    let mut push = |name: &str, of: &dyn Fn() -> Vec<Row>| {
        if let Some(said) = said(columns, name) {
            rows.extend(with_said(of(), &said));
        }
    };
    push("free_pages_end", &|| {
        let free = |z: &ZoneSample| Some(sizes.mib(z.free_pages));
        vec![at_end("Free memory, MiB".into(), &free)]
    });
    push("free_huge_blocks_end", &|| {
        let label = format!("Free huge pages ({size} blocks)");
        let end = at_end(label, &|z| Some(thousands(z.free_huge_blocks)));
        let course = course(&|z| Some(z.free_huge_blocks as f64), whole);
        std::iter::once(end).chain(course).collect()
    });
    push("unusable_huge_end", &|| {
        let label = format!("Share in pieces below {size} (unusable index)");
        let end = at_end(label, &|z| unusable(z).map(index_text));
        std::iter::once(end)
            .chain(course(&unusable, index_text))
            .collect()
    });
    rows
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
