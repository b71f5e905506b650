//! The count of a trace's events.
//!
//! Invariant: what is printed does not depend on the order of a hash table.

use super::kernel::Kernel;
use super::people::People;
use super::report::{KindCount, Lost, NotRecorded, Summary};
use super::{compaction, fallbacks, reclaim, requests};
use crate::error::{Error, Result};
use crate::input::Input;
use crate::input::counted::Counted;
use std::cmp::Reverse;
use unfrag_linux::event::coverage::EVENTS_RECORDED;
use unfrag_linux::event::{At, Coverage, Kind, Page, Tracker, Unreadable};
use unfrag_linux::file::Common;
use unfrag_linux::recording::Recording;
use unfrag_linux::share::{self, Share};
use unfrag_linux::text::{NotUnderstood, joined};

/// The common columns that are read.
const COMMON: &[Common] = &[Common::Task, Common::Flags];

/// What a recording's trace tells; `source` names it.
///
/// # Errors
/// If its events cannot be read.
pub fn summarize<'r>(input: impl Into<Input<'r>>, source: &str) -> Result<Summary> {
    let input = input.into();
    let mut count = Count::of(&input);
    let counted = Counted::walk(&input, COMMON, &mut count)?;
    Ok(count.report(source, &counted))
}

/// The counts so far.
pub(crate) struct Count<'r> {
    input: Input<'r>,
    people: People<'r>,
    requests: requests::Tally,
    fallbacks: fallbacks::Tally,
    compaction: compaction::Tally,
    reclaim: reclaim::Tally,
    pages: share::Count,
}

impl Tracker for Count<'_> {
    type Error = Error;

    fn takes(&self, kind: Kind) -> bool {
        !matches!(
            kind,
            Kind::Free
                | Kind::Refill
                | Kind::Drain
                | Kind::SetMigration
                | Kind::RemoveMigration
                | Kind::CacheAdd
                | Kind::CacheDelete
                | Kind::Object
                | Kind::Kmalloc
                | Kind::ObjectFree
                | Kind::CollapseScan
        )
    }

    #[inline]
    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<()> {
        self.pages.event(at, page)?;
        if at.time < self.input.from {
            return Ok(());
        }
        let who = self.people.who(at.task, at.flags);
        match page {
            Some(Page::Alloc(request)) => self.requests.add(who, &request),
            Some(Page::Fallback(fallback)) => self.fallbacks.add(who, &fallback),
            Some(Page::Compaction(event)) => self.compaction.add(who, at, &event),
            Some(Page::Reclaim(event)) => self.reclaim.add(who, at, &event),
            _ => {}
        }
        Ok(())
    }

    fn unreadable(&mut self, at: &At, kind: Kind, why: Unreadable) -> Result<()> {
        self.pages.unreadable(at, kind, why)?;
        self.requests.incomplete += u64::from(kind == Kind::Alloc);
        Ok(())
    }
}

