//! What became of a page since it was allocated.

use bitflags::bitflags;

bitflags! {
    /// What became of a page since it was allocated.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct PageFlags: u16 {
        /// Used once since the last scan, by read or write (`PG_referenced`).
        const REFERENCED = 1;
        /// Used by way of a mapping since the last scan (the young bits of its page table entries).
        const YOUNG = 1 << 1;
        /// Its content is newer than what is stored.
        const DIRTY = 1 << 2;
        /// It is being written.
        const WRITEBACK = 1 << 3;
        /// Its owner holds it fast at the moment.
        const LOCKED = 1 << 4;
        /// Some process maps it.
        const MAPPED = 1 << 5;
        /// It is to be freed when its writeback ends.
        const RECLAIM = 1 << 6;
        /// A program runs from it.
        const EXEC = 1 << 7;
        /// Freed by its owner while it was isolated.
        const FREED = 1 << 8;
        /// Isolated: it was on an active list, or is to go there.
        const ACTIVE = 1 << 9;
        /// Isolated: it is anonymous, or of tmpfs.
        const SWAPBACKED = 1 << 10;
    }
}
