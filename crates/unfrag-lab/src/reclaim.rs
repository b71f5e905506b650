//! The model's own reclaim in a replay.
//!
//! What the recorded kernel's reclaim freed is an effect: it is not applied. Its pages stay on the
//! model's LRU lists until the model's kswapd, or a request that finds nothing, takes them. Which
//! pages are in use a trace does not say while they are only touched; what it says is which of them
//! their users freed themselves, and which the recorded kernel found cold enough to take. So a page
//! that its user will free counts as in use until then, and one that reclaim took there may be taken
//! here, sooner or later than there.
//!
//! kswapd runs in the trace's time: a page that it looks at takes as much of a CPU as on the recorded
//! host, of which kswapd has the share that others left it there ([`Pace`]); a page that it writes takes
//! as long as the swap device there needed at its busiest.
//!
//! Invariant: a page that the model took is named by no recorded frame any more.

use crate::cause::{NONE, Op};
use crate::ensemble::AS_RECORDED;
use std::collections::VecDeque;
use unfrag::page_alloc::Begun;
use unfrag::reclaim::{
    Answer, Context, Kswapd, Need, PageFlags, Step, Throttle, Unmap, WRITTEN_ENOUGH, Written,
};
use unfrag::{AllocError, Gfp, Manager, Pfn};

use crate::replay::ReplayHost;

mod evidence;
#[cfg(test)]
mod tests;

pub use evidence::{Evidence, Pace};

/// So many pages in use are spared in a row before one of them, and no more, is taken.
const GIVES_IN: u32 = 1 << 16;

/// Whether a request is for a page that reclaim may take.
fn is_lru(order: u8, gfp: Gfp) -> bool {
    order == 0 && gfp.contains(Gfp::MOVABLE)
}

/// Page cache comes by readahead, which gives up early, or by writes; all else is anonymous.
/// `spec: linux-6.1 6 page cache`
fn is_file(gfp: Gfp) -> bool {
    gfp.contains(Gfp::WRITE) || gfp.contains(Gfp::NORETRY | Gfp::NOWARN)
}

/// What the host of a replay with reclaim knows of the pages.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// By frame of the model: may be taken.
    cold: Vec<bool>,
    /// By frame of the model: the recorded frame that it stands for.
    name: Vec<u32>,
    /// Frames that the model took since somebody looked.
    taken: Vec<u32>,
    /// Pages being written, and when that ends.
    writing: VecDeque<(u64, Pfn)>,
    /// When the swap device is free.
    device_free: u64,
    /// Time of the trace.
    pub now: u64,
    swap_left: u64,
    in_swap: Vec<bool>,
    ns_per_written: u64,
    /// Pages in use that were spared since one was taken.
    spared: u32,
    /// Somebody asked for kswapd.
    pub asked: bool,
}

impl Pages {
    /// Reclaim wants a page unmapped.
    pub fn try_to_unmap(&mut self, page: Pfn) -> Unmap {
        let at = page.0 as usize;
        if !self.cold[at] {
            // In use: back among the active ones, unless nothing else is left.
            self.spared += 1;
            if self.spared <= GIVES_IN {
                return Unmap::NoSpace;
            }
            self.spared = 0;
            self.cold[at] = true;
        }
        if !self.in_swap[at] {
            if self.swap_left == 0 {
                return Unmap::NoSpace;
            }
            self.swap_left -= 1;
            self.in_swap[at] = true;
        }
        Unmap::Gone
    }
    /// Reclaim wants a page written.
    pub fn writepage(&mut self, page: Pfn) -> Written {
        self.device_free = self.device_free.max(self.now) + self.ns_per_written;
        self.writing.push_back((self.device_free, page));
        Written::Started
    }
    /// Reclaim takes a page.
    pub fn release_page(&mut self, page: Pfn) -> bool {
        let at = page.0 as usize;
        if self.cold[at] {
            self.spared = 0;
            self.taken.push(page.0 as u32);
            self.in_swap[at] = false;
        }
        self.cold[at]
    }
    /// Places left in swap.
    pub fn nr_swap_pages(&self) -> u64 {
        self.swap_left
    }
}

/// The reclaim of a model at work.
#[derive(Debug)]
pub struct Reclaim<'e> {
    evidence: &'e Evidence,
    /// Thousandths of the recorded time that kswapd takes.
    pace: u32,
    kswapd: Vec<Kswapd>,
    /// When each kswapd goes on; `None` while it waits to be woken.
    next: Vec<Option<u64>>,
    answer: Vec<Answer>,
    /// When a sleep with an end would end.
    sleeps_to: Vec<Option<u64>>,
    op: usize,
}

