//! The LRU lists of a zone or of a node, with the counters that reclaim keeps for them.

use super::generations::{Generations, LEAST, Place, shown};
use super::kind::{Lru, NR_LRU};
use crate::frame::{FrameIx, Frames, Order, PageFlags, State};
use crate::kernel::GenerationRules;
use crate::placement::{End, List};
use zerocopy::{IntoBytes, KnownLayout, TryFromBytes};

/// Reclaim begins at this priority and scans `size >> priority` of each list.
pub(crate) const DEF_PRIORITY: u8 = 12;

/// Pages that one reclaim wants, and the size of a batch.
pub(crate) const SWAP_CLUSTER_MAX: u64 = 32;

/// The LRU lists of a zone, or of a node. They live in the caller's memory, so their layout has no gaps.
#[derive(Clone, TryFromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct LruLists {
    /// Pages to scan that were too few for a batch, by list (`nr_saved_scan`).
    pub saved_scan: [u64; NR_LRU],
    /// Pages scanned recently: anonymous, file (`recent_scanned`).
    pub recent_scanned: [u64; 2],
    /// Those of them that were in use (`recent_rotated`).
    pub recent_rotated: [u64; 2],
    /// Isolated pages: anonymous, file.
    pub isolated: [u64; 2],
    /// Pages looked at since one was freed in the zones whose lists these are.
    pub pages_scanned: u64,
    /// Pages of the large blocks on each list beyond their first ones.
    pub more: [u64; NR_LRU],
    pub generations: Generations,
    pub lists: [List; NR_LRU],
    /// Priority of the last reclaim that was under way (joined lists).
    pub prev_priority: u8,
    /// Reclaim has given up here until a page is freed.
    pub all_unreclaimable: bool,
    /// Pages stand in generations, not on active and inactive lists.
    pub by_generation: bool,
    /// How many generations behind the youngest pages enter: anonymous ones, those of files that are read, those of files
    /// that are mapped.
    enters: [u8; 3],
    pad: [u8; 6],
}

impl LruLists {
    pub fn new() -> LruLists {
        LruLists {
            saved_scan: [0; NR_LRU],
            recent_scanned: [0; 2],
            recent_rotated: [0; 2],
            isolated: [0; 2],
            pages_scanned: 0,
            lists: [List::EMPTY; NR_LRU],
            more: [0; NR_LRU],
            prev_priority: DEF_PRIORITY,
            all_unreclaimable: false,
            generations: Generations::new(),
            by_generation: false,
            enters: [0; 3],
            pad: [0; 6],
        }
    }

    /// Pages on a list.
    pub fn len(&self, lru: Lru) -> u64 {
        if self.by_generation && lru != Lru::Unevictable {
            return self.generations.pages(lru.is_file(), lru.is_active());
        }
        u64::from(self.lists[lru.index()].len) + self.more[lru.index()]
    }

    /// Takes a block off a list.
    #[inline(always)]
    pub fn unlink(&mut self, frames: &Frames, ix: FrameIx, lru: Lru) {
        if self.by_generation && lru != Lru::Unevictable {
            return self.generations.unlink(frames, ix);
        }
        self.lists[lru.index()].unlink(frames.table, ix);
        let order = frames.state(ix).order();
        if order > Order::ZERO {
            self.more[lru.index()] -= u64::from(order.frames() - 1);
        }
    }

    /// Puts a block, whose state without a list is `s`, on a list: of generations, where a page of that kind enters.
    #[inline(always)]
    pub fn join(&mut self, frames: &Frames, ix: FrameIx, s: State, (lru, end): (Lru, End)) {
        if self.by_generation && lru != Lru::Unevictable {
            return self.join_generation(frames, ix, s, (lru, end));
        }
        frames.set_state(ix, s.with_lru(lru as u8));
        self.lists[lru.index()].push(frames.table, ix, end);
        let order = frames.state(ix).order();
        if order > Order::ZERO {
            self.more[lru.index()] += u64::from(order.frames() - 1);
        }
    }