impl<'r> Count<'r> {
    /// Nothing so far.
    pub(crate) fn of(input: &Input<'r>) -> Count<'r> {
        Count {
            input: input.clone(),
            people: People::of(input.recording),
            requests: requests::Tally::default(),
            fallbacks: fallbacks::Tally::default(),
            compaction: compaction::Tally::default(),
            reclaim: reclaim::Tally::default(),
            pages: share::Count::of(input.recording),
        }
    }

    /// What the counts tell.
    pub(crate) fn report(self, source: &str, counted: &Counted) -> Summary {
        let Count {
            input,
            people,
            pages,
            ..
        } = self;
        // Without their events there is nothing to hold against the host's.
        let share = pages
            .share()
            .filter(|_| Coverage::of(input.recording).has(Kind::Alloc));
        let rec = input.recording;
        let (kernel, assumed) = Kernel::of(&rec.meta.kernel_release);
        let incomplete = self.requests.incomplete;
        let (kswapd, direct_reclaim) = self.reclaim.report(&people);
        let mut summary = Summary {
            source: source.to_owned(),
            format: rec.meta.source.clone(),
            kernel: Some(rec.meta.kernel_release.clone()).filter(|r| !r.is_empty()),
            cpus: rec.meta.cpus,
            events: counted.events,
            kinds: kinds(rec, &counted.rows),
            requests: self.requests.report(&people, &kernel),
            fallbacks: self.fallbacks.report(&people, &kernel),
            compaction: self.compaction.report(&people, &kernel),
            kswapd,
            direct_reclaim,
            share_of_allocations: share.map(Share::fraction),
            lost: lost(rec),
            assumed: assumed.into_iter().collect(),
            ..Summary::default()
        };
        if let Some((first, last)) = counted.span {
            summary.first_seconds = first as f64 / 1e9;
            summary.seconds = last.saturating_sub(first) as f64 / 1e9;
        }
        if incomplete > 0 {
            let what =
                format!("{incomplete} of the events mm_page_alloc have no order or no frame");
            summary.assumed.push(format!("{what}: left out"));
        }
        summary.assumed.extend(assumptions(rec, &kernel, &summary));
        let recorded = Coverage::of(rec);
        summary.says_what_was_recorded = rec.meta.facts.contains_key(EVENTS_RECORDED);
        for (kinds, question) in open_questions(&summary) {
            let events: Vec<String> = kinds.iter().map(|k| k.event()).collect();
            let open = NotRecorded {
                question,
                events: events.join(", "),
            };
            match kinds.iter().all(|k| recorded.has(*k)) {
                true => summary.did_not_happen.push(open),
                false => summary.not_recorded.push(open),
            }
        }
        summary
    }
}

/// Events by kind, most first.
fn kinds(rec: &Recording, rows: &[u64]) -> Vec<KindCount> {
    let named = rec.events.tables.iter().zip(rows).filter(|(_, n)| **n > 0);
    let mut list: Vec<KindCount> = named
        .map(|(table, &n)| KindCount {
            event: match table.system.as_str() {
                "" => table.name.clone(),
                system => format!("{system}:{}", table.name),
            },
            count: n,
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

/// Questions whose events the trace does not have, and the kinds of events that would tell.
fn open_questions(s: &Summary) -> Vec<(&'static [Kind], &'static str)> {
    let c = s.compaction.as_ref();
    let k = s.kswapd.as_ref();
    let all: [(bool, &[Kind], &str); 8] = [
        (
            s.requests.is_some(),
            &[Kind::Alloc],
            "who asks for which orders, and what fails",
        ),
        (
            s.fallbacks.is_some(),
            &[Kind::Fallback],
            "which types of memory mix",
        ),
        (
            c.is_some_and(|c| c.direct.is_some()),
            &[Kind::CompactTry],
            "who compacts, and for which order",
        ),
        (
            c.is_some_and(|c| c.runs.is_some()),
            &[Kind::CompactBegin, Kind::CompactEnd],
            "runs of compaction and how they end",
        ),
        (
            c.is_some_and(|c| c.moved.is_some()),
            &[Kind::Migrated],
            "pages that compaction moves",
        ),
        (
            k.is_some_and(|k| k.asked.is_some()),
            &[Kind::WakeupKswapd],
            "who wakes kswapd, and for which order",
        ),
        (
            k.is_some_and(|k| k.wakes.is_some() || k.sleeps.is_some()),
            &[Kind::KswapdWake, Kind::KswapdSleep],
            "when kswapd works",
        ),
        (
            s.direct_reclaim.is_some(),
            &[Kind::ReclaimBegin, Kind::ReclaimEnd],
            "who waits for direct reclaim, and how long",
        ),
    ];
    let open = all.into_iter().filter(|(known, ..)| !known);
    open.map(|(_, kinds, question)| (kinds, question)).collect()
}
