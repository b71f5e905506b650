//! A [`Diagnosis`] as text for a terminal.
//!
//! Invariant: every number has its unit, and nothing is said that the diagnosis does not hold.

use super::advice_text;
use super::answer::what_would_tell;
use super::atomic::AtomicRisk;
use super::call_sites::Place;
use super::diagnosis::{Diagnosis, Obstacle, ZoneDiagnosis};
use super::forecast::Forecast;
use super::history;
use super::obstacles::worst;
use crate::geometry::Geometry;
use crate::report::number::{bytes, duration, free_of, percent, thousands};
use crate::report::screen::{Screen, Text, printable};
use std::fmt::Write as _;

pub use super::answer::{answer, settled, short_lists_note};

/// How fragmented a zone is and why, in one sentence.
pub(super) fn verdict(z: &ZoneDiagnosis, geometry: &Geometry) -> String {
    let size = geometry.huge_page_bytes();
    let huge = bytes(size);
    let mut out = match (z.free_pages, z.extfrag_for_order_9) {
        (Some(0), _) => "no free memory".to_owned(),
        (_, None) => "how fragmented it is is not known: no file tells its free blocks".into(),
        (_, Some(score @ 0..20)) => match z.free_huge_blocks {
            Some(n) => format!(
                "little fragmented: {} of what is free is in whole {huge} blocks",
                bytes(n.saturating_mul(size))
            ),
            None => format!(
                "little fragmented: {} % of what is free is in whole {huge} blocks",
                100 - score
            ),
        },
        (_, Some(score @ 20..60)) => {
            format!("fragmented: {score} % of what is free is outside whole {huge} blocks")
        }
        (_, Some(score)) => {
            format!("badly fragmented: {score} % of what is free is outside whole {huge} blocks")
        }
    };
    if let Some(blocks) = z.highatomic_huge_blocks.filter(|&n| n > 0) {
        let _ = write!(
            out,
            "; {} of it are kept back for atomic requests of high order (HighAtomic): closed to huge pages",
            bytes(blocks.saturating_mul(size))
        );
    }
    if let Some(mark) = z.below {
        out = format!("short of memory (below its {mark} watermark), and {out}");
    }
    if let Some(slab) = z.filled_by_slab_pages {
        let _ = write!(
            out,
            "; the cause is slab that cannot be reclaimed: {}",
            bytes(slab.saturating_mul(geometry.page_size))
        );
    }
    if z.free_pages == Some(0) {
        return out;
    }
    if let (Some(again), Some(now)) = (z.huge_pages.by_asking_again, z.huge_pages.now) {
        let gain = again.saturating_sub(now);
        if gain > 0 {
            let _ = write!(
                out,
                "; packing what can be moved and dropping what can be dropped makes {}",
                match gain {
                    1 => "1 more huge page".into(),
                    n => format!("{} more huge pages", thousands(n)),
                }
            );
        }
    }
    let worst = worst(z.obstacles.as_ref());
    if let (Some(o), Some(blocks)) = (worst, z.blocks) {
        let _ = write!(
            out,
            "; {} is in {} of {} blocks ({})",
            o.kind.name(),
            thousands(o.blocks),
            thousands(blocks),
            percent(o.blocks as f64 / blocks.max(1) as f64)
        );
    }
    out
}

/// The whole diagnosis.
pub fn render(d: &Diagnosis, screen: &Screen) -> Text {
    let mut out = Text::new();
    let kernel = d
        .kernel_release
        .as_deref()
        .map_or(String::new(), |r| format!(", kernel {}", printable(r)));
    let up = d
        .uptime_seconds
        .map_or(String::new(), |s| format!(", up {}", duration(s)));
    out.push_head(screen, &format!("{}{kernel}{up}", printable(&d.source)));
    out.append(&tables(d, screen));
    out
}

