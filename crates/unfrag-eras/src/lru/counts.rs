//! Counters that follow the flags of pages.
//!
//! Invariant: `nr_mapped` counts the pages that have [`PageFlags::MAPPED`], `nr_used` those of them that have
//! [`PageFlags::YOUNG`] as well; `nr_aged` grows whenever one loses [`PageFlags::YOUNG`].

use crate::frame::{FrameIx, Frames, PageFlags};

/// Counters that follow the flags of pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlagCounts {
    /// Pages that a process maps.
    pub nr_mapped: u64,
    /// Pages that were used by a mapping since the last look.
    pub nr_used: u64,
    /// Times that a page lost [`PageFlags::YOUNG`].
    pub nr_aged: u64,
}

impl FlagCounts {
    /// The flags of a page change.
    #[inline]
    pub fn change(&mut self, was: PageFlags, is: PageFlags) {
        self.nr_mapped += u64::from(is.contains(PageFlags::MAPPED));
        self.nr_used += u64::from(is.contains(PageFlags::USED));
        self.unmapped(was);
        self.nr_aged += u64::from((was - is).contains(PageFlags::YOUNG));
    }

    /// A page with these flags is not mapped any more.
    #[inline]
    pub fn unmapped(&mut self, was: PageFlags) {
        self.nr_mapped -= u64::from(was.contains(PageFlags::MAPPED));
        self.nr_used -= u64::from(was.contains(PageFlags::USED));
    }

    /// Gives a page other flags.
    #[inline]
    pub fn put(&mut self, frames: &Frames, ix: FrameIx, flags: PageFlags) {
        let s = frames.state(ix);
        self.change(s.flags(), flags);
        frames.set_state(ix, s.with_flags(flags));
    }
}
