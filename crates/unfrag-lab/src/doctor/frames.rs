//! The use of each page frame and each pageblock, from `/proc/kpageflags`.
//!
//! Pages on per-CPU lists have no flags, and neither have the kernel's own pages outside slabs and page tables
//! (vmalloc, stacks, buffers of drivers). zoneinfo's `count` says how many of them are on per-CPU lists; those are
//! taken to be in the blocks that hold nothing else of the kernel.
//!
//! Invariant: every frame of a zone's span counts once in its pageblock.

use super::zones::ZoneFacts;
use serde::Serialize;
use unfrag_linux::kpageflags::{
    ANON, BUDDY, COMPOUND_HEAD, COMPOUND_TAIL, LRU, MMAP, NOPAGE, PGTABLE, PageFlags, SLAB,
};

/// Frames in a pageblock, and in a huge page.
pub const BLOCK_FRAMES: usize = 512;

const UPTODATE: u64 = 1 << 3;
const DIRTY: u64 = 1 << 4;
const WRITEBACK: u64 = 1 << 8;
const SWAPBACKED: u64 = 1 << 14;
const HUGE: u64 = 1 << 17;
const UNEVICTABLE: u64 = 1 << 18;
const HWPOISON: u64 = 1 << 19;
const OFFLINE: u64 = 1 << 23;
const ZERO_PAGE: u64 = 1 << 24;
const RESERVED: u64 = 1 << 32;
const MLOCKED: u64 = 1 << 33;
const PRIVATE: u64 = 1 << 35;

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

    fn recount(&mut self, from: FrameUse, to: FrameUse, n: u16) {
        self.0[from as usize] -= n;
        self.0[to as usize] += n;
    }
}

/// The frames and pageblocks of a zone.
#[derive(Clone, Debug, Default)]
pub struct ZoneBlocks {
    /// First frame of the first block; a multiple of [`BLOCK_FRAMES`].
    pub first_pfn: u64,
    /// The blocks.
    pub blocks: Vec<BlockUse>,
    /// Use of each frame, from `first_pfn` on.
    pub frames: Vec<FrameUse>,
    /// Order of the folio that begins at a frame; 255 where none begins.
    pub folios: Vec<u8>,
    /// Frames at which a large folio begins that cannot be split: dirty, with private data of its file
    /// system. Ascending.
    pub unsplittable: Vec<u32>,
}