/// All but what was examined.
pub fn tables(d: &Diagnosis, screen: &Screen) -> Text {
    let mut out = Text::new();
    let head = |out: &mut Text, text: &str| {
        out.push('\n');
        out.push_head(screen, text);
    };
    if !d.zones.is_empty() {
        let size = bytes(d.huge_page_bytes);
        head(&mut out, &format!("Huge pages of {size} that can be had"));
        huge_pages(d, &mut out);
        for z in &d.zones {
            head(&mut out, &zone_title(z, d.page_size));
            let _ = writeln!(out, "  {}", z.verdict);
            let f = &z.huge_pages;
            let _ = writeln!(out, "  huge pages: {}", forecast_line(f, z));
        }
    }
    if let Some(obstacles) = &d.obstacles {
        head(&mut out, "What stands in the way");
        obstacle_table(obstacles, d, &mut out);
    }
    if !d.slabs.is_empty() {
        head(&mut out, "Slab caches");
        slab_table(d, &mut out);
    }
    if let Some(sites) = d.call_sites.as_ref().filter(|s| !s.is_empty()) {
        head(
            &mut out,
            "Places of the kernel's source that allocate (allocinfo)",
        );
        site_table(sites, &mut out);
    }
    if d.atomic.iter().any(|r| is_said(r, d)) {
        head(&mut out, "Requests that may not wait (GFP_ATOMIC)");
        for r in d.atomic.iter().filter(|r| is_said(r, d)) {
            let _ = writeln!(out, "  {}", atomic_line(r, d));
        }
    }
    if !d.work.is_empty() {
        head(&mut out, "Stalls, failures and compaction");
        work_table(d, &mut out);
    }
    if !d.history.is_empty() {
        head(&mut out, &format!("History {}", history::head(&d.history)));
        advice_text::history(d, &mut out);
    }
    if !d.withheld.is_empty() {
        head(&mut out, "Memory that is not for everybody");
        advice_text::withheld(d, &mut out);
    }
    if !d.zones.is_empty() || !d.work.is_empty() || !d.advice.is_empty() {
        head(&mut out, "Advice");
        advice_text::advice(d, &mut out);
    }
    let is_known = d.features.all().iter().any(|(_, value)| value.is_some());
    if !d.settings.is_empty() || is_known {
        head(&mut out, "Settings");
        for (name, value) in &d.settings {
            let name = match name.strip_prefix("thp_") {
                Some(name) => format!("transparent_hugepage/{name}"),
                None => format!("vm.{name}"),
            };
            let _ = writeln!(out, "  {name} = {}", printable(value));
        }
        for (path, value) in d.features.all() {
            let value = value.as_deref().unwrap_or("not known");
            let _ = writeln!(out, "  {path} = {}", printable(value));
        }
    }
    for note in &d.notes {
        let _ = writeln!(out, "\nNote: {}.", printable(note));
    }
    if !d.unread.is_empty() {
        head(&mut out, "Not seen");
    }
    for u in &d.unread {
        let _ = writeln!(out, "  {}: {}", printable(&u.file), printable(&u.why));
    }
    out
}

/// Whether anything is known of such requests: without marks, a bound says no more than the free blocks do.
fn is_said(r: &AtomicRisk, d: &Diagnosis) -> bool {
    let of_node = || d.zones.iter().filter(|z| z.node == r.node);
    let has_marks = of_node().all(|z| z.watermarks.is_some());
    r.verdict != "unknown" || (has_marks && r.in_a_row_at_most.is_some_and(|n| n > 0))
}

fn atomic_line(r: &AtomicRisk, d: &Diagnosis) -> String {
    let count = |n: u64| match n {
        100_000.. => "100,000 or more".into(),
        n => thousands(n),
    };
    let size = bytes(d.page_size << r.order);
    let mut out = format!("node {}, order {} ({size}): ", r.node, r.order);
    let verdict = match r.verdict {
        "unknown" => "not known",
        verdict => verdict,
    };
    let least = count(r.in_a_row_at_least);
    let _ = match (r.in_a_row, r.in_a_row_at_most) {
        (Some(n), _) => write!(out, "{verdict}; {} in a row succeed", count(n)),
        (None, None) => write!(out, "{verdict}; {least} or more in a row succeed"),
        (None, Some(most)) => {
            let most = count(most);
            let lacks_marks = d.zones.iter().any(|z| {
                z.node == r.node && (z.watermarks.is_none() || z.protection_pages.is_none())
            });
            let by = match lacks_marks {
                true => "what watermarks and protection keep back (zoneinfo tells)",
                false => {
                    "which blocks are those of contiguous memory areas (pagetypeinfo tells root)"
                }
            };
            write!(
                out,
                "{verdict}; {least} to {most} in a row succeed, by {by}"
            )
        }
    };
    if r.not_for_them_pages > 0 {
        let _ = write!(
            out,
            "; {} of what is free is not for them (contiguous memory areas, high memory, isolated)",
            bytes(r.not_for_them_pages.saturating_mul(d.page_size))
        );
    }
    if d.kernel_rules_assumed {
        let _ = write!(out, " (by the rule of {}, assumed", d.kernel_rules);
        if let Some(verdict) = r.verdict_to_4_3 {
            let _ = write!(out, "; by that of kernels to 4.3: {verdict}");
        }
        out += "; give --release RELEASE)";
    }
    out
}

