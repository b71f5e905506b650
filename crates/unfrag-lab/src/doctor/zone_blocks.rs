//! The pageblocks of a zone, from a stream of `/proc/kpageflags`.
//!
//! Of each pageblock its frames are counted by use; of each frame only its role in compaction is kept. zoneinfo's
//! `count` says how many of the frames without flags are on per-CPU lists; those are taken to be in the blocks that hold
//! nothing else of the kernel.
//!
//! Invariant: every frame of a zone's span counts once in its pageblock.

use super::frames::{BLOCK_FRAMES, BlockUse, DIRTY, FrameUse, PRIVATE, WRITEBACK, by_flags};
use super::roles::{Role, Roles};
use std::ops::Range;
use unfrag_linux::kpageflags::{COMPOUND_HEAD, COMPOUND_TAIL, LRU};

/// The pageblocks of a zone.
#[derive(Clone, Debug, Default)]
pub struct ZoneBlocks {
    /// First frame of the first block; a multiple of [`BLOCK_FRAMES`].
    pub first_pfn: u64,
    /// The blocks.
    pub blocks: Vec<BlockUse>,
    /// Role of each frame, from `first_pfn` on.
    pub(super) roles: Roles,
}

impl ZoneBlocks {
    /// Frames of a use in all blocks.
    pub fn pages(&self, kind: FrameUse) -> u64 {
        self.blocks.iter().map(|b| u64::from(b.of(kind))).sum()
    }

    /// Whether the kernel could give the frame with this index at once, if it emptied what `emptied` says.
    #[inline]
    pub(super) fn is_free(&self, frame: usize, emptied: Emptied) -> bool {
        match self.roles.of(frame) {
            Role::Free => true,
            Role::Clean | Role::CleanTail => emptied.caches,
            // A block's frames without flags are all on per-CPU lists, or none is.
            Role::Unflagged => {
                emptied.lists && self.blocks[frame / BLOCK_FRAMES].of(FrameUse::PerCpu) > 0
            }
            _ => false,
        }
    }

    /// Frames of a pageblock that are free, if the kernel emptied what `emptied` says.
    pub(super) fn free(&self, block: usize, emptied: Emptied) -> u16 {
        let b = &self.blocks[block];
        let of = |is, kind| if is { b.of(kind) } else { 0 };
        b.of(FrameUse::Free)
            + of(emptied.lists, FrameUse::PerCpu)
            + of(emptied.caches, FrameUse::CleanCache)
    }

    /// Order of the folio that begins at the frame with this index; that of a pageblock at most.
    pub(super) fn folio_order(&self, frame: usize) -> u32 {
        let tails = (1..BLOCK_FRAMES).take_while(|i| self.roles.of(frame + i).is_tail());
        (1 + tails.count()).ilog2()
    }
}

/// What is emptied before memory is compacted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emptied {
    /// The per-CPU lists.
    pub lists: bool,
    /// Clean page cache.
    pub caches: bool,
}

/// Reads a zone's pageblocks.
pub struct ZoneReader {
    span: Range<u64>,
    zone: ZoneBlocks,
    /// Frames without flags, by block.
    unflagged: Vec<u16>,
    /// The block that is being read, and how many of its frames were.
    roles: [Role; BLOCK_FRAMES],
    counts: BlockUse,
    without: u16,
    filled: usize,
    /// The use of the folio that is being read.
    folio: Option<FrameUse>,
}

impl ZoneReader {
    /// A reader of the zone with these frames.
    pub fn new(span: Range<u64>) -> ZoneReader {
        let block = BLOCK_FRAMES as u64;
        let first_pfn = span.start / block * block;
        let blocks = span.end.saturating_sub(first_pfn).div_ceil(block);
        // A length that is too large for memory is a lie; then the lists grow as they are needed.
        let blocks = usize::try_from(blocks).unwrap_or(0).min(1 << 24);
        let mut reader = ZoneReader {
            zone: ZoneBlocks {
                first_pfn,
                blocks: Vec::with_capacity(blocks),
                roles: Roles::with_capacity(blocks),
            },
            unflagged: Vec::with_capacity(blocks),
            roles: [Role::Fixed; BLOCK_FRAMES],
            counts: BlockUse::default(),
            without: 0,
            filled: 0,
            folio: None,
            span,
        };
        // What is of another zone, or of none.
        reader.skip((reader.span.start - first_pfn) as usize);
        reader
    }

