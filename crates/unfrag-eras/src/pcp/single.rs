//! Per-CPU lists of single pages: 2.6.14 to 5.12.
//!
//! List heads: hot 0 and cold 1 (which stays empty without cold requests); V19's kernel 0 and easy 1; one searched
//! list 0; or one per type. Pages go in and come out at the head, and go back from the tail.
//! `spec: 0.3, 2.2, 2.5, 3.1`

use super::cpu_lists::{CpuLists, Freed};
use super::searched::is_searched;
use crate::frame::{FrameIx, Frames, MigrateType, Order};
use crate::host::Host;
use crate::kernel::{Drain, Pcp, Rules};
use crate::placement::{BlockRequest, End, FreeBlock, RmqueueMode};
use crate::zone::ZoneOps;

/// List for a type.
#[inline(always)]
fn home(rules: &Rules, mt: MigrateType) -> usize {
    match rules.pcp {
        Pcp::HotCold { .. } | Pcp::Searched => 0,
        Pcp::Kinds => usize::from(mt == MigrateType::Movable),
        // Each type has a list; pages of the reserve go to the movable one.
        _ if mt.is_ordinary() => number(rules, mt),
        _ => number(rules, MigrateType::Movable),
    }
}

/// The era's number of an ordinary type, which is its list.
fn number(rules: &Rules, mt: MigrateType) -> usize {
    let swapped = rules.pageblocks().is_some_and(|p| p.reclaimable_is_type_1);
    match mt {
        MigrateType::Movable if swapped => 2,
        MigrateType::Reclaimable if swapped => 1,
        other => other as usize,
    }
}

impl CpuLists {
    /// Low and high mark of a list, in pages. At the low mark it is refilled, at the high mark drained.
    #[inline(always)]
    fn limits(&self, shape: Pcp, list: usize) -> (u32, u32) {
        let b = self.batch as u32;
        match (shape, list) {
            (Pcp::HotCold { .. }, 1) => (0, 2 * b),
            (Pcp::Kinds, _) => (2 * b, 3 * b),
            _ => (0, self.high as u32),
        }
    }

    /// A page from its list, if that has one above its low mark.
    #[inline(always)]
    pub(crate) fn single_pop(
        &mut self,
        frames: &Frames,
        rules: &Rules,
        mt: MigrateType,
    ) -> Option<FrameIx> {
        let i = home(rules, mt);
        let ix = if is_searched(rules.pcp) {
            self.find(frames, mt, i)?
        } else {
            let (low, _) = self.limits(rules.pcp, i);
            let list = &self.lists[i];
            list.peek(End::Head).filter(|_| list.len > low)?
        };
        self.unlink(frames, rules, i, ix);
        Some(ix)
    }

    pub(super) fn single_take<H: Host>(
        &mut self,
        z: &mut ZoneOps<H>,
        request: BlockRequest,
    ) -> Option<FrameIx> {
        let rules = &z.policy.rules;
        if let Some(ix) = self.single_pop(z.frames, rules, request.mt) {
            return Some(ix);
        }
        let i = home(rules, request.mt);
        self.single_refill(z, request, i);
        let head = self.lists[i].peek(End::Head);
        let ix = if is_searched(rules.pcp) {
            // A fallback may have brought pages of another type.
            self.find(z.frames, request.mt, i).or(head)
        } else {
            head
        }?;
        self.unlink(z.frames, rules, i, ix);
        Some(ix)
    }

    /// The first page of a type on a list that is searched.
    #[inline(always)]
    fn find(&mut self, frames: &Frames, mt: MigrateType, i: usize) -> Option<FrameIx> {
        let first = self.search_start.at(i, mt)?;
        let table = frames.table;
        let mut ix = *first;
        while ix != FrameIx::NIL && table.state(ix).mt() != mt {
            ix = table.next(ix);
        }
        *first = ix;
        (ix != FrameIx::NIL).then_some(ix)
    }

