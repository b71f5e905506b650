//! The state of memory at which a replay begins: zones as recorded, each frame free or in use, lists in
//! order.

use super::list_order::ListOrder;
use super::zones::ZoneStart;
use crate::replay::causes::FIRST_ALLOC;
use unfrag_eras::pcp::list_index;
use unfrag_eras::restore::CompactPositions;
use unfrag_eras::{Geometry, MigrateType, Order, ZoneConfig};

/// A free block at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeBlock {
    /// First frame.
    pub pfn: u32,
    /// Its order.
    pub order: u8,
    /// Its list.
    pub mt: MigrateType,
}

/// A CPU's lists of a zone at the start.
#[derive(Clone, Debug, Default)]
pub struct SetStart {
    /// Zone, by index.
    pub zone: usize,
    /// CPU.
    pub cpu: usize,
    /// high, batch and factor, if recorded.
    pub tuning: Option<(i32, i32, i32)>,
    /// Blocks by list, each from its head.
    pub lists: Vec<(usize, Vec<FreeBlock>)>,
}

impl SetStart {
    /// Puts pages behind all others of a type.
    pub(super) fn append(&mut self, mt: MigrateType, pages: Vec<u32>) {
        let index = list_index(Order::ZERO, mt);
        let blocks = pages.into_iter().map(|pfn| FreeBlock { pfn, order: 0, mt });
        match self.lists.iter_mut().find(|l| l.0 == index) {
            Some((_, list)) => list.extend(blocks),
            None => self.lists.push((index, blocks.collect())),
        }
    }

    /// All frames on the lists.
    pub(super) fn frames(&self) -> impl Iterator<Item = u32> {
        let blocks = self.lists.iter().flat_map(|l| &l.1);
        blocks.flat_map(|b| b.pfn..b.pfn + (1 << b.order))
    }
}

/// Where a replay begins.
#[derive(Clone, Debug)]
pub struct Start {
    /// The populated zones, ascending.
    pub zones: Vec<ZoneStart>,
    /// Sizes of the host's pages and blocks.
    pub geometry: Geometry,
    /// Numbers of the CPUs on the recorded host, by their index in the model.
    pub cpus: Vec<u32>,
    /// Time of the state in nanoseconds of the trace clock; events before it belong to it.
    pub time: u64,
    /// Free blocks: for each list from its head.
    pub free: Vec<FreeBlock>,
    /// How far the trace shows their order, where no recorded list does.
    pub order_shown: Option<ListOrder>,
    /// Per-CPU lists.
    pub sets: Vec<SetStart>,
    /// What the zones remember of compactions, by index of the zone.
    pub compact: Vec<(usize, CompactPositions)>,
    /// First frames of the pageblocks that compaction skips.
    pub skipped: Vec<u32>,
    /// Type of each pageblock that is not movable: first frame and type.
    pub block_types: Vec<(u32, MigrateType)>,
    /// First frames of the pageblocks of which nothing is memory.
    pub holes: Vec<u32>,
    /// Frames in use at the start whose end the trace shows.
    pub freed_later: Vec<bool>,
    /// For each frame number: not part of a zone's managed memory, free, or in use.
    pub frames: Vec<Frame>,
}

/// A frame at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Frame {
    /// No memory of the allocator.
    #[default]
    None,
    /// On a list.
    Free,
    /// In use by the kernel, where it stays.
    Pinned,
    /// In use, and movable.
    Movable,
}

impl Start {
    /// The same, with the free blocks of which nobody knows the order the other way round: those of which the trace
    /// allocates no frame that nothing touched before. `first` is what comes first of each frame.
    pub(crate) fn turned(&self, first: &[u8]) -> Start {
        let mut turned = self.clone();
        let is_placed = |b: &FreeBlock| {
            let frames = first.get(b.pfn as usize..(b.pfn + (1 << b.order)) as usize);
            frames.is_none_or(|f| f.contains(&FIRST_ALLOC))
        };
        for run in turned
            .free
            .chunk_by_mut(|a, b| is_placed(a) == is_placed(b))
        {
            if run.first().is_some_and(|b| !is_placed(b)) {
                run.reverse();
            }
        }
        turned
    }

    /// Configuration of the machine under some rules.
    pub fn zone_configs(&self) -> Vec<ZoneConfig> {
        self.zones.iter().map(|z| z.config).collect()
    }

    /// Whether a frame was free.
    pub fn is_free(&self, pfn: u32) -> bool {
        self.frames.get(pfn as usize) == Some(&Frame::Free)
    }
}
