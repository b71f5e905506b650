//! The LRU lists: joining and leaving them, and what use does to a page's place.
//! `spec: linux-mm 4.1`

use super::flags::prefetch_record;
use super::{ISOLATED, Lru, LruVec, NR_LRU, PageFlags, ReclaimCounters};
use crate::frame::{Ix, Pfn, State};
use crate::host::Host;
use crate::page_alloc::Manager;
use crate::place::{End, List};
use crate::trace::Tracer;

/// Pages on the LRU lists of a zone, or of the node whose first zone it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LruView {
    /// Pages by list, in the order of [`Lru`].
    pub pages: [u64; NR_LRU],
    /// Pages held apart, anonymous and file.
    pub isolated: [u64; 2],
    /// Reclaim has given up here.
    pub all_unreclaimable: bool,
}

impl<H: Host> Manager<'_, H> {
    pub(super) fn vec_of(&mut self, ix: Ix) -> &mut LruVec {
        let zone = usize::from(self.frames.state(ix).zone());
        &mut self.lruvecs[usize::from(self.lruvec_of[zone])]
    }

    #[inline(always)]
    fn unlink_lru(&mut self, ix: Ix, lru: Lru) {
        let zone = usize::from(self.frames.state(ix).zone());
        let v = &mut self.lruvecs[usize::from(self.lruvec_of[zone])];
        v.lists[lru.index()].unlink(self.frames.meta, ix);
    }

    fn link_lru(&mut self, ix: Ix, lru: Lru, end: End) {
        self.join_lru(ix, self.frames.state(ix), lru, end);
    }

    /// A page whose state is `s` otherwise joins a list.
    #[inline(always)]
    fn join_lru(&mut self, ix: Ix, s: State, lru: Lru, end: End) {
        self.frames.set_state(ix, s.with_lru(lru as u8));
        let v = &mut self.lruvecs[usize::from(self.lruvec_of[usize::from(s.zone())])];
        v.lists[lru.index()].push(self.frames.meta, ix, end);
    }

    /// Takes a page off its list and holds it apart, on `held`.
    pub(super) fn isolate(&mut self, ix: Ix, held: &mut List) -> bool {
        let s = self.frames.state(ix);
        let Some(lru) = Lru::from_code(s.lru()) else {
            return false;
        };
        if !lru.is_active() {
            let (host, map) = (&mut self.host, &self.map);
            Tracer { host, map }.prefetch(ix);
        }
        self.unlink_lru(ix, lru);
        let mut flags = PageFlags::from_bits_retain(s.flags());
        flags.set(PageFlags::SWAPBACKED, !lru.is_file());
        flags.remove(PageFlags::ACTIVE);
        let s = s.with_lru(ISOLATED).with_flags(flags.bits());
        self.frames.set_state(ix, s);
        held.push_tail(self.frames.meta, ix);
        self.vec_of(ix).isolated[usize::from(lru.is_file())] += 1;
        true
    }

    /// Puts an isolated page (already off the list that held it) on an LRU list, or frees it if its
    /// owner did so meanwhile.
    pub(super) fn putback(&mut self, ix: Ix, active: bool) {
        let flags = self.flags_of(ix);
        let file = !flags.contains(PageFlags::SWAPBACKED);
        self.vec_of(ix).isolated[usize::from(file)] -= 1;
        if flags.contains(PageFlags::GONE) {
            self.drop_isolated(ix);
        } else {
            self.put_flags(ix, flags - PageFlags::ACTIVE - PageFlags::SWAPBACKED);
            self.link_lru(ix, Lru::new(file, active), End::Head);
        }
    }

    /// Frees an isolated page whose owner has let go.
    fn drop_isolated(&mut self, ix: Ix) {
        self.put_flags(ix, PageFlags::empty());
        let s = self.frames.state(ix).with_lru(0);
        self.frames.set_state(ix, s);
        self.put_back(ix, s.order());
    }

    /// Frees an isolated page for its owner, with the event.
    pub(super) fn free_isolated(&mut self, ix: Ix) {
        let flags = self.flags_of(ix);
        let file = !flags.contains(PageFlags::SWAPBACKED);
        self.vec_of(ix).isolated[usize::from(file)] -= 1;
        if !flags.contains(PageFlags::GONE) {
            self.tell_freed(self.map.pfn(ix), self.frames.state(ix).order());
        }
        self.drop_isolated(ix);
    }

    /// Puts a block in use on an LRU list, at its head (as the newest).
    ///
    /// # Panics
    /// If the frame is in no zone.
    pub fn lru_add(&mut self, pfn: Pfn, lru: Lru) {
        self.lru_add_with(pfn, lru, PageFlags::empty());
    }

    /// The same for a new page: anonymous ones start active to 5.8, page cache inactive.
    ///
    /// # Panics
    /// As [`lru_add`](Self::lru_add).
    pub fn lru_add_new(&mut self, pfn: Pfn, file: bool) {
        self.lru_add_new_with(pfn, file, PageFlags::empty());
    }

    /// The same, and sets flags of the page.
    ///
    /// # Panics
    /// As [`lru_add`](Self::lru_add).
    #[inline]
    pub fn lru_add_new_with(&mut self, pfn: Pfn, file: bool, flags: PageFlags) {
        let active = !file && self.env.sw.reclaim.new_anon_active;
        self.lru_add_with(pfn, Lru::new(file, active), flags);
    }

    /// Puts a page on a list and sets flags of it.
    #[inline(always)]
    fn lru_add_with(&mut self, pfn: Pfn, lru: Lru, flags: PageFlags) {
        let Some(ix) = self.map.ix(pfn) else {
            panic!("{pfn:?} is in no zone")
        };
        self.lru_leave(ix, self.frames.state(ix));
        let s = self.frames.state(ix);
        let was = PageFlags::from_bits_retain(s.flags());
        self.flag_counts.change(was, was | flags);
        let s = s.with_flags((was | flags).bits());
        self.join_lru(ix, s, lru, End::Head);
    }

    /// Takes a page off its LRU list, if it is on one. [`free`](Manager::free) does so by itself.
    pub fn lru_del(&mut self, pfn: Pfn) {
        let Some(ix) = self.map.ix(pfn) else { return };
        self.lru_leave(ix, self.frames.state(ix));
    }

    /// The same for a page whose state is known.
    #[inline(always)]
    pub(crate) fn lru_leave(&mut self, ix: Ix, s: State) {
        if let Some(lru) = Lru::from_code(s.lru()) {
            self.unlink_lru(ix, lru);
            let flags = PageFlags::from_bits_retain(s.flags());
            self.flag_counts.nr_mapped -= u64::from(flags.contains(PageFlags::MAPPED));
            let left = s.with_lru(0).with_flags((flags - PageFlags::MAPPED).bits());
            self.frames.set_state(ix, left);
        }
    }

    /// The LRU list that a page is on.
    pub fn lru_of(&self, pfn: Pfn) -> Option<Lru> {
        Lru::from_code(self.frames.state(self.map.ix(pfn)?).lru())
    }

    /// Asks for a page's record, which is needed soon, without waiting for it.
    #[inline]
    pub fn prefetch(&self, pfn: Pfn) {
        prefetch_record(&self.frames, &self.map, pfn);
    }

    /// A page was used by read or write: the first use marks it, the second one makes it active.
    pub fn mark_page_accessed(&mut self, pfn: Pfn) {
        let Some(ix) = self.map.ix(pfn) else { return };
        let flags = self.flags_of(ix);
        match Lru::from_code(self.frames.state(ix).lru()) {
            Some(lru)
                if !lru.is_active()
                    && lru != Lru::Unevictable
                    && flags.contains(PageFlags::REFERENCED) =>
            {
                self.unlink_lru(ix, lru);
                self.link_lru(ix, Lru::new(lru.is_file(), true), End::Head);
                self.put_flags(ix, flags - PageFlags::REFERENCED);
                self.reclaim.pgactivate += 1;
                self.vec_of(ix).recent_rotated[usize::from(lru.is_file())] += 1;
            }
            _ => self.put_flags(ix, flags | PageFlags::REFERENCED),
        }
    }

    /// The writing of a page ended. If reclaim wanted it, it goes where reclaim looks next.
    pub fn end_page_writeback(&mut self, pfn: Pfn) {
        let Some(ix) = self.map.ix(pfn) else { return };
        let flags = self.flags_of(ix);
        self.put_flags(ix, flags - PageFlags::WRITEBACK - PageFlags::RECLAIM);
        if !flags.contains(PageFlags::RECLAIM) {
            return;
        }
        if let Some(lru) = Lru::from_code(self.frames.state(ix).lru())
            && !lru.is_active()
            && lru != Lru::Unevictable
        {
            self.unlink_lru(ix, lru);
            self.link_lru(ix, lru, End::Tail);
            self.reclaim.pgrotated += 1;
        }
    }

    /// The LRU lists of a zone; of a node where the era has them by node (at its first zone, empty at
    /// the others).
    pub fn lru_view(&self, zone: usize) -> LruView {
        let v = &self.lruvecs[zone];
        LruView {
            pages: v.lists.map(|l| u64::from(l.len)),
            isolated: v.isolated,
            all_unreclaimable: self.zone(zone).all_unreclaimable,
        }
    }

    /// Pages on an LRU list, from the newest.
    pub fn lru_list(&self, zone: usize, lru: Lru) -> impl Iterator<Item = Pfn> {
        let list = self.lruvecs[zone].lists[lru.index()];
        list.iter(self.frames.meta).map(|ix| self.map.pfn(ix))
    }

    /// Events of reclaim since the start.
    pub fn reclaim_counters(&self) -> &ReclaimCounters {
        &self.reclaim
    }
}