    /// Takes a page off list `i`.
    #[inline(always)]
    fn unlink(&mut self, frames: &Frames, rules: &Rules, i: usize, ix: FrameIx) {
        if is_searched(rules.pcp) {
            self.search_start.left(i, ix, frames.table.next(ix));
        }
        self.lists[i].unlink(frames.table, ix);
        self.count -= 1;
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
    fn join(&mut self, frames: &Frames, shape: Pcp, i: usize, page: FreeBlock, end: End) {
        self.link(frames, i, page, end);
        if is_searched(shape) {
            self.search_start.joined(i, page.ix, page.mt, end);
        }
    }

    fn single_refill<H: Host>(&mut self, z: &mut ZoneOps<H>, request: BlockRequest, i: usize) {
        let shape = z.policy.rules.pcp;
        let (mut taken, mut mode) = (0, RmqueueMode::default());
        for _ in 0..self.batch {
            let Some((ix, list)) = z.take(request, &mut mode) else {
                break;
            };
            z.tracer.prefetch(ix);
            // The page gets the type that it was taken for. On a list that is searched it would not be found
            // otherwise. On a list for one type, the type says which buddy list it returns to.
            let mt = if list.is_ordinary() || is_searched(shape) {
                request.mt
            } else {
                list
            };
            let page = FreeBlock {
                ix,
                order: Order::ZERO,
                mt,
            };
            self.join(z.frames, shape, i, page, End::Tail);
            taken += 1;
        }
        z.count(-taken);
    }

    /// Puts a freed page on its list. Cold, so that its code is apart from that of lists for several orders.
    #[cold]
    #[inline(never)]
    pub(super) fn single_put(&mut self, frames: &Frames, rules: &Rules, page: FreeBlock) -> Freed {
        let i = home(rules, page.mt);
        self.join(frames, rules.pcp, i, page, End::Head);
        let (_, high) = self.limits(rules.pcp, i);
        let full = self.held(rules.pcp, i) >= high.max(1);
        Freed {
            list: i,
            surplus: if full { self.batch } else { 0 },
        }
    }

    /// Gives `n` pages back, from the tails.
    pub(super) fn single_release<H: Host>(&mut self, z: &mut ZoneOps<H>, n: i32, first: usize) {
        let n = n.min(self.count);
        match z.policy.rules.pcp {
            Pcp::PerType {
                drain: Drain::RoundRobin,
                ..
            } => {
                let mut i = 0;
                for _ in 0..n {
                    while self.lists[i].is_empty() {
                        i = (i + 1) % 3;
                    }
                    self.give_tail(z, i);
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
                        self.give_tail(z, i);
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
                    self.give_tail(z, i);
                }
            }
        }
    }

    fn give_tail<H: Host>(&mut self, z: &mut ZoneOps<H>, i: usize) {
        let Some(ix) = self.lists[i].peek(End::Tail) else {
            return;
        };
        let rules = &z.policy.rules;
        self.unlink(z.frames, rules, i, ix);
        let mt = match rules.pcp {
            // 2.6.32 passes on the type of the list, so that pages of the reserve leak.
            Pcp::PerType {
                keep_type: false, ..
            } => [MigrateType::Movable, MigrateType::Reclaimable]
                .into_iter()
                .find(|&mt| number(rules, mt) == i)
                .unwrap_or(MigrateType::Unmovable),
            Pcp::PerType {
                keep_type: true, ..
            } => z.frames.state(ix).mt(),
            _ => z.frames.block_type(ix),
        };
        self.give_back(z, ix, Order::ZERO, mt);
    }

    /// Whether no page precedes the start of the searches for its type.
    pub(super) fn search_starts_hold(&self, frames: &Frames) -> bool {
        self.search_start
            .0
            .iter()
            .zip(&self.lists)
            .all(|(firsts, list)| {
                firsts.iter().enumerate().all(|(mt, first)| {
                    let mut before = list.iter(frames.table).take_while(|ix| ix != first);
                    before.all(|ix| frames.state(ix).mt() as usize != mt)
                })
            })
    }
}
