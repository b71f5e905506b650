//! Changes to pages in use: their flags, owners and positions on LRU lists.
//! `spec: 4.1`

use super::counts::FlagCounts;
use super::generations::{read_once_more, tier};
use super::kind::{ISOLATED, ISOLATED_OTHER, Lru};
use super::lists::LruLists;
use crate::frame::{FrameIx, FrameKind, FrameMap, Frames, LruId, OwnerId, PageFlags, Pfn, State};
use crate::placement::{End, List};
use crate::stat::ReclaimCounters;
use unfrag::hint::prefetch;

/// The pages of a manager that are in use. From [`Manager::pages`](crate::Manager::pages), or beside its
/// host from [`Manager::host_and_pages`](crate::Manager::host_and_pages).
///
/// A page that is in no zone has no flags and is on no list; to change it changes nothing.
pub struct PagesMut<'a, 'm> {
    pub(crate) frames: &'a Frames<'m>,
    pub(crate) map: &'a FrameMap,
    pub(crate) lrus: &'a mut [LruLists],
    pub(crate) counts: &'a mut FlagCounts,
    pub(crate) events: &'a mut ReclaimCounters,
    /// New anonymous pages start in use.
    pub(crate) new_anon_active: bool,
}

impl PagesMut<'_, '_> {
    /// Flags of a page.
    #[inline]
    pub fn flags(&self, pfn: Pfn) -> PageFlags {
        let ix = self.map.ix(pfn);
        ix.map_or(PageFlags::empty(), |ix| self.shown(ix))
    }

    /// Sets flags of a page.
    #[inline]
    pub fn set(&mut self, pfn: Pfn, flags: PageFlags) {
        if let Some(ix) = self.map.ix(pfn) {
            if self.is_in_generation(ix) {
                return self.put_shown(ix, self.shown(ix) | flags);
            }
            let flags = self.flags_of(ix) | flags;
            self.put_flags(ix, flags);
        }
    }

    /// Clears flags of a page.
    #[inline]
    pub fn clear(&mut self, pfn: Pfn, flags: PageFlags) {
        if let Some(ix) = self.map.ix(pfn) {
            if self.is_in_generation(ix) {
                return self.put_shown(ix, self.shown(ix) - flags);
            }
            let flags = self.flags_of(ix) - flags;
            self.put_flags(ix, flags);
        }
    }

    /// Prefetches the record of a page.
    #[inline]
    pub fn prefetch(&self, pfn: Pfn) {
        if let Some(ix) = self.map.ix(pfn) {
            prefetch(self.frames.table.meta(ix));
        }
    }

    /// Prefetches the records of the pages before and behind a page on its list.
    #[inline]
    pub fn prefetch_beside(&self, pfn: Pfn) {
        if let Some(ix) = self.map.ix(pfn) {
            let table = self.frames.table;
            let beside = [table.next(ix), table.prev(ix)].map(|ix| table.get(ix));
            beside.into_iter().flatten().for_each(prefetch);
        }
    }

    /// Sets the owner of a block in use, and the key by which that owner finds it. Evictions and moves report
    /// both; a free clears them. The record of a frame in use belongs to its holder, so no lock is needed.
    /// Returns false if no block in use begins at `pfn`.
    pub fn adopt(&mut self, pfn: Pfn, owner: OwnerId, key: u32) -> bool {
        let Some(ix) = self.map.ix(pfn) else {
            return false;
        };
        let s = self.frames.state(ix);
        if s.kind() != FrameKind::Used {
            return false;
        }
        self.frames.set_state(ix, s.with_owner(owner));
        self.frames.set_key(ix, key);
        true
    }

    /// Puts a block in use on an LRU list, at its head (as the newest), and sets flags of it. A block that is isolated
    /// goes there when its isolation ends.
    ///
    /// # Panics
    /// If the frame is in no zone.
    #[inline(always)]
    pub fn lru_add(&mut self, pfn: Pfn, lru: Lru, flags: PageFlags) {
        let Some(ix) = self.map.ix(pfn) else {
            panic!("{pfn:?} is in no zone")
        };
        let s = self.frames.state(ix);
        if s.lru() >= ISOLATED {
            return self.lru_add_isolated(ix, s, lru, flags);
        }
        self.lru_leave(ix, s);
        let s = self.frames.state(ix);
        let was = s.flags();
        self.counts.change(was, was | flags);
        self.join(ix, s.with_flags(was | flags), lru, End::Head);
    }

