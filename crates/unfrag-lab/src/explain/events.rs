//! Reports of one event put together: a failed page request and what its slab cache says of it, the lines of one virtual
//! request, a page fault that a control group's limit ended.
//!
//! Invariant: at most [`HELD`] reports are held back; reports leave in the order in which they came, and those of
//! different sources are never of one event.

use std::collections::VecDeque;
use unfrag_linux::kernel_log::report::Stamp;
use unfrag_linux::kernel_log::{Kind, Report};

/// Reports that are held back, as those of others may stand between two of one event.
const HELD: usize = 4;
/// Seconds within which the lines of one event are printed.
const TOGETHER: f64 = 2.0;
/// Lines between them at most, where no time tells.
const MOST_LINES: u64 = 300;
/// Seconds after a control group's kill within which a fault that failed by its limit is told.
const AFTER_A_KILL: f64 = 5.0;

/// A report, and whether its task asked for a smaller block right after it.
pub struct Event {
    /// The report.
    pub report: Report,
    /// Whether the next report is of the same task and flags, for less.
    pub has_smaller_next: bool,
}

/// Puts reports together.
#[derive(Default)]
pub struct Events {
    held: VecDeque<Event>,
}

impl Events {
    /// Takes the next report, and gives the first one if it is whole.
    pub fn take(&mut self, mut next: Report) -> Option<Event> {
        let is_near = |e: &&mut Event| e.report.source == next.source;
        let mut near = self.held.iter_mut().rev().filter(is_near);
        if let Some(of) = near.find(|e| is_of_cache(&e.report, &next)) {
            let of = &mut of.report;
            of.cache = next.cache;
            of.suppressed = of.suppressed.saturating_add(next.suppressed);
            of.memory = of.memory.take().or(next.memory);
            return None;
        }
        let mut near = self.held.iter_mut().rev().filter(is_near);
        if let Some(of) = near.find(|e| is_length_of(&e.report, &next)) {
            of.report.bytes = next.bytes;
            return None;
        }
        let mut near = self.held.iter_mut().rev().filter(is_near);
        if let Some(event) = near.next() {
            let last = &mut event.report;
            if is_of_virtual(last, &next) {
                next.line = last.line;
                next.time = last.time.take().or(next.time);
                next.suppressed = last.suppressed.saturating_add(next.suppressed);
                next.at = last.at.filter(|_| is_not_said(&next)).or(next.at);
                *last = next;
                return None;
            }
            if is_after_kill(last, &next) {
                next.is_cgroup = true;
                next.cgroup.clone_from(&last.cgroup);
            }
            event.has_smaller_next = last.task.is_some()
                && last.task == next.task
                && last.mask == next.mask
                && next.order < last.order
                && next.order.is_some_and(|o| o >= 0)
                && are_close(last, &next, TOGETHER);
        }
        self.held.push_back(Event {
            report: next,
            has_smaller_next: false,
        });
        match self.held.len() > HELD {
            true => self.held.pop_front(),
            false => None,
        }
    }

    /// The last reports.
    pub fn finish(self) -> impl Iterator<Item = Event> {
        self.held.into_iter()
    }
}

fn are_close(a: &Report, b: &Report, seconds: f64) -> bool {
    let apart = |a: &Stamp, b: &Stamp| b.since(a).map(f64::abs);
    let printed = a.memory.as_ref().and_then(|m| m.time.as_ref());
    match (&a.time, &b.time) {
        (Some(a), Some(b)) => {
            let first = apart(a, b).is_some_and(|s| s <= seconds);
            // A console may be slow: the end of the memory report counts as well.
            first
                || printed
                    .and_then(|p| apart(p, b))
                    .is_some_and(|s| s <= seconds)
        }
        _ => b.line.saturating_sub(a.line) <= MOST_LINES,
    }
}

/// Whether a slab cache tells of the page request before it.
fn is_of_cache(last: &Report, next: &Report) -> bool {
    let same_mask =
        next.mask.raw.is_none() || last.mask.raw.is_none() || next.mask.raw == last.mask.raw;
    // The allocator adds flags to those of the cache's user.
    let adds = |a: u64, b: u64| a & b == b;
    let fits = same_mask
        || last
            .mask
            .raw
            .zip(next.mask.raw)
            .is_some_and(|(page, user)| adds(page, user));
    last.kind == Kind::AllocationFailure
        && next.kind == Kind::Slab
        && last.cache.is_none()
        && !next.cache.as_ref().is_some_and(|c| c.is_of_cgroup())
        && fits
        && are_close(last, next, TOGETHER)
}

/// Whether a line of a kernel without an MMU tells the length of the request before it.
fn is_length_of(last: &Report, next: &Report) -> bool {
    let is_length = next.bytes.is_some() && next.order.is_none() && next.mask.raw.is_none();
    let is_same = last.task == next.task || next.task.is_none();
    [last.kind, next.kind] == [Kind::AllocationFailure; 2]
        && is_length
        && is_same
        && last.bytes.is_none()
        && last.order.is_some()
        && are_close(last, next, TOGETHER)
}

/// Whether two lines tell of one virtual request.
fn is_of_virtual(last: &Report, next: &Report) -> bool {
    last.kind == Kind::Vmalloc
        && next.kind == Kind::Vmalloc
        && last.memory.is_none()
        && last.mask.raw.is_none()
        && last.task.is_none()
        && next.task.is_some()
        && next.line.saturating_sub(last.line) <= 8
        && are_close(last, next, TOGETHER)
}

fn is_not_said(r: &Report) -> bool {
    use unfrag_linux::kernel_log::report::Virtual;
    r.at == Some(Virtual::NotSaid)
}

/// Whether a page fault failed right after a control group's kill.
fn is_after_kill(last: &Report, next: &Report) -> bool {
    last.kind == Kind::Oom
        && last.is_cgroup
        && super::judges::is_fault(next)
        && are_close(last, next, AFTER_A_KILL)
}
