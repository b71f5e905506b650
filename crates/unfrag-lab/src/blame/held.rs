//! The frames that the kernel holds, by pageblock.
//!
//! Invariant: a frame belongs to one piece at most; of each pageblock the frames of each holder are counted.

use super::holders::HolderId;
use super::report::Blocks;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use unfrag_eras::Geometry;

/// Frames below this one, those of 1 TiB, have a bit each. Of those beyond, on hosts whose memory is far apart, the
/// pieces say all, so that one event far away takes no memory for what lies between.
const NEAR: u64 = 1 << 28;
/// A spoilt block, in the unit in which it is shared out.
pub(super) const WHOLE: u64 = 1 << 24;

/// A block of frames that was taken at once, or what is left of it.
#[derive(Clone, Copy)]
struct Piece {
    holder: HolderId,
    order: u8,
}

/// The frames that the kernel holds.
pub(super) struct Held {
    /// Sizes of the host's blocks and pageblocks.
    geometry: Geometry,
    /// By first frame.
    pieces: HashMap<u64, Piece>,
    /// By frame below [`NEAR`], whether a piece has it.
    is_held: Vec<u64>,
    /// By number, the pageblocks with frames of the kernel.
    blocks: BTreeMap<u64, Block>,
    /// Frames of each holder.
    frames: Vec<u64>,
}

/// The kernel's frames in a pageblock.
#[derive(Default)]
struct Block {
    frames: u32,
    by_holder: Vec<(HolderId, u32)>,
}

impl Held {
    /// None, on a host of these sizes.
    pub(super) fn on(geometry: Geometry) -> Held {
        Held {
            geometry,
            pieces: HashMap::new(),
            is_held: vec![],
            blocks: BTreeMap::new(),
            frames: vec![],
        }
    }

    /// Sizes of the host's blocks and pageblocks.
    pub(super) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Whether a frame is the kernel's.
    #[inline]
    pub(super) fn has(&self, pfn: u64) -> bool {
        if pfn >= NEAR {
            return self.piece_of(pfn).is_some();
        }
        let word = self.is_held.get((pfn / 64) as usize);
        word.is_some_and(|w| w >> (pfn % 64) & 1 == 1)
    }

    /// Frames that a holder has.
    pub(super) fn frames_of(&self, holder: HolderId) -> u64 {
        self.frames.get(holder as usize).copied().unwrap_or(0)
    }

    /// The piece that has a frame: its first frame, its order and its holder.
    pub(super) fn piece_of(&self, pfn: u64) -> Option<(u64, u8, HolderId)> {
        (0..=self.geometry.max_order.0).find_map(|order| {
            let head = pfn & !((1 << order) - 1);
            let piece = self.pieces.get(&head).filter(|p| p.order >= order)?;
            Some((head, piece.order, piece.holder))
        })
    }

    /// A holder takes a block of frames.
    pub(super) fn take(&mut self, pfn: u64, order: u8, holder: HolderId) {
        self.free(pfn, order);
        self.put(pfn, Piece { holder, order });
    }

    /// Frames are free, or no longer the kernel's.
    #[inline]
    pub(super) fn free(&mut self, pfn: u64, order: u8) {
        let frames = pfn..pfn + (1 << order);
        // Nearly all that is freed is one frame, of which the bit says all.
        for p in frames.clone() {
            if self.has(p) {
                self.free_held(p, &frames);
            }
        }
    }

    /// Frees the piece with a held frame, but for what is outside of `frames`.
    fn free_held(&mut self, pfn: u64, frames: &Range<u64>) {
        let Some((at, ..)) = self.piece_of(pfn) else {
            return;
        };
        if let Some(piece) = self.pieces.remove(&at) {
            self.count(at, piece, false);
            self.put_outside(at, piece, frames);
        }
    }

    /// Puts back what of a piece is outside of `frames`.
    fn put_outside(&mut self, pfn: u64, piece: Piece, frames: &Range<u64>) {
        let end = pfn + (1 << piece.order);
        if end <= frames.start || pfn >= frames.end {
            self.put(pfn, piece);
        } else if piece.order > 0 && !(frames.start <= pfn && end <= frames.end) {
            let order = piece.order - 1;
            let half = Piece { order, ..piece };
            self.put_outside(pfn, half, frames);
            self.put_outside(pfn + (1 << order), half, frames);
        }
    }

    fn put(&mut self, pfn: u64, piece: Piece) {
        self.pieces.insert(pfn, piece);
        self.count(pfn, piece, true);
    }

