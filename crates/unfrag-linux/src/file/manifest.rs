//! `manifest.json`: the other members, and everything that has no rows.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::recording;

/// Name of the member.
pub const MEMBER: &str = "manifest.json";
const FORMAT: &str = "unfrag recording";
/// Version of a file whose events are one part.
const VERSION: u32 = 1;
/// Version of a file with several parts: the latest that is read.
pub const LATEST: u32 = 2;

/// The member's content.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub version: u32,
    pub meta: Meta,
    pub events: Table,
    /// Times of the first and the last event, where they are one part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<(u64, u64)>,
    pub kinds: Vec<EventKind>,
    pub tasks: Table,
    pub strings: Table,
    pub snapshots: Table,
    /// The events in several parts, one after the other (version 2); then `events` has none, and `kinds` only say
    /// what there is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// A part of the events: a run of them, with all their fields.
#[derive(Debug, Serialize, Deserialize)]
pub struct Part {
    /// Time of its first event, in nanoseconds of the trace clock.
    pub first: u64,
    /// Time of its last.
    pub last: u64,
    pub events: Table,
    /// One table for each of the file's kinds of events that were known by its end.
    pub kinds: Vec<Table>,
}

impl Part {
    fn tables(&self) -> impl Iterator<Item = &Table> {
        std::iter::once(&self.events).chain(&self.kinds)
    }
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            meta: Meta::default(),
            events: Table::default(),
            span: None,
            kinds: vec![],
            tasks: Table::default(),
            strings: Table::default(),
            snapshots: Table::default(),
            parts: vec![],
        }
    }
}

/// [`recording::Meta`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Meta {
    kernel_release: String,
    page_size: u32,
    cpus: u32,
    source: String,
    clock: String,
    snapshot_offset_ns: i64,
    lost: Vec<(u16, u64, Option<u64>)>,
    facts: BTreeMap<String, String>,
}

/// A Parquet member.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Its name; `None` if it has no rows or no columns, and so is not there.
    pub member: Option<String>,
    /// Rows.
    pub rows: u64,
    /// Its columns, in order.
    pub columns: Vec<Column>,
}

/// A column of a Parquet member.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Name of what it holds.
    pub name: String,
    /// Its name in the member: `name` in plain characters, made unique.
    pub column: String,
    /// How its values are to be read.
    #[serde(rename = "type")]
    pub read_as: ReadAs,
    /// Its physical type.
    pub stored: Stored,
    /// The change that was made to its values.
    pub transform: Transform,
}

/// How a column's values are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAs {
    /// 64-bit unsigned number.
    Unsigned,
    /// 64-bit signed number.
    Signed,
    /// Index into the strings.
    String,
    /// UTF-8.
    Text,
    /// Bytes.
    Bytes,
}

/// A column's physical type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stored {
    Int32,
    Int64,
    ByteArray,
}

/// A reversible change of a column's values, modulo 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transform {
    /// None.
    None,
    /// Difference to the value before; the first one to 0.
    Delta,
    /// The difference `d` as a signed number, stored as `2d`, or as `-2d - 1` if it is negative.
    ZigzagDelta,
}

/// A kind of event.
#[derive(Debug, Serialize, Deserialize)]
pub struct EventKind {
    pub system: String,
    pub name: String,
    #[serde(flatten)]
    pub table: Table,
}

/// Rows that a file of any size may hold.
const BASE_ROWS: u64 = 16 << 20;
/// Rows that each byte of a file allows beyond that.
const ROWS_PER_BYTE: u64 = 256;
/// Bytes of strings and snapshots, with four for each one's length, that a file of any size may
/// hold.
const BASE_BYTES: u64 = 1 << 30;
/// Bytes of strings and snapshots that each byte of a file allows beyond that.
const BYTES_PER_BYTE: u64 = 4096;

/// Bytes that a file must have to hold this many rows, and this many bytes of strings and snapshots. A
/// file that compresses better is padded when it is written, so that a reader may refuse a small file
/// that would fill the memory.
pub fn least_size(rows: u64, bytes: u64) -> u64 {
    let rows = rows.saturating_sub(BASE_ROWS) / ROWS_PER_BYTE;
    let bytes = bytes.saturating_sub(BASE_BYTES) / BYTES_PER_BYTE;
    rows.max(bytes)
}

/// Rows that a file of `size` bytes may hold.
pub fn most_rows(size: u64) -> u64 {
    size.saturating_mul(ROWS_PER_BYTE).saturating_add(BASE_ROWS)
}

impl Manifest {
    /// Reads the member.
    pub fn parse(json: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let damaged = |e: serde_json::Error| Error::malformed(format!("{MEMBER}: {e}"));
        let head: Head = serde_json::from_slice(json).map_err(damaged)?;
        if head.format != FORMAT {
            return Err(Error::unsupported(format!(
                "{MEMBER}: no recording, but {:?}",
                head.format
            )));
        }
        if head.version == 0 || head.version > LATEST {
            return Err(Error::unsupported(format!(
                "version {} of the format; this program reads up to {LATEST}",
                head.version
            ))
            .help("use a newer unfrag"));
        }
        serde_json::from_slice(json).map_err(damaged)
    }

    /// All its tables.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        let kinds = self.kinds.iter().map(|k| &k.table);
        [&self.events, &self.tasks, &self.strings, &self.snapshots]
            .into_iter()
            .chain(kinds)
            .chain(self.parts.iter().flat_map(Part::tables))
    }
}

/// `name` with everything but letters, digits, `_`, `-` and `.` replaced.
pub fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match name {
        "" => "_".to_owned(),
        name => name
            .chars()
            .take(100)
            .map(|c| if is_plain(c) { c } else { '_' })
            .collect(),
    }
}

/// `name`, or `name` with a number if it is in `taken` already; adds it there.
pub fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|i| format!("{name}-{i}"));
    let free = std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|n| !taken.contains(n));
    let free = free.expect("there are more numbers than names");
    taken.insert(free.clone());
    free
}

impl From<&recording::Meta> for Meta {
    fn from(meta: &recording::Meta) -> Self {
        Self {
            kernel_release: meta.kernel_release.clone(),
            page_size: meta.page_size,
            cpus: meta.cpus,
            source: meta.source.clone(),
            clock: meta.clock.clone(),
            snapshot_offset_ns: meta.snapshot_offset_ns,
            lost: meta
                .lost
                .iter()
                .map(|l| (l.cpu, l.before_event, l.count))
                .collect(),
            facts: meta.facts.clone(),
        }
    }
}

impl From<Meta> for recording::Meta {
    fn from(meta: Meta) -> Self {
        let lost = |(cpu, before_event, count)| recording::Lost {
            cpu,
            before_event,
            count,
        };
        Self {
            kernel_release: meta.kernel_release,
            page_size: meta.page_size,
            cpus: meta.cpus,
            source: meta.source,
            clock: meta.clock,
            snapshot_offset_ns: meta.snapshot_offset_ns,
            lost: meta.lost.into_iter().map(lost).collect(),
            facts: meta.facts,
        }
    }
}
