//! One batch of a list: pages are taken off its tail and each meets its fate.
//!
//! Invariant: every page that a batch isolates is put back, or freed, before the batch ends; a lumpy
//! batch may end in two passes, between which the operation holds the pages.
//! `spec: linux-mm 4.1, 4.5`

use super::{Lru, PageFlags, SWAP_CLUSTER_MAX, Unmap, Written};
use crate::frame::{COSTLY_ORDER, Ix, Kind};
use crate::gfp::Gfp;
use crate::host::Host;
use crate::kernel::{HighOrder, LruShape};
use crate::page_alloc::Manager;
use crate::place::{End, List};

/// What a scan may do, and what it found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan {
    /// Order that is wanted.
    pub order: u8,
    pub priority: u8,
    /// Only what costs nothing may be taken: clean page cache. No page is written or swapped out.
    pub clean_only: bool,
    /// On whose behalf: without [`Gfp::IO`] nothing is written, without [`Gfp::FS`] no file is.
    pub gfp: Gfp,
    pub kswapd: bool,
    /// Pages looked at since the caller reset it.
    pub scanned: u64,
    /// Pages freed since the operation began.
    pub reclaimed: u64,
    /// Pages looked at and freed since the host last heard.
    pub told: (u32, u32),
    pub backlog: Backlog,
}

/// What a pass met of pages that wait for a disk. `spec: linux-mm 4.8`
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backlog {
    /// Pages that were dirty or under writeback.
    dirty: u32,
    /// Of them, those under writeback.
    writeback: u32,
    /// Pages under writeback that an earlier scan had met there.
    again: u32,
    /// Dirty pages that the disk does not take for now.
    refused: u32,
    /// A whole batch was under writeback, in this pass or an earlier one.
    whole_batch: bool,
}

impl Backlog {
    /// Begins another pass.
    pub fn next_pass(&mut self) {
        *self = Backlog {
            whole_batch: self.whole_batch,
            ..Backlog::default()
        };
    }

    /// Whether the lists go round faster than the disk writes.
    pub fn outruns_the_disk(&self) -> bool {
        self.whole_batch && self.again > 0
    }

    /// Whether every dirty page waits for a disk that is busy enough.
    pub fn congested(&self) -> bool {
        self.dirty > 0 && self.again + self.refused == self.dirty
    }
}

/// The aligned block around a page whose other pages are taken with it.
#[derive(Clone, Copy)]
struct Window {
    order: u8,
    /// Pages of every list, not only of that which the page is on.
    all_lists: bool,
}

/// How thorough the look at a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    First,
    /// Wait for writeback, ignore use (second pass of a lumpy batch).
    Sync,
}

/// What becomes of a page.
enum Fate {
    Free,
    Keep,
    Activate,
    /// It is under writeback, and this pass waits for that.
    Wait,
}

/// What a batch came to.
pub(super) enum Batch {
    Done,
    /// A lumpy batch left pages; they are held apart, to be looked at again after a wait.
    Again,
    /// The second pass waits for this page.
    Writeback(Ix),
}

impl Scan {
    /// Whether pages may be written on the caller's behalf: it may itself be on the way to a disk, or
    /// inside a file system.
    fn may_write_back(&self, file: bool) -> bool {
        self.gfp.contains(if file { Gfp::FS } else { Gfp::IO })
    }

    /// Whether a block is wanted in earnest, so that neighbours are taken from all lists.
    /// `spec: linux-mm 4.5`
    pub fn lumpy(&self, rule: HighOrder) -> bool {
        matches!(rule, HighOrder::Lumpy { .. })
            && (self.order > COSTLY_ORDER || self.order > 0 && self.priority < 10)
    }

