//! A [`Diagnosis`] as text for a terminal.
//!
//! Invariant: every number has its unit, and nothing is said that the diagnosis does not hold.

use super::diagnosis::{Diagnosis, Obstacle, ZoneDiagnosis};
use super::forecast::{Attainability, Forecast};
use crate::report::number::{bytes, duration, percent, thousands};
use std::fmt::Write as _;

const PAGE: u64 = 4096;

/// How fragmented a zone is and why, in one sentence.
pub(super) fn verdict(z: &ZoneDiagnosis) -> String {
    let score = z.extfrag_for_order_9;
    let whole = bytes(z.free_huge_blocks << 21);
    let mut out = match (z.free_pages, score) {
        (0, _) => return "no free memory".into(),
        (_, 0..20) => {
            format!("little fragmented: {whole} of what is free is in whole 2 MiB blocks")
        }
        (_, 20..60) => {
            format!("fragmented: {score} % of what is free is outside whole 2 MiB blocks")
        }
        _ => format!("badly fragmented: {score} % of what is free is outside whole 2 MiB blocks"),
    };
    if z.watermarks.is_some_and(|[_, low, _]| z.free_pages < low) {
        out = format!("short of memory (below its low watermark), and {out}");
    }
    if let Some(again) = z.huge_pages.by_asking_again {
        let gain = again - z.huge_pages.now;
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
    let worst = z.obstacles.iter().flatten().next().filter(|o| o.blocks > 0);
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
pub fn render(d: &Diagnosis, bold: bool) -> String {
    let mut out = String::new();
    let head = |text: &str| {
        if bold {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    };
    let kernel = d
        .kernel_release
        .as_deref()
        .map_or(String::new(), |r| format!(", kernel {r}"));
    let up = d
        .uptime_seconds
        .map_or(String::new(), |s| format!(", up {}", duration(s)));
    let _ = writeln!(out, "{}", head(&format!("{}{kernel}{up}", d.source)));
    if !d.zones.is_empty() {
        let _ = writeln!(out, "\n{}", head("Huge pages of 2 MiB that can be had"));
        huge_pages(d, &mut out);
        for z in &d.zones {
            let _ = writeln!(out, "\n{}", head(&zone_title(z)));
            let _ = writeln!(out, "  {}", z.verdict);
            let f = &z.huge_pages;
            let _ = writeln!(out, "  huge pages: {}", forecast_line(f));
        }
    }
    if let Some(obstacles) = &d.obstacles {
        let _ = writeln!(out, "\n{}", head("What stands in the way"));
        obstacle_table(obstacles, d, &mut out);
    }
    if !d.slabs.is_empty() {
        let _ = writeln!(out, "\n{}", head("Slab caches"));
        slab_table(d, &mut out);
    }
    if d.atomic.iter().any(|r| r.verdict != "unknown") {
        let _ = writeln!(out, "\n{}", head("Requests that may not wait (GFP_ATOMIC)"));
        for r in &d.atomic {
            let size = bytes(PAGE << r.order);
            let n = match r.in_a_row {
                100_000.. => "100,000 or more".into(),
                n => thousands(n),
            };
            let _ = writeln!(
                out,
                "  node {}, order {} ({size}): {}; {n} in a row succeed",
                r.node, r.order, r.verdict
            );
        }
    }
    if !d.work.is_empty() {
        let _ = writeln!(out, "\n{}", head("Stalls, failures and compaction"));
        work_table(d, &mut out);
    }
    if !d.zones.is_empty() {
        let _ = writeln!(out, "\n{}", head("Advice"));
        advice(d, &mut out);
    }
    for note in &d.notes {
        let _ = writeln!(out, "\nNote: {note}.");
    }
    if !d.unread.is_empty() {
        let _ = writeln!(out, "\n{}", head("Not seen"));
    }
    for u in &d.unread {
        let _ = writeln!(out, "  {}: {}", u.file, u.why);
    }
    out
}

fn zone_title(z: &ZoneDiagnosis) -> String {
    let of = z
        .managed_pages
        .map_or(String::new(), |m| format!(" of {}", bytes(m * PAGE)));
    format!(
        "Node {}, zone {}: {} free{of}",
        z.node,
        z.zone,
        bytes(z.free_pages * PAGE)
    )
}

fn huge_pages(d: &Diagnosis, out: &mut String) {
    let f = &d.huge_pages;
    let mut row = |what: &str, n: Option<u64>| {
        if let Some(n) = n {
            let _ = writeln!(
                out,
                "  {what:<58} {:>10} {:>12}",
                thousands(n),
                bytes(n << 21)
            );
        }
    };
    row("at once", Some(f.now));
    let (compaction, reclaim) = match d.pcp_fraction {
        Some(_) => (
            "per-CPU lists emptied, sync, vm.compact_memory",
            "per-CPU lists emptied, caches dropped, vm.compact_memory",
        ),
        None => (
            "after sync and vm.compact_memory",
            "after dropping caches, then vm.compact_memory",
        ),
    };
    row(compaction, f.after_compaction);
    row(reclaim, f.after_reclaim);
    row(
        "by writing vm.nr_hugepages again while it grows",
        f.by_asking_again,
    );
    if f.by_asking_again.is_none() {
        row(
            "at most, by any means (page flags would tell)",
            Some(f.at_most),
        );
    }
    if let Some(n) = d.huge_pages_in_pool.filter(|&n| n > 0) {
        row("in the hugetlb pool by now", Some(n));
    }
    for z in &d.zones {
        if let Some(stop) = z.compaction_stops {
            let _ = writeln!(
                out,
                "  without sync, vm.compact_memory ends early in zone {}: a folio of {} at frame {:#x} waits to be written and finds no free block of its size",
                z.zone,
                bytes(PAGE << stop.order),
                stop.pfn
            );
        }
    }
}

fn forecast_line(f: &Forecast) -> String {
    let mut out = format!("{} at once", thousands(f.now));
    match (f.after_compaction, f.after_reclaim, f.by_asking_again) {
        (Some(c), Some(r), Some(a)) => {
            let _ = write!(
                out,
                ", {} after compaction, {} after dropping caches too, {} by asking again",
                thousands(c),
                thousands(r),
                thousands(a)
            );
        }
        _ => {
            let _ = write!(out, ", at most {} by any means", thousands(f.at_most));
        }
    }
    out
}

fn obstacle_table(obstacles: &[Obstacle], d: &Diagnosis, out: &mut String) {
    let blocks: u64 = d.zones.iter().filter_map(|z| z.blocks).sum();
    let _ = writeln!(
        out,
        "  {:<24} {:>12} {:>14} {:>8} {:>14}",
        "kind", "memory", "blocks it is in", "share", "spoilt by it alone"
    );
    for o in obstacles {
        let _ = writeln!(
            out,
            "  {:<24} {:>12} {:>15} {:>8} {:>18}",
            o.kind.name(),
            bytes(o.pages * PAGE),
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
            bytes(n * PAGE)
        );
    }
}

fn slab_table(d: &Diagnosis, out: &mut String) {
    let over = d.slabs[0].over_seconds;
    let grew = over.map_or(String::new(), |s| format!("grew in {}", duration(s)));
    let title = format!(
        "  {:<24} {:>12} {:>16} {grew:>20}",
        "cache", "memory", "objects in use"
    );
    let _ = writeln!(out, "{}", title.trim_end());
    for s in &d.slabs {
        let grown = s.grown_pages.map_or(String::new(), |n| {
            let sign = if n < 0 { "-" } else { "" };
            format!("{sign}{}", bytes(n.unsigned_abs() * PAGE))
        });
        let line = format!(
            "  {:<24} {:>12} {:>16} {grown:>20}",
            s.name,
            bytes(s.pages.saturating_mul(PAGE)),
            percent(s.used)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn work_table(d: &Diagnosis, out: &mut String) {
    let measured = d.work.iter().any(|w| w.per_second.is_some());
    let last = if measured { "a second now" } else { "" };
    let _ = writeln!(
        out,
        "  {:<42} {:>16} {:>12} {last:>12}",
        "", "since boot", "a second"
    );
    let rate = |r: Option<f64>| match r {
        Some(r) if r > 0.0 && r < 0.05 => "< 0.1".into(),
        Some(r) if r < 10_000.0 => format!("{r:.1}"),
        Some(r) => thousands(r as u64),
        None => String::new(),
    };
    for w in &d.work {
        let line = format!(
            "  {:<42} {:>16} {:>12} {:>12}",
            w.what,
            thousands(w.total),
            rate(w.per_second_since_boot),
            rate(w.per_second)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn advice(d: &Diagnosis, out: &mut String) {
    if d.advice.is_empty() {
        let _ = writeln!(out, "  nothing to change by what was seen");
    }
    for a in &d.advice {
        let now = a
            .current
            .as_ref()
            .map_or(String::new(), |c| format!("   (now {c})"));
        let _ = writeln!(out, "  {}{now}", a.command);
        let _ = writeln!(out, "    why:  {}", a.reason);
        let _ = writeln!(out, "    cost: {}", a.cost);
        if let Some(p) = &a.prediction {
            let _ = writeln!(out, "    replay: {p}");
        }
    }
}

/// `vm.percpu_pagelist_high_fraction` at which per-CPU lists are as short as they can be: four batches.
/// `spec: 3.2`
const SHORT_LISTS: u32 = 100_000;

/// The answer to `--huge N`: a line that says it, and the commands that do it.
pub fn answer(d: &Diagnosis, wanted: u64) -> (String, Vec<String>) {
    let (action, n) = d.huge_pages.attainability(wanted);
    let (wanted_text, n_text) = (thousands(wanted), thousands(n));
    let pool = d.huge_pages_in_pool.unwrap_or(0) + wanted;
    let take = format!("echo {pool} > /proc/sys/vm/nr_hugepages");
    // A folio whose writeback begins between sync and compaction ends the run: hence ten runs.
    let compact =
        "for i in $(seq 10); do sync; echo 1 > /proc/sys/vm/compact_memory; done".to_owned();
    let drop = "sync; echo 3 > /proc/sys/vm/drop_caches".to_owned();
    // Freed pages would stay on per-CPU lists; a fraction this large empties them within `vm.stat_interval`, a second.
    let with_short_lists = |commands: Vec<String>, last: String| {
        let lists = d.pcp_fraction.map(|fraction| {
            (
                format!("lists=/proc/sys/vm/percpu_pagelist_high_fraction; echo {SHORT_LISTS} > $lists; sleep 2"),
                format!("echo {fraction} > $lists"),
            )
        });
        let (first, back) = lists.unzip();
        let all = first.into_iter().chain(commands).chain(back);
        all.chain(Some(last)).collect()
    };
    match action {
        Attainability::Now => (
            format!("yes: {wanted_text} huge pages can be had now; there are {n_text}"),
            vec![take],
        ),
        Attainability::AfterCompaction => (
            format!("yes, after compaction: {n_text} huge pages then, for the {wanted_text} wanted"),
            with_short_lists(vec![compact], take),
        ),
        Attainability::AfterReclaim => (
            format!(
                "yes, after dropping caches and compaction: {n_text} huge pages then, for the {wanted_text} wanted"
            ),
            with_short_lists(vec![drop, compact], take),
        ),
        Attainability::ByAskingAgain => (
            format!(
                "yes, by asking again while the pool grows: {n_text} huge pages in the end, for the {wanted_text} wanted"
            ),
            with_short_lists(
                vec![
                    format!("pool=/proc/sys/vm/nr_hugepages; wanted={pool}; idle=0"),
                    "while n=$(cat $pool); [ $n -lt $wanted ] && [ $idle -lt 100 ]; do".into(),
                    "  echo $wanted > $pool; [ $(cat $pool) -gt $n ] && idle=0 || idle=$((idle + 1)); done".into(),
                ],
                "cat $pool".into(),
            ),
        ),
        Attainability::Unknown => (
            format!(
                "perhaps: {n_text} can be had now, {} at most; which of them needs /proc/kpageflags, that is root",
                thousands(d.huge_pages.at_most)
            ),
            vec![],
        ),
        Attainability::Not => (
            format!(
                "no: {n_text} huge pages at most, of the {wanted_text} wanted; end programs, or reserve at boot with hugepages="
            ),
            vec![],
        ),
    }
}
