//! A judge for each kind of failure: requests that no page was refused to, tries that do no harm, and all others by their
//! zones. `spec: K.4`
//!
//! Invariant: the first row that matches decides; what a row needs and the text does not have is named.

use super::case::{Case, Finding};
use super::verdict::{self, Verdict};
use unfrag_eras::Gfp;
use unfrag_linux::kernel_log::report::{Stamp, Virtual};
use unfrag_linux::kernel_log::{Kind, Memory, Report};

/// Seconds after a failure within which its memory is printed; consoles may be slow.
const PRINTED_WITHIN: f64 = 120.0;
/// Seconds by which the stamps of one report may go back.
const STAMPS_WITHIN: f64 = 1.0;

/// A verdict, what its judge found, and what is lacking.
pub type Judged = (Verdict, Finding, Option<&'static str>);

fn plain(verdict: Verdict) -> Judged {
    (verdict, Finding::None, None)
}

fn incomplete(why: &'static str) -> Judged {
    (Verdict::Incomplete, Finding::None, Some(why))
}

/// The name of a function of a call trace, without its module and the compiler's marks.
pub fn function(call: &str) -> &str {
    let name = call.split(' ').next().unwrap_or(call);
    // `f.isra.0`, `f.part.0`, `f.cold`, `f.constprop.0`; System.map's leading dot is gone already.
    name.split('.').next().unwrap_or(name)
}

fn calls_any(r: &Report, names: &[&str]) -> bool {
    r.calls.iter().any(|c| names.contains(&function(c)))
}

/// Whether the OOM killer was called because a page fault's handler said "out of memory". No request for a page that calls
/// it is without flags, so that the call trace need not tell.
pub fn is_fault(r: &Report) -> bool {
    r.kind == Kind::Oom && !r.is_manual && r.mask.raw == Some(0)
}

/// The verdict. `spec: K.4`
pub fn verdict(case: &Case, order: Option<i32>) -> Judged {
    let r = case.report;
    if r.is_manual || order == Some(-1) {
        return plain(Verdict::Manual);
    }
    if is_fault(r) {
        let of = if r.is_cgroup {
            Verdict::Cgroup
        } else {
            Verdict::NotAPage
        };
        return (of, Finding::FaultHandler, None);
    }
    if r.is_cgroup {
        return plain(Verdict::Cgroup);
    }
    if r.kind == Kind::Slab && r.cache.as_ref().is_some_and(|c| c.is_of_cgroup()) {
        return (Verdict::Cgroup, Finding::CacheOfCgroup, None);
    }
    if let Some(judged) = virtual_request(case) {
        return judged;
    }
    if let Some(finding) = harmless(case) {
        return (Verdict::Harmless, finding, None);
    }
    by_zones(case, order)
}

/// A virtual request that failed at something else than a page.
fn virtual_request(case: &Case) -> Option<Judged> {
    let r = case.report;
    let at = r.at.filter(|_| r.kind == Kind::Vmalloc)?;
    let memory_bytes = || {
        let pages = r.memory.as_ref()?.ram_pages?;
        Some(pages.saturating_mul(case.page_kib?.saturating_mul(1024)))
    };
    let is_larger = |bytes: u64| memory_bytes().map(|memory| bytes > memory);
    match (at, r.bytes) {
        (Virtual::Pages, _) if r.order.is_some_and(|o| o > 0) => {
            Some((Verdict::Harmless, Finding::HugeTry, None))
        }
        (Virtual::Pages | Virtual::Mapping | Virtual::PageArray(_), _) => None,
        (_, Some(0)) => Some(plain(Verdict::Caller)),
        (Virtual::ExceedsPages, _) => Some((Verdict::TooLarge, Finding::ExceedsPages, None)),
        (Virtual::NoRoom, _) => Some(plain(Verdict::AddressSpace)),
        (Virtual::NotSaid, bytes) => Some(match bytes.map(is_larger) {
            Some(Some(true)) => (Verdict::TooLarge, Finding::ExceedsPages, None),
            Some(Some(false)) => plain(Verdict::AddressSpace),
            _ => (
                Verdict::Incomplete,
                Finding::VirtualNotSaid,
                Some(
                    "either no room of that size was left in the kernel's range of addresses, or the size exceeds all memory, which the text does not have",
                ),
            ),
        }),
    }
}

/// A try whose caller goes on without the memory.
fn harmless(case: &Case) -> Option<Finding> {
    const REFILLS: [&str; 4] = [
        "refill_objects",
        "refill_sheaf",
        "alloc_full_sheaf",
        "__pcs_replace_empty_main",
    ];
    let gfp = case.gfp?;
    let keeps_off = gfp.contains(Gfp::NOMEMALLOC);
    if keeps_off && calls_any(case.report, &REFILLS) {
        return Some(Finding::Refill);
    }
    if keeps_off && case.is_kswapd() {
        return Some(Finding::KswapdTry);
    }
    (gfp.contains(Gfp::NORETRY) && case.has_smaller_next).then_some(Finding::SmallerNext)
}

/// The verdict by the zones.
pub fn by_zones(case: &Case, order: Option<i32>) -> Judged {
    let r = case.report;
    let Some(order) = order.and_then(|o| u8::try_from(o).ok()) else {
        return incomplete("the order of the request is not in the text");
    };
    let Some(memory) = &r.memory else {
        return incomplete("the state of memory is not in the text");
    };
    let orders = memory.orders();
    if orders.is_some_and(|n| usize::from(order) >= n) {
        return plain(Verdict::TooLarge);
    }
    if is_of_another_moment(r.time.as_ref(), memory) {
        return incomplete("the memory report beside it is of another moment");
    }
    if case.may_wait.is_none() {
        return incomplete("the flags of the request are not in the text");
    }
    let request_kib = case
        .page_kib
        .unwrap_or(4)
        .saturating_mul(1 << order.min(40));
    let verdict = verdict::of_zones(&case.zones, order, orders, request_kib, case.lacking_zones);
    if verdict == Verdict::Reserved
        && case
            .zones
            .iter()
            .all(|z| !z.is_allowed || z.has_room == Some(false))
    {
        return (verdict, Finding::WholeReserve, None);
    }
    let why = match verdict {
        Verdict::Incomplete if case.zones.iter().any(|z| z.is_nonsense) => {
            "numbers of this report are beyond all memory, by a bug of that kernel"
        }
        Verdict::Incomplete if case.lacking_zones.usable => {
            "zones that the request may use are not in the text, though lowmem_reserve or the sums tell of them"
        }
        Verdict::Incomplete
            if case
                .zones
                .iter()
                .all(|z| !z.is_allowed || z.has_room == Some(false)) =>
        {
            match case
                .zones
                .iter()
                .any(|z| z.is_allowed && z.may_pass_by_free_reserve)
            {
                true => {
                    "how much of the high-atomic reserve is free is not in the text, as the free blocks of the zone are not"
                }
                false => {
                    "zones that the request may not use, or their free blocks, are not all in the text, and memory may be free there"
                }
            }
        }
        Verdict::Incomplete => {
            "free memory, marks or free blocks of a zone that decides are not in the text"
        }
        _ => return plain(verdict),
    };
    incomplete(why)
}

/// Whether a memory report was printed at another time than the failure.
fn is_of_another_moment(failure: Option<&Stamp>, memory: &Memory) -> bool {
    let (Some(failure), Some(printed)) = (failure, &memory.time) else {
        return false;
    };
    printed
        .since(failure)
        .is_some_and(|s| !(-STAMPS_WITHIN..=PRINTED_WITHIN).contains(&s))
}