    /// Notes the list on which an isolated block is to be. One that is isolated from such a list goes back there.
    #[cold]
    fn lru_add_isolated(&mut self, ix: FrameIx, s: State, lru: Lru, flags: PageFlags) {
        let was = s.flags();
        let mut now = was | flags;
        self.counts.change(was, now);
        let mut s = s;
        if s.lru() == ISOLATED_OTHER {
            if lru == Lru::Unevictable {
                now |= PageFlags::ACTIVE;
            } else {
                self.lists_of(ix).isolated[usize::from(lru.is_file())] +=
                    u64::from(s.order().frames());
                now.set(PageFlags::SWAPBACKED, !lru.is_file());
                now.set(PageFlags::ACTIVE, lru.is_active());
                s = s.with_lru(ISOLATED);
            }
        }
        self.frames.set_state(ix, s.with_flags(now));
    }

    /// Puts a new page on its list and sets flags of it: anonymous pages start in use to 5.8, page cache
    /// does not.
    ///
    /// # Panics
    /// If the frame is in no zone.
    #[inline]
    pub fn lru_add_new(&mut self, pfn: Pfn, file: bool, flags: PageFlags) {
        let active = !file && self.new_anon_active;
        self.lru_add(pfn, Lru::new(file, active), flags);
    }

    /// Takes a page off its LRU list, if it is on one. [`free`](crate::Manager::free) does so by itself.
    pub fn lru_del(&mut self, pfn: Pfn) {
        let Some(ix) = self.map.ix(pfn) else { return };
        self.lru_leave(ix, self.frames.state(ix));
    }

    /// The LRU list that a page is on.
    pub fn lru_of(&self, pfn: Pfn) -> Option<Lru> {
        let ix = self.map.ix(pfn)?;
        self.lru(ix)
    }

    /// Notes an access by read or write: the first one marks the page referenced, the second one activates it
    /// (`mark_page_accessed`). In generations it is counted, and the page stays where it is.
    pub fn mark_accessed(&mut self, pfn: Pfn) {
        let Some(ix) = self.map.ix(pfn) else { return };
        if self.is_in_generation(ix) {
            let s = self.frames.state(ix);
            return self.frames.set_state(ix, read_once_more(s));
        }
        let flags = self.flags_of(ix);
        match Lru::from_code(self.frames.state(ix).lru()) {
            Some(lru)
                if !lru.is_active()
                    && lru != Lru::Unevictable
                    && flags.contains(PageFlags::REFERENCED) =>
            {
                self.unlink(ix, lru);
                self.link(ix, Lru::new(lru.is_file(), true), End::Head);
                self.put_flags(ix, flags - PageFlags::REFERENCED);
                self.events.pgactivate += 1;
                self.lists_of(ix).recent_rotated[usize::from(lru.is_file())] += 1;
            }
            _ => self.put_flags(ix, flags | PageFlags::REFERENCED),
        }
    }

    /// Ends the writeback of a page. If reclaim wants it, it goes to the tail of its list, where reclaim looks
    /// next (`rotate_reclaimable_page`).
    pub fn end_writeback(&mut self, pfn: Pfn) {
        let Some(ix) = self.map.ix(pfn) else { return };
        let flags = self.flags_of(ix);
        self.put_flags(ix, flags - PageFlags::WRITEBACK - PageFlags::RECLAIM);
        if !flags.contains(PageFlags::RECLAIM) {
            return;
        }
        if let Some(lru) = self.lru(ix)
            && !lru.is_active()
            && lru != Lru::Unevictable
        {
            self.unlink(ix, lru);
            if self.is_in_generation(ix) {
                let (frames, s) = (self.frames, self.frames.state(ix));
                let generations = &mut self.lists_of(ix).generations;
                generations.put_last(frames, ix, s, lru.is_file());
            } else {
                self.link(ix, lru, End::Tail);
            }
            self.events.pgrotated += 1;
        }
    }

