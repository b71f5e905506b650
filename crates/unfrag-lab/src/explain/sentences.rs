//! A verdict in words: what it means, what to do about it in one sentence, and how sure it is.

use super::case::{Case, Finding};
use super::reasons::{must_keep, own_kib};
use super::verdict::{Verdict, closed_lists};
use super::zones::Judged;
use crate::report::number::{bytes, thousands};
use unfrag_eras::Gfp;
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

/// Node and zone.
pub fn name(z: &Judged) -> String {
    format!("node {} {}", z.answer.node, z.answer.zone)
}

fn names(zones: &[Judged], test: impl Fn(&Judged) -> bool) -> String {
    let named: Vec<String> = zones.iter().filter(|z| test(z)).map(name).collect();
    named.join(", ")
}

/// What is free for the request in a zone, and what must be left there. In KiB, as a page may decide.
fn need(z: &Judged, own_kib: u64) -> String {
    let kept = z.answer.protection_kib.filter(|k| *k > 0);
    let kept = kept.map_or(String::new(), |k| {
        format!(
            ", {} of them for requests that can use no other zone",
            exact(Some(k))
        )
    });
    let own = match own_kib {
        0 => String::new(),
        n => format!(", less {} of the request itself,", exact(Some(n))),
    };
    let counts = match z.answer.usable_kib.or(z.at_most_kib) {
        Some(kib) if z.answer.usable_kib.is_none() => format!("at most {}", exact(Some(kib))),
        kib => exact(kib),
    };
    format!(
        "{} had {counts} free for it{own} and must keep {}{kept}",
        name(z),
        exact(must_keep(z))
    )
}

fn exact(kib: Option<u64>) -> String {
    kib.map_or("an unknown amount".into(), |k| {
        format!("{} KiB", thousands(k))
    })
}

/// An amount in the unit that reads best.
pub fn kib(n: Option<u64>) -> String {
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
        Verdict::Cgroup if case.finding == Finding::CacheOfCgroup => format!(
            "The slab cache is a control group's own{}: its limit of kernel memory was reached, and no page request of the host failed.",
            r.cache.as_ref().and_then(|c| c.cgroup()).map_or(String::new(), |g| format!(" ({g})"))
        ),
        Verdict::Cgroup if case.finding == Finding::FaultHandler => format!(
            "No page was refused: a page fault failed right after the limit of the control group{} was reached, most likely at its charge to that group.",
            r.cgroup.as_ref().map_or(String::new(), |g| format!(" {g}"))
        ),
        Verdict::AddressSpace => format!(
            "The kernel's range of addresses for this has no room{}: pages are not what lacks.",
            r.bytes.map_or(String::new(), |n| format!(" for {}", bytes(n)))
        ),
        Verdict::Caller => "The caller asked for 0 bytes: a length was computed wrong, whatever memory was free.".into(),
        Verdict::NotAPage => "No page was refused: a page fault's handler said \"out of memory\", by a control group's limit or by a fault of its own; the lines before this one may tell which.".into(),
        Verdict::Harmless => harmless(case),
        Verdict::TooLarge if case.finding == Finding::ExceedsPages => format!(
            "The size exceeds all memory{}: the caller computed it wrong, or took it from outside unchecked.",
            r.bytes.map_or(String::new(), |n| format!(": {}", bytes(n)))
        ),
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
        Verdict::Raced => {
            let named = names(&case.zones, |z| allowed(z) && z.passes == Some(true));
            let order = order.and_then(|o| u8::try_from(o).ok()).unwrap_or(0);
            match times_free(case) {
                Some(times) if is_unexplained(case, order) => format!(
                    "By the numbers printed the request for {size} would succeed in {named}, where more than {times} times what it needs is free: memory does not explain this failure, and no setting of vm would have helped."
                ),
                _ if is_raced_by_counters_alone(case) => format!(
                    "By the counters of free memory the request for {size} would succeed in {named}, and by the free lists it would fail: memory is at its marks."
                ),
                _ => format!(
                    "By the numbers printed the request for {size} would succeed in {named}: memory came back between the failure and the report."
                ),
            }
        }
        Verdict::Marks => format!(
            "There is a free block for {size} in {}, but taking it would leave less than the watermark of that kernel wants{}.",
            names(&case.zones, |z| allowed(z) && z.has_block == Some(true) && z.passes_unprotected == Some(false)),
            match case.kernel.preset.rules.marks.check {
                unfrag_eras::kernel::MarkCheck::PerOrder => ", which kernels to 4.3 check for each order by itself",
                unfrag_eras::kernel::MarkCheck::BlockExists => "",
            }
        ),
        Verdict::Reserved if case.finding == Finding::WholeReserve => format!(
            "Memory is free in {}, but this kernel takes off the whole high-atomic reserve, though less than all of it is free: {}.",
            names(&case.zones, |z| allowed(z) && z.passes_by_free_reserve == Some(true)),
            needs(case, order)
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
        Verdict::Zone => {
            let named = names(&case.zones, |z| !allowed(z) && z.has_any_block == Some(true) && z.is_above_min == Some(true));
            match case.zones.iter().any(allowed) {
                true => format!("Memory is free in {named}, which the request may not use; those that it may use are short. {}.", needs(case, order)),
                false => format!("Memory is free in {named}, which the request may not use, and its nodes have no zone that it may use."),
            }
        }
        Verdict::Short => {
            let blocks = match order {
                Some(1..) if case.has_open_block() => format!(" Blocks for {size} are free: compaction would change nothing."),
                Some(1..) => format!(" No block for {size} is free either."),
                _ => String::new(),
            };
            format!("Memory is short. {}.{blocks}", needs(case, order))
        }
    }
}

