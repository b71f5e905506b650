//! debugfs' `extfrag/unusable_index`: the share of free memory that an allocation of each order
//! cannot use (`spec: 7.5`).

use super::index_rows::{self, IndexRow};
use super::notes::{self, Notes};
use super::row::text_of;
use super::scan::Scan;
use crate::error::Error;

/// The file. Values go from 0 (all of it is usable) to 1000 (none), in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnusableIndex {
    /// One row a populated zone.
    pub zones: Vec<IndexRow>,
    /// What was not understood, and how the text differs from the canonical one.
    pub notes: Notes,
}

impl UnusableIndex {
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
        let (zones, _) = index_rows::read(&mut Scan::new("unusable_index", bytes))?;
        Ok(Self {
            zones,
            ..Self::default()
        })
    }

    fn parse_leniently(source: &str) -> Option<Self> {
        let (zones, notes) = index_rows::read_leniently("unusable_index", source)?;
        Some(Self { zones, notes })
    }

    /// The text.
    pub fn write(&self) -> String {
        let text = text_of(|out| index_rows::write(out, &self.zones, 1));
        self.notes.apply(text)
    }

    /// The row of `zone` on `node`.
    pub fn zone(&self, node: u32, zone: &str) -> Option<&IndexRow> {
        self.zones.iter().find(|r| r.node == node && r.zone == zone)
    }
}
