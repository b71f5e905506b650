//! What a page is for, by the flags of its request and by what was done with it.
//!
//! Rules, in this order:
//! 1. A page that enters page cache is a file's. One with `__GFP_WRITE` was taken to be written to; the others are
//!    read. If the file is a block device, it is the file system's metadata.
//! 2. Of the rest, movable ones are anonymous, shared memory included, whose requests look the same. Two kinds are not:
//!    those with the flags of readahead (no retrying, warning or zeroing, but not `__GFP_NOMEMALLOC`, which a huge-page
//!    fault has), and those with `__GFP_WRITE`. They were taken for page cache and never entered it.
//! 3. `__GFP_NORETRY | __GFP_NOWARN` without `__GFP_ZERO` is how slab caches take pages; with `__GFP_RECLAIMABLE` their
//!    objects can be reclaimed. `spec: 6.2` A slab that is refused is asked for once more, in another way: [`refused`](super::refused).
//! 4. Zeroed `GFP_KERNEL` pages of order 0 or 1, charged to a memory cgroup since 5.0, are page tables.
//! 5. Zeroed blocks of order 2 are kernel stacks. Kernels that take stacks in bulk have no event for them.
//! 6. All others are unmovable pages of some other use: pipes, sockets, the lists of pages to be freed at an exit.

use crate::era::Era;
use serde::{Deserialize, Serialize};
use unfrag_eras::Gfp;

/// What a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Anonymous or shared memory of processes.
    Anonymous,
    /// Page cache that was taken to be read into.
    FileRead,
    /// Page cache that was taken to be written to.
    FileWritten,
    /// Page cache of a block device: directories, inode tables and maps of a file system.
    Metadata,
    /// Page tables of processes.
    PageTables,
    /// Stacks of tasks in the kernel.
    KernelStacks,
    /// Slabs whose objects can be reclaimed.
    SlabReclaimable,
    /// Other slabs.
    SlabUnmovable,
    /// Anything else.
    Other,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 9] = [
        Class::Anonymous,
        Class::FileRead,
        Class::FileWritten,
        Class::Metadata,
        Class::PageTables,
        Class::KernelStacks,
        Class::SlabReclaimable,
        Class::SlabUnmovable,
        Class::Other,
    ];

    /// Whether such a page is in page cache.
    pub fn is_page_cache(self) -> bool {
        matches!(self, Class::FileRead | Class::FileWritten | Class::Metadata)
    }

    /// By its request alone: rules 2 to 6.
    pub fn of_request(gfp: Gfp, order: u8, era: Era) -> Class {
        let as_slab = gfp.contains(Gfp::NORETRY | Gfp::NOWARN) && !gfp.contains(Gfp::ZERO);
        if gfp.contains(Gfp::MOVABLE) {
            let readahead = as_slab && !gfp.contains(Gfp::NOMEMALLOC);
            return match () {
                () if gfp.contains(Gfp::WRITE) => Class::FileWritten,
                () if readahead => Class::FileRead,
                () => Class::Anonymous,
            };
        }
        let zeroed =
            gfp.contains(Gfp::ZERO | Gfp::KERNEL) && !gfp.intersects(Gfp::HIGHMEM | Gfp::HARDWALL);
        let charged = gfp.contains(Gfp::ACCOUNT) || !era.is_at_least(5, 0);
        match order {
            _ if as_slab && gfp.contains(Gfp::RECLAIMABLE) => Class::SlabReclaimable,
            _ if as_slab => Class::SlabUnmovable,
            0 | 1 if zeroed && charged => Class::PageTables,
            2 if zeroed => Class::KernelStacks,
            _ => Class::Other,
        }
    }

    /// In page cache, by the flags of its request and whether the file is a block device: rule 1.
    pub fn in_page_cache(gfp: Gfp, of_device: bool) -> Class {
        match of_device {
            true => Class::Metadata,
            false if gfp.contains(Gfp::WRITE) => Class::FileWritten,
            false => Class::FileRead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_6_18_by_class() {
        let era = Era::of("6.18.0").unwrap();
        for (raw, order, class) in [
            (0x14_0dca, 0, Class::Anonymous),  // a fault
            (0x14_0cca, 0, Class::Anonymous),  // a copy on write
            (0x3d_24ca, 9, Class::Anonymous),  // a huge-page fault
            (0x15_2c4a, 0, Class::FileRead),   // readahead
            (0x44_0dc0, 0, Class::PageTables), // a page table
            (0x44_0dc0, 1, Class::PageTables), // a page directory with its twin
            (0x05_2cd0, 0, Class::SlabReclaimable),
            (0x05_2810, 1, Class::SlabReclaimable),
            (0x0d_2800, 0, Class::SlabUnmovable),
            (0x25_2800, 0, Class::SlabUnmovable),
            (0x00_2800, 0, Class::Other), // a list of pages to be freed at an exit
            (0x50_0cc2, 0, Class::Other), // a pipe
        ] {
            let gfp = era.gfp(raw);
            assert_eq!(Class::of_request(gfp, order, era), class, "{raw:#x}");
        }
    }

    #[test]
    fn classes_in_page_cache() {
        assert_eq!(
            Class::in_page_cache(Gfp::HIGHUSER_MOVABLE, false),
            Class::FileRead
        );
        let write = Gfp::HIGHUSER_MOVABLE | Gfp::WRITE;
        assert_eq!(Class::in_page_cache(write, false), Class::FileWritten);
        assert_eq!(Class::in_page_cache(write, true), Class::Metadata);
    }
}