/// What each zone that the request may use has, and what it would have had to exceed.
fn needs(case: &Case, order: Option<i32>) -> String {
    let own = own_kib(order, case.page_kib);
    let zones: Vec<String> = case
        .zones
        .iter()
        .filter(|z| z.is_allowed)
        .map(|z| need(z, own))
        .collect();
    zones.join("; ")
}

/// How many times the zone that serves the request best has what it needs there.
fn times_free(case: &Case) -> Option<u64> {
    let times = |z: &Judged| {
        let needed = z.answer.mark_kib?.saturating_add(z.answer.protection_kib?);
        let free = z.answer.usable_kib?;
        Some(free.checked_div(needed).unwrap_or(1000).min(1000))
    };
    let passing = case
        .zones
        .iter()
        .filter(|z| z.is_allowed && z.passes == Some(true));
    passing.filter_map(times).max()
}

/// Whether a request that would succeed has so much more than it needs that memory cannot have come back in between.
pub fn is_unexplained(case: &Case, order: u8) -> bool {
    /// Times what is needed.
    const MUCH: u64 = 3;
    /// Blocks of the order.
    const MANY: u64 = 64;
    let passing = || {
        case.zones
            .iter()
            .filter(|z| z.is_allowed && z.passes == Some(true))
    };
    let has_many = order == 0 || passing().any(|z| z.open_blocks >= MANY);
    has_many && times_free(case).is_some_and(|t| t >= MUCH)
}

/// Whether the lists of every zone that passes add up to too little.
fn is_raced_by_counters_alone(case: &Case) -> bool {
    let mut passing = case
        .zones
        .iter()
        .filter(|z| z.is_allowed && z.passes == Some(true));
    passing.all(|z| z.passes_by_lists == Some(false))
}

fn harmless(case: &Case) -> String {
    let what = match case.finding {
        Finding::HugeTry => {
            "A try for a large page: virtual memory is made of single pages where it fails"
        }
        Finding::Refill => {
            "A try to fill up a store of spare objects, without touching reserves: the code goes on without it"
        }
        Finding::KswapdTry => {
            "A try of kswapd's own code without touching reserves: it goes on without the page"
        }
        _ => "A try for a larger block: the same code asked for a smaller one next",
    };
    let zones = match case.by_zones {
        Some(v) if !matches!(v, Verdict::Incomplete) => {
            format!(" By the zones {}.", cause(v, true))
        }
        _ => String::new(),
    };
    format!("{what}; nothing failed by it.{zones}")
}

/// Why a request failed, in few words.
fn cause(verdict: Verdict, has_advice: bool) -> &'static str {
    match verdict {
        Verdict::Manual => "the OOM killer was run by hand",
        Verdict::Cgroup => "a control group's limit was reached",
        Verdict::TooLarge => "nothing of that size can exist here",
        Verdict::AddressSpace => "addresses are used up, pages are not",
        Verdict::Caller => "it asked for 0 bytes",
        Verdict::NotAPage => "no page was refused",
        Verdict::Harmless => "a try that may fail, and a warning",
        Verdict::Incomplete => "the text does not have what decides",
        Verdict::Raced if !has_advice => "memory does not explain it",
        Verdict::Raced => "it would succeed by the numbers printed",
        Verdict::Marks => "a block is free, and the watermark forbids taking it",
        Verdict::Reserved => "memory is enough, and set aside",
        Verdict::Fragmented => "memory is enough, and no block is large enough",
        Verdict::Cma => "memory is enough only with contiguous areas, which are closed to it",
        Verdict::Protected => "lowmem_reserve keeps what is free",
        Verdict::Zone => "memory is free only where the request may not use it",
        Verdict::Short => "memory is short",
    }
}

/// The verdict and what to do, in one sentence.
pub fn summary(case: &Case, meaning: &str, advice: &[super::answer::Advice]) -> String {
    let Some(verdict) = case.verdict else {
        return meaning.to_owned();
    };
    let cause = cause(verdict, !advice.is_empty());
    let what = advice
        .iter()
        .min_by_key(|a| a.when)
        .map_or(where_to_look(case.report.kind == Kind::Oom), |a| {
            a.action.as_str()
        });
    format!("{}: {cause}; {what}.", verdict.name())
}

