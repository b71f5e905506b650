//! Advice to make room for large blocks: where compactions were in vain, where faults did not get huge pages, where nothing
//! free is in blocks of a huge page's size.
//!
//! Invariant: the reason names each number that speaks for it, and which requests it concerns.

use super::advice::Advice;
use super::diagnosis::{Diagnosis, ZoneDiagnosis};
use super::evidence::Evidence;
use crate::report::number::{bytes, percent, thousands};

/// Share of compactions in vain above which advice is given.
const IN_VAIN: f64 = 0.50;
/// Share of faults without a huge page above which advice is given.
const FALLEN_BACK: f64 = 0.25;
/// Compactions and faults from which a share says something.
const SOME: u64 = 20;

/// A counter's value since boot; `None` if the kernel does not have it.
pub(super) fn counted(d: &Diagnosis, name: &str) -> Option<u64> {
    d.work.iter().find(|w| w.counter == name).map(|w| w.total)
}

/// The share that `part` is of itself and the `rest`.
pub(super) fn share_of(part: u64, rest: u64) -> f64 {
    part as f64 / part.saturating_add(rest).max(1) as f64
}

/// Room for large blocks, for all reasons together.
pub(super) fn make_room(d: &Diagnosis, e: &Evidence) -> Option<Advice> {
    let mut reasons: Vec<String> = vec![];
    reasons.extend(in_vain(d));
    reasons.extend(fallen_back(d));
    let scattered: Vec<&ZoneDiagnosis> = d.zones.iter().filter(|z| is_scattered(z)).collect();
    reasons.extend(scattered.iter().map(|z| nothing_whole(d, z)));
    if reasons.is_empty() {
        return None;
    }
    // What is free makes no block unless there is enough of it.
    let is_short = !scattered.is_empty()
        && scattered
            .iter()
            .all(|z| z.free_pages.is_some_and(|n| n < 1 << d.huge_order));
    let (command, cost) = match (e.compacts(), is_short) {
        (true, false) => (
            "sync; echo 1 > /proc/sys/vm/compact_memory",
            "a CPU is busy for seconds while memory is moved; best in quiet hours, and again when the shares rise",
        ),
        (true, true) => (
            "sync; echo 3 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory",
            "what was cached is read from disk again; a CPU is busy for seconds while memory is moved",
        ),
        (false, _) => (
            "sync; echo 3 > /proc/sys/vm/drop_caches",
            "what was cached is read from disk again; this kernel does not compact, so large blocks that must be had are best set aside at boot (hugepages=)",
        ),
    };
    Some(Advice {
        command: command.into(),
        setting: None,
        current: None,
        value: None,
        reason: reasons.join("; "),
        cost: cost.into(),
        prediction: None,
        predicted: None,
    })
}

/// Compactions that a request waited for, and the share of them in vain, where that is most of them.
pub(super) fn mostly_in_vain(d: &Diagnosis) -> Option<(u64, f64)> {
    let (failed, done) = (counted(d, "compact_fail")?, counted(d, "compact_success")?);
    let (all, share) = (failed.saturating_add(done), share_of(failed, done));
    (share > IN_VAIN && all >= SOME).then_some((all, share))
}

fn in_vain(d: &Diagnosis) -> Option<String> {
    let (all, share) = mostly_in_vain(d)?;
    Some(format!(
        "{} of {} compactions that a request waited for were in vain",
        percent(share),
        thousands(all)
    ))
}

fn fallen_back(d: &Diagnosis) -> Option<String> {
    let (refused, given) = (
        counted(d, "thp_fault_fallback")?,
        counted(d, "thp_fault_alloc")?,
    );
    let share = share_of(refused, given);
    (share > FALLEN_BACK && refused.saturating_add(given) >= SOME).then(|| {
        format!(
            "{} of {} faults that wanted a huge page got small pages",
            percent(share),
            thousands(refused.saturating_add(given))
        )
    })
}

/// Whether nothing that is free is in blocks of a huge page's size.
fn is_scattered(z: &ZoneDiagnosis) -> bool {
    z.extfrag_for_order_9 == Some(100) && z.free_pages.is_none_or(|n| n > 0)
}

fn nothing_whole(d: &Diagnosis, z: &ZoneDiagnosis) -> String {
    let size = |order: u8| bytes(d.page_size << order);
    let huge = size(d.huge_order);
    let place = format!("node {}, zone {}", z.node, z.zone);
    match z.largest_free_order {
        Some(order) => format!(
            "{place}: nothing free is in whole {huge} blocks, the largest has {}: requests above order {order} compact and reclaim first or fail (huge pages, and drivers that ask for that much at once); smaller ones are served",
            size(order)
        ),
        None => format!(
            "{place}: nothing free is in whole {huge} blocks: requests for huge pages compact and reclaim first or fail; smaller ones may be served"
        ),
    }
}
