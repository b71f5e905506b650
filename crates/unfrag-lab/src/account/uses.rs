//! What a frame of memory is used for, as far as its own flags in `/proc/kpageflags` tell.
//!
//! Finer than what compaction asks ([`crate::doctor::frames`]): here dirty page cache, shared memory and anonymous memory are
//! apart, and what no flag tells stays open until the counters are at hand. `spec: 7.10`
//!
//! Invariant: a frame has one use.

use serde::Serialize;
use unfrag_linux::kpageflags::{
    ANON, BUDDY, COMPOUND_HEAD, COMPOUND_TAIL, DIRTY, HUGE, HWPOISON, LOCKED, LRU, MMAP, NOPAGE,
    OFFLINE, PGTABLE, RESERVED, SLAB, SWAPBACKED, UPTODATE, WRITEBACK, ZERO_PAGE,
};

/// What a frame is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// On a buddy list.
    Free,
    /// Free, on a per-CPU list.
    PerCpu,
    /// Page cache of files that can be dropped as it is.
    CleanCache,
    /// Page cache that has to be written first.
    DirtyCache,
    /// Page cache that is being written.
    Writeback,
    /// tmpfs, memfd and memory that processes share.
    Shmem,
    /// Anonymous memory of processes in single pages.
    Anon,
    /// Anonymous memory in blocks of several pages, smaller than a huge page (mTHP).
    AnonLarge,
    /// Anonymous memory in transparent huge pages.
    AnonHuge,
    /// The pool of huge pages, in use or not.
    Hugetlb,
    /// Objects of the kernel's caches.
    Slab,
    /// Page tables.
    PageTables,
    /// Pages of zeroes that all who only read share.
    ZeroPages,
    /// Taken by a balloon, or unplugged.
    Offline,
    /// Broken, and put out of use.
    Broken,
    /// The kernel's, without a flag that says what for: vmalloc, stacks, per-CPU areas, buffers of drivers, leaks.
    Kernel,
    /// Never given to the allocator: kernel image, memory map, firmware.
    Reserved,
}

/// Number of uses.
pub const NR_USES: usize = 17;

impl Use {
    /// All, in order.
    pub const ALL: [Use; NR_USES] = [
        Use::Free,
        Use::PerCpu,
        Use::CleanCache,
        Use::DirtyCache,
        Use::Writeback,
        Use::Shmem,
        Use::Anon,
        Use::AnonLarge,
        Use::AnonHuge,
        Use::Hugetlb,
        Use::Slab,
        Use::PageTables,
        Use::ZeroPages,
        Use::Offline,
        Use::Broken,
        Use::Kernel,
        Use::Reserved,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Use::Free => "free, on buddy lists",
            Use::PerCpu => "free, on per-CPU lists",
            Use::CleanCache => "page cache, clean",
            Use::DirtyCache => "page cache, dirty",
            Use::Writeback => "page cache, being written",
            Use::Shmem => "shared memory, tmpfs",
            Use::Anon => "anonymous, single pages",
            Use::AnonLarge => "anonymous, mTHP",
            Use::AnonHuge => "anonymous, huge pages",
            Use::Hugetlb => "hugetlb pool",
            Use::Slab => "slab",
            Use::PageTables => "page tables",
            Use::ZeroPages => "shared pages of zeroes",
            Use::Offline => "offline, balloon",
            Use::Broken => "broken",
            Use::Kernel => "other kernel memory",
            Use::Reserved => "reserved at boot",
        }
    }
}

/// What the flags of a frame alone tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// This use; of anonymous memory the block's size is told by the frames that follow.
    Is(Use),
    /// There is no page.
    NoPage,
    /// Reserved memory, or a hole beside it.
    Reserved,
    /// No flag at all: the kernel's, on a per-CPU list, or a hole.
    Nothing,
}

/// What a frame's flags tell. Of a slab page the other flags mean nothing, so that one comes first.
pub(super) fn seen(w: u64) -> Seen {
    let has = |bits| w & bits != 0;
    if w == 0 {
        return Seen::Nothing;
    }
    if has(NOPAGE) {
        return Seen::NoPage;
    }
    if has(SLAB) {
        return Seen::Is(Use::Slab);
    }
    if has(BUDDY) {
        return Seen::Is(Use::Free);
    }
    if has(HWPOISON) {
        return Seen::Is(Use::Broken);
    }
    // A page of zeroes that is part of the kernel's image is reserved as well.
    if has(RESERVED) {
        return Seen::Reserved;
    }
    let known = [
        (OFFLINE, Use::Offline),
        (HUGE, Use::Hugetlb),
        (PGTABLE, Use::PageTables),
        (ZERO_PAGE, Use::ZeroPages),
        (ANON, Use::Anon),
        (SWAPBACKED, Use::Shmem),
    ];
    if let Some((_, of)) = known.iter().find(|(bits, _)| has(*bits)) {
        return Seen::Is(*of);
    }
    // Pages on their way to an LRU list are locked while they are read, or up to date already. A page that a process maps and
    // that is neither is a driver's.
    let is_cache = has(LRU | UPTODATE) || (has(LOCKED) && !has(MMAP));
    Seen::Is(match is_cache {
        true if has(WRITEBACK) => Use::Writeback,
        true if has(DIRTY) => Use::DirtyCache,
        true => Use::CleanCache,
        false => Use::Kernel,
    })
}

/// Whether a frame goes on with the block of pages that the one before it is of.
pub(super) fn is_tail(w: u64) -> bool {
    w & COMPOUND_TAIL != 0 && w & COMPOUND_HEAD == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: 7.10`
    #[test]
    fn uses_by_flags() {
        for (flags, expected) in [
            (0, Seen::Nothing),
            (NOPAGE, Seen::NoPage),
            (RESERVED | ZERO_PAGE, Seen::Reserved),
            (SLAB | ANON | MMAP, Seen::Is(Use::Slab)),
            (BUDDY | UPTODATE, Seen::Is(Use::Free)),
            (LRU | UPTODATE, Seen::Is(Use::CleanCache)),
            (LRU | UPTODATE | DIRTY | MMAP, Seen::Is(Use::DirtyCache)),
            (LRU | WRITEBACK | DIRTY, Seen::Is(Use::Writeback)),
            (LRU | SWAPBACKED | DIRTY, Seen::Is(Use::Shmem)),
            (LRU | SWAPBACKED | ANON, Seen::Is(Use::Anon)),
            (ANON, Seen::Is(Use::Anon)),
            (UPTODATE, Seen::Is(Use::CleanCache)),
            (MMAP, Seen::Is(Use::Kernel)),
            (COMPOUND_HEAD, Seen::Is(Use::Kernel)),
            (HUGE | COMPOUND_HEAD, Seen::Is(Use::Hugetlb)),
            (OFFLINE, Seen::Is(Use::Offline)),
            (HWPOISON | LRU, Seen::Is(Use::Broken)),
        ] {
            assert_eq!(seen(flags), expected, "{flags:#x}");
        }
    }

    #[test]
    fn all_uses_stand_in_order() {
        for (i, kind) in Use::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, i);
        }
    }
}