fn zone_title(z: &ZoneDiagnosis, page_size: u64) -> String {
    let size = |pages: u64| pages.saturating_mul(page_size);
    let said = match (z.free_pages, z.managed_pages) {
        (Some(free), Some(managed)) => free_of(size(free), size(managed)),
        (Some(free), None) => format!("{} free", bytes(size(free))),
        (None, Some(managed)) => format!("free memory not known of {}", bytes(size(managed))),
        (None, None) => "free memory not known".into(),
    };
    format!("Node {}, zone {}: {said}", z.node, printable(&z.zone))
}

fn huge_pages(d: &Diagnosis, out: &mut Text) {
    let f = &d.huge_pages;
    let mut row = |what: &str, n: Option<u64>| {
        if let Some(n) = n {
            let _ = writeln!(
                out,
                "  {what:<58} {:>10} {:>12}",
                thousands(n),
                bytes(n.saturating_mul(d.huge_page_bytes))
            );
        }
    };
    row("at once", f.now);
    row(
        &format!("at once, at most ({})", lacks_for_now(&d.zones)),
        f.now_at_most,
    );
    row(
        "of these perhaps protected (zoneinfo would tell)",
        Some(f.perhaps_now).filter(|&n| n > 0),
    );
    let (compaction, reclaim) = match d.empties_pcp_lists {
        true => (
            "per-CPU lists emptied, sync, vm.compact_memory",
            "per-CPU lists emptied, caches dropped, vm.compact_memory",
        ),
        false => (
            "after sync and vm.compact_memory",
            "after dropping caches, then vm.compact_memory",
        ),
    };
    row(compaction, f.after_compaction);
    row(reclaim, f.after_reclaim);
    row(
        "by writing vm.nr_hugepages until it grows no more",
        f.by_asking_again,
    );
    if f.by_asking_again.is_none() {
        row("at most, by any means (page flags would tell)", f.at_most);
    }
    if d.default_huge_page_bytes
        .is_none_or(|n| n == d.huge_page_bytes)
    {
        let in_pool = d.huge_pages_in_pool.filter(|&n| n > 0);
        row("in the hugetlb pool by now", in_pool);
    }
    if f.at_most.is_none() && f.by_asking_again.is_none() {
        let _ = writeln!(out, "  how many at most {}", what_would_tell(d));
    }
    for z in &d.zones {
        if let Some(stop) = z.compaction_stops {
            let _ = writeln!(
                out,
                "  without sync, vm.compact_memory ends early in zone {}: a folio of {} at frame {:#x} waits to be written and finds no free block of its size",
                printable(&z.zone),
                bytes(d.page_size << stop.order),
                stop.pfn
            );
        }
    }
}

/// What is lacking for the number of huge pages at once.
fn lacks_for_now(zones: &[ZoneDiagnosis]) -> &'static str {
    if zones.iter().any(|z| z.free_huge_blocks.is_none()) {
        "no file tells free blocks"
    } else if zones
        .iter()
        .any(|z| z.watermarks.is_none() || z.protection_pages.is_none())
    {
        "zoneinfo would tell what is kept back"
    } else {
        "pagetypeinfo would tell what is kept back"
    }
}

fn forecast_line(f: &Forecast, z: &ZoneDiagnosis) -> String {
    let (Some(_), Some(now)) = (z.free_huge_blocks, f.now.or(f.now_at_most)) else {
        let most = f.now_at_most.map_or(String::new(), |n| {
            format!(", so 0 to {} at once", thousands(n))
        });
        return match z.free_huge_blocks {
            None => format!("not known: no file tells free blocks{most}"),
            Some(_) => "not known: how much of memory is free is not told".into(),
        };
    };
    if f.perhaps_now > 0 && f.at_most.is_none() {
        return format!(
            "not known: {} free, and zoneinfo would tell whether this zone keeps them for itself (protection)",
            thousands(f.perhaps_now)
        );
    }
    let mut out = format!("{} at once", thousands(now));
    if z.watermarks.is_none() && now > 0 {
        out += " if the watermarks allow it (zoneinfo would tell)";
    } else if f.now.is_none() {
        out += " at most, less what is kept back for others (";
        out += match z.protection_pages {
            None => "zoneinfo would tell)",
            Some(_) => "pagetypeinfo would tell)",
        };
    }
    match (f.after_compaction, f.after_reclaim, f.by_asking_again) {
        (Some(c), Some(r), Some(a)) => {
            let _ = write!(
                out,
                ", {} after compaction, {} after dropping caches too, {} by writing vm.nr_hugepages until it grows no more",
                thousands(c),
                thousands(r),
                thousands(a)
            );
        }
        _ => {
            let _ = match f.at_most {
                Some(most) => write!(out, ", at most {} by any means", thousands(most)),
                None => write!(out, "; how many at most is not known"),
            };
        }
    }
    out
}

