//! Per-CPU lists of single pages: 2.6.14 to 5.12.
//!
//! List heads: hot 0 and cold 1; V19's kernel 0 and easy 1; one searched list 0; or one per type.
//! `spec: linux-mm 2.2, 2.5, 3.1; linux-6.1 era table`

use super::searched::is_searched;
use super::{CpuLists, Env, PcpBlock};
use crate::frame::{Frames, Ix, Kind, MigrateType, State};
use crate::host::Host;
use crate::kernel::{Drain, Pcp, Rules};
use crate::place::{End, Memory, Want};
use crate::trace::Tracer;
use crate::zone::Zone;

const fn reclaimable_is_type_1(sw: &Rules) -> bool {
    match sw.pageblocks() {
        Some(p) => p.reclaimable_is_type_1,
        None => false,
    }
}

impl CpuLists {
    /// List for a type, and at which end a page goes in and comes out.
    #[inline(always)]
    fn home(sw: &Rules, mt: MigrateType, cold: bool) -> (usize, End) {
        let end = if cold { End::Tail } else { End::Head };
        match sw.pcp {
            Pcp::HotCold { .. } => (usize::from(cold), End::Head),
            Pcp::Kinds => (usize::from(mt == MigrateType::Movable), End::Head),
            Pcp::Searched => (0, end),
            // Types have their own lists; the reserve's pages wait among the movable ones.
            _ if mt.is_ordinary() => (Self::number(sw, mt), end),
            _ => (Self::number(sw, MigrateType::Movable), end),
        }
    }

    /// The era's number of an ordinary type, which is its list.
    const fn number(sw: &Rules, mt: MigrateType) -> usize {
        match mt {
            MigrateType::Movable if reclaimable_is_type_1(sw) => 2,
            MigrateType::Reclaimable if reclaimable_is_type_1(sw) => 1,
            other => other as usize,
        }
    }

    /// A set with lists of its own counts (hot, cold; kernel, easy) refills at its low mark and
    /// drains at its high one.
    #[inline(always)]
    fn limits(&self, shape: Pcp, list: usize) -> (u32, u32) {
        let b = self.batch as u32;
        match (shape, list) {
            (Pcp::HotCold { .. }, 1) => (0, 2 * b),
            (Pcp::Kinds, _) => (2 * b, 3 * b),
            _ => (0, self.high as u32),
        }
    }

