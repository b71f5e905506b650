//! `/proc/vmstat`: counters by name (`spec: 7.3`). None of them measures external
//! fragmentation.

use super::counters::Counters;
use super::notes::{self, Notes, read_lines};
use super::row::text_of;
use super::scan::Scan;
use crate::error::Error;
use std::fmt::Write;

/// The file. Units are the kernel's: mostly base pages and events, `pgpgin` and `pgpgout` KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmStat {
    /// The counters, in order, known here or not.
    pub counters: Counters,
    /// What was not understood, and how the text differs from the canonical one.
    pub notes: Notes,
}

impl VmStat {
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
        let mut scan = Scan::new("vmstat", bytes);
        let mut counters = Counters::default();
        while !scan.is_at_end() {
            let name = scan.word(b"")?;
            counters.push(name, scan.number()?);
            scan.line_end()?;
        }
        Ok(Self {
            counters,
            ..Self::default()
        })
    }

    fn parse_leniently(source: &str) -> Option<Self> {
        let mut counters = Counters::default();
        let notes = read_lines(source, |line, ended| {
            // Some kernels, such as 4.19, print a counter without its name.
            let line = line.trim();
            let (name, value) = line.split_once([' ', '\t']).unwrap_or(("", line));
            let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            // A number at the end of a text that ends within a line may lack digits.
            if !ended || !name.bytes().all(is_name) {
                return None;
            }
            counters.push(name, value.trim().parse().ok()?);
            Some(())
        });
        let has_names = counters.iter().any(|(name, _)| !name.is_empty());
        has_names.then_some(Self { counters, notes })
    }

    /// The text.
    pub fn write(&self) -> String {
        self.notes.apply(text_of(|out| {
            self.counters
                .iter()
                .try_for_each(|(name, value)| writeln!(out, "{name} {value}"))
        }))
    }

    /// Value of the counter called `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.counters.get(name)
    }
}
