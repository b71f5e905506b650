//! A verdict in words: what it means, how sure it is, and what else the text shows.

use super::case::Case;
use super::verdict::{Verdict, closed_lists};
use super::zones::Judged;
use crate::report::number::bytes;
use unfrag_linux::kernel_log::Kind;

/// The size of the request, such as `64 KiB (order 4)`.
pub fn size(case: &Case, order: Option<i32>) -> String {
    let Some(order) = order.filter(|o| (0..40).contains(o)) else {
        return "memory".into();
    };
    match case.page_kib {
        Some(kib) => format!("{} (order {order})", bytes((kib * 1024) << order)),
        None => format!("a block of order {order}"),
    }
}

fn name(z: &Judged) -> String {
    format!("node {} {}", z.answer.node, z.answer.zone)
}

fn names(zones: &[Judged], test: impl Fn(&Judged) -> bool) -> String {
    let named: Vec<String> = zones.iter().filter(|z| test(z)).map(name).collect();
    named.join(", ")
}

/// What counts for the request in a zone, and what it would have had to exceed.
fn need(z: &Judged) -> String {
    let kept = z.answer.protection_kib.filter(|k| *k > 0);
    let kept = kept.map_or(String::new(), |k| {
        format!(" and the {} that it keeps", kib(Some(k)))
    });
    format!(
        "{}: {} count for it, against a mark of {}{kept}",
        name(z),
        kib(z.answer.usable_kib),
        kib(z.answer.mark_kib)
    )
}

fn kib(n: Option<u64>) -> String {
    n.map_or("an unknown amount".into(), |k| {
        bytes(k.saturating_mul(1024))
    })
}

/// The verdict as a sentence.
pub fn meaning(case: &Case, order: Option<i32>) -> String {
    let r = case.report;
    let size = size(case, order);
    let Some(verdict) = case.verdict else {
        return no_failure(case, &size);
    };
    let allowed = |z: &Judged| z.is_allowed;
    match verdict {
        Verdict::Manual => "Somebody ran the OOM killer by hand (sysrq-f): memory was not short.".into(),
        Verdict::Cgroup => format!(
            "The limit of the control group{} was reached, not the end of the host's memory.",
            r.cgroup.as_ref().map_or(String::new(), |g| format!(" {g}"))
        ),
        Verdict::TooLarge => match case.report.memory.as_ref().and_then(|m| m.orders()) {
            Some(n) if order.is_some_and(|o| o >= i32::try_from(n).unwrap_or(i32::MAX)) => {
                format!("No block of this size can exist: {size}, and the kernel's largest order is {}.", n.saturating_sub(1))
            }
            _ => format!("The request is larger than all memory that its zones have: {size}."),
        },
        Verdict::Incomplete => format!("The text does not say why: {}.", case.lacking.unwrap_or("a number that decides is missing")),
        Verdict::Raced => format!(
            "By the numbers printed the request for {size} would succeed in {}: memory came back between the failure and the report.",
            names(&case.zones, |z| allowed(z) && z.passes == Some(true))
        ),
        Verdict::Marks => format!(
            "There is a free block for {size} in {}, but taking it would leave less than the watermark of that kernel wants{}.",
            names(&case.zones, |z| allowed(z) && z.has_block == Some(true) && z.passes_unprotected == Some(false)),
            match case.kernel.preset.rules.marks.check {
                unfrag::kernel::MarkCheck::PerOrder => ", which kernels to 4.3 check for each order by itself",
                unfrag::kernel::MarkCheck::BlockExists => "",
            }
        ),
        Verdict::Reserved => format!(
            "Memory is free, but blocks for {size} lie only in {}, which this request may not use.",
            closed_lists(&case.zones).join(" and ")
        ),
        Verdict::Fragmented => {
            let room = |z: &Judged| allowed(z) && z.has_room == Some(true);
            let largest = case.zones.iter().filter(|z| room(z)).filter_map(|z| z.answer.largest_usable_order).max();
            let usable = case.zones.iter().filter(|z| room(z)).filter_map(|z| z.answer.usable_kib).fold(0, u64::saturating_add);
            format!(
                "Memory is fragmented: {} are free for it in {}, but no block for {size}; the largest is {}.",
                kib(Some(usable)),
                names(&case.zones, room),
                largest.map_or("none".into(), |o| self::size(case, Some(o.into())))
            )
        }
        Verdict::Cma => "Memory is free only in contiguous memory areas (CMA), which are for movable memory, and the request is not movable.".into(),
        Verdict::Protected => format!(
            "Memory is free in {}, and lowmem_reserve keeps it from requests that could have used a higher zone.",
            names(&case.zones, |z| allowed(z) && z.has_room_unprotected == Some(true))
        ),
        Verdict::Zone => format!(
            "Memory is free in {}, which the request may not use; those that it may use ({}) are short.",
            names(&case.zones, |z| !allowed(z) && z.has_any_block == Some(true) && z.is_above_min == Some(true)),
            names(&case.zones, allowed)
        ),
        Verdict::Short => {
            let zones: Vec<String> = case
                .zones
                .iter()
                .filter(|z| allowed(z))
                .map(need)
                .collect();
            format!("Memory is short. {}.", zones.join("; "))
        }
    }
}

