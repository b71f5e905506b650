//! What holds memory, as far as a report tells: counters, tasks, slab caches, places in the code, and what no counter has.
//!
//! Invariant: nothing is shown of a table that is not whole; what no counter has is told only where all counters and all
//! zones are in the text.

use super::answer::Held;
use super::case::Case;
use super::missing;
use crate::report::number::bytes;
use unfrag_linux::kernel_log::Memory;

/// Of each kind at most so many are kept.
const MOST: usize = 5;
/// Counters below this share of memory, in thousandths, are left out.
const SMALL_PER_MILLE: u64 = 10;
/// A remainder below this share of memory is no holder of its own: counters are read one after another.
const UNCOUNTED_PER_MILLE: u64 = 50;
/// More bytes than any machine has.
const NONSENSE: u64 = 1 << 50;

/// What holds memory, by kind, the largest first.
pub fn held(case: &Case) -> Vec<Held> {
    let r = case.report;
    let page = case.page_kib.map(|k| k.saturating_mul(1024));
    let total = r.memory.as_ref().and_then(total_bytes);
    let per_mille = |n: u64| {
        let total = total.filter(|t| *t > 0)?;
        u64::try_from(u128::from(n) * 1000 / u128::from(total)).ok()
    };
    let one = |kind, name: &str, bytes: u64, count| Held {
        kind,
        name: name.to_owned(),
        bytes,
        count,
        per_mille: per_mille(bytes),
    };
    let mut all = vec![];
    if let Some(memory) = &r.memory {
        let mut counters: Vec<Held> = counters(case, memory)
            .into_iter()
            .map(|(name, n)| one("counter", name, n, None))
            .filter(|h| h.bytes > 0 && h.bytes < NONSENSE)
            .filter(|h| {
                h.per_mille
                    .is_none_or(|p| (SMALL_PER_MILLE..=1000).contains(&p))
            })
            .collect();
        if case.setting.is_some()
            && let Some(rest) = total.and_then(|t| t.checked_sub(counted(memory, page?)?))
        {
            // Where no line tells of pools of huge pages, they may be what is left.
            let name = match memory.hugetlb_kib {
                Some(_) => {
                    "in no counter (other kernel memory: drivers, pipes, sockets, or a leak)"
                }
                None => {
                    "in no counter (other kernel memory: drivers, pipes, sockets, pools of huge pages, or a leak)"
                }
            };
            let rest = one("counter", name, rest, None);
            counters.extend(Some(rest).filter(|h| h.per_mille >= Some(UNCOUNTED_PER_MILLE)));
        }
        largest(counters, MOST + 1, &mut all);
    }
    let h = &r.holders;
    // The table counts pages.
    let tasks = page.map(|page| h.tasks.iter().flatten().map(move |t| (t, page)));
    let tasks = tasks
        .into_iter()
        .flatten()
        .map(|((name, (count, pages)), page)| {
            one("task", name, pages.saturating_mul(page), Some(*count))
        });
    largest(tasks.collect(), MOST, &mut all);
    let caches = h.caches.iter().flatten();
    let caches = caches.map(|(name, kib)| one("cache", name, kib.saturating_mul(1024), None));
    largest(caches.collect(), MOST, &mut all);
    let places = h.allocations.iter().take(MOST);
    all.extend(places.map(|(name, n, count)| one("code", name, *n, Some(*count))));
    all
}

fn largest(mut held: Vec<Held>, most: usize, all: &mut Vec<Held>) {
    held.retain(|h| h.bytes > 0 && h.bytes < NONSENSE);
    held.sort_by_key(|h| (std::cmp::Reverse(h.bytes), h.name.clone()));
    held.truncate(most);
    all.append(&mut held);
}

/// Memory of all zones; `None` unless all are in the text.
fn total_bytes(memory: &Memory) -> Option<u64> {
    if !missing::has_all(memory) {
        return None;
    }
    let sizes: Option<Vec<u64>> = memory.zones.iter().map(|z| z.size_kib()).collect();
    let kib = sizes?.into_iter().fold(0, u64::saturating_add);
    (kib > 0).then(|| kib.saturating_mul(1024))
}

