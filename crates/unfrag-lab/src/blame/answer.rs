//! What it comes to: who it was, in a sentence, and what to ask next.
//!
//! Invariant: nobody is named for what was there before, in the recording or in its part that is asked about: judged is who
//! has at the end what came in the window. Amounts of caches are those of slabinfo's first and last copy in
//! the window; without two of them nothing is said of growth.

use super::holders::{BEFORE, purpose};
use super::report::{Answer, Blame, Cache, Holder, Next};
use crate::profile::class::Class;
use crate::report::number::{bytes, duration, percent, thousands};
use crate::report::screen::printable;
use std::collections::BTreeMap;
use unfrag_linux::procfs::SlabInfo;
use unfrag_linux::recording::{Recording, Snapshot};

/// Share of the blocks that came from which on one holder is the answer; and of all at the end, from which on what was there
/// before is.
const MOST_OF_IT: f64 = 0.5;
/// Blocks below which nothing came.
const LEAST: f64 = 0.5;
/// Caches that are named.
const CACHES: usize = 3;
/// Holders that are named where none has most of it.
const HOLDERS: usize = 3;

/// What a blame comes to; `from` is where its window begins, in the clock of the events.
pub(super) fn of(blame: &Blame, rec: &Recording, from: u64) -> Answer {
    let end = blame.at_end.spoilt as f64;
    let added: f64 = blame.holders.iter().map(|h| h.added).sum();
    let added = if added < LEAST { 0.0 } else { added.min(end) };
    let before = if end > 0.0 { 1.0 - added / end } else { 0.0 };
    let is_known = blame.all_known_after_seconds.is_some();
    let caches = caches(rec, from);
    let over = duration(blame.seconds);
    let mut named: Vec<&Holder> = blame
        .holders
        .iter()
        .filter(|h| h.program.as_deref().is_some_and(|p| p != BEFORE) && h.added > 0.0)
        .collect();
    named.sort_by(|a, b| b.added.total_cmp(&a.added));
    let part = |h: &Holder| h.added / added.max(LEAST);
    let share = |h: &Holder| {
        let (who, purpose) = (printable(h.who()), printable(&h.purpose));
        format!("{who} ({purpose}) {}", percent(part(h)))
    };
    let came = format!("of what came in these {over}");
    // Without page flags nothing is known of it.
    let rest = match is_known && before >= 0.005 {
        true => format!("; {} of all at the end was there before", percent(before)),
        false => String::new(),
    };
    let grew = caches.iter().any(|c| {
        c.grown_bytes
            .is_some_and(|g| g > 0 && g.unsigned_abs() >= c.bytes / 10)
    });
    let has_objects = rec
        .events
        .tables
        .iter()
        .any(|t| t.name == "kmem_cache_alloc");
    let mut advice = None;
    let (mut sentence, next) = match named.first() {
        _ if blame.spoilt_blocks == 0.0 => {
            let what = match is_known {
                true => "nobody",
                false => "nobody that is known of, as there are no page flags in the recording",
            };
            (
                format!("{what}: kernel memory broke up no block in these {over}"),
                Next::Doctor,
            )
        }
        _ if end == 0.0 => (
            format!("nobody in these {over}: what broke up blocks was given back by the end"),
            Next::Doctor,
        ),
        first if before >= MOST_OF_IT => {
            let mut sentence = format!(
                "nobody in these {over}: {} was there before",
                percent(before)
            );
            if let Some(first) = first.filter(|_| added > 0.0) {
                sentence += &format!("; of what came, {}", share(first));
            }
            let next = match (grew, has_objects) {
                (true, false) => Next::RecordSlab,
                (true, true) => Next::Doctor,
                (false, _) => Next::RecordLonger,
            };
            (sentence, next)
        }
        Some(first) if part(first) >= MOST_OF_IT => {
            advice = what_to_do(first);
            let holds = format!(
                "it still holds {} pages ({})",
                thousands(first.held_at_end),
                bytes(blame.sizes.bytes(first.held_at_end))
            );
            let sentence = format!("{} {came}; {holds}{rest}", share(first));
            (sentence, Next::Doctor)
        }
        Some(_) => {
            let several: Vec<String> = named.iter().take(HOLDERS).map(|h| share(h)).collect();
            (
                format!("nobody alone, {came}: {}{rest}", several.join(", ")),
                Next::Doctor,
            )
        }
        None => (
            format!("not known in these {over}: the recording names no program"),
            Next::Doctor,
        ),
    };
    let next = match next {
        Next::Doctor if rec.snapshots.is_empty() => Next::Summary,
        next => next,
    };
    let slab: f64 = blame
        .holders
        .iter()
        .filter(|h| h.purpose.contains("slab"))
        .map(|h| h.share)
        .sum();
    // Caches are beside the point where a program has most of it in other memory.
    let is_other = advice.is_some() && named.first().is_some_and(|h| !h.purpose.contains("slab"));
    if slab >= MOST_OF_IT && !caches.is_empty() && !is_other {
        let each: Vec<String> = caches.iter().map(in_words).collect();
        sentence += &format!("; the largest caches: {}", each.join(", "));
    }
    Answer {
        sentence,
        advice,
        before_share: is_known.then_some(before),
        caches,
        next,
    }
}

