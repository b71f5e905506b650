//! `/proc/meminfo`: amounts by name, most of them in KiB.

use super::notes::{self, Notes, read_lines};
use super::row::text_of;
use super::scan::Scan;
use crate::error::Error;
use std::fmt::Write;

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemInfo {
    /// The lines, in order, known here or not.
    pub lines: Vec<Line>,
    /// What was not understood, and how the text differs from the canonical one.
    pub notes: Notes,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Name, such as `MemTotal`.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// Whether the value is in KiB (written `kB`), not a plain number.
    pub kib: bool,
}

impl MemInfo {
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
        let mut scan = Scan::new("meminfo", bytes);
        let mut lines = vec![];
        while !scan.is_at_end() {
            let name = scan.word(b":")?.to_owned();
            scan.expect(":")?;
            let value = scan.number()?;
            let kib = scan.accept("kB");
            scan.line_end()?;
            lines.push(Line { name, value, kib });
        }
        Ok(Self {
            lines,
            ..Self::default()
        })
    }

    fn parse_leniently(source: &str) -> Option<Self> {
        let mut lines = vec![];
        let notes = read_lines(source, |line, ended| {
            let (name, value) = line.trim().split_once(':')?;
            let mut words = value.split_ascii_whitespace();
            let value = words.next()?.parse().ok()?;
            let kib = match words.next() {
                Some("kB") => true,
                Some(_) => return None,
                None => false,
            };
            if words.next().is_some() || name.contains(' ') || !(ended || kib) {
                return None;
            }
            let name = name.to_owned();
            lines.push(Line { name, value, kib });
            Some(())
        });
        (!lines.is_empty()).then_some(Self { lines, notes })
    }

    /// The text.
    pub fn write(&self) -> String {
        self.notes.apply(text_of(|out| {
            for Line { name, value, kib } in &self.lines {
                // Values end in column 24 if name and value are short enough.
                let name_width = (name.len() + 1).clamp(16, 24);
                let value_width = 24usize.saturating_sub(name_width);
                let label = format!("{name}:");
                write!(out, "{label:<name_width$}{value:>value_width$}")?;
                out.push_str(if *kib { " kB\n" } else { "\n" });
            }
            Ok(())
        }))
    }

    /// Value of the line called `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.lines.iter().find(|l| l.name == name).map(|l| l.value)
    }
}
