//! The use of a page frame, as its flags in `/proc/kpageflags` tell it, and of a pageblock.
//!
//! Pages on per-CPU lists have no flags, and neither have the kernel's own pages outside slabs and page tables
//! (vmalloc, stacks, buffers of drivers); `zone_blocks` tells them apart.
//!
//! Invariant: a pageblock counts each of its frames once.

use serde::Serialize;
use unfrag_linux::kpageflags::{ANON, BUDDY, LRU, MMAP, NOPAGE, PGTABLE, SLAB};

/// Frames in a pageblock, and in a huge page.
pub const BLOCK_FRAMES: usize = 512;

const UPTODATE: u64 = 1 << 3;
pub(super) const DIRTY: u64 = 1 << 4;
pub(super) const WRITEBACK: u64 = 1 << 8;
const SWAPBACKED: u64 = 1 << 14;
const HUGE: u64 = 1 << 17;
const UNEVICTABLE: u64 = 1 << 18;
const HWPOISON: u64 = 1 << 19;
const OFFLINE: u64 = 1 << 23;
const ZERO_PAGE: u64 = 1 << 24;
const RESERVED: u64 = 1 << 32;
const MLOCKED: u64 = 1 << 33;
pub(super) const PRIVATE: u64 = 1 << 35;

/// What a page frame is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameUse {
    /// On a buddy list.
    Free,
    /// On a per-CPU list.
    PerCpu,
    /// Page cache that no process maps and that is clean: can be dropped.
    CleanCache,
    /// Other memory of processes and other page cache: can be moved.
    User,
    /// Memory of processes or page cache that may not be reclaimed (mlock, ramfs): can be moved if
    /// `vm.compact_unevictable_allowed` is 1.
    Unevictable,
    /// In use as a transparent huge page.
    Thp,
    /// In the pool of huge pages.
    Hugetlb,
    /// Objects of the kernel's caches.
    Slab,
    /// Page tables.
    PageTables,
    /// Other memory of the kernel: vmalloc, stacks, buffers of drivers.
    Kernel,
    /// Reserved at boot (kernel image, memory map), offline or broken.
    Reserved,
    /// A hole, or memory that the allocator does not manage.
    Absent,
}

/// Number of uses.
pub const NR_FRAME_USES: usize = 12;

impl FrameUse {
    /// All, in order.
    pub const ALL: [FrameUse; NR_FRAME_USES] = [
        FrameUse::Free,
        FrameUse::PerCpu,
        FrameUse::CleanCache,
        FrameUse::User,
        FrameUse::Unevictable,
        FrameUse::Thp,
        FrameUse::Hugetlb,
        FrameUse::Slab,
        FrameUse::PageTables,
        FrameUse::Kernel,
        FrameUse::Reserved,
        FrameUse::Absent,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            FrameUse::Free => "free",
            FrameUse::PerCpu => "per-CPU lists",
            FrameUse::CleanCache => "clean page cache",
            FrameUse::User => "processes, other cache",
            FrameUse::Unevictable => "unevictable, mlocked",
            FrameUse::Thp => "transparent huge pages",
            FrameUse::Hugetlb => "hugetlb",
            FrameUse::Slab => "slab",
            FrameUse::PageTables => "page tables",
            FrameUse::Kernel => "other kernel memory",
            FrameUse::Reserved => "reserved at boot",
            FrameUse::Absent => "no memory",
        }
    }

    /// Whether neither compaction nor dropping caches frees it.
    pub fn is_fixed(self) -> bool {
        matches!(
            self,
            FrameUse::Slab
                | FrameUse::PageTables
                | FrameUse::Kernel
                | FrameUse::Reserved
                | FrameUse::Absent
        )
    }
}

/// What a pageblock holds: frames of each use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockUse(pub [u16; NR_FRAME_USES]);

impl BlockUse {
    /// Frames of a use.
    pub fn of(&self, kind: FrameUse) -> u16 {
        self.0[kind as usize]
    }

    /// Frames that are fixed ([`FrameUse::is_fixed`]).
    pub fn fixed(&self) -> u16 {
        FrameUse::ALL
            .iter()
            .filter(|k| k.is_fixed())
            .map(|&k| self.of(k))
            .sum()
    }

    /// Frames of the kernel, without those reserved at boot.
    pub fn kernel(&self) -> u16 {
        self.of(FrameUse::Slab) + self.of(FrameUse::PageTables) + self.of(FrameUse::Kernel)
    }

    /// Whether it has no memory that the allocator manages.
    pub fn is_absent(&self) -> bool {
        usize::from(self.of(FrameUse::Absent) + self.of(FrameUse::Reserved)) == BLOCK_FRAMES
    }

    /// Counts `n` frames of one use as ones of another.
    pub(super) fn recount(&mut self, from: FrameUse, to: FrameUse, n: u16) {
        self.0[from as usize] -= n;
        self.0[to as usize] += n;
    }
}

/// The use that a frame's own flags tell; `None` if they tell none. Of a slab page the other flags mean nothing, so that
/// one comes first.
pub(super) fn by_flags(w: u64) -> Option<FrameUse> {
    let has = |bits| w & bits != 0;
    Some(if has(NOPAGE) {
        FrameUse::Absent
    } else if has(SLAB) {
        FrameUse::Slab
    } else if has(BUDDY) {
        FrameUse::Free
    } else if has(RESERVED | OFFLINE | HWPOISON) {
        FrameUse::Reserved
    } else if has(HUGE) {
        FrameUse::Hugetlb
    } else if has(PGTABLE) {
        FrameUse::PageTables
    } else if has(ZERO_PAGE) {
        FrameUse::Kernel
    } else if has(UNEVICTABLE | MLOCKED) {
        FrameUse::Unevictable
    } else if has(LRU) && !has(ANON | SWAPBACKED | MMAP | DIRTY | WRITEBACK) {
        FrameUse::CleanCache
    } else if has(LRU | ANON | MMAP | UPTODATE) {
        // Pages on their way to an LRU list are up to date or mapped already.
        FrameUse::User
    } else if w == 0 {
        return None;
    } else {
        FrameUse::Kernel
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_by_flags() {
        let tail = 1 << 16;
        assert_eq!(by_flags(SLAB | ANON | tail), Some(FrameUse::Slab));
        assert_eq!(by_flags(LRU | UPTODATE), Some(FrameUse::CleanCache));
        assert_eq!(by_flags(LRU | UPTODATE | MMAP), Some(FrameUse::User));
        assert_eq!(
            by_flags(LRU | ANON | SWAPBACKED | UNEVICTABLE),
            Some(FrameUse::Unevictable)
        );
        assert_eq!(by_flags(0), None);
    }
}
