//! `/proc/buddyinfo`: free blocks by zone and order (`spec: 7.1`).

use super::notes::{self, Notes, Rows, read_lines};
use super::row::{read_numbers, read_zone, text_of, write_zone};
use super::scan::Scan;
use crate::error::Error;
use std::fmt::Write;

/// The file: one row a populated zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuddyInfo {
    /// The rows, in order.
    pub zones: Vec<Row>,
    /// What was not understood, and how the text differs from the canonical one.
    pub notes: Notes,
}

/// Free blocks of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// NUMA node.
    pub node: u32,
    /// Zone, such as `DMA32`.
    pub zone: String,
    /// Free blocks of order n at index n, over all migratetypes; per-CPU pages are not among them.
    pub free: Vec<u64>,
    /// Whether higher orders were left out, as `...` at the end says, so that their blocks are not known.
    pub goes_on: bool,
}

impl Row {
    /// Free pages: blocks of all orders, in base pages. Saturates.
    pub fn free_pages(&self) -> u64 {
        let pages = |(order, &n): (usize, &u64)| {
            u32::try_from(order)
                .ok()
                .and_then(|o| 1u64.checked_shl(o))
                .map_or(0, |p| n.saturating_mul(p))
        };
        self.free
            .iter()
            .enumerate()
            .map(pages)
            .fold(0, u64::saturating_add)
    }
}

impl BuddyInfo {
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
        let mut scan = Scan::new("buddyinfo", bytes);
        let mut zones = vec![];
        while !scan.is_at_end() {
            let (node, zone) = read_zone(&mut scan)?;
            zones.push(Row {
                node,
                zone,
                free: read_numbers(&mut scan)?,
                goes_on: false,
            });
        }
        Ok(Self {
            zones,
            ..Self::default()
        })
    }

    fn parse_leniently(source: &str) -> Option<Self> {
        let mut zones: Vec<Row> = vec![];
        let mut rows = Rows::default();
        let notes = read_lines(source, |line, ended| {
            let whole = line.trim_end();
            let numbers = whole.trim_end_matches(['.', '…']);
            let goes_on = whole.ends_with("...") || whole.ends_with('…');
            let text = format!("{}\n", if goes_on { numbers } else { line });
            let mut scan = Scan::new("buddyinfo", text.as_bytes());
            let (node, zone) = read_zone(&mut scan).ok()?;
            let free = read_numbers(&mut scan).ok()?;
            if free.is_empty() || !(goes_on || rows.is_whole(line, free.len(), ended)) {
                return None;
            }
            zones.push(Row {
                node,
                zone,
                free,
                goes_on,
            });
            Some(())
        });
        (!zones.is_empty()).then_some(Self { zones, notes })
    }

    /// The text.
    pub fn write(&self) -> String {
        self.notes.apply(text_of(|out| {
            for row in &self.zones {
                write_zone(out, row.node, &row.zone)?;
                out.push(' ');
                row.free.iter().try_for_each(|n| write!(out, "{n:>6} "))?;
                out.push_str(if row.goes_on { "..." } else { "" });
                out.push('\n');
            }
            Ok(())
        }))
    }

    /// The row of `zone` on `node`.
    pub fn zone(&self, node: u32, zone: &str) -> Option<&Row> {
        self.zones.iter().find(|r| r.node == node && r.zone == zone)
    }
}
