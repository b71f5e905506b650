//! Where shards are: [`Span`], and [`Range`], frames side by side of several.

use crate::frame::{Order, Pfn};
use crate::maps::LARGEST_ORDER;

/// Where a shard is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub start: u64,
    pub frames: u64,
    pub node: u8,
    pub is_low: bool,
}

impl Span {
    pub const NONE: Span = Span {
        start: u64::MAX,
        frames: 0,
        node: 0,
        is_low: false,
    };

    #[inline]
    pub fn has(&self, frame: u64) -> bool {
        frame.wrapping_sub(self.start) < self.frames
    }

    /// Brings its blocks to the front; returns how many there are.
    #[inline]
    pub fn gather(&self, blocks: &mut [u64]) -> usize {
        let in_front = blocks.iter().take_while(|&&n| self.has(n)).count();
        let mut count = in_front;
        for i in in_front..blocks.len() {
            if self.has(blocks[i]) {
                blocks.swap(i, count);
                count += 1;
            }
        }
        count
    }
}

/// Frames side by side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range {
    pub start: u64,
    pub frames: u64,
}

impl Range {
    /// Whether a block of this order could begin at a frame: it is aligned, and within these frames, which begin at a
    /// multiple of the largest block.
    #[inline]
    pub fn has_block(&self, pfn: Pfn, order: Order) -> bool {
        // The bits that a multiple of the size has not become the highest: no number of blocks is as large.
        let blocks = pfn.0.wrapping_sub(self.start).rotate_right(order.0.into());
        order <= LARGEST_ORDER && blocks < self.frames >> order.0
    }
}