impl<'e> Reclaim<'e> {
    /// Begins with what is in use at the start. `pace`: thousandths of the recorded time that kswapd
    /// takes; `names`: the model's frame of each recorded one.
    pub fn new(
        evidence: &'e Evidence,
        pace: u32,
        m: &mut Manager<'_, ReplayHost>,
        names: &[u32],
    ) -> Reclaim<'e> {
        let end = (0..m.zones())
            .map(|z| m.zone_config(z))
            .map(|c| c.start.0 + c.spanned)
            .max()
            .unwrap_or(0) as usize;
        let mut nodes: Vec<u8> = (0..m.zones()).map(|z| m.zone_config(z).node).collect();
        nodes.dedup();
        let mut pages = Pages {
            cold: vec![false; end],
            name: vec![NONE; end],
            in_swap: vec![false; end],
            swap_left: evidence.pace.swap_pages,
            ns_per_written: evidence.pace.ns_per_written,
            ..Pages::default()
        };
        let mut lru = vec![];
        for &p in &evidence.cold_at_start {
            if let Some(&at) = names.get(p as usize)
                && at != NONE
            {
                pages.cold[at as usize] = true;
                pages.name[at as usize] = p;
                lru.push(Pfn(at.into()));
            }
        }
        m.host_mut().pages = Some(Box::new(pages));
        for p in lru {
            m.lru_add_new(p, true);
        }
        let mut kswapd: Vec<Kswapd> = nodes.into_iter().map(Kswapd::new).collect();
        for k in &mut kswapd {
            k.step(m, Answer::Go);
        }
        Reclaim {
            evidence,
            pace,
            next: vec![None; kswapd.len()],
            sleeps_to: vec![None; kswapd.len()],
            answer: vec![Answer::Go; kswapd.len()],
            kswapd,
            op: 0,
        }
    }

    /// Time goes on to the next operation's: writes end, kswapd works.
    pub fn advance(&mut self, m: &mut Manager<'_, ReplayHost>, names: &mut [u32], time: u64) {
        end_writes(m, time);
        for i in 0..self.kswapd.len() {
            self.run_kswapd(i, m, time);
        }
        unname(m, names);
        if let Some(p) = m.host_mut().pages.as_mut() {
            p.now = time;
        }
    }

    /// The operation at hand is over.
    pub fn next_op(&mut self) {
        self.op += 1;
    }

    fn run_kswapd(&mut self, i: usize, m: &mut Manager<'_, ReplayHost>, time: u64) {
        let asked = m
            .host_mut()
            .pages
            .as_mut()
            .is_some_and(|p| std::mem::take(&mut p.asked));
        if asked && (self.next[i].is_none() || self.sleeps_to[i].is_some()) {
            let now = m.host().pages.as_ref().map_or(time, |p| p.now);
            let left = self.sleeps_to[i]
                .take()
                .map_or(0, |t| t.saturating_sub(now) / 1_000_000);
            self.answer[i] = Answer::Left(left as u32);
            self.next[i] = Some(now);
        }
        while let Some(at) = self.next[i].filter(|&t| t <= time) {
            end_writes(m, at);
            if self.sleeps_to[i].take().is_some() {
                self.answer[i] = Answer::Left(0);
            }
            let need = self.kswapd[i].step(m, self.answer[i]);
            self.answer[i] = Answer::Go;
            let millis = |ms: u32| u64::from(ms) * 1_000_000;
            self.next[i] = match need {
                Need::Turn { scanned, .. } => {
                    let looks = u64::from(scanned) * self.evidence.pace.ns_per_look(at);
                    let looks = looks * u64::from(self.pace) / u64::from(AS_RECORDED);
                    Some(at + looks.max(1))
                }
                Need::Shrink { .. } => {
                    self.answer[i] = Answer::Freed(0);
                    Some(at)
                }
                Need::CongestionWait { ms, .. } | Need::Throttle { ms, .. } => {
                    self.answer[i] = Answer::Left(0);
                    let most = at + millis(ms.max(4));
                    let written = matches!(
                        need,
                        Need::Throttle {
                            why: Throttle::Writeback,
                            ..
                        }
                    );
                    let pages = m.host().pages.as_ref().filter(|_| written);
                    let batch = pages.and_then(|p| p.writing.get(WRITTEN_ENOUGH as usize - 1));
                    Some(batch.map_or(most, |w| w.0.clamp(at + 1, most)))
                }
                Need::Sleep(ms) => {
                    self.sleeps_to[i] = ms.map(|ms| at + millis(ms));
                    self.sleeps_to[i]
                }
                Need::PageWriteback(_) | Need::WakeFlushers(_) | Need::Oom => Some(at + 1),
            };
        }
    }

    /// Allocates, reclaiming if it must; time stands still meanwhile, but writes that it waits for
    /// end.
    pub fn alloc(
        &mut self,
        m: &mut Manager<'_, ReplayHost>,
        names: &mut [u32],
        order: u8,
        gfp: Gfp,
    ) -> Result<Pfn, AllocError> {
        let mut attempt = match m.begin_alloc(0, order, gfp, Context::default())? {
            Begun::Got(p) => return Ok(p),
            Begun::Attempt(a) => a,
        };
        let mut now = m.host().pages.as_ref().map_or(0, |p| p.now);
        let mut answer = Answer::Go;
        let got = loop {
            match attempt.step(m, answer) {
                Step::Done(got) => break got,
                Step::Need(need) => {
                    answer = match need {
                        Need::Shrink { .. } => Answer::Freed(0),
                        Need::Oom => Answer::Killed(false),
                        // kswapd stands still as well.
                        Need::Throttle {
                            why: Throttle::Reserves,
                            ..
                        } => Answer::Left(0),
                        Need::CongestionWait { ms, .. } | Need::Throttle { ms, .. } => {
                            now += u64::from(ms.max(4)) * 1_000_000;
                            end_writes(m, now);
                            Answer::Left(0)
                        }
                        _ => Answer::Go,
                    }
                }
            }
        };
        unname(m, names);
        got
    }

    /// A page was allocated for the operation at hand.
    pub fn got(&mut self, m: &mut Manager<'_, ReplayHost>, op: &Op, at: u32, gfp: Gfp) {
        let cold = self.evidence.cold.get(self.op).copied().unwrap_or(false);
        let Some(pages) = m.host_mut().pages.as_mut() else {
            return;
        };
        for i in 0..1u32 << op.order {
            pages.cold[(at + i) as usize] = cold && op.order == 0;
            pages.name[(at + i) as usize] = op.pfn + i;
        }
        if is_lru(op.order, gfp) {
            let file = is_file(gfp);
            let mut flags = PageFlags::empty();
            flags.set(PageFlags::DIRTY, !file);
            // What is in use is so by a mapping, so that reclaim asks for it.
            flags.set(PageFlags::MAPPED, !cold);
            m.lru_add_new_with(Pfn(at.into()), file, flags);
        }
    }

    /// The recorded kernel's reclaim took this page. Here it stays until the model takes it; whether
    /// that is so (else it is no page of an LRU list, and goes as given).
    pub fn given(&mut self, m: &mut Manager<'_, ReplayHost>, names: &mut [u32], pfn: u32) -> bool {
        let at = names[pfn as usize];
        if at == NONE {
            // The model took it before.
            return true;
        }
        let stays = m.lru_of(Pfn(at.into())).is_some();
        if stays {
            names[pfn as usize] = NONE;
            if let Some(p) = m.host_mut().pages.as_mut() {
                p.name[at as usize] = NONE;
            }
        }
        stays
    }

    /// A page moved here; what is known of it goes with it, but for its name
    /// ([`renamed`](Self::renamed) gives it the new one).
    pub fn moved(&mut self, m: &mut Manager<'_, ReplayHost>, from: u32, to: u32) {
        if let Some(p) = m.host_mut().pages.as_mut() {
            let (from, to) = (from as usize, to as usize);
            p.cold[to] = std::mem::take(&mut p.cold[from]);
            p.in_swap[to] = std::mem::take(&mut p.in_swap[from]);
            p.name[from] = NONE;
        }
    }

    /// A page moved on the recorded host; its name goes with it.
    pub fn renamed(&mut self, m: &mut Manager<'_, ReplayHost>, at: u32, to: u32) {
        if at != NONE
            && let Some(p) = m.host_mut().pages.as_mut()
        {
            p.name[at as usize] = to;
        }
    }
}

fn end_writes(m: &mut Manager<'_, ReplayHost>, time: u64) {
    while let Some(p) = m.host_mut().pages.as_mut()
        && let Some(&(end, page)) = p.writing.front()
        && end <= time
    {
        p.writing.pop_front();
        m.end_page_writeback(page);
    }
}

/// What the model took has no name any more.
fn unname(m: &mut Manager<'_, ReplayHost>, names: &mut [u32]) {
    let Some(p) = m.host_mut().pages.as_mut() else {
        return;
    };
    for at in p.taken.drain(..) {
        let name = std::mem::replace(&mut p.name[at as usize], NONE);
        if name != NONE && names[name as usize] == at {
            names[name as usize] = NONE;
        }
    }
}