    pub(super) fn single_alloc<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        want: Want,
        cold: bool,
        t: &mut Tracer<H>,
    ) -> Option<Ix> {
        let home = Self::home(&env.sw, want.mt, cold);
        if let Some(ix) = self.take(frames, &env.sw, want.mt, home) {
            return Some(ix);
        }
        let (i, end) = home;
        // Cold requests of the per-type lists take from the tail, so the order is reversed.
        let to = match end {
            End::Tail if !is_searched(env.sw.pcp) => End::Head,
            _ => End::Tail,
        };
        self.refill_single(zone, frames, env, want, i, to, t);
        let ix = match is_searched(env.sw.pcp) {
            // A fallback may have brought pages of another type.
            true => self.find(frames, want.mt, home).or(self.lists[i].peek(end)),
            false => self.lists[i].peek(end),
        }?;
        self.pop(frames, &env.sw, i, ix);
        Some(ix)
    }

    /// A page from its list if that needs no refill: what [`alloc`](Self::alloc) does on lists of single
    /// pages.
    #[inline(always)]
    pub(crate) fn hit_single(
        &mut self,
        frames: &mut Frames,
        sw: &Rules,
        mt: MigrateType,
    ) -> Option<Ix> {
        self.take(frames, sw, mt, Self::home(sw, mt, false))
    }

    #[inline(always)]
    fn take(
        &mut self,
        frames: &mut Frames,
        sw: &Rules,
        mt: MigrateType,
        (i, end): (usize, End),
    ) -> Option<Ix> {
        let ix = if is_searched(sw.pcp) {
            self.find(frames, mt, (i, end))?
        } else {
            let (low, _) = self.limits(sw.pcp, i);
            let list = &self.lists[i];
            list.peek(end).filter(|_| list.len > low)?
        };
        self.pop(frames, sw, i, ix);
        Some(ix)
    }

    /// Takes a page off list `i`.
    #[inline(always)]
    fn pop(&mut self, frames: &mut Frames, sw: &Rules, i: usize, ix: Ix) {
        if is_searched(sw.pcp) {
            self.first.left(i, ix, frames.meta[ix as usize].next);
        }
        self.lists[i].unlink(frames.meta, ix);
        self.count -= 1;
    }

    /// Takes a freed page, if that leaves its list below its high mark: what [`free`](Self::free) does on
    /// lists of single pages.
    #[inline(always)]
    pub(crate) fn keep_single(
        &mut self,
        frames: &mut Frames,
        sw: &Rules,
        ix: Ix,
        mt: MigrateType,
    ) -> bool {
        let (i, end) = Self::home(sw, mt, false);
        if self.held(sw.pcp, i) + 1 >= self.limits(sw.pcp, i).1 {
            return false;
        }
        let zone = frames.state(ix).zone();
        self.put_single(frames, zone, sw.pcp, (i, end), ix, mt);
        true
    }

    /// Pages that count against the high mark of list `i`.
    #[inline]
    fn held(&self, shape: Pcp, i: usize) -> u32 {
        match shape {
            Pcp::HotCold { .. } | Pcp::Kinds => self.lists[i].len,
            _ => self.count as u32,
        }
    }

    /// Puts a page on a list, at an end of it.
    #[inline(always)]
    pub(super) fn put_single(
        &mut self,
        frames: &mut Frames,
        zone: u8,
        shape: Pcp,
        (i, end): (usize, End),
        ix: Ix,
        mt: MigrateType,
    ) {
        self.put(frames, zone, i, ix, PcpBlock { order: 0, mt }, end);
        if is_searched(shape) {
            self.first.joined(i, ix, mt, end);
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn refill_single<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        want: Want,
        i: usize,
        to: End,
        t: &mut Tracer<H>,
    ) {
        let (mut taken, mut memory) = (0, Memory::default());
        for _ in 0..self.batch {
            let Some((ix, list)) = zone.take(frames, env, want, &mut memory, t) else {
                break;
            };
            t.prefetch(ix);
            // What the page is good for is what it was taken for; a list that is searched would not find it
            // otherwise, and ask for more with every request. Where each type has a list, the type says where
            // it goes back to.
            let mt = if list.is_ordinary() || is_searched(env.sw.pcp) {
                want.mt
            } else {
                list
            };
            self.put_single(frames, zone.id, env.sw.pcp, (i, to), ix, mt);
            taken += 1;
        }
        zone.count(&mut self.delta, -taken);
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn single_free<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        ix: Ix,
        mt: MigrateType,
        cold: bool,
        t: &mut Tracer<H>,
    ) {
        let shape = env.sw.pcp;
        let (i, end) = Self::home(&env.sw, mt, cold);
        self.put_single(frames, zone.id, shape, (i, end), ix, mt);
        let (_, high) = self.limits(shape, i);
        if self.held(shape, i) >= high.max(1) {
            self.single_release(zone, frames, env, self.batch, i, t);
        }
    }

    /// Gives `n` pages back, from the tails.
    pub(super) fn single_release<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        n: i32,
        first: usize,
        t: &mut Tracer<H>,
    ) {
        let n = n.min(self.count);
        match env.sw.pcp {
            Pcp::PerType {
                drain: Drain::RoundRobin,
                ..
            } => {
                let mut i = 0;
                for _ in 0..n {
                    while self.lists[i].is_empty() {
                        i = (i + 1) % 3;
                    }
                    self.give_tail(zone, frames, env, i, t);
                    i = (i + 1) % 3;
                }
            }
            Pcp::PerType {
                drain: Drain::BatchFree,
                ..
            } => {
                let (mut i, mut credit, mut left) = (0, 0, n);
                while left > 0 {
                    loop {
                        credit += 1;
                        i = (i + 1) % 3;
                        if !self.lists[i].is_empty() {
                            break;
                        }
                    }
                    while left > 0 && credit > 0 && !self.lists[i].is_empty() {
                        self.give_tail(zone, frames, env, i, t);
                        left -= 1;
                        credit -= 1;
                    }
                }
            }
            _ => {
                let mut i = first;
                for _ in 0..n {
                    while self.lists[i].is_empty() {
                        i = (i + 1) % 2;
                    }
                    self.give_tail(zone, frames, env, i, t);
                }
            }
        }
    }

    fn give_tail<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        i: usize,
        t: &mut Tracer<H>,
    ) {
        let Some(ix) = self.lists[i].peek(End::Tail) else {
            return;
        };
        self.pop(frames, &env.sw, i, ix);
        let stored = frames.state(ix).mt();
        let mt = match env.sw.pcp {
            // 2.6.32 hands the list's type on, so that the reserve leaks.
            Pcp::PerType {
                keep_type: false, ..
            } => [MigrateType::Movable, MigrateType::Reclaimable]
                .into_iter()
                .find(|&mt| Self::number(&env.sw, mt) == i)
                .unwrap_or(MigrateType::Unmovable),
            Pcp::PerType {
                keep_type: true, ..
            } => stored,
            _ => frames.block_type(ix),
        };
        frames.set_state(ix, State::new(Kind::Tail, 0, mt, zone.id));
        self.give_back(zone, frames, env, ix, mt, t);
    }
}