/// What a report that tells of no failed allocation says.
fn no_failure(case: &Case, size: &str) -> String {
    let r = case.report;
    match r.kind {
        Kind::Stall => format!(
            "The allocation of {size} waited{} and went on waiting: a stall, no failure.",
            r.stall_ms.map_or(String::new(), |ms| format!(" for {ms} ms"))
        ),
        Kind::Cma => match r.cma {
            Some((pages, Some(-16))) => format!("A range of {pages} pages was found in the contiguous memory area, and a page in it was pinned or busy (EBUSY)."),
            Some((pages, Some(-12))) => format!("The contiguous memory area has no room for {pages} pages in a row (ENOMEM)."),
            Some((pages, _)) => format!("The contiguous memory area did not give {pages} pages."),
            None => "A contiguous memory area did not give a range.".into(),
        },
        _ => "A memory report alone: no allocation failed here, or the beginning of the report is missing.".into(),
    }
}

/// How sure the verdict is, and what could change it.
pub fn sure(case: &Case) -> String {
    let Some(verdict) = case.verdict else {
        return String::new();
    };
    let mut doubts = vec![];
    if !case.kernel.is_said && !matches!(verdict, Verdict::Manual | Verdict::Cgroup) {
        doubts.push("the release is assumed from the form of the report".to_owned());
    }
    if case.page_kib.is_none() && case.report.memory.is_some() {
        doubts.push("the page size is not in the text, and 4 KiB are assumed".to_owned());
    }
    if case.kernel.hides_highatomic()
        && matches!(
            verdict,
            Verdict::Raced | Verdict::Short | Verdict::Fragmented
        )
    {
        let effect = match verdict {
            Verdict::Short => "if it is full, blocks in it were out of reach as well",
            _ => "blocks in it may have been out of reach",
        };
        doubts.push(format!("kernels from 4.4 to 4.18 keep up to 1 % of a zone as high-atomic reserve and do not print it: {effect}"));
    }
    match verdict {
        Verdict::Raced => {
            doubts.push("the state that failed was gone when it was printed".to_owned())
        }
        Verdict::Incomplete => return "Not sure: what decides is missing.".into(),
        _ => {}
    }
    if doubts.is_empty() {
        "Sure, by the numbers printed; the state may have changed between the failure and the report.".into()
    } else {
        format!("With this doubt: {}.", doubts.join("; "))
    }
}

/// What else the text shows.
pub fn notes(case: &Case) -> Vec<String> {
    let r = case.report;
    let mut notes = vec![];
    if r.suppressed > 0 {
        notes.push(format!(
            "the kernel kept back {} more reports beside this one",
            r.suppressed
        ));
    }
    if r.no_compaction {
        notes.push("the kernel was built without compaction (COMPACTION is disabled)".into());
    }
    if case.zones.iter().any(|z| z.is_nonsense) {
        notes.push("numbers near 2^64 in this report are nonsense, by a bug of that kernel".into());
    }
    if let Some(memory) = &r.memory {
        let drifted = memory.zones.iter().filter(|z| {
            let sum = z.blocks.as_ref().and_then(|b| b.total_kib);
            z.kib("free")
                .zip(sum)
                .is_some_and(|(free, sum)| sum < free - free / 10)
        });
        let drifted: Vec<String> = drifted
            .map(|z| format!("node {} {}", z.node, z.name))
            .collect();
        if !drifted.is_empty() {
            notes.push(format!("the counter of free memory is more than a tenth above the sum of the free lists in {}; the lists are believed", drifted.join(", ")));
        }
        let cut: Vec<String> = memory
            .zones
            .iter()
            .filter(|z| z.blocks.as_ref().is_none_or(|b| !b.is_whole()))
            .map(|z| format!("node {} {}", z.node, z.name))
            .collect();
        if !cut.is_empty() {
            notes.push(format!(
                "the free blocks of {} are missing or cut off",
                cut.join(", ")
            ));
        }
    }
    if let Some(killed) = &r.killed {
        notes.push(format!("{killed} was killed"));
    }
    notes
}