    /// The neighbours that are taken with a page of an inactive list: for any order above 0 those on
    /// the same list, as lumpy reclaim did from its beginning (2.6.23). `spec: linux-mm 4.5` has it
    /// below priority 10 alone; what order reclaim worked for showed in S2 (8.5) before that.
    fn window(&self, rule: HighOrder) -> Option<Window> {
        (matches!(rule, HighOrder::Lumpy { .. }) && self.order > 0).then_some(Window {
            order: self.order,
            all_lists: self.lumpy(rule),
        })
    }
}

impl<H: Host> Manager<'_, H> {
    /// Isolates up to `nr` pages from the tail of a list, with the neighbours that are wanted, and
    /// returns how many pages were looked at.
    fn isolate_lru_pages(
        &mut self,
        vec: usize,
        lru: Lru,
        nr: u64,
        window: Option<Window>,
        held: &mut List,
    ) -> u64 {
        let mut seen = 0;
        while seen < nr {
            let Some(ix) = self.lruvecs[vec].lists[lru.index()].peek(End::Tail) else {
                break;
            };
            seen += 1;
            self.isolate(ix, held);
            if let Some(w) = window {
                let only = (!w.all_lists).then_some(lru);
                seen += self.isolate_window(ix, w.order, only, held);
            }
        }
        seen
    }

    /// The aligned block around a page: its other pages on LRU lists, or on one of them, up to a hole.
    fn isolate_window(&mut self, page: Ix, order: u8, only: Option<Lru>, held: &mut List) -> u64 {
        let first = page & !((1 << order) - 1);
        let zone = self.frames.state(page).zone();
        let mut seen = 0;
        for ix in first..first + (1 << order) {
            let s = self.frames.state(ix);
            if s.zone() != zone || matches!(s.kind(), Kind::Absent | Kind::Reserved) {
                break;
            }
            let wanted = |l: &Lru| only.map_or(*l != Lru::Unevictable, |o| o == *l);
            let Some(lru) = Lru::from_code(s.lru()).filter(wanted) else {
                continue;
            };
            if (lru.is_file() || self.host.nr_swap_pages() > 0) && self.isolate(ix, held) {
                seen += 1;
            }
        }
        seen
    }

    /// Whether a page was used since the last look, by mapping or otherwise; forgets it.
    fn page_referenced(&mut self, ix: Ix) -> (bool, bool) {
        let f = self.flags_of(ix);
        let by_map = f.contains(PageFlags::YOUNG);
        let by_call = f.contains(PageFlags::REFERENCED);
        if by_map || by_call {
            self.put_flags(ix, f - PageFlags::YOUNG - PageFlags::REFERENCED);
        }
        (by_map, by_call)
    }

    /// Moves up to `nr` pages of an active list to the inactive one; those in use may stay.
    pub(super) fn shrink_active_list(
        &mut self,
        vec: usize,
        file: bool,
        nr: u64,
        sc: &mut Scan,
        mapped_too: bool,
    ) {
        let lru = Lru::new(file, true);
        let mut held = List::EMPTY;
        let seen = self.isolate_lru_pages(vec, lru, nr, None, &mut held);
        self.reclaim.pgrefill += seen;
        sc.told.0 += seen as u32;
        self.lruvecs[vec].recent_scanned[usize::from(file)] += seen;
        let joined = self.env.sw.reclaim.lru.shape() == LruShape::Joined;
        let keeps_exec = self
            .env
            .sw
            .reclaim
            .lru
            .split()
            .is_some_and(|s| s.keeps_exec);
        while let Some(ix) = held.pop_head(self.frames.meta) {
            let flags = self.flags_of(ix);
            let stays = if joined {
                let mapped = flags.contains(PageFlags::MAPPED);
                mapped && (!mapped_too || flags.contains(PageFlags::YOUNG)) && {
                    self.put_flags(ix, flags - PageFlags::YOUNG);
                    true
                }
            } else {
                let (young, called) = self.page_referenced(ix);
                let used = flags.contains(PageFlags::MAPPED) && (young || called);
                if used {
                    self.lruvecs[vec].recent_rotated[usize::from(file)] += 1;
                }
                used && file && flags.contains(PageFlags::EXEC) && keeps_exec
            };
            if !stays {
                self.reclaim.pgdeactivate += 1;
            }
            self.putback(ix, stays);
        }
    }

    /// Whether the operation should first wait for others to put back what they isolated.
    pub(super) fn too_many_isolated(&self, vec: usize, file: bool, sc: &Scan) -> bool {
        let v = &self.lruvecs[vec];
        !sc.kswapd
            && self.env.sw.reclaim.isolated_throttle
            && v.isolated[usize::from(file)] > v.len(Lru::new(file, false))
    }

    /// Looks at up to 32 pages of an inactive list and frees what it can.
    pub(super) fn shrink_inactive_list(
        &mut self,
        vec: usize,
        file: bool,
        nr: u64,
        sc: &mut Scan,
        held: &mut List,
    ) -> Batch {
        let rule = self.env.sw.reclaim.high_order;
        let nr = nr.min(SWAP_CLUSTER_MAX);
        let list = Lru::new(file, false);
        let seen = self.isolate_lru_pages(vec, list, nr, sc.window(rule), held);
        sc.scanned += seen;
        sc.told.0 += seen as u32;
        if let Some(zone) = self.zones[vec].as_mut() {
            zone.pages_scanned += seen;
        }
        if sc.kswapd {
            self.reclaim.pgscan_kswapd += seen;
        } else {
            self.reclaim.pgscan_direct += seen;
        }
        self.lruvecs[vec].recent_scanned[usize::from(file)] += seen;
        self.shrink_page_list(vec, sc, held, Pass::First);
        let cheap = HighOrder::Lumpy {
            cheap_orders_wait: true,
        };
        let waits = sc.order > COSTLY_ORDER || rule == cheap;
        if waits && sc.lumpy(rule) && !sc.kswapd && !held.is_empty() {
            return Batch::Again;
        }
        self.putback_all(held);
        Batch::Done
    }

    /// The second pass of a lumpy batch: what is under writeback is waited for.
    pub(super) fn shrink_again(&mut self, vec: usize, sc: &mut Scan, held: &mut List) -> Batch {
        if let Some(ix) = self.shrink_page_list(vec, sc, held, Pass::Sync) {
            return Batch::Writeback(ix);
        }
        self.putback_all(held);
        Batch::Done
    }

    /// Puts back what a batch still holds.
    pub(super) fn putback_all(&mut self, held: &mut List) {
        while let Some(ix) = held.pop_head(self.frames.meta) {
            let active = self.flags_of(ix).contains(PageFlags::ACTIVE);
            self.putback(ix, active);
        }
    }

    /// Gives each held page its fate; what is kept stays in `held`. Returns the page that a waiting
    /// pass waits for.
    fn shrink_page_list(
        &mut self,
        vec: usize,
        sc: &mut Scan,
        held: &mut List,
        pass: Pass,
    ) -> Option<Ix> {
        let mut rest = core::mem::replace(held, List::EMPTY);
        let (batch, writeback) = (rest.len, sc.backlog.writeback);
        let mut freed = 0;
        let mut waits = None;
        while let Some(ix) = rest.pop_head(self.frames.meta) {
            let flags = self.flags_of(ix);
            let file = !flags.contains(PageFlags::SWAPBACKED);
            if flags.contains(PageFlags::GONE) {
                self.free_isolated(ix);
                continue;
            }
            match self.fate(ix, file, sc, pass) {
                Fate::Free => {
                    self.free_isolated(ix);
                    freed += 1;
                }
                Fate::Keep => held.push_tail(self.frames.meta, ix),
                Fate::Activate => {
                    self.reclaim.pgactivate += 1;
                    self.lruvecs[vec].recent_rotated[usize::from(file)] += 1;
                    self.put_flags(ix, self.flags_of(ix) | PageFlags::ACTIVE);
                    held.push_tail(self.frames.meta, ix);
                }
                Fate::Wait => {
                    held.push_head(self.frames.meta, ix);
                    waits = Some(ix);
                    break;
                }
            }
        }
        while let Some(ix) = rest.pop_head(self.frames.meta) {
            held.push_tail(self.frames.meta, ix);
        }
        sc.backlog.whole_batch |= batch > 0 && sc.backlog.writeback == writeback + batch;
        sc.reclaimed += freed;
        sc.told.1 += freed as u32;
        if sc.kswapd {
            self.reclaim.pgsteal_kswapd += freed;
        } else {
            self.reclaim.pgsteal_direct += freed;
        }
        waits
    }

    fn fate(&mut self, ix: Ix, file: bool, sc: &mut Scan, pass: Pass) -> Fate {
        let rules = self.env.sw.reclaim;
        let flags = self.flags_of(ix);
        if flags.contains(PageFlags::LOCKED) {
            return Fate::Keep;
        }
        let waits = PageFlags::DIRTY | PageFlags::WRITEBACK;
        sc.backlog.dirty += u32::from(flags.intersects(waits));
        if flags.contains(PageFlags::WRITEBACK) {
            sc.backlog.writeback += 1;
            sc.backlog.again += u32::from(flags.contains(PageFlags::RECLAIM));
            self.put_flags(ix, flags | PageFlags::RECLAIM);
            return if pass == Pass::Sync && sc.may_write_back(file) {
                Fate::Wait
            } else {
                Fate::Keep
            };
        }
        let (young, called) = self.page_referenced(ix);
        let mapped = flags.contains(PageFlags::MAPPED);
        let spares = !sc.lumpy(rules.high_order) || sc.order <= COSTLY_ORDER;
        if rules.used_once_stays {
            if young && (!file || called || flags.contains(PageFlags::EXEC)) {
                return Fate::Activate;
            }
            if young {
                self.put_flags(ix, self.flags_of(ix) | PageFlags::REFERENCED);
                return Fate::Keep;
            }
        } else if (young || called) && mapped && spares && pass == Pass::First {
            // A page that nobody maps is not in use, of tmpfs either: its mark only delayed it.
            return Fate::Activate;
        }
        if !file && sc.clean_only {
            return Fate::Activate;
        }
        if flags.contains(PageFlags::DIRTY) && !sc.may_write_back(file) {
            return Fate::Keep;
        }
        if mapped || !file {
            match self.host.try_to_unmap(self.map.pfn(ix)) {
                Unmap::Gone => self.put_flags(ix, self.flags_of(ix) - PageFlags::MAPPED),
                Unmap::Busy => return Fate::Keep,
                Unmap::NoSpace => return Fate::Activate,
            }
        }
        if self.flags_of(ix).contains(PageFlags::DIRTY) {
            if called && file && spares {
                return Fate::Keep;
            }
            let writes = !sc.clean_only && (sc.kswapd || !file || rules.direct_writes_files);
            if !writes {
                return Fate::Keep;
            }
            match self.host.writepage(self.map.pfn(ix), pass == Pass::Sync) {
                Written::Started => {
                    let f = self.flags_of(ix) - PageFlags::DIRTY;
                    self.put_flags(ix, f | PageFlags::WRITEBACK | PageFlags::RECLAIM);
                    self.reclaim.nr_vmscan_write += 1;
                    return if pass == Pass::Sync {
                        Fate::Wait
                    } else {
                        Fate::Keep
                    };
                }
                Written::Later => {
                    self.reclaim.nr_vmscan_write += 1;
                    return Fate::Keep;
                }
                Written::Congested => {
                    sc.backlog.refused += 1;
                    return Fate::Keep;
                }
                Written::Failed => return Fate::Activate,
            }
        }
        if self.host.release_page(self.map.pfn(ix)) {
            Fate::Free
        } else {
            Fate::Keep
        }
    }
}