fn obstacle_table(obstacles: &[Obstacle], d: &Diagnosis, out: &mut Text) {
    let blocks: u64 = d.zones.iter().filter_map(|z| z.blocks).sum();
    let _ = writeln!(
        out,
        "  {:<24} {:>12} {:>14} {:>8} {:>18}",
        "kind", "memory", "blocks it is in", "share", "in the way alone"
    );
    for o in obstacles {
        let _ = writeln!(
            out,
            "  {:<24} {:>12} {:>15} {:>8} {:>18}",
            o.kind.name(),
            bytes(o.pages * d.page_size),
            thousands(o.blocks),
            percent(o.blocks as f64 / blocks.max(1) as f64),
            thousands(o.blocks_alone)
        );
    }
    if let Some(n) = d.pinned_pages {
        let _ = writeln!(
            out,
            "  {:<24} {:>12}   by the kernel's count; no file shows in which blocks",
            "pinned by drivers",
            bytes(n.saturating_mul(d.page_size))
        );
    }
}

fn slab_table(d: &Diagnosis, out: &mut Text) {
    let over = d.slabs[0].over_seconds;
    let grew = over.map_or(String::new(), |s| format!("grew in {}", duration(s)));
    let title = format!(
        "  {:<24} {:>12} {:>18} {grew:>20}",
        "cache", "memory", "objects allocated"
    );
    let _ = writeln!(out, "{}", title.trim_end());
    for s in &d.slabs {
        let grown = s.grown_pages.map_or(String::new(), |n| {
            let sign = if n < 0 { "-" } else { "" };
            format!(
                "{sign}{}",
                bytes(n.unsigned_abs().saturating_mul(d.page_size))
            )
        });
        let line = format!(
            "  {:<24} {:>12} {:>18} {grown:>20}",
            printable(&s.name),
            bytes(s.pages.saturating_mul(d.page_size)),
            percent(s.used)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn site_table(sites: &[Place], out: &mut Text) {
    let over = sites[0].over_seconds;
    let grew = over.map_or(String::new(), |s| format!("grew in {}", duration(s)));
    let title = format!("  {:>12} {grew:>20}  place", "memory");
    let _ = writeln!(out, "{title}");
    for s in sites {
        let grown = s.grown_bytes.map_or(String::new(), |n| {
            let sign = if n < 0 { "-" } else { "" };
            format!("{sign}{}", bytes(n.unsigned_abs()))
        });
        let _ = writeln!(
            out,
            "  {:>12} {grown:>20}  {}",
            bytes(s.bytes.unsigned_abs()),
            printable(&s.place)
        );
    }
}

fn work_table(d: &Diagnosis, out: &mut Text) {
    let measured = d.work.iter().any(|w| w.per_second.is_some());
    let last = d
        .watched
        .seconds
        .filter(|_| measured)
        .map_or(String::new(), |s| format!("a second in {}", duration(s)));
    let _ = writeln!(
        out,
        "{}",
        format!(
            "  {:<42} {:>16} {:>12} {last:>22}",
            "", "since boot", "a second"
        )
        .trim_end()
    );
    let rate = |r: Option<f64>| match r {
        Some(r) if r > 0.0 && r < 0.05 => "< 0.1".into(),
        Some(r) if r < 10_000.0 => format!("{r:.1}"),
        Some(r) => thousands(r as u64),
        None => String::new(),
    };
    for w in &d.work {
        let line = format!(
            "  {:<42} {:>16} {:>12} {:>22}",
            w.what,
            thousands(w.total),
            rate(w.per_second_since_boot),
            rate(w.per_second)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
}
