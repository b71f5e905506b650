//! One batch of a list: pages are isolated from its tail, their owners are asked to let go of them, and each
//! is freed or put back.
//!
//! A batch may be larger than what owners are asked about at a time (a lumpy batch takes whole blocks):
//! it is handled in slices, in the order of the list.
//!
//! Invariant: every page that a batch isolates is put back, or freed, before the batch ends; until then
//! the operation holds it.
//! `spec: 4.1, 4.5`

use super::fate::{Fate, Pass, ask, decide, judge, page_referenced};
use super::scan_control::{ScanControl, Window};
use crate::evict::{BATCH, Content, Eviction, Verdicts};
use crate::frame::{CpuId, FrameIx, FrameKind, LruId, Order, PageFlags};
use crate::host::Host;
use crate::kernel::LruShape;
use crate::lru::{Lru, SWAP_CLUSTER_MAX};
use crate::manager::Manager;
use crate::placement::{End, List};
use crate::tracer::Tracer;

/// The isolated pages of one pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageBatch {
    lru: LruId,
    pass: Pass,
    /// Not looked at yet.
    rest: List,
    /// Looked at, and kept.
    pub held: List,
    /// The slice at hand: its pages and their fates as far as they are known.
    slice: [(FrameIx, Fate); BATCH],
    /// What their owners are asked.
    eviction: Eviction,
    len: usize,
    /// Pages when the pass began, and how many the backlog knew under writeback then.
    size: u32,
    writeback: u32,
}

/// Where a pass stands.
pub(super) enum PassOutcome {
    /// Owners have to be asked about the [eviction](PageBatch::eviction);
    /// [`PageBatch::answered`] goes on.
    Ask,
    /// The pass waits for this page.
    Writeback(FrameIx),
    Done,
}

impl PageBatch {
    /// No pages.
    pub const fn new() -> PageBatch {
        PageBatch {
            lru: LruId(0),
            pass: Pass::First,
            rest: List::EMPTY,
            held: List::EMPTY,
            slice: [(FrameIx::NIL, Fate::Keep); BATCH],
            eviction: Eviction::EMPTY,
            len: 0,
            size: 0,
            writeback: 0,
        }
    }

    /// Pages of these lists come next.
    pub fn of(&mut self, lru: LruId) {
        debug_assert!(self.held.is_empty(), "a batch has ended before the next");
        self.lru = lru;
    }

    /// What owners are asked.
    pub fn eviction(&self) -> &Eviction {
        &self.eviction
    }

    /// Begins a pass over the pages that are held.
    pub fn begin(&mut self, sc: &ScanControl, pass: Pass) {
        self.pass = pass;
        self.rest = core::mem::replace(&mut self.held, List::EMPTY);
        (self.size, self.writeback) = (self.rest.len, sc.backlog.writeback);
        self.len = 0;
    }

    /// Which pass is under way.
    pub fn pass(&self) -> Pass {
        self.pass
    }

