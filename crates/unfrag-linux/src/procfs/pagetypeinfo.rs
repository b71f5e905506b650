//! `/proc/pagetypeinfo`: free blocks by migratetype, and pageblocks by type (`spec: 7.1`).
//!
//! Migratetypes go by their names: 2.6.32 has Unmovable, Reclaimable, Movable, Reserve and Isolate; 6.1
//! has Unmovable, Movable, Reclaimable, HighAtomic, CMA and Isolate.

use super::notes::{self, Notes};
use super::row::{read_numbers, read_zone, text_of, write_zone};
use super::scan::Scan;
use crate::error::Error;
use std::collections::BTreeSet;
use std::fmt::Write;

mod lines;
mod table;

use table::{BLOCKS_HEADER, FREE_HEADER, MIXED_HEADER, read_free_row};
pub use table::{BlockRow, BlockTable, Count, FreeRow};

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTypeInfo {
    /// Order of a pageblock.
    pub pageblock_order: u32,
    /// Base pages in a pageblock.
    pub pages_per_block: u64,
    /// The orders that `free` has a count for, as the header numbers them.
    pub orders: Vec<u64>,
    /// Free blocks: one row a zone and migratetype.
    pub free: Vec<FreeRow>,
    /// Pageblocks by type.
    pub blocks: BlockTable,
    /// Pageblocks that hold pages of another type than their own; kernels with page_owner only.
    pub mixed: Option<BlockTable>,
    /// Whether each node has a section of its own, as kernels print it on hosts of several nodes.
    pub by_node: bool,
    /// What was not understood, and how the text differs from the canonical one.
    pub notes: Notes,
}

impl PageTypeInfo {
    /// The order of a pageblock, if the text tells it: lines that were left out of it tell nothing.
    pub fn told_pageblock_order(&self) -> Option<u32> {
        Some(self.pageblock_order).filter(|&order| order > 0)
    }

    /// Reads the text: strictly if it is as the kernel writes it, else line by line.
    ///
    /// # Errors
    /// If no line of it is understood; names the first byte that does not fit the format.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        notes::read(
            bytes,
            Self::parse_strictly,
            Self::parse_leniently,
            Self::write,
            |read| &mut read.notes,
        )
    }

    fn parse_strictly(bytes: &[u8]) -> Result<Self, Error> {
        let mut scan = Scan::new("pagetypeinfo", bytes);
        let pageblock_order = scan.labelled("Page block order:")?;
        scan.line_end()?;
        let pages_per_block = scan.labelled("Pages per block:")?;
        scan.line_end()?;
        scan.line_end()?;
        scan.expect(FREE_HEADER)?;
        let orders = read_numbers(&mut scan)?;
        let mut free = vec![];
        while scan.sees("Node") {
            free.push(read_free_row(&mut scan)?);
        }
        scan.line_end()?;
        let blocks = read_table(&mut scan, BLOCKS_HEADER)?;
        let mixed = if scan.is_at_end() {
            None
        } else {
            scan.line_end()?;
            Some(read_table(&mut scan, MIXED_HEADER)?)
        };
        if !scan.is_at_end() {
            return Err(scan.error("more text than its tables"));
        }
        Ok(Self {
            pageblock_order,
            pages_per_block,
            orders,
            free,
            blocks,
            mixed,
            by_node: false,
            notes: Notes::default(),
        })
    }

    fn parse_leniently(source: &str) -> Option<Self> {
        let lines = lines::read(source)?;
        Some(Self {
            pageblock_order: lines.pageblock_order,
            pages_per_block: lines.pages_per_block,
            orders: lines.orders,
            free: lines.free,
            blocks: lines.blocks,
            mixed: lines.mixed,
            by_node: lines.sections > 1,
            notes: lines.notes,
        })
    }

    /// The text.
    pub fn write(&self) -> String {
        self.notes.apply(text_of(|out| {
            if !self.by_node {
                return self.write_section(out, |_| true);
            }
            let nodes = self.free.iter().map(|row| row.node);
            let nodes: BTreeSet<u32> = nodes
                .chain(self.blocks.rows.iter().map(|r| r.node))
                .collect();
            nodes
                .into_iter()
                .try_for_each(|node| self.write_section(out, |n| n == node))
        }))
    }

    /// Writes headers and the rows of the nodes that `has` is true of.
    fn write_section(&self, out: &mut String, has: impl Fn(u32) -> bool) -> std::fmt::Result {
        writeln!(out, "Page block order: {}", self.pageblock_order)?;
        writeln!(out, "Pages per block:  {}\n", self.pages_per_block)?;
        write!(out, "{FREE_HEADER:<43} ")?;
        self.orders
            .iter()
            .try_for_each(|o| write!(out, "{o:>6} "))?;
        out.push('\n');
        for row in self.free.iter().filter(|row| has(row.node)) {
            write!(out, "Node {:>4}, zone {:>8}, ", row.node, row.zone)?;
            write!(out, "type {:>12} ", row.migratetype)?;
            for count in &row.counts {
                let mark = if count.capped { ">" } else { "" };
                write!(out, "{mark}{:>6} ", count.blocks)?;
            }
            out.push('\n');
        }
        write_table(out, BLOCKS_HEADER, &self.blocks, &has)?;
        self.mixed
            .iter()
            .try_for_each(|table| write_table(out, MIXED_HEADER, table, &has))
    }

    /// The row of `migratetype` in `zone` of `node`.
    pub fn row(&self, node: u32, zone: &str, migratetype: &str) -> Option<&FreeRow> {
        let same = |r: &&FreeRow| r.node == node && r.zone == zone && r.migratetype == migratetype;
        self.free.iter().find(same)
    }
}

fn read_table(scan: &mut Scan, header: &str) -> Result<BlockTable, Error> {
    scan.expect(header)?;
    let mut migratetypes = vec![];
    while !scan.is_at_line_end() {
        migratetypes.push(scan.word(b"")?.to_owned());
    }
    scan.line_end()?;
    let mut rows = vec![];
    while scan.sees("Node") {
        let (node, zone) = read_zone(scan)?;
        rows.push(BlockRow {
            node,
            zone,
            blocks: read_numbers(scan)?,
        });
    }
    Ok(BlockTable { migratetypes, rows })
}

fn write_table(
    out: &mut String,
    header: &str,
    table: &BlockTable,
    has: impl Fn(u32) -> bool,
) -> std::fmt::Result {
    write!(out, "\n{header:<23}")?;
    table
        .migratetypes
        .iter()
        .try_for_each(|m| write!(out, "{m:>12} "))?;
    out.push('\n');
    for row in table.rows.iter().filter(|row| has(row.node)) {
        write_zone(out, row.node, &row.zone)?;
        out.push(' ');
        row.blocks
            .iter()
            .try_for_each(|n| write!(out, "{n:>12} "))?;
        out.push('\n');
    }
    Ok(())
}
