//! Flags of a page in use.

use bitflags::bitflags;

bitflags! {
    /// Flags of a page in use (`page->flags`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct PageFlags: u16 {
        /// Accessed since the last scan, by read or write (`PG_referenced`).
        const REFERENCED = 1;
        /// Accessed through a mapping since the last scan (the young bits of its page table entries).
        const YOUNG = 1 << 1;
        /// Its content differs from what is stored (`PG_dirty`).
        const DIRTY = 1 << 2;
        /// Its content is being written to the device (`PG_writeback`).
        const WRITEBACK = 1 << 3;
        /// Its owner has locked it (`PG_locked`).
        const LOCKED = 1 << 4;
        /// A process maps it.
        const MAPPED = 1 << 5;
        /// Reclaim wants it when its writeback ends (`PG_reclaim`).
        const RECLAIM = 1 << 6;
        /// It is mapped executable.
        const EXEC = 1 << 7;
        /// Its owner freed it while it was isolated; it is freed when the isolation ends.
        const FREED = 1 << 8;
        /// Isolated: it was on an active list, or is to go there.
        const ACTIVE = 1 << 9;
        /// Isolated: it is anonymous, or of tmpfs.
        const SWAPBACKED = 1 << 10;
    }
}

impl PageFlags {
    /// Flags that only isolated pages have. While a page is on the list of a generation, their bits and that of
    /// [`REFERENCED`](Self::REFERENCED) say which generation it is, and how often the page was read.
    pub(crate) const OF_ISOLATED: PageFlags = PageFlags::FREED
        .union(PageFlags::ACTIVE)
        .union(PageFlags::SWAPBACKED);

    /// Used by a mapping since the last look.
    pub(crate) const USED: PageFlags = PageFlags::MAPPED.union(PageFlags::YOUNG);
}