    /// Counts a piece that comes or goes.
    fn count(&mut self, pfn: u64, piece: Piece, comes: bool) {
        let end = pfn + (1 << piece.order);
        let words = end.min(NEAR).div_ceil(64) as usize;
        if self.is_held.len() < words {
            self.is_held.resize(words.next_power_of_two(), 0);
        }
        let holder = piece.holder as usize;
        if self.frames.len() <= holder {
            self.frames.resize(holder + 1, 0);
        }
        for p in pfn..end.min(NEAR) {
            let (word, bit) = (&mut self.is_held[(p / 64) as usize], 1 << (p % 64));
            *word = if comes { *word | bit } else { *word & !bit };
        }
        let frames = end - pfn;
        let sum = &mut self.frames[holder];
        *sum = if comes { *sum + frames } else { *sum - frames };
        let mut at = pfn;
        while at < end {
            let number = at >> self.geometry.block_order.0;
            let next = end.min((number + 1) << self.geometry.block_order.0);
            let block = self.blocks.entry(number).or_default();
            block.count(piece.holder, (next - at) as u32, comes);
            if block.frames == 0 {
                self.blocks.remove(&number);
            }
            at = next;
        }
    }

    /// Shares the spoilt blocks out among the holders of their frames: adds to `shares`, in units of which a block has
    /// [`WHOLE`], and counts the blocks.
    pub(super) fn share_out(&self, shares: &mut Vec<u64>) -> Blocks {
        let mut spoilt = 0;
        // A block is spoilt where fewer than half of its frames are the kernel's.
        let half = self.geometry.block_order.frames() / 2;
        for block in self.blocks.values().filter(|b| b.frames < half) {
            spoilt += 1;
            for &(holder, frames) in &block.by_holder {
                let at = holder as usize;
                if shares.len() <= at {
                    shares.resize(at + 1, 0);
                }
                shares[at] += WHOLE * u64::from(frames) / u64::from(block.frames);
            }
        }
        Blocks {
            spoilt,
            filled: self.blocks.len() as u64 - spoilt,
        }
    }
}

impl Block {
    fn count(&mut self, holder: HolderId, frames: u32, comes: bool) {
        let at = self.by_holder.iter().position(|h| h.0 == holder);
        if comes {
            self.frames += frames;
            match at {
                Some(at) => self.by_holder[at].1 += frames,
                None => self.by_holder.push((holder, frames)),
            }
        } else if let Some(at) = at {
            self.frames -= frames;
            self.by_holder[at].1 -= frames;
            if self.by_holder[at].1 == 0 {
                self.by_holder.swap_remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_eras::Order;

    fn shares(held: &Held) -> (u64, Vec<u64>) {
        let mut shares = vec![];
        let spoilt = held.share_out(&mut shares).spoilt;
        (spoilt, shares)
    }

    /// A block is one of the host: spoilt by one frame in 8,192 as by one in 512, and by no half.
    #[test]
    fn a_pageblock_is_as_large_as_the_hosts() {
        let geometry = Geometry {
            page_shift: 16,
            max_order: Order(13),
            block_order: Order(13),
            huge_order: Order(13),
        };
        let mut held = Held::on(geometry);
        held.take(512, 0, 0);
        held.take(8191, 0, 1);
        assert_eq!(shares(&held), (1, vec![WHOLE / 2, WHOLE / 2]));
        held.take(8192, 12, 0);
        assert_eq!(shares(&held).0, 1, "half of the second is the kernel's");
        held.take(0, 13, 0);
        assert_eq!(held.piece_of(8191), Some((0, 13, 0)));
        assert_eq!(shares(&held).0, 0);
    }

    #[test]
    fn a_block_is_shared_out_among_the_holders_of_its_frames() {
        let mut held = Held::on(Geometry::PAGES_4K);
        held.take(512, 0, 0);
        held.take(516, 1, 1);
        held.take(520, 0, 1);
        assert_eq!(shares(&held), (1, vec![WHOLE / 4, 3 * WHOLE / 4]));
        held.free(512, 0);
        assert_eq!(shares(&held), (1, vec![0, WHOLE]));
        assert_eq!((held.frames_of(0), held.frames_of(1)), (0, 3));
    }

    #[test]
    fn a_block_that_is_the_kernels_for_the_most_part_is_not_spoilt() {
        let mut held = Held::on(Geometry::PAGES_4K);
        held.take(0, 7, 0);
        assert_eq!(shares(&held).0, 1);
        held.take(128, 7, 0);
        assert_eq!(shares(&held).0, 0);
        // Two whole blocks at once.
        held.take(1024, 10, 0);
        assert_eq!(shares(&held).0, 0);
        held.free(0, 6);
        assert_eq!(shares(&held).0, 1, "192 of 512 frames");
    }

    #[test]
    fn a_part_of_a_piece_may_be_freed_and_taken_by_another() {
        let mut held = Held::on(Geometry::PAGES_4K);
        held.take(64, 3, 0);
        held.free(66, 0);
        assert_eq!(held.frames_of(0), 7);
        held.take(68, 2, 1);
        assert_eq!((held.frames_of(0), held.frames_of(1)), (3, 4));
        assert!(held.has(64) && !held.has(66) && held.has(67) && held.has(71));
        // A larger block takes all of it.
        held.take(64, 4, 2);
        assert_eq!(
            (held.frames_of(0), held.frames_of(1), held.frames_of(2)),
            (0, 0, 16)
        );
        held.free(0, 10);
        assert_eq!(shares(&held), (0, vec![]));
        assert!(held.pieces.is_empty());
    }
}