    /// Reads the flags of the frames from `first` on, as far as they are the zone's. Pieces come one after the other.
    pub fn read(&mut self, first: u64, words: &[u64]) {
        let index = |pfn: u64| pfn.saturating_sub(first).min(words.len() as u64) as usize;
        for &w in &words[index(self.span.start)..index(self.span.end)] {
            self.frame(w);
        }
    }

    fn frame(&mut self, w: u64) {
        let has = |bits| w & bits != 0;
        let is_tail = has(COMPOUND_TAIL) && !has(COMPOUND_HEAD);
        if !is_tail {
            self.folio = None;
        }
        let role = match self.folio {
            // A tail page has its head's use; it has few flags of its own.
            Some(kind) => {
                self.counts.0[kind as usize] += 1;
                tail_of(kind)
            }
            None => {
                let kind = by_flags(w);
                match kind {
                    Some(kind) => self.counts.0[kind as usize] += 1,
                    None => self.without += 1,
                }
                if has(COMPOUND_HEAD) {
                    self.folio = kind;
                }
                let is_whole =
                    has(COMPOUND_HEAD) && has(LRU) && has(PRIVATE) && has(DIRTY | WRITEBACK);
                start_of(kind, is_whole)
            }
        };
        self.roles[self.filled] = role;
        self.filled += 1;
        if self.filled == BLOCK_FRAMES {
            self.end_block();
        }
    }

