//! What a kernel log says about failed allocations: why each failed, and what would have helped.
//!
//! - [`answer`]: the answer, as data: the shape of `--json`.
//! - `events`: reports of one event put together; `kernel`: whose rules hold; `zones`, `protection`, `missing`: the zones,
//!   judged by [`usable`](crate::usable), and those that the text lacks; `reasons`: why each did not serve; `open`: what else a text may mean; `judges`, `verdict`: the first row that matches;
//!   `case`: all of these together; `sentences`, `notes`: the verdict in words, and what else the text shows; `one_line`: messages that are no report; `held`: what holds memory; `advice`, `settings`,
//!   `callers`: what would have helped; `group`: equal failures. `plain`: the verdict for everybody.
//! - [`text`]: the answer for people; [`found`]: in one line.
//!
//! Invariant: an answer is a function of the log; a number that is not in it is never guessed, and nothing that looks
//! like a report is left out in silence.

mod advice;
mod amounts;
pub mod answer;
mod callers;
mod case;
mod events;
pub mod found;
mod group;
mod held;
mod judges;
mod kernel;
mod missing;
mod notes;
mod one_line;
mod open;
mod plain;
mod protection;
mod reasons;
mod sentences;
mod settings;
pub mod text;
mod verdict;
mod zone_table;
mod zones;

pub use answer::Explanation;

use crate::error::Result;
use answer::{Failure, ZoneAnswer};
use case::{Case, Finding};
use events::{Event, Events};
use group::Groups;
use kernel::Kernel;
use std::io::Read;
use unfrag_linux::kernel_log::report::Virtual;
use unfrag_linux::kernel_log::{self, Found, Kind, Report};
use verdict::Verdict;
use zones::{Given, Judged};

/// Reads a log and explains it.
///
/// # Errors
/// If it cannot be read.
pub fn explain(log: impl Read) -> Result<Explanation> {
    let mut groups = Groups::default();
    let mut events = Events::default();
    let has_line = kernel_log::read(log, |found| match found {
        Found::Report(r) => {
            if let Some(event) = events.take(*r) {
                groups.add(explained(&event));
            }
        }
        Found::Event(e) => groups.add(one_line::explained(&e)),
        Found::Skipped { line, why } => groups.skip(line, why),
    })?;
    for event in events.finish() {
        groups.add(explained(&event));
    }
    let mut answer = groups.finish();
    // A report that was pasted without what stood before its lines is a log as well.
    answer.is_log = has_line || !answer.reports.is_empty() || !answer.skipped.is_empty();
    Ok(answer)
}

fn explained(event: &Event) -> Failure {
    let r = &event.report;
    let kernel = Kernel::of(r);
    let request = kernel.request(r);
    let page_kib = r.memory.as_ref().and_then(amounts::page_kib);
    let order = order_of(r, page_kib);
    let gfp = request.as_ref().map(|(gfp, _)| *gfp);
    let small = order.and_then(|o| u8::try_from(o).ok()).filter(|o| *o < 64);
    let asked = r.memory.as_ref().zip(gfp.zip(small));
    let open = asked.map(|(memory, (gfp, _))| open::open(r, memory, &kernel, gfp));
    let judge = |given: &Given| {
        let (memory, asked) = asked?;
        Some(zones::judge(r, memory, &kernel, asked, given))
    };
    let judged = open.as_ref().and_then(|open| judge(&open.given));
    let judged = judged.unwrap_or_default();
    let others: Vec<_> = open
        .iter()
        .flat_map(|open| &open.others)
        .filter_map(|other| Some((judge(&other.given)?.zones, other)))
        .collect();
    let mut case = Case {
        report: r,
        gfp,
        // The OOM killer runs for no other request, whatever bit says so.
        may_wait: gfp.map(|g| {
            let is_killed_for = r.kind == Kind::Oom && r.mask.raw != Some(0);
            is_killed_for || g.contains(unfrag_eras::Gfp::DIRECT_RECLAIM)
        }),
        kernel,
        zones: judged.zones,
        lacking_zones: judged.lacking,
        setting: r.memory.as_ref().and_then(missing::min_free_kbytes),
        page_kib,
        has_smaller_next: event.has_smaller_next,
        verdict: None,
        finding: Finding::None,
        by_zones: None,
        lacking: None,
    };
    if case.is_kswapd() {
        case.may_wait = case.may_wait.map(|_| false);
    }
    if case.zones.iter().any(|z| z.is_nonsense) {
        case.setting = None;
    }
    if !matches!(r.kind, Kind::Stall | Kind::ShowMemory | Kind::Cma) {
        let (verdict, finding, lacking) = judges::verdict(&case, order);
        (case.verdict, case.finding, case.lacking) = (Some(verdict), finding, lacking);
    }
    for (zones, other) in others {
        settle(&mut case, order, zones, other);
    }
    if case.verdict == Some(Verdict::Harmless) {
        case.by_zones = Some(judges::by_zones(&case, order).0);
    }
    answer(&case, order, request.map_or(vec![], |(_, names)| names))
}

