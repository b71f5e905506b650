//! The one pass over a trace's events.
//!
//! Invariant: what is printed does not depend on the order of a hash table.

use super::kernel::Kernel;
use super::people::People;
use super::report::{KindCount, Lost, NotRecorded, Summary};
use super::table::{Event, Kind, Table};
use super::{compaction, fallbacks, reclaim, requests};
use std::cmp::Reverse;
use unfrag_linux::recording::Recording;
use unfrag_linux::text::{NotUnderstood, joined};

/// What a recording's trace tells; `source` names it.
pub fn summarize(rec: &Recording, source: &str) -> Summary {
    let (kernel, assumed) = Kernel::of(&rec.meta.kernel_release);
    let people = People::of(rec);
    let events = &rec.events;
    let tables: Vec<Table<'_>> = events.tables.iter().map(|t| Table::of(t, rec)).collect();
    let mut rows = vec![0usize; tables.len()];
    let mut requests = requests::Tally::default();
    let mut fallbacks = fallbacks::Tally::default();
    let mut compaction = compaction::Tally::default();
    let mut reclaim = reclaim::Tally::default();
    for (i, &kind) in events.kind.iter().enumerate() {
        let table = &tables[usize::from(kind)];
        let row = rows[usize::from(kind)];
        rows[usize::from(kind)] += 1;
        if table.kind == Kind::Other {
            continue;
        }
        let event = Event {
            time: events.time[i],
            task: events.task[i],
            who: people.who(events.task[i], events.flags[i]),
            row,
        };
        match table.kind {
            Kind::Alloc => requests.add(table, &event),
            Kind::Extfrag => fallbacks.add(table, &event),
            Kind::WakeupKswapd
            | Kind::KswapdWake
            | Kind::KswapdSleep
            | Kind::ReclaimBegin
            | Kind::ReclaimEnd => reclaim.add(table, &event),
            _ => compaction.add(table, &event),
        }
    }
    let incomplete = requests.incomplete;
    let (kswapd, direct_reclaim) = reclaim.report(&people);
    let mut summary = Summary {
        source: source.to_owned(),
        format: rec.meta.source.clone(),
        kernel: Some(rec.meta.kernel_release.clone()).filter(|r| !r.is_empty()),
        cpus: rec.meta.cpus,
        events: events.len() as u64,
        kinds: kinds(rec, &rows),
        requests: requests.report(&people, &kernel),
        fallbacks: fallbacks.report(&people, &kernel),
        compaction: compaction.report(&people, &kernel),
        kswapd,
        direct_reclaim,
        lost: lost(rec),
        assumed: assumed.into_iter().collect(),
        ..Summary::default()
    };
    if let (Some(&first), Some(&last)) = (events.time.first(), events.time.last()) {
        summary.first_seconds = first as f64 / 1e9;
        summary.seconds = last.saturating_sub(first) as f64 / 1e9;
    }
    if incomplete > 0 {
        let what = format!("{incomplete} of the events mm_page_alloc have no order or no frame");
        summary.assumed.push(format!("{what}: left out"));
    }
    summary.assumed.extend(assumptions(rec, &kernel, &summary));
    summary.not_recorded = not_recorded(&summary);
    summary
}

/// Events by kind, most first.
fn kinds(rec: &Recording, rows: &[usize]) -> Vec<KindCount> {
    let named = rec.events.tables.iter().zip(rows).filter(|(_, n)| **n > 0);
    let mut list: Vec<KindCount> = named
        .map(|(table, &n)| KindCount {
            event: match table.system.as_str() {
                "" => table.name.clone(),
                system => format!("{system}:{}", table.name),
            },
            count: n as u64,
        })
        .collect();
    list.sort_by(|a, b| (Reverse(a.count), &a.event).cmp(&(Reverse(b.count), &b.event)));
    list
}

/// What is missing from the trace.
fn lost(rec: &Recording) -> Lost {
    let gaps = &rec.meta.lost;
    let known = gaps.iter().filter_map(|l| l.count);
    let lines = NotUnderstood::of(&rec.meta);
    let overwritten = rec.meta.facts.get("events overwritten before the first");
    Lost {
        gaps: gaps.len() as u64,
        events: known.fold(0, u64::saturating_add),
        gaps_of_unknown_size: gaps.iter().filter(|l| l.count.is_none()).count() as u64,
        overwritten: overwritten.and_then(|n| n.parse().ok()),
        lines_not_understood: lines.as_ref().map(NotUnderstood::sentence),
        first_lines: lines.map_or_else(Vec::new, |l| l.first),
    }
}

/// What the answer rests on beyond the events.
fn assumptions(rec: &Recording, kernel: &Kernel, summary: &Summary) -> Vec<String> {
    let meta = &rec.meta;
    let mut out = vec![];
    if summary.fallbacks.is_some() {
        out.extend(kernel.ownership());
    }
    if let Some(names) = meta.facts.get("gfp flags not understood") {
        out.push(format!(
            "names of flags that this kernel does not have are left out: {names}"
        ));
    }
    if matches!(meta.clock.as_str(), "counter" | "x86-tsc") {
        out.push(format!(
            "the clock {} does not count nanoseconds: seconds are of its own unit",
            meta.clock
        ));
    }
    if let Some(n) = meta.facts.get("events without a time") {
        out.push(format!(
            "{n} events have no time: that of the event before is taken"
        ));
    }
    match joined(meta) {
        0 => {}
        1 => out.push("1 line was taken to go on the line before it".to_owned()),
        n => out.push(format!(
            "{n} lines were taken to go on the line before them"
        )),
    }
    out
}

/// Questions whose events the trace does not have.
fn not_recorded(s: &Summary) -> Vec<NotRecorded> {
    let c = s.compaction.as_ref();
    let k = s.kswapd.as_ref();
    let all = [
        (
            s.requests.is_some(),
            "who asks for which orders, and what fails",
            "kmem:mm_page_alloc",
        ),
        (
            s.fallbacks.is_some(),
            "which types of memory mix",
            "kmem:mm_page_alloc_extfrag",
        ),
        (
            c.is_some_and(|c| c.direct.is_some()),
            "who compacts, and for which order",
            "compaction:mm_compaction_try_to_compact_pages",
        ),
        (
            c.is_some_and(|c| c.runs.is_some()),
            "runs of compaction and how they end",
            "compaction:mm_compaction_begin, compaction:mm_compaction_end",
        ),
        (
            c.is_some_and(|c| c.moved.is_some()),
            "pages that compaction moves",
            "compaction:mm_compaction_migratepages",
        ),
        (
            k.is_some_and(|k| k.asked.is_some()),
            "who wakes kswapd, and for which order",
            "vmscan:mm_vmscan_wakeup_kswapd",
        ),
        (
            k.is_some_and(|k| k.wakes.is_some() || k.sleeps.is_some()),
            "when kswapd works",
            "vmscan:mm_vmscan_kswapd_wake, vmscan:mm_vmscan_kswapd_sleep",
        ),
        (
            s.direct_reclaim.is_some(),
            "who waits for direct reclaim, and how long",
            "vmscan:mm_vmscan_direct_reclaim_begin, vmscan:mm_vmscan_direct_reclaim_end",
        ),
    ];
    let open = all.into_iter().filter(|(known, ..)| !known);
    open.map(|(_, question, events)| NotRecorded { question, events })
        .collect()
}
