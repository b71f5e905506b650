//! Memory at a moment, for those who look on: blocks, counters, waits; of a pool that runs, of a replay, of this host.
//!
//! - [`directory`]: from the files of a directory, such as a pool writes. [`memory_blocks`]: the blocks that a host could unplug.
//! - [`replayed`]: from the model of a replay.
//! - [`text`]: a view as text, with what happened since the one before.
//! - [`show`]: the numbers and their rates, for JSON.
//!
//! Invariant: a rate is a difference of two views of the same source by the time between them.

pub mod directory;
pub mod memory_blocks;
pub mod replayed;
pub mod show;
pub mod text;

use crate::geometry::Sizes;
use crate::host::amounts::Amounts;
use std::collections::BTreeMap;
use unfrag_pool::cells::Cell;

/// Blocks that lie together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// Such as `Node 0, zone Normal`.
    pub name: String,
    /// Its blocks, in the order of their addresses.
    pub cells: Vec<Cell>,
    /// Bytes in one, where that is no pageblock.
    pub block_bytes: Option<u64>,
}

/// Memory at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// What it is of.
    pub title: String,
    /// Seconds since some moment of the source.
    pub seconds: f64,
    /// The blocks; empty if the source does not tell.
    pub areas: Vec<Area>,
    /// Sizes of its frames and blocks.
    pub sizes: Sizes,
    /// Free blocks by order, of all zones.
    pub free: Vec<u64>,
    /// Frames of its zones, if the source tells.
    pub frames: Option<u64>,
    /// How large the host is, where it is one.
    pub memory: Amounts,
    /// Counters that only grow, by name.
    pub counters: BTreeMap<String, u64>,
    /// Waits of allocations: how many took less than so many nanoseconds, and at least half of that.
    pub waits: BTreeMap<u64, u64>,
}

impl View {
    /// Free frames.
    pub fn free_frames(&self) -> u64 {
        self.free.iter().enumerate().map(|(o, n)| n << o).sum()
    }

    /// Free blocks of the size of a huge page, in blocks of that size or larger.
    pub fn free_huge(&self) -> u64 {
        let order = usize::from(self.sizes.large_order());
        let large = self.free.iter().enumerate().skip(order);
        large.map(|(o, n)| n << (o - order)).sum()
    }
}
