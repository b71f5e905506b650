//! Flags of pages.
//!
//! Invariant: `nr_mapped` counts the pages that have [`PageFlags::MAPPED`]; `nr_aged` grows whenever one
//! loses [`PageFlags::YOUNG`].

use super::PageFlags;
use crate::frame::{FrameMap, Frames, Ix, Pfn};
use crate::hint::prefetch;
use crate::host::Host;
use crate::page_alloc::Manager;

/// What is counted when flags change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlagCounts {
    /// Pages that some process maps.
    pub nr_mapped: u64,
    /// Times that a page lost its mark of use.
    pub nr_aged: u64,
}

impl FlagCounts {
    /// The flags of a page change.
    #[inline]
    pub fn change(&mut self, was: PageFlags, is: PageFlags) {
        self.nr_mapped += u64::from(is.contains(PageFlags::MAPPED));
        self.nr_mapped -= u64::from(was.contains(PageFlags::MAPPED));
        self.nr_aged += u64::from((was - is).contains(PageFlags::YOUNG));
    }

    #[inline]
    fn put(&mut self, frames: &mut Frames, ix: Ix, flags: PageFlags) {
        self.change(flags_at(frames, ix), flags);
        let s = frames.state(ix).with_flags(flags.bits());
        frames.set_state(ix, s);
    }
}

#[inline]
fn flags_at(frames: &Frames, ix: Ix) -> PageFlags {
    PageFlags::from_bits_retain(frames.state(ix).flags())
}

/// The flags of a manager's pages, beside its host. From [`Manager::host_and_flags`].
pub struct FlagsMut<'a, 'm> {
    frames: &'a mut Frames<'m>,
    map: &'a FrameMap,
    counts: &'a mut FlagCounts,
}

impl FlagsMut<'_, '_> {
    /// As [`Manager::page_flags`].
    #[inline]
    pub fn get(&self, pfn: Pfn) -> PageFlags {
        let ix = self.map.ix(pfn);
        ix.map_or(PageFlags::empty(), |ix| flags_at(self.frames, ix))
    }

    /// As [`Manager::prefetch`].
    #[inline]
    pub fn prefetch(&self, pfn: Pfn) {
        prefetch_record(self.frames, self.map, pfn);
    }

    /// As [`Manager::set_page_flags`].
    #[inline]
    pub fn set(&mut self, pfn: Pfn, flags: PageFlags) {
        if let Some(ix) = self.map.ix(pfn) {
            let flags = flags_at(self.frames, ix) | flags;
            self.counts.put(self.frames, ix, flags);
        }
    }

    /// As [`Manager::clear_page_flags`].
    #[inline]
    pub fn clear(&mut self, pfn: Pfn, flags: PageFlags) {
        if let Some(ix) = self.map.ix(pfn) {
            let flags = flags_at(self.frames, ix) - flags;
            self.counts.put(self.frames, ix, flags);
        }
    }
}

/// Asks for a page's record.
#[inline]
pub(super) fn prefetch_record(frames: &Frames, map: &FrameMap, pfn: Pfn) {
    if let Some(ix) = map.ix(pfn) {
        prefetch(&frames.meta[ix as usize]);
    }
}

impl<'m, H: Host> Manager<'m, H> {
    #[inline]
    pub(super) fn flags_of(&self, ix: Ix) -> PageFlags {
        flags_at(&self.frames, ix)
    }

    #[inline]
    pub(super) fn put_flags(&mut self, ix: Ix, flags: PageFlags) {
        self.flag_counts.put(&mut self.frames, ix, flags);
    }

    /// The host and the flags of pages, each to be changed while the other is in hand: for a host that goes
    /// through many pages at a time.
    #[inline]
    pub fn host_and_flags(&mut self) -> (&mut H, FlagsMut<'_, 'm>) {
        let flags = FlagsMut {
            frames: &mut self.frames,
            map: &self.map,
            counts: &mut self.flag_counts,
        };
        (&mut self.host, flags)
    }

    /// What became of a page; nothing, of one that is in no zone.
    pub fn page_flags(&self, pfn: Pfn) -> PageFlags {
        let ix = self.map.ix(pfn);
        ix.map_or(PageFlags::empty(), |ix| self.flags_of(ix))
    }

    /// Sets flags of a page.
    #[inline]
    pub fn set_page_flags(&mut self, pfn: Pfn, flags: PageFlags) {
        self.host_and_flags().1.set(pfn, flags);
    }

    /// Clears flags of a page.
    #[inline]
    pub fn clear_page_flags(&mut self, pfn: Pfn, flags: PageFlags) {
        self.host_and_flags().1.clear(pfn, flags);
    }

    /// Grows whenever a page in use loses [`PageFlags::YOUNG`]. As long as it does not, to touch again what
    /// was touched changes nothing.
    pub fn nr_aged(&self) -> u64 {
        self.flag_counts.nr_aged
    }

    /// Pages that some process maps.
    pub fn nr_mapped(&self) -> u64 {
        self.flag_counts.nr_mapped
    }
}