/// The use that a frame's own flags tell; `None` if they tell none. Of a slab page the other flags mean nothing, so that
/// one comes first.
fn by_flags(w: u64) -> Option<FrameUse> {
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

impl ZoneBlocks {
    /// Reads the frames of a zone.
    pub fn read(zone: &ZoneFacts, flags: &PageFlags) -> ZoneBlocks {
        let block = BLOCK_FRAMES as u64;
        let first = zone.start / block * block;
        let known = (flags.words.len() as u64).max(first);
        let end = (zone.start + zone.spanned)
            .min(known)
            .next_multiple_of(block);
        let n = (end - first) as usize;
        let mut frames = vec![FrameUse::Absent; n];
        let mut folios = vec![u8::MAX; n];
        let (mut unflagged, mut unsplittable) = (vec![], vec![]);
        let mut head = None;
        for (i, frame) in frames.iter_mut().enumerate() {
            let pfn = first + i as u64;
            if pfn < zone.start || pfn >= zone.start + zone.spanned {
                continue;
            }
            let w = flags.of(pfn);
            let own = by_flags(w);
            // A tail page has its head's use; it has few flags of its own.
            let kind = match head {
                Some((at, kind)) if w & COMPOUND_TAIL != 0 => {
                    let order = usize::ilog2(i - at + 1) as u8;
                    folios[at] = order;
                    kind
                }
                _ => {
                    folios[i] = 0;
                    own
                }
            };
            head = match head {
                _ if w & COMPOUND_HEAD != 0 => {
                    if w & LRU != 0 && w & PRIVATE != 0 && w & (DIRTY | WRITEBACK) != 0 {
                        unsplittable.push(i as u32);
                    }
                    Some((i, kind))
                }
                same if w & COMPOUND_TAIL != 0 => same,
                _ => None,
            };
            match kind {
                Some(kind) => *frame = kind,
                None => unflagged.push(i),
            }
        }
        let mut zone_blocks = ZoneBlocks {
            first_pfn: first,
            blocks: vec![BlockUse::default(); n / BLOCK_FRAMES],
            frames,
            folios,
            unsplittable,
        };
        zone_blocks.mark_huge();
        zone_blocks.count(&unflagged, zone.pcp);
        zone_blocks
    }

    /// Marks folios of a whole block as huge pages, which compaction does not move. Clean page cache is not marked:
    /// it can be dropped, however large its folios are.
    fn mark_huge(&mut self) {
        for i in (0..self.frames.len()).step_by(BLOCK_FRAMES) {
            let is_huge = self.folios[i] != u8::MAX && usize::from(self.folios[i]) >= 9;
            if is_huge && matches!(self.frames[i], FrameUse::User | FrameUse::Unevictable) {
                self.frames[i..i + BLOCK_FRAMES].fill(FrameUse::Thp);
            }
        }
    }

    /// Counts the blocks, and decides the use of the frames without flags.
    fn count(&mut self, unflagged: &[usize], pcp: u64) {
        for (frames, block) in self.frames.chunks(BLOCK_FRAMES).zip(&mut self.blocks) {
            for &kind in frames {
                block.0[kind as usize] += 1;
            }
        }
        let mut by_block = vec![0u16; self.blocks.len()];
        for &i in unflagged {
            by_block[i / BLOCK_FRAMES] += 1;
        }
        // Whole blocks without a flag are not the allocator's: the memory map, holes. Huge pages on per-CPU lists
        // look alike, and are few.
        let mut left = pcp;
        let mut mixed: Vec<usize> = (0..by_block.len())
            .filter(|&b| by_block[b] > 0 && usize::from(by_block[b]) < BLOCK_FRAMES)
            .collect();
        mixed.sort_by_key(|&b| {
            (
                self.blocks[b].kernel() + self.blocks[b].of(FrameUse::Reserved),
                b,
            )
        });
        let mut is_pcp = vec![false; by_block.len()];
        for b in mixed {
            if u64::from(by_block[b]) <= left {
                left -= u64::from(by_block[b]);
                is_pcp[b] = true;
            }
        }
        for &i in unflagged {
            let b = i / BLOCK_FRAMES;
            let kind = match usize::from(by_block[b]) {
                BLOCK_FRAMES => continue,
                _ if is_pcp[b] => FrameUse::PerCpu,
                _ => FrameUse::Kernel,
            };
            self.frames[i] = kind;
            self.blocks[b].recount(FrameUse::Absent, kind, 1);
        }
    }

    /// Frames of a use in all blocks.
    pub fn pages(&self, kind: FrameUse) -> u64 {
        self.blocks.iter().map(|b| u64::from(b.of(kind))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(frames: u64, pcp: u64) -> ZoneFacts {
        ZoneFacts {
            start: 0,
            spanned: frames,
            pcp,
            ..ZoneFacts::default()
        }
    }

    #[test]
    fn use_by_flags() {
        assert_eq!(by_flags(SLAB | ANON | COMPOUND_TAIL), Some(FrameUse::Slab));
        assert_eq!(by_flags(LRU | UPTODATE), Some(FrameUse::CleanCache));
        assert_eq!(by_flags(LRU | UPTODATE | MMAP), Some(FrameUse::User));
        assert_eq!(
            by_flags(LRU | ANON | SWAPBACKED | UNEVICTABLE),
            Some(FrameUse::Unevictable)
        );
        assert_eq!(by_flags(0), None);
    }

    #[test]
    fn a_tail_has_its_head_s_use() {
        let mut words = vec![BUDDY; 512];
        words[8] = LRU | ANON | COMPOUND_HEAD;
        words[9..16].fill(COMPOUND_TAIL);
        let z = ZoneBlocks::read(&zone(512, 0), &PageFlags { words });
        assert_eq!(z.blocks[0].of(FrameUse::User), 8);
        assert_eq!(z.blocks[0].of(FrameUse::Free), 504);
        assert_eq!(z.folios[8], 3);
        assert_eq!(z.folios[9], u8::MAX);
    }

    #[test]
    fn a_folio_of_a_block_is_a_huge_page() {
        let mut words = vec![LRU | ANON | COMPOUND_TAIL; 512];
        words[0] = LRU | ANON | COMPOUND_HEAD;
        let z = ZoneBlocks::read(&zone(512, 0), &PageFlags { words });
        assert_eq!(z.blocks[0].of(FrameUse::Thp), 512);
    }

    #[test]
    fn unflagged_frames_are_on_per_cpu_lists_or_the_kernel_s() {
        let mut words = vec![BUDDY; 1024];
        words[3] = 0;
        words[4] = SLAB;
        words[600] = 0;
        let z = ZoneBlocks::read(&zone(1024, 1), &PageFlags { words });
        assert_eq!(z.blocks[0].of(FrameUse::Kernel), 1);
        assert_eq!(z.blocks[1].of(FrameUse::PerCpu), 1);
        let total: u64 = FrameUse::ALL.iter().map(|&k| z.pages(k)).sum();
        assert_eq!(total, 1024, "every frame counts once");
    }

    #[test]
    fn a_span_beyond_the_flags_is_absent() {
        let z = ZoneBlocks::read(
            &zone(2048, 0),
            &PageFlags {
                words: vec![BUDDY; 700],
            },
        );
        assert_eq!(z.pages(FrameUse::Free), 700);
        let far = ZoneFacts {
            start: 1 << 40,
            ..zone(512, 0)
        };
        assert!(
            ZoneBlocks::read(&far, &PageFlags::default())
                .blocks
                .is_empty()
        );
    }
}