/// The counters that name a holder. Contiguous areas and huge pages are parts of memory that are set aside.
fn counters(case: &Case, memory: &Memory) -> Vec<(&'static str, u64)> {
    let of = |names: &[&str]| {
        let each: Option<Vec<u64>> = names.iter().map(|n| case.amount(n)).collect();
        Some(each?.into_iter().fold(0, u64::saturating_add))
    };
    let node = |name: &str| memory.node_kib.get(name).map(|k| k.saturating_mul(1024));
    let zone = |name: &str| {
        let each: Vec<u64> = memory.zones.iter().filter_map(|z| z.kib(name)).collect();
        let sum = each.iter().fold(0u64, |sum, k| sum.saturating_add(*k));
        (!each.is_empty()).then(|| sum.saturating_mul(1024))
    };
    let slab = of(&["slab_reclaimable", "slab_unreclaimable"]).or(of(&["slab"]));
    let named = [
        (
            "programs (anonymous pages)",
            of(&["active_anon", "inactive_anon"]),
        ),
        (
            "reclaimable file pages",
            of(&["active_file", "inactive_file"]),
        ),
        ("slab caches", slab),
        ("page tables", of(&["pagetables"])),
        ("unevictable pages", of(&["unevictable"])),
        (
            "kernel stacks",
            node("kernel_stack").or(zone("kernel_stack")),
        ),
        ("zspages", zone("zspages")),
        ("free in contiguous areas (CMA)", of(&["free_cma"])),
        (
            "pools of huge pages",
            memory.hugetlb_kib.map(|k| k.saturating_mul(1024)),
        ),
        ("the balloon", node("Balloon")),
    ];
    named
        .into_iter()
        .filter_map(|(name, n)| Some((name, n?)))
        .collect()
}

/// All memory that a counter has; `None` unless those of a report since 4.8 are all there.
fn counted(memory: &Memory, page: u64) -> Option<u64> {
    const PAGES: [&str; 10] = [
        "active_anon",
        "inactive_anon",
        "active_file",
        "inactive_file",
        "isolated_anon",
        "isolated_file",
        "unevictable",
        "slab_reclaimable",
        "slab_unreclaimable",
        "pagetables",
    ];
    let mut sum: u64 = 0;
    for name in PAGES.iter().chain(&["free"]) {
        sum = sum.saturating_add(*memory.pages.get(*name)?);
    }
    for name in [
        "free_pcp",
        "bounce",
        "kernel_misc_reclaimable",
        "sec_pagetables",
    ] {
        sum = sum.saturating_add(memory.pages.get(name).copied().unwrap_or(0));
    }
    let stacks = memory.node_kib.get("kernel_stack").copied().or_else(|| {
        let each: Vec<u64> = memory
            .zones
            .iter()
            .filter_map(|z| z.kib("kernel_stack"))
            .collect();
        (!each.is_empty()).then(|| each.iter().fold(0u64, |sum, k| sum.saturating_add(*k)))
    })?;
    let zspages = memory.zones.iter().filter_map(|z| z.kib("zspages"));
    let kib = zspages
        .chain([stacks, memory.hugetlb_kib.unwrap_or(0)])
        .chain(memory.node_kib.get("Balloon").copied())
        .fold(0u64, u64::saturating_add);
    Some(
        sum.saturating_mul(page)
            .saturating_add(kib.saturating_mul(1024)),
    )
}

/// One line for each kind: `slab caches 3 GiB (91.4 %), ...`.
pub fn lines(held: &[Held]) -> Vec<(&'static str, String)> {
    let heads = [
        ("counter", "held by"),
        ("task", "tasks"),
        ("cache", "caches"),
        ("code", "code"),
    ];
    let share = |h: &Held| match h.per_mille {
        Some(p) => format!("{} ({}.{} %)", bytes(h.bytes), p / 10, p % 10),
        None => bytes(h.bytes),
    };
    let text = |h: &Held| match (h.kind, h.count) {
        ("task", Some(n)) if n > 1 => format!("{n} {} {}", h.name, share(h)),
        _ => format!("{} {}", h.name, share(h)),
    };
    let of = |kind: &str| {
        let each: Vec<String> = held.iter().filter(|h| h.kind == kind).map(text).collect();
        each.join(", ")
    };
    let all = heads.into_iter().map(|(kind, head)| (head, of(kind)));
    all.filter(|(_, text)| !text.is_empty()).collect()
}