    /// A page that is on an LRU list again came back soon after it was evicted. `reread`: what
    /// [`Ask::reread`](crate::reclaim::Ask::reread) said of it then.
    pub fn refaulted(&mut self, pfn: Pfn, reread: bool) {
        let Some(ix) = self.map.ix(pfn) else { return };
        if let Some(lru) = self.lru(ix) {
            let of = &mut self.lists_of(ix).generations.refaults[usize::from(lru.is_file())];
            of.came_back[usize::from(reread)] += 1;
        }
    }

    /// The LRU list that a page is on.
    #[inline]
    fn lru(&self, ix: FrameIx) -> Option<Lru> {
        // A frame in no zone is on no list, and has no lists.
        Lru::from_code(self.frames.state(ix).lru())?;
        self.lrus[self.frames.lru_of(ix).index()].list_of(self.frames.state(ix))
    }

    /// Whether a page stands in a generation.
    #[inline]
    fn is_in_generation(&self, ix: FrameIx) -> bool {
        let listed = (1..=4).contains(&self.frames.state(ix).lru());
        listed && self.lrus[self.frames.lru_of(ix).index()].by_generation
    }

    /// Flags of a page as its owner knows them.
    #[inline]
    fn shown(&self, ix: FrameIx) -> PageFlags {
        let s = self.frames.state(ix);
        match s.lru() {
            1..=4 => self.lrus[self.frames.lru_of(ix).index()].flags_of(s),
            _ => s.flags(),
        }
    }

    /// Gives a page in a generation other flags.
    fn put_shown(&mut self, ix: FrameIx, flags: PageFlags) {
        let s = self.frames.state(ix);
        let reads = match flags.contains(PageFlags::REFERENCED) {
            true => s.reads().max(1),
            false => 0,
        };
        let kept = s.flags() & PageFlags::OF_ISOLATED;
        self.counts.change(s.flags(), flags);
        let with = s.with_flags((flags - PageFlags::OF_ISOLATED) | kept);
        self.frames.set_state(ix, with.with_reads(reads));
    }

    #[inline]
    pub(crate) fn flags_of(&self, ix: FrameIx) -> PageFlags {
        self.frames.state(ix).flags()
    }

    #[inline]
    pub(crate) fn put_flags(&mut self, ix: FrameIx, flags: PageFlags) {
        self.counts.put(self.frames, ix, flags);
    }

    /// The set of LRU lists for the page.
    #[inline]
    pub(crate) fn lists_of(&mut self, ix: FrameIx) -> &mut LruLists {
        &mut self.lrus[self.frames.lru_of(ix).index()]
    }

    #[inline(always)]
    pub(crate) fn unlink(&mut self, ix: FrameIx, lru: Lru) {
        let frames = self.frames;
        self.lists_of(ix).unlink(frames, ix, lru);
    }

    pub(crate) fn link(&mut self, ix: FrameIx, lru: Lru, end: End) {
        self.join(ix, self.frames.state(ix), lru, end);
    }

    /// Links a page, whose state without the list is `s`, into a list.
    #[inline(always)]
    fn join(&mut self, ix: FrameIx, s: State, lru: Lru, end: End) {
        let frames = self.frames;
        self.lists_of(ix).join(frames, ix, s, (lru, end));
    }

    /// Takes a page whose state is known off its LRU list, if it is on one.
    #[inline(always)]
    pub(crate) fn lru_leave(&mut self, ix: FrameIx, s: State) {
        if let Some(lru) = Lru::from_code(s.lru()) {
            let flags = self.lists_of(ix).flags_of(s);
            self.unlink(ix, lru);
            self.counts.unmapped(flags);
            let left = s.with_lru(0).with_flags(flags - PageFlags::MAPPED);
            self.frames.set_state(ix, left);
        }
    }

    /// Isolates a block in use, for a move: takes it off its LRU list, if it is on one, and remembers which.
    pub(crate) fn hold(&mut self, ix: FrameIx) {
        let s = self.frames.state(ix);
        let lru = self.lru(ix);
        let mut flags = self.shown(ix) - PageFlags::ACTIVE - PageFlags::SWAPBACKED;
        if let Some(lru) = lru {
            self.unlink(ix, lru);
        }
        let code = match lru {
            Some(lru) if lru != Lru::Unevictable => {
                self.lists_of(ix).isolated[usize::from(lru.is_file())] +=
                    u64::from(s.order().frames());
                flags.set(PageFlags::SWAPBACKED, !lru.is_file());
                flags.set(PageFlags::ACTIVE, lru.is_active());
                ISOLATED
            }
            other => {
                flags.set(PageFlags::ACTIVE, other.is_some());
                ISOLATED_OTHER
            }
        };
        self.frames
            .set_state(ix, s.with_lru(code).with_flags(flags));
    }