/// What to do about a program that has most of it. Interrupts, the recorder and the kernel's own threads take what others asked
/// for: nothing is to be done about them.
fn what_to_do(holder: &Holder) -> Option<String> {
    const KERNELS: [&str; 4] = ["kworker", "ksoftirqd", "kswapd", "irq"];
    let who = holder.program.as_deref()?;
    if who.starts_with('(') || KERNELS.iter().any(|k| who.starts_with(k)) {
        return None;
    }
    let who = printable(who);
    Some(match &holder.purpose[..] {
        p if p == purpose(Class::Other) => {
            format!(
                "restart {who}, or let it free them: pipes, sockets or drivers' pages that it holds"
            )
        }
        p if p == purpose(Class::PageTables) => {
            format!("give {who} huge pages, so that it needs fewer page tables, or restart it")
        }
        p if p == purpose(Class::KernelStacks) => format!("let {who} run fewer threads"),
        p if p == purpose(Class::Metadata) => {
            "echo 1 > /proc/sys/vm/drop_caches (as root; it is read from disk again)".into()
        }
        p if p == purpose(Class::SlabReclaimable) => {
            "echo 2 > /proc/sys/vm/drop_caches (as root; it is read from disk again)".into()
        }
        _ => format!("restart {who}, or let it free the objects that it holds"),
    })
}

fn in_words(cache: &Cache) -> String {
    let grown = cache.grown_bytes.map_or(String::new(), |g| {
        let sign = if g < 0 { '-' } else { '+' };
        format!(" ({sign}{})", bytes(g.unsigned_abs()))
    });
    format!("{} {}{grown}", printable(&cache.name), bytes(cache.bytes))
}

/// The largest caches at the end of the window, and by how much they grew in it.
fn caches(rec: &Recording, from: u64) -> Vec<Cache> {
    let page = u64::from(rec.meta.page_size);
    let offset = rec.meta.snapshot_offset_ns;
    let is_inside = |s: &&Snapshot| {
        let time = s
            .time_of("slabinfo")
            .map(|t| t.saturating_add_signed(-offset));
        time.is_none_or(|t| t >= from)
    };
    let sizes = |s: &Snapshot| -> Option<BTreeMap<String, u64>> {
        let read = SlabInfo::parse(s.file("slabinfo")?).ok()?;
        let mut all = BTreeMap::new();
        // Caches of control groups have one name.
        for c in read.caches {
            let bytes = c.pages(1).saturating_mul(page);
            let sum: &mut u64 = all.entry(c.name).or_default();
            *sum = sum.saturating_add(bytes);
        }
        Some(all)
    };
    let mut copies = rec.snapshots.iter().filter(is_inside);
    let first = copies.find_map(sizes);
    let last = copies.rev().find_map(sizes);
    let (Some(end), begin) = (
        last.as_ref().or(first.as_ref()),
        last.as_ref().and(first.as_ref()),
    ) else {
        return vec![];
    };
    let cache = |(name, &bytes): (&String, &u64)| Cache {
        name: name.clone(),
        bytes,
        grown_bytes: begin.map(|b| {
            let before = b.get(name).copied().unwrap_or(0);
            (bytes as i64).saturating_sub(before as i64)
        }),
    };
    let mut all: Vec<Cache> = end.iter().map(cache).collect();
    all.sort_by_key(|c| std::cmp::Reverse(c.bytes));
    all.truncate(CACHES);
    all
}
