//! Rows and tables of pagetypeinfo.
//!
//! Invariant: a table's rows have a number for each of its columns, in their order.

use crate::error::Error;
use crate::procfs::row::read_zone;
use crate::procfs::scan::Scan;

pub(super) const FREE_HEADER: &str = "Free pages count per migrate type at order";
pub(super) const BLOCKS_HEADER: &str = "Number of blocks type ";
pub(super) const MIXED_HEADER: &str = "Number of mixed blocks ";

/// Free blocks of one migratetype in a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeRow {
    /// NUMA node.
    pub node: u32,
    /// Zone.
    pub zone: String,
    /// Migratetype.
    pub migratetype: String,
    /// Free blocks of each order.
    pub counts: Vec<Count>,
}

/// A number of free blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number; where `capped`, the number at which counting stopped.
    pub blocks: u64,
    /// Whether counting stopped, so that more may be free. Written as `>`.
    pub capped: bool,
}

/// Numbers of pageblocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockTable {
    /// The columns.
    pub migratetypes: Vec<String>,
    /// One row a zone.
    pub rows: Vec<BlockRow>,
}

/// Numbers of pageblocks in a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockRow {
    /// NUMA node.
    pub node: u32,
    /// Zone.
    pub zone: String,
    /// Pageblocks of each type, in the order of [`BlockTable::migratetypes`].
    pub blocks: Vec<u64>,
}

impl Count {
    /// Number of blocks at which kernels from 5.5 on stop counting a list.
    pub const CAP: u64 = 100_000;

    /// `blocks` as printed by a kernel that stops counting at [`Count::CAP`].
    pub fn with_cap(blocks: u64) -> Self {
        Self {
            blocks: blocks.min(Self::CAP),
            capped: blocks >= Self::CAP,
        }
    }
}

impl BlockTable {
    /// Pageblocks of type `migratetype` in `zone` of `node`.
    pub fn get(&self, node: u32, zone: &str, migratetype: &str) -> Option<u64> {
        let column = self.migratetypes.iter().position(|m| m == migratetype)?;
        self.zone(node, zone)?.blocks.get(column).copied()
    }

    /// Pageblocks of `zone` of `node`, of all types together.
    pub fn of_zone(&self, node: u32, zone: &str) -> Option<u64> {
        let blocks = &self.zone(node, zone)?.blocks;
        Some(blocks.iter().fold(0, |sum, n| sum.saturating_add(*n)))
    }

    fn zone(&self, node: u32, zone: &str) -> Option<&BlockRow> {
        self.rows.iter().find(|r| r.node == node && r.zone == zone)
    }
}

/// Reads a row of free blocks.
pub(super) fn read_free_row(scan: &mut Scan) -> Result<FreeRow, Error> {
    let (node, zone) = read_zone(scan)?;
    scan.expect(",")?;
    scan.expect("type")?;
    let migratetype = scan.word(b"")?.to_owned();
    let mut counts = vec![];
    while !scan.is_at_line_end() {
        let capped = scan.accept(">");
        counts.push(Count {
            capped,
            blocks: scan.number()?,
        });
    }
    scan.line_end()?;
    Ok(FreeRow {
        node,
        zone,
        migratetype,
        counts,
    })
}