    /// Goes on with a pass until owners have to be asked.
    pub fn run<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        sc: &mut ScanControl,
    ) -> PassOutcome {
        loop {
            self.next_slice(m, sc);
            if !self.eviction.is_empty() {
                return PassOutcome::Ask;
            }
            if self.len == 0 {
                self.end(m, sc);
                return PassOutcome::Done;
            }
            if let Some(ix) = self.judge_slice(m, cpu, sc, Verdicts::NONE) {
                return PassOutcome::Writeback(ix);
            }
        }
    }

    /// Goes on after owners were asked.
    pub fn answered<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        sc: &mut ScanControl,
        verdicts: Verdicts,
    ) -> PassOutcome {
        match self.judge_slice(m, cpu, sc, verdicts) {
            Some(ix) => PassOutcome::Writeback(ix),
            None => self.run(m, cpu, sc),
        }
    }

    /// Ends a pass early: what owners have let go of is freed, and the rest goes back.
    pub fn abort<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        sc: &mut ScanControl,
        verdicts: Verdicts,
    ) {
        self.judge_slice(m, cpu, sc, verdicts);
        self.end(m, sc);
        self.putback_lru(m, cpu);
    }

    /// Decides about the next pages, as far as that can be without their owners.
    fn next_slice<H: Host>(&mut self, m: &mut Manager<'_, H>, sc: &mut ScanControl) {
        self.eviction.clear(self.pass == Pass::Sync);
        self.len = 0;
        while self.len < BATCH
            && let Some(ix) = self.rest.pop_head(m.frames.table)
        {
            let fate = decide(m, ix, sc, self.pass);
            self.slice[self.len] = (ix, fate);
            self.len += 1;
            match fate {
                Fate::Ask { unmap, content } => {
                    self.eviction.push(ask(m, ix, unmap, content));
                    // The pages behind one that is waited for are looked at after the wait.
                    if self.pass == Pass::Sync && content == Content::Write {
                        break;
                    }
                }
                Fate::Wait => break,
                _ => {}
            }
        }
    }

    /// Applies the fate of each page of the slice. Returns the page that the pass waits for, if any.
    fn judge_slice<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        sc: &mut ScanControl,
        verdicts: Verdicts,
    ) -> Option<FrameIx> {
        let (mut asked, mut freed, mut waits) = (0, 0, None);
        for i in 0..core::mem::take(&mut self.len) {
            let (ix, mut fate) = self.slice[i];
            if let Fate::Ask { unmap, .. } = fate {
                fate = judge(m, ix, unmap, verdicts.get(asked), (sc, self.pass));
                asked += 1;
            }
            let flags = m.frames.state(ix).flags();
            if flags.contains(PageFlags::FREED) {
                fate = Fate::OwnerFreed;
            }
            match fate {
                Fate::Free => {
                    m.free_isolated(cpu, (self.lru, ix));
                    freed += 1;
                }
                Fate::OwnerFreed => m.free_isolated(cpu, (self.lru, ix)),
                Fate::Keep | Fate::Ask { .. } => self.held.push_tail(m.frames.table, ix),
                Fate::Activate => {
                    // In generations nothing is activated: it is in the youngest one again.
                    m.reclaim.pgactivate += u64::from(!m.policy.sysctl.lru_gen);
                    let file = !flags.contains(PageFlags::SWAPBACKED);
                    m.lrus[self.lru.index()].recent_rotated[usize::from(file)] += 1;
                    m.pages().put_flags(ix, flags | PageFlags::ACTIVE);
                    self.held.push_tail(m.frames.table, ix);
                }
                Fate::Wait => {
                    self.held.push_head(m.frames.table, ix);
                    waits = Some(ix);
                }
            }
        }
        sc.reclaimed += freed;
        sc.unreported.1 += freed as u32;
        if sc.kswapd {
            m.reclaim.pgsteal_kswapd += freed;
        } else {
            m.reclaim.pgsteal_direct += freed;
        }
        if waits.is_some() {
            self.end(m, sc);
        }
        waits
    }

    /// The pass is over: what was not looked at stays held.
    fn end<H: Host>(&mut self, m: &Manager<'_, H>, sc: &mut ScanControl) {
        while let Some(ix) = self.rest.pop_head(m.frames.table) {
            self.held.push_tail(m.frames.table, ix);
        }
        let all = self.writeback + self.size;
        sc.backlog.whole_batch |= self.size > 0 && sc.backlog.writeback == all;
    }

    /// Puts the pages that the batch still holds back on their LRU lists.
    pub fn putback_lru<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) {
        while let Some(ix) = self.held.pop_head(m.frames.table) {
            let active = m.frames.state(ix).flags().contains(PageFlags::ACTIVE);
            m.putback_lru(cpu, (self.lru, ix), active);
        }
    }
}