    #[inline(never)]
    fn join_generation(&mut self, frames: &Frames, ix: FrameIx, s: State, (lru, end): (Lru, End)) {
        let [anon, read, mapped] = self.enters;
        let behind = match (lru.is_active(), lru.is_file()) {
            (true, _) => 0,
            (false, false) => anon,
            (false, true) if s.flags().contains(PageFlags::MAPPED) => mapped,
            (false, true) => read,
        };
        let s = s.with_flags(s.flags() - PageFlags::OF_ISOLATED);
        let to = (behind.into(), end);
        self.generations.join(frames, ix, s, lru.is_file(), to);
    }

    /// The list that a page with this state is on: in generations, those in use are the active one.
    #[inline]
    pub fn list_of(&self, s: State) -> Option<Lru> {
        let lru = Lru::from_code(s.lru())?;
        if !self.by_generation || lru == Lru::Unevictable {
            return Some(lru);
        }
        let at = Place::of(s);
        Some(Lru::new(at.file, self.generations.is_in_use(at)))
    }

    /// Flags of a page with this state, as its owner knows them.
    #[inline]
    pub fn flags_of(&self, s: State) -> PageFlags {
        match Lru::from_code(s.lru()) {
            Some(lru) if self.by_generation && lru != Lru::Unevictable => shown(s),
            _ => s.flags(),
        }
    }

    /// Pages stand in generations from now on, or on active and inactive lists. Those that are here change over, in their
    /// order: what is active is in the youngest generation, all else in the youngest one that can be evicted, and back.
    pub fn switch(&mut self, frames: &Frames, to: Option<&GenerationRules>) {
        if let Some(r) = to {
            self.enters = [r.anon_enters, r.read_enters, r.mapped_enters];
        }
        if self.by_generation == to.is_some() {
            return;
        }
        let mut moved = [List::EMPTY; 4];
        for (all, lru) in moved.iter_mut().zip(Lru::EVICTABLE) {
            // From the oldest page on, each list behind the others of its kind.
            while let Some(ix) = self.last(lru) {
                let flags = self.flags_of(frames.state(ix));
                self.unlink(frames, ix, lru);
                let s = frames.state(ix).with_lru(0).with_flags(flags);
                frames.set_state(ix, s);
                all.push_tail(frames.table, ix);
            }
        }
        self.generations = Generations::new();
        self.by_generation = to.is_some();
        for (mut all, lru) in moved.into_iter().zip(Lru::EVICTABLE) {
            let behind = if lru.is_active() { 0 } else { LEAST };
            while let Some(ix) = all.pop_head(frames.table) {
                let s = frames.state(ix);
                if self.by_generation {
                    let to = (behind, End::Head);
                    self.generations.join(frames, ix, s, lru.is_file(), to);
                } else {
                    self.join(frames, ix, s, (lru, End::Head));
                }
            }
        }
    }

    /// The oldest page of a list.
    fn last(&self, lru: Lru) -> Option<FrameIx> {
        if !self.by_generation {
            return self.lists[lru.index()].peek(End::Tail);
        }
        let mut last = None;
        for list in self.generations.lists(lru.is_file(), lru.is_active()) {
            last = list.peek(End::Tail).or(last);
        }
        last
    }

    /// The pages of a list, from the newest.
    pub fn pages<'a>(
        &self,
        frames: &Frames<'a>,
        lru: Lru,
    ) -> impl Iterator<Item = FrameIx> + use<'a> {
        let generations = self.by_generation && lru != Lru::Unevictable;
        let one = (!generations).then(|| self.lists[lru.index()]);
        let (file, in_use) = (lru.is_file(), lru.is_active());
        let some = generations.then(|| self.generations.lists(file, in_use));
        let all = one.into_iter().chain(some.into_iter().flatten());
        let table = frames.table;
        all.flat_map(move |list| list.iter(table))
    }

    /// Pages of a kind, in use or not.
    pub fn of_kind(&self, file: bool) -> u64 {
        self.len(Lru::new(file, false)) + self.len(Lru::new(file, true))
    }
}
