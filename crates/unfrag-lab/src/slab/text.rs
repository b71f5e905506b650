//! A slab replay as text.

use super::SlabReport;
use super::report::{AllocatorReport, CacheReport, Held};
use crate::report::number::{counted, thousands};
use crate::report::screen::{Screen, Text, printable};
use crate::report::wrap::{Place, wrapped};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Caches listed, those with most pages first.
const CACHES: usize = 12;

/// The whole report.
pub fn render(r: &SlabReport, screen: &Screen) -> Text {
    let mut out = Text::new();
    let title = format!("{}, Linux {}", printable(&r.source), printable(&r.kernel));
    out.push_head(screen, &title);
    if let Some(answer) = answer(r) {
        wrapped(&mut out, Place::Hanging("  "), screen.width, &answer);
    }
    wrapped(&mut out, Place::Hanging("  "), screen.width, &replayed(r));
    out.push('\n');
    side_by_side(r, screen, &mut out);
    out.push('\n');
    caches(r, screen, &mut out);
    out
}

/// Differences up to this share of the most pages are none.
const ALIKE: u64 = 20;

/// Which allocator needs the fewest pages, and whose objects make the difference.
fn answer(r: &SlabReport) -> Option<String> {
    let mut by_pages: Vec<&AllocatorReport> = r.allocators.iter().collect();
    by_pages.sort_by_key(|a| a.peak.pages);
    let (first, last) = (by_pages.first()?, by_pages.last()?);
    let asked = thousands(first.peak.requested_bytes / 1024);
    if by_pages.len() == 1 {
        let (pages, waste) = (thousands(first.peak.pages), share(&first.peak));
        let name = first.allocator.to_uppercase();
        return Some(format!(
            "{name} needs {pages} pages at most for {asked} KiB of objects: {waste} of them is waste."
        ));
    }
    let each = |a: &&AllocatorReport| {
        format!("{} {}", a.allocator.to_uppercase(), thousands(a.peak.pages))
    };
    let each: Vec<String> = by_pages.iter().map(each).collect();
    let each = each.join(", ");
    let between = last.peak.pages - first.peak.pages;
    if between * ALIKE <= last.peak.pages {
        return Some(format!(
            "All need about as many pages for {asked} KiB of objects: {each}."
        ));
    }
    let name = first.allocator.to_uppercase();
    let pages = |a: &AllocatorReport, c: &CacheReport| {
        let mut same = a.caches.iter().filter(|o| o.name == c.name);
        same.next().map_or(0, |o| o.pages)
    };
    let differ = |c: &&CacheReport| c.pages.saturating_sub(pages(first, c));
    let most = last.caches.iter().max_by_key(differ);
    let most = most.filter(|c| differ(c) > 0).map(|c| {
        format!(
            "; most of the difference: {}, {} pages and {}",
            called(&c.name),
            thousands(pages(first, c)),
            thousands(c.pages)
        )
    });
    Some(format!(
        "{name} needs the fewest pages for {asked} KiB of objects: {each}{}.",
        most.unwrap_or_default()
    ))
}

/// What was replayed, and what of it was left out.
fn replayed(r: &SlabReport) -> String {
    let mut text = format!(
        "{} allocations, {} frees; the allocators are set up as for {}",
        thousands(r.allocations),
        thousands(r.frees),
        counted(r.cpus.into(), "CPU")
    );
    let parts = [
        (
            r.unknown_frees,
            "frees of objects from before the trace, left out",
        ),
        (
            r.silent_frees,
            "objects whose free was not traced, freed when handed out again",
        ),
        (
            r.failed_in_trace,
            "allocations that failed when recorded, left out",
        ),
    ];
    for (n, what) in parts.iter().filter(|(n, _)| *n > 0) {
        let _ = write!(text, "; {} {what}", thousands(*n));
    }
    text
}

/// A cache's name; one that nothing tells is that.
fn called(name: &str) -> String {
    match name.strip_prefix("?-") {
        Some(_) => "(not named)".into(),
        None => printable(name),
    }
}