impl<H: Host> Manager<'_, H> {
    /// Puts an isolated page (already off the list that held it) on an LRU list, or frees it if its
    /// owner did so meanwhile.
    fn putback_lru(&mut self, cpu: CpuId, (of, ix): (LruId, FrameIx), active: bool) {
        if self.pages().putback_lru(of, ix, active) {
            self.drop_isolated(cpu, (of, ix));
        }
    }

    /// Frees an isolated page for its owner, with the event.
    fn free_isolated(&mut self, cpu: CpuId, (of, ix): (LruId, FrameIx)) {
        let s = self.frames.state(ix);
        if !s.flags().contains(PageFlags::FREED) {
            self.account_free(self.map.pfn(ix), s.order());
        }
        self.drop_isolated(cpu, (of, ix));
    }

    /// Frees an isolated page whose owner has let go.
    fn drop_isolated(&mut self, cpu: CpuId, (of, ix): (LruId, FrameIx)) {
        let order = self.frames.state(ix).order();
        self.pages().forget_isolated(of, ix);
        self.free_block(cpu, ix, order);
    }

    /// Isolates a page: moves it from its list to `held`. Returns false if it was on no list.
    pub(super) fn isolate(&mut self, of: LruId, ix: FrameIx, held: &mut List) -> bool {
        let Some(lru) = self.pages().isolate(of, ix, held) else {
            return false;
        };
        if !lru.is_active() {
            let (host, map) = (&mut self.host, &self.map);
            Tracer { host, map }.prefetch(ix);
        }
        true
    }

    /// Isolates up to `nr` pages from the tail of a list, with the neighbours that are wanted, and
    /// returns how many pages were looked at.
    pub(super) fn isolate_lru_pages(
        &mut self,
        (of, lru): (LruId, Lru),
        nr: u64,
        window: Option<Window>,
        held: &mut List,
    ) -> u64 {
        let mut seen = 0;
        while seen < nr {
            let Some(ix) = self.lrus[of.index()].lists[lru.index()].peek(End::Tail) else {
                break;
            };
            seen += 1;
            self.isolate(of, ix, held);
            if let Some(w) = window {
                let only = (!w.all_lists).then_some(lru);
                seen += self.isolate_window((of, ix), w.order, only, held);
            }
        }
        seen
    }

    /// The aligned block around a page: its other pages on LRU lists, or on one of them, up to a hole.
    fn isolate_window(
        &mut self,
        (of, page): (LruId, FrameIx),
        order: Order,
        only: Option<Lru>,
        held: &mut List,
    ) -> u64 {
        let first = page.head(order);
        let zone = self.frames.zone_of(page);
        let mut seen = 0;
        for ix in first.until(first.plus(order.frames())) {
            let s = self.frames.state(ix);
            let hole = matches!(s.kind(), FrameKind::Absent | FrameKind::Reserved);
            if hole || self.frames.zone_of(ix) != zone {
                break;
            }
            let wanted = |l: &Lru| only.map_or(*l != Lru::Unevictable, |o| o == *l);
            let Some(lru) = Lru::from_code(s.lru()).filter(wanted) else {
                continue;
            };
            if (lru.is_file() || self.nr_swap_pages > 0) && self.isolate(of, ix, held) {
                seen += 1;
            }
        }
        seen
    }

    /// Moves up to `nr` pages of an active list to the inactive one; those in use may stay.
    pub(super) fn shrink_active_list(
        &mut self,
        cpu: CpuId,
        (of, file): (LruId, bool),
        nr: u64,
        sc: &mut ScanControl,
        mapped_too: bool,
    ) {
        let lru = Lru::new(file, true);
        let mut held = List::EMPTY;
        let seen = self.isolate_lru_pages((of, lru), nr, None, &mut held);
        self.reclaim.pgrefill += seen;
        sc.unreported.0 += seen as u32;
        self.lrus[of.index()].recent_scanned[usize::from(file)] += seen;
        let rules = self.policy.rules.reclaim.lru;
        let joined = rules.shape() == LruShape::Joined;
        let keeps_exec = rules.split().is_some_and(|s| s.keeps_exec);
        while let Some(ix) = held.pop_head(self.frames.table) {
            let flags = self.frames.state(ix).flags();
            let stays = if joined {
                let mapped = flags.contains(PageFlags::MAPPED);
                mapped && (!mapped_too || flags.contains(PageFlags::YOUNG)) && {
                    self.pages().put_flags(ix, flags - PageFlags::YOUNG);
                    true
                }
            } else {
                let (young, called) = page_referenced(self, ix);
                let used = flags.contains(PageFlags::MAPPED) && (young || called);
                if used {
                    self.lrus[of.index()].recent_rotated[usize::from(file)] += 1;
                }
                used && file && flags.contains(PageFlags::EXEC) && keeps_exec
            };
            if !stays {
                self.reclaim.pgdeactivate += 1;
            }
            self.putback_lru(cpu, (of, ix), stays);
        }
    }

    /// Isolates up to 32 pages of an inactive list, and counts what was looked at.
    pub(super) fn isolate_inactive(
        &mut self,
        (of, file): (LruId, bool),
        nr: u64,
        sc: &mut ScanControl,
        held: &mut List,
    ) {
        let rule = self.policy.rules.reclaim.high_order;
        let nr = nr.min(SWAP_CLUSTER_MAX);
        let list = (of, Lru::new(file, false));
        let seen = self.isolate_lru_pages(list, nr, sc.window(rule), held);
        sc.unreported.0 += seen as u32;
        self.lrus[of.index()].recent_scanned[usize::from(file)] += seen;
        self.count_scanned(of, seen, sc);
    }

    /// Counts pages that were looked at to evict them.
    pub(super) fn count_scanned(&mut self, of: LruId, seen: u64, sc: &mut ScanControl) {
        sc.scanned += seen;
        self.note_freed(of);
        self.lrus[of.index()].pages_scanned += seen;
        if sc.kswapd {
            self.reclaim.pgscan_kswapd += seen;
        } else {
            self.reclaim.pgscan_direct += seen;
        }
    }
}