/// Where the reason of a failure may stand that memory does not explain.
pub fn where_to_look(is_oom: bool) -> &'static str {
    match is_oom {
        true => {
            "nothing to set: look around it for oom-kill:constraint= (MEMCG: the memory limit of a control group; CPUSET or MEMORY_POLICY: the nodes left to the task), and for sysrq (a kill by hand)"
        }
        false => {
            "nothing to set: look at nodemask= and mems_allowed= in its first line (the nodes that a memory policy or a cpuset left to it), and before it for FAULT_INJECTION (made to fail on purpose)"
        }
    }
}

/// How the request was allowed to act, by its flags and its task.
pub fn how(case: &Case) -> String {
    let Some(gfp) = case.gfp else {
        return String::new();
    };
    if case.finding == Finding::FaultHandler {
        return "a page fault: no request for a page".into();
    }
    if case.is_kswapd() {
        return "kswapd itself asked, and cannot wait for what it frees".into();
    }
    let mut parts = vec![match gfp.contains(Gfp::DIRECT_RECLAIM) {
        false if case.may_wait == Some(true) => "it could wait",
        true if !gfp.contains(Gfp::IO) => {
            "it could wait and reclaim clean pages, but start no I/O, and so not compact"
        }
        true if !gfp.contains(Gfp::FS) => "it could wait and reclaim, but not enter file systems",
        true => "it could wait and reclaim",
        false => "it could not wait",
    }];
    if gfp.contains(Gfp::NOMEMALLOC) {
        parts.push("not use reserves");
    }
    if gfp.contains(Gfp::NORETRY) {
        parts.push("gave up early, as code does that can go on without");
    }
    parts.join(", ")
}

/// What a report that tells of no failed allocation says.
fn no_failure(case: &Case, size: &str) -> String {
    let r = case.report;
    match r.kind {
        Kind::Stall => format!(
            "The allocation of {size} waited{} and went on waiting: a stall, no failure.",
            r.stall_ms.map_or(String::new(), |ms| format!(" for {ms} ms"))
        ),
        Kind::Cma => cma(case),
        _ => "A memory report alone: no allocation failed here, or the beginning of the report is missing.".into(),
    }
}

fn cma(case: &Case) -> String {
    let r = case.report;
    let area = r
        .cma_name
        .as_ref()
        .map_or(String::new(), |n| format!(" {n}"));
    let state = r
        .cma_pages
        .zip(r.cma)
        .map_or(String::new(), |((free, total), (asked, _))| {
            let why = match free {
                _ if free < asked.saturating_mul(2) => "it is nearly full for this",
                _ => "enough is free, and busy or pinned pages lie between",
            };
            format!(" {free} of its {total} pages are free: {why}.")
        });
    let what = match r.cma {
        Some((pages, Some(-16))) => format!(
            "A range of {pages} pages was found in the contiguous memory area{area}, and a page in it was pinned or busy (EBUSY)."
        ),
        Some((pages, Some(-12))) => format!(
            "The contiguous memory area{area} has no room for {pages} pages in a row (ENOMEM)."
        ),
        Some((pages, _)) => format!("The contiguous memory area{area} did not give {pages} pages."),
        None => "A contiguous memory area did not give a range.".into(),
    };
    what + &state
}

/// How sure the verdict is, and what could change it.
pub fn sure(case: &Case, order: Option<i32>) -> String {
    let of_order = order.and_then(|o| u8::try_from(o).ok()).unwrap_or(0);
    let sure_raced = is_unexplained(case, of_order);
    let Some(verdict) = case.verdict else {
        return String::new();
    };
    let mut doubts = vec![];
    let is_told = matches!(
        verdict,
        Verdict::Manual
            | Verdict::Cgroup
            | Verdict::AddressSpace
            | Verdict::Caller
            | Verdict::NotAPage
            | Verdict::Harmless
    ) || case.finding == Finding::ExceedsPages;
    if is_told {
        return "yes, by what the text says; the zones do not decide it.".into();
    }
    if !case.kernel.is_said {
        doubts.push("the release is assumed from the form of the report".to_owned());
    }
    if case.by_zones.is_none() && case.page_kib.is_none() && case.report.memory.is_some() {
        doubts.push("the page size is not in the text; it would be the same with any".to_owned());
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
        Verdict::Raced if is_raced_by_counters_alone(case) => {
            doubts.push("free lists add up to less than the counter of free memory, and by them it would fail: memory is at its marks".to_owned());
        }
        Verdict::Raced if !sure_raced => {
            doubts.push("the state that failed was gone when it was printed".to_owned())
        }
        Verdict::Incomplete => return "no: what decides is missing.".into(),
        _ => {}
    }
    if doubts.is_empty() {
        "yes, unless memory changed in the moment between the failure and its report.".into()
    } else {
        format!("yes, with this doubt: {}.", doubts.join("; "))
    }
}
