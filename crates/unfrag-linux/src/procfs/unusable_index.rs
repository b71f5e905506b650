//! debugfs' `extfrag/unusable_index`: the share of free memory that an allocation of each order
//! cannot use (`spec: 7.5`).

use super::index_rows::{self, IndexRow};
use super::row::text_of;
use super::scan::Scan;
use crate::error::Error;

/// The file. Values go from 0 (all of it is usable) to 1000 (none), in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnusableIndex {
    /// One row a populated zone.
    pub zones: Vec<IndexRow>,
}

impl UnusableIndex {
    /// Reads the text.
    ///
    /// # Errors
    /// Names the byte that does not fit the format.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (zones, _) = index_rows::read(&mut Scan::new("unusable_index", bytes))?;
        Ok(Self { zones })
    }

    /// The text.
    pub fn write(&self) -> String {
        text_of(|out| index_rows::write(out, &self.zones, 1))
    }

    /// The row of `zone` on `node`.
    pub fn zone(&self, node: u32, zone: &str) -> Option<&IndexRow> {
        self.zones.iter().find(|r| r.node == node && r.zone == zone)
    }
}
