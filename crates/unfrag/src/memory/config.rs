//! What a [`Memory`](super::Memory) is made for, and how much memory it needs for that.

use crate::frame::Pfn;
use crate::local::Barrier;
use crate::local::arrays::SINGLES;
use crate::local::slot::Slots;
use crate::maps::{EngineLayout, LARGEST_ORDER};

/// Most shards.
pub const MAX_SHARDS: usize = 16;

/// Frames of a gigabyte, at which shards and the memory begin.
pub(crate) const GIGABYTE: u32 = LARGEST_ORDER.frames();

/// What a [`Memory`](super::Memory) is made for.
#[derive(Clone, Copy, Debug)]
pub struct MemoryConfig {
    /// The first frame, a multiple of 2^18: the frame table begins there, whether there is memory or not.
    pub base: Pfn,
    /// Frames that there may ever be.
    pub frames: u32,
    /// Shards of at least a gigabyte; 1 to [`MAX_SHARDS`]. One for each two CPUs is enough.
    pub shards: usize,
    /// CPUs or threads that have a [`Local`](crate::local::Local) at the same time.
    pub locals: usize,
    /// A request fails that would leave fewer free frames than these, what [`Local`](crate::local::Local)s keep not counted; but
    /// for [`alloc_atomic`](crate::local::Local::alloc_atomic).
    pub min: u64,
    /// Below so many free frames, or the min watermark, somebody should reclaim; see [`Memory::take_short`](super::Memory::take_short).
    pub low: u64,
    /// Single frames of each type that a `Local` keeps at most, and fewer blocks of the other orders that it keeps: 1 to
    /// [`SINGLES`]; what is beyond counts as the nearest of them.
    pub keeps: u32,
    /// With it, whoever finds no memory has what idle CPUs keep: see [`Memory::drain_locals`](super::Memory::drain_locals).
    /// Without it, each CPU gives back what it keeps at its next free.
    pub barrier: Option<Barrier>,
}

impl MemoryConfig {
    /// One shard and one local, without watermarks or a barrier. A local keeps the less, the less memory there is.
    pub const fn new(base: Pfn, frames: u32) -> MemoryConfig {
        let part = frames / 512;
        let keeps = if part < 8 {
            8
        } else if part > SINGLES as u32 {
            SINGLES as u32
        } else {
            part
        };
        MemoryConfig {
            keeps,
            base,
            frames,
            shards: 1,
            locals: 1,
            min: 0,
            low: 0,
            barrier: None,
        }
    }

    /// Frames of each shard but the last.
    pub(crate) const fn shard_frames(&self) -> u32 {
        let shards = if self.shards == 0 { 1 } else { self.shards } as u32;
        let each = self.frames.div_ceil(shards).div_ceil(GIGABYTE);
        // Less than 2^32 frames in all: the last gigabyte may be cut short.
        each.saturating_mul(GIGABYTE)
    }

    /// Where each shard begins, and how many frames it has.
    pub(crate) fn parts(self) -> impl Iterator<Item = (u32, u32)> {
        let each = self.shard_frames().max(1);
        let starts = (0..self.frames).step_by(each as usize);
        starts.map(move |start| (start, (self.frames - start).min(each)))
    }
}

/// Memory for a [`Memory`](super::Memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryLayout {
    /// 64-bit words, of any alignment and content.
    pub words: usize,
}

impl MemoryLayout {
    /// The memory for a configuration: about 0.17 bytes a frame and 0.28 for the first gigabyte, and 5,888 bytes a
    /// `Local`. As much as there can be, for one
    /// that needs more.
    pub fn of(config: &MemoryConfig) -> MemoryLayout {
        let engines = config.parts().map(|(_, n)| EngineLayout::of(n).words);
        MemoryLayout {
            words: engines.fold(Slots::words(config.locals), usize::saturating_add),
        }
    }
}