/// Keeps of a case what holds as well where the text may mean something else.
fn settle(case: &mut Case, order: Option<i32>, zones: Vec<Judged>, other: &open::Other) {
    let page_kib = other.given.page_kib;
    let known = (std::mem::replace(&mut case.zones, zones), case.page_kib);
    case.page_kib = Some(page_kib);
    let verdict = judges::verdict(case, order).0;
    let zones = std::mem::replace(&mut case.zones, known.0);
    case.page_kib = known.1;
    if case.page_kib.is_none() {
        open::keep_equal(&mut case.zones, &zones);
    }
    if case
        .verdict
        .is_some_and(|v| v != verdict && other.decides(v))
    {
        (case.verdict, case.finding) = (Some(Verdict::Incomplete), Finding::None);
        case.lacking = Some(other.why);
    }
}

fn answer(case: &Case, order: Option<i32>, gfp: Vec<String>) -> Failure {
    let r = case.report;
    let zones = match case.zones.is_empty() {
        false => case
            .zones
            .iter()
            .map(|z| ZoneAnswer {
                why: case.verdict.and_then(|_| reasons::why(z, case, order)),
                ..z.answer.clone()
            })
            .collect(),
        true => r
            .memory
            .iter()
            .flat_map(|m| &m.zones)
            .map(|z| zones::shown(z, case.page_kib.unwrap_or(4)))
            .collect(),
    };
    let stamp = r.time.as_ref().map(|t| t.text.clone());
    let advice = advice::advice(case, order);
    let meaning = sentences::meaning(case, order);
    let held = held::held(case);
    Failure {
        answer: plain::plain(case, order, &meaning, &held),
        kind: r.kind.name(),
        line: r.line,
        task: r.task.clone(),
        order,
        bytes: bytes_of(r, order, case.page_kib),
        gfp,
        may_wait: case.may_wait,
        is_fault: case.finding == Finding::FaultHandler,
        how: sentences::how(case),
        kernel: r.kernel.clone(),
        rules: case.kernel.rules.clone(),
        page_bytes: case.page_kib.map(|k| k * 1024),
        count: 1,
        suppressed: r.suppressed,
        first: stamp.clone(),
        last: stamp,
        verdict: case.verdict.map(Verdict::name),
        summary: sentences::summary(case, &meaning, &advice),
        meaning,
        sure: sentences::sure(case, order),
        zones,
        held,
        calls: r.calls.clone(),
        cgroup: cgroup_of(r),
        cache: r.cache.as_ref().map(|c| c.name.clone()),
        killed: r.killed.clone(),
        stall_ms: r.stall_ms,
        advice,
        notes: notes::notes(case),
    }
}

fn cgroup_of(r: &Report) -> Option<String> {
    let of_cache = || Some(r.cache.as_ref()?.cgroup()?.to_owned());
    r.cgroup.clone().or_else(of_cache)
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
        // A try for a large page names no size of its own.
        (Kind::Vmalloc, Some(bytes), _) if bytes > 0 || r.at != Some(Virtual::Pages) => Some(bytes),
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
