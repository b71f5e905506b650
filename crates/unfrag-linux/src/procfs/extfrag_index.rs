//! debugfs' `extfrag/extfrag_index`: why an allocation of each order would fail (`spec: 7.5`).

use super::index_rows::{self, IndexRow};
use super::notes::{self, Notes};
use super::row::text_of;
use super::scan::Scan;
use crate::error::Error;

/// The file. Values: -1000 where a block is free, else from 0 (too little memory) to 1000
/// (fragmentation), in thousandths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtfragIndex {
    /// One row a populated zone.
    pub zones: Vec<IndexRow>,
    /// Whether integers are padded to two characters, as by all kernels but the first (2.6.36).
    pub padded: bool,
    /// What was not understood, and how the text differs from the canonical one.
    pub notes: Notes,
}

impl Default for ExtfragIndex {
    fn default() -> Self {
        Self {
            zones: vec![],
            padded: true,
            notes: Notes::default(),
        }
    }
}

impl ExtfragIndex {
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
        let (zones, width) = index_rows::read(&mut Scan::new("extfrag_index", bytes))?;
        Ok(Self {
            zones,
            padded: width != Some(1),
            notes: Notes::default(),
        })
    }

    fn parse_leniently(source: &str) -> Option<Self> {
        let (zones, notes) = index_rows::read_leniently("extfrag_index", source)?;
        Some(Self {
            zones,
            notes,
            ..Self::default()
        })
    }

    /// The text.
    pub fn write(&self) -> String {
        let width = if self.padded { 2 } else { 1 };
        let text = text_of(|out| index_rows::write(out, &self.zones, width));
        self.notes.apply(text)
    }

    /// The row of `zone` on `node`.
    pub fn zone(&self, node: u32, zone: &str) -> Option<&IndexRow> {
        self.zones.iter().find(|r| r.node == node && r.zone == zone)
    }
}
