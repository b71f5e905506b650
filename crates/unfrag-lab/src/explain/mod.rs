//! What a kernel log says about failed allocations: why each failed, and what would have helped.
//!
//! - [`answer`]: the answer, as data: the shape of `--json`.
//! - `kernel`: whose rules hold; `zones`: the zones, judged by [`usable`](crate::usable); `verdict`: the first row that
//!   matches; `case`: all of these together; `sentences`: the verdict in words; `advice`, `callers`: what would have
//!   helped; `one_line`: messages that are no report; `group`: equal failures.
//! - [`text`]: the answer for people.
//!
//! Invariant: an answer is a function of the log; a number that is not in it is never guessed, and nothing that looks
//! like a report is left out in silence.

mod advice;
pub mod answer;
mod callers;
mod case;
mod group;
mod kernel;
mod one_line;
mod sentences;
pub mod text;
mod verdict;
mod zones;

pub use answer::Explanation;

use crate::error::Result;
use answer::Failure;
use case::Case;
use group::Groups;
use kernel::Kernel;
use std::io::Read;
use unfrag_linux::kernel_log::report::Stamp;
use unfrag_linux::kernel_log::{self, Found, Kind, Memory, Report};
use verdict::Verdict;

/// Seconds after a failure within which its memory is printed; consoles may be slow.
const PRINTED_WITHIN: f64 = 120.0;
/// Seconds by which the stamps of one report may go back.
const STAMPS_WITHIN: f64 = 1.0;

/// Reads a log and explains it.
///
/// # Errors
/// If it cannot be read.
pub fn explain(log: impl Read) -> Result<Explanation> {
    let mut groups = Groups::default();
    kernel_log::read(log, |found| match found {
        Found::Report(r) => groups.add(explained(&r)),
        Found::Event(e) => groups.add(one_line::explained(&e)),
        Found::Skipped { line, why } => groups.skip(line, why),
    })?;
    Ok(groups.finish())
}

fn explained(r: &Report) -> Failure {
    let kernel = Kernel::of(r);
    let request = kernel.request(r);
    let page_kib = r.memory.as_ref().and_then(zones::page_kib);
    let order = order_of(r, page_kib);
    let is_judged = !matches!(r.kind, Kind::Stall | Kind::ShowMemory | Kind::Cma);
    let gfp = request.as_ref().map(|(gfp, _)| *gfp);
    let judged = match (&r.memory, gfp, order.and_then(|o| u8::try_from(o).ok())) {
        (Some(memory), Some(gfp), Some(order)) if order < 64 => {
            zones::judge(r, memory, &kernel, gfp, order)
        }
        _ => vec![],
    };
    let mut case = Case {
        report: r,
        may_wait: gfp.map(|g| g.contains(unfrag::Gfp::DIRECT_RECLAIM)),
        kernel,
        zones: judged,
        page_kib,
        verdict: None,
        lacking: None,
    };
    if is_judged {
        (case.verdict, case.lacking) = verdict(&case, order);
    }
    let zones = match case.zones.is_empty() {
        false => case.zones.iter().map(|z| z.answer.clone()).collect(),
        true => r
            .memory
            .iter()
            .flat_map(|m| &m.zones)
            .map(|z| zones::shown(z, page_kib.unwrap_or(4)))
            .collect(),
    };
    let stamp = r.time.as_ref().map(|t| t.text.clone());
    Failure {
        kind: r.kind.name(),
        line: r.line,
        task: r.task.clone(),
        order,
        bytes: bytes_of(r, order, page_kib),
        gfp: request.map_or(vec![], |(_, names)| names),
        may_wait: case.may_wait,
        kernel: r.kernel.clone(),
        rules: case.kernel.rules.clone(),
        page_bytes: page_kib.map(|k| k * 1024),
        count: 1,
        suppressed: r.suppressed,
        first: stamp.clone(),
        last: stamp,
        verdict: case.verdict.map(Verdict::name),
        meaning: sentences::meaning(&case, order),
        sure: sentences::sure(&case),
        zones,
        calls: r.calls.clone(),
        cgroup: r.cgroup.clone(),
        cache: r.cache.as_ref().map(|c| c.name.clone()),
        killed: r.killed.clone(),
        stall_ms: r.stall_ms,
        advice: advice::advice(&case, order),
        notes: sentences::notes(&case),
    }
}

/// The order of the request; for one told in bytes that of the block that holds them.
fn order_of(r: &Report, page_kib: Option<u64>) -> Option<i32> {
    r.order.or_else(|| {
        let pages = r.bytes?.div_ceil(page_kib? * 1024).max(1);
        i32::try_from(pages.checked_next_power_of_two()?.trailing_zeros()).ok()
    })
}

fn bytes_of(r: &Report, order: Option<i32>, page_kib: Option<u64>) -> Option<u64> {
    match (r.kind, r.bytes, r.cma) {
        (Kind::Vmalloc, Some(bytes), _) => Some(bytes),
        (Kind::Cma, _, Some((pages, _))) => Some(pages.saturating_mul(page_kib? * 1024)),
        (_, bytes, _) => {
            let of_order = page_kib.zip(
                order
                    .and_then(|o| u32::try_from(o).ok())
                    .filter(|o| *o < 40),
            );
            of_order
                .map(|(k, o)| (k * 1024).saturating_mul(1 << o))
                .or(bytes)
        }
    }
}

/// The verdict, and what is lacking for one. `spec: K.4`
fn verdict(case: &Case, order: Option<i32>) -> (Option<Verdict>, Option<&'static str>) {
    let r = case.report;
    if r.is_manual || order == Some(-1) {
        return (Some(Verdict::Manual), None);
    }
    if r.is_cgroup {
        return (Some(Verdict::Cgroup), None);
    }
    let incomplete = |why| (Some(Verdict::Incomplete), Some(why));
    let Some(order) = order.and_then(|o| u8::try_from(o).ok()) else {
        return incomplete("the order of the request is not in the text");
    };
    let Some(memory) = &r.memory else {
        return incomplete("the state of memory is not in the text");
    };
    let orders = memory.orders();
    if orders.is_some_and(|n| usize::from(order) >= n) {
        return (Some(Verdict::TooLarge), None);
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
    let verdict = verdict::of_zones(&case.zones, order, orders, request_kib);
    let why = match verdict {
        Verdict::Incomplete if case.zones.iter().any(|z| z.is_nonsense) => {
            "numbers near 2^64 are nonsense, by a bug of that kernel"
        }
        Verdict::Incomplete => {
            "free memory, marks or free blocks of a zone that decides are not in the text"
        }
        _ => return (Some(verdict), None),
    };
    (Some(verdict), Some(why))
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