    /// Passes over frames that are not the zone's.
    fn skip(&mut self, frames: usize) {
        for _ in 0..frames {
            self.counts.0[FrameUse::Absent as usize] += 1;
            self.roles[self.filled] = Role::Fixed;
            self.filled += 1;
        }
        if self.filled == BLOCK_FRAMES {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        self.mark_huge();
        // What they are is not known before all is read.
        self.counts.0[FrameUse::Absent as usize] += self.without;
        self.zone.roles.push(&self.roles);
        self.zone.blocks.push(std::mem::take(&mut self.counts));
        self.unflagged.push(std::mem::take(&mut self.without));
        self.filled = 0;
    }

    /// Marks a folio of a whole block as a huge page, which compaction does not move. Clean page cache is not
    /// marked: it can be dropped, however large its folios are.
    fn mark_huge(&mut self) {
        let begins = matches!(
            self.roles[0],
            Role::Movable | Role::MovableWhole | Role::Unevictable | Role::UnevictableWhole
        );
        if begins && self.roles[1..].iter().all(|r| *r == Role::Tail) {
            self.roles.fill(Role::Fixed);
            self.counts = BlockUse::default();
            self.counts.0[FrameUse::Thp as usize] = BLOCK_FRAMES as u16;
        }
    }

    /// The pageblocks, of which so many frames are on per-CPU lists.
    pub fn finish(mut self, pcp: u64) -> ZoneBlocks {
        if self.zone.blocks.is_empty()
            && self.filled as u64 == self.span.start - self.zone.first_pfn
        {
            return self.zone;
        }
        if self.filled > 0 {
            self.skip(BLOCK_FRAMES - self.filled);
        }
        self.settle(pcp);
        self.zone
    }

    /// Decides the use of the frames without flags.
    fn settle(&mut self, pcp: u64) {
        let (blocks, unflagged) = (&mut self.zone.blocks, &self.unflagged);
        // Whole blocks without a flag are not the allocator's: the memory map, holes. Huge pages on per-CPU lists
        // look alike, and are few.
        let mut mixed: Vec<u32> = (0..blocks.len() as u32)
            .filter(|&b| (1..BLOCK_FRAMES as u16).contains(&unflagged[b as usize]))
            .collect();
        mixed.sort_by_key(|&b| {
            let block = &blocks[b as usize];
            (block.kernel() + block.of(FrameUse::Reserved), b)
        });
        let mut left = pcp;
        for b in mixed {
            let n = unflagged[b as usize];
            let kind = match u64::from(n) <= left {
                true => FrameUse::PerCpu,
                false => FrameUse::Kernel,
            };
            if kind == FrameUse::PerCpu {
                left -= u64::from(n);
            }
            blocks[b as usize].recount(FrameUse::Absent, kind, n);
        }
    }
}

/// The role of the first frame of a folio; without a use, it has no flags.
fn start_of(kind: Option<FrameUse>, is_whole: bool) -> Role {
    match kind {
        None => Role::Unflagged,
        Some(FrameUse::Free) => Role::Free,
        Some(FrameUse::CleanCache) => Role::Clean,
        Some(FrameUse::User) if is_whole => Role::MovableWhole,
        Some(FrameUse::User) => Role::Movable,
        Some(FrameUse::Unevictable) if is_whole => Role::UnevictableWhole,
        Some(FrameUse::Unevictable) => Role::Unevictable,
        Some(_) => Role::Fixed,
    }
}

/// The role of a further frame of a folio.
fn tail_of(kind: FrameUse) -> Role {
    match kind {
        FrameUse::Free => Role::Free,
        FrameUse::CleanCache => Role::CleanTail,
        FrameUse::User | FrameUse::Unevictable => Role::Tail,
        _ => Role::Fixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_linux::kpageflags::{ANON, BUDDY, SLAB};

    /// The blocks of a zone, read in pieces of several sizes.
    fn read(span: Range<u64>, pcp: u64, words: &[u64]) -> ZoneBlocks {
        let whole = {
            let mut reader = ZoneReader::new(span.clone());
            reader.read(0, words);
            reader.finish(pcp)
        };
        for size in [1, 7, 511, 512, 513] {
            let mut reader = ZoneReader::new(span.clone());
            for (i, piece) in words.chunks(size).enumerate() {
                reader.read((i * size) as u64, piece);
            }
            assert_eq!(reader.finish(pcp).blocks, whole.blocks, "pieces of {size}");
        }
        whole
    }

    #[test]
    fn a_tail_has_its_head_s_use() {
        let mut words = vec![BUDDY; 512];
        words[8] = LRU | ANON | COMPOUND_HEAD;
        words[9..16].fill(COMPOUND_TAIL);
        let z = read(0..512, 0, &words);
        assert_eq!(z.blocks[0].of(FrameUse::User), 8);
        assert_eq!(z.blocks[0].of(FrameUse::Free), 504);
        assert_eq!(z.folio_order(8), 3);
        assert_eq!(z.roles.of(9), Role::Tail);
    }

    #[test]
    fn a_folio_of_a_block_is_a_huge_page() {
        let mut words = vec![LRU | ANON | COMPOUND_TAIL; 512];
        words[0] = LRU | ANON | COMPOUND_HEAD;
        let z = read(0..512, 0, &words);
        assert_eq!(z.blocks[0].of(FrameUse::Thp), 512);
    }

    #[test]
    fn unflagged_frames_are_on_per_cpu_lists_or_the_kernel_s() {
        let mut words = vec![BUDDY; 1024];
        words[3] = 0;
        words[4] = SLAB;
        words[600] = 0;
        let z = read(0..1024, 1, &words);
        assert_eq!(z.blocks[0].of(FrameUse::Kernel), 1);
        assert_eq!(z.blocks[1].of(FrameUse::PerCpu), 1);
        let total: u64 = FrameUse::ALL.iter().map(|&k| z.pages(k)).sum();
        assert_eq!(total, 1024, "every frame counts once");
    }

    #[test]
    fn a_span_beyond_the_flags_is_absent() {
        let z = read(0..2048, 0, &[BUDDY; 700]);
        assert_eq!(z.pages(FrameUse::Free), 700);
        assert_eq!(z.blocks.len(), 2);
        assert!(read(1 << 40..(1 << 40) + 512, 0, &[]).blocks.is_empty());
    }

    #[test]
    fn a_span_within_blocks_has_the_rest_absent() {
        let z = read(100..1000, 0, &[BUDDY; 2048]);
        assert_eq!(z.first_pfn, 0);
        assert_eq!(z.pages(FrameUse::Free), 900);
        assert_eq!(z.blocks[0].of(FrameUse::Absent), 100);
        assert_eq!(z.blocks[1].of(FrameUse::Absent), 24);
    }
}
