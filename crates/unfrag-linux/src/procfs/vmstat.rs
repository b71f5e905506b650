//! `/proc/vmstat`: counters by name (`spec: 7.3`). None of them measures external
//! fragmentation.

use super::counters::Counters;
use super::row::text_of;
use super::scan::Scan;
use crate::error::Error;
use std::fmt::Write;

/// The file. Units are the kernel's: mostly base pages and events, `pgpgin` and `pgpgout` KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmStat {
    /// The counters, in order, known here or not.
    pub counters: Counters,
}

impl VmStat {
    /// Reads the text.
    ///
    /// # Errors
    /// Names the byte that does not fit the format.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut scan = Scan::new("vmstat", bytes);
        let mut counters = Counters::default();
        while !scan.is_at_end() {
            let name = scan.word(b"")?;
            counters.push(name, scan.number()?);
            scan.line_end()?;
        }
        Ok(Self { counters })
    }

    /// The text.
    pub fn write(&self) -> String {
        text_of(|out| {
            self.counters
                .iter()
                .try_for_each(|(name, value)| writeln!(out, "{name} {value}"))
        })
    }

    /// Value of the counter called `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.counters.get(name)
    }
}