fn side_by_side(r: &SlabReport, screen: &Screen, out: &mut Text) {
    let mut row = |label: &str, value: &dyn Fn(&AllocatorReport) -> String, stress: bool| {
        let mut line = format!("{label:<36}");
        for a in &r.allocators {
            let _ = write!(line, "{:>12}", value(a));
        }
        match stress {
            true => out.push_head(screen, line.trim_end()),
            false => {
                let _ = writeln!(out, "{}", line.trim_end());
            }
        }
    };
    let kib = |bytes: u64| thousands(bytes / 1024);
    row("", &|a| a.allocator.clone(), true);
    row(
        "pages of slabs, at most",
        &|a| thousands(a.peak.pages),
        false,
    );
    row(
        "  asked for then, KiB",
        &|a| kib(a.peak.requested_bytes),
        false,
    );
    row("  waste then", &|a| share(&a.peak), false);
    row(
        "pages of slabs, at the end",
        &|a| thousands(a.end.pages),
        false,
    );
    row(
        "  asked for then, KiB",
        &|a| kib(a.end.requested_bytes),
        false,
    );
    row("  waste then", &|a| share(&a.end), false);
    row(
        "  left when empty ones are returned",
        &|a| thousands(a.pages_after_shrink),
        false,
    );
    row(
        "pages for its own bookkeeping",
        &|a| thousands(a.record_pages),
        false,
    );
    let orders = (0..r.allocators.first().map_or(0, |a| a.slabs_of_order.len()))
        .filter(|o| r.allocators.iter().any(|a| a.slabs_of_order[*o] > 0));
    for order in orders {
        let label = format!("slabs of order {order} at the end");
        row(&label, &|a| thousands(a.slabs_of_order[order]), false);
    }
    if r.allocators.iter().any(|a| a.order_fallbacks > 0) {
        row(
            "slabs that got the least order only",
            &|a| thousands(a.order_fallbacks),
            false,
        );
    }
    row(
        "served by a CPU's own list",
        &|a| format!("{} %", a.percent_fast_allocs),
        false,
    );
    row(
        "freed to a CPU's own list",
        &|a| format!("{} %", a.percent_fast_frees),
        false,
    );
    if r.allocators.iter().any(|a| a.failures > 0) {
        row(
            "allocations without memory",
            &|a| thousands(a.failures),
            false,
        );
    }
}

fn share(held: &Held) -> String {
    let percent = (100 * held.waste_bytes).checked_div(held.pages * 4096);
    percent.map_or_else(|| "-".into(), |p| format!("{p} %"))
}

/// Caches of the same name and size in all allocators, a line each.
fn caches(r: &SlabReport, screen: &Screen, out: &mut Text) {
    let mut rows: BTreeMap<(&str, u32), Vec<Option<&CacheReport>>> = BTreeMap::new();
    for (i, a) in r.allocators.iter().enumerate() {
        for c in a.caches.iter().filter(|c| c.allocs > 0) {
            let row = rows.entry((&c.name, c.object_size)).or_default();
            row.resize(r.allocators.len(), None);
            row[i] = Some(c);
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    let pages = |row: &[Option<&CacheReport>]| row.iter().flatten().map(|c| c.pages).max();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(pages(row)));
    let mut head = format!(
        "{:<24} {:>7} {:>9}",
        "cache, pages (order)", "bytes", "allocated"
    );
    for a in &r.allocators {
        let _ = write!(head, "{:>12}", a.allocator);
    }
    out.push_head(screen, &head);
    for ((name, size), row) in rows.iter().take(CACHES) {
        let allocs = row.iter().flatten().map(|c| c.allocs).max().unwrap_or(0);
        let name: String = called(name).chars().take(24).collect();
        let mut line = format!(
            "{name:<24} {:>7} {:>9}",
            thousands((*size).into()),
            thousands(allocs)
        );
        for i in 0..r.allocators.len() {
            let cell = row.get(i).copied().flatten();
            let text = cell.map_or_else(
                || "-".into(),
                |c| format!("{} ({})", thousands(c.pages), c.order),
            );
            let _ = write!(line, "{text:>12}");
        }
        let _ = writeln!(out, "{line}");
    }
    if rows.len() > CACHES {
        let _ = writeln!(
            out,
            "and {} more; --json has all of them",
            rows.len() - CACHES
        );
    }
}