    /// Ends the isolation of a block that [`hold`](Self::hold) isolated: it is now at `at`, and back on its LRU list,
    /// as its newest page. Returns true if its owner freed it meanwhile, at `ix` or at `at`: it is then nowhere, and the
    /// caller frees it.
    #[must_use]
    pub(crate) fn let_go(&mut self, ix: FrameIx, at: FrameIx) -> bool {
        let s = self.frames.state(ix);
        let flags = s.flags();
        let is_active = flags.contains(PageFlags::ACTIVE);
        let lru = if s.lru() == ISOLATED {
            let file = !flags.contains(PageFlags::SWAPBACKED);
            self.lists_of(ix).isolated[usize::from(file)] -= u64::from(s.order().frames());
            Some(Lru::new(file, is_active))
        } else {
            is_active.then_some(Lru::Unevictable)
        };
        let bare = s.with_lru(0).with_flags(PageFlags::empty());
        self.frames.set_state(ix, bare);
        let freed = flags | self.flags_of(at) & PageFlags::FREED;
        if freed.contains(PageFlags::FREED) {
            self.counts.change(flags, PageFlags::empty());
            return true;
        }
        let kept = flags - PageFlags::ACTIVE - PageFlags::SWAPBACKED;
        self.frames.set_key(at, self.frames.key(ix));
        self.frames.set_state(at, bare.with_flags(kept));
        if let Some(lru) = lru {
            self.link(at, lru, End::Head);
        }
        false
    }

    /// Isolates a page of these LRU lists: moves it to `held`. Returns the list that it was on.
    pub(crate) fn isolate(&mut self, of: LruId, ix: FrameIx, held: &mut List) -> Option<Lru> {
        let s = self.frames.state(ix);
        let lists = &mut self.lrus[of.index()];
        let lru = lists.list_of(s)?;
        let mut flags = lists.flags_of(s);
        if lists.by_generation {
            // Once isolated, a page says only whether it was read more than once.
            flags.set(PageFlags::REFERENCED, tier(s.reads()) > 0);
        }
        lists.unlink(self.frames, ix, lru);
        lists.isolated[usize::from(lru.is_file())] += u64::from(s.order().frames());
        flags.set(PageFlags::SWAPBACKED, !lru.is_file());
        flags.remove(PageFlags::ACTIVE);
        self.frames
            .set_state(ix, s.with_lru(ISOLATED).with_flags(flags));
        held.push_tail(self.frames.table, ix);
        Some(lru)
    }

    /// Ends the isolation of a page that is off the list that held it: puts it back on an LRU list, unless its
    /// owner freed it meanwhile. Returns true if the owner did; the caller then frees it.
    #[must_use]
    pub(crate) fn putback_lru(&mut self, of: LruId, ix: FrameIx, active: bool) -> bool {
        let s = self.frames.state(ix);
        let flags = s.flags();
        let file = !flags.contains(PageFlags::SWAPBACKED);
        if flags.contains(PageFlags::FREED) {
            return true;
        }
        let lru = Lru::new(file, active);
        let lists = &mut self.lrus[of.index()];
        lists.isolated[usize::from(file)] -= u64::from(s.order().frames());
        // Neither of these two flags is counted.
        let s = s.with_flags(flags - PageFlags::ACTIVE - PageFlags::SWAPBACKED);
        if lists.by_generation && !active {
            lists.generations.spare(self.frames, ix, s, file);
        } else {
            lists.join(self.frames, ix, s, (lru, End::Head));
        }
        false
    }

    /// Ends the isolation of a page that is to be freed: it is then on no list, and has no flags.
    pub(crate) fn forget_isolated(&mut self, of: LruId, ix: FrameIx) {
        let s = self.frames.state(ix);
        let file = !s.flags().contains(PageFlags::SWAPBACKED);
        self.lrus[of.index()].isolated[usize::from(file)] -= u64::from(s.order().frames());
        self.counts.change(s.flags(), PageFlags::empty());
        self.frames
            .set_state(ix, s.with_flags(PageFlags::empty()).with_lru(0));
    }
}
