//! Reads the `.unfrag` file, part by part.
//!
//! Invariant: of the events no more than the parts that were asked for are read.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use super::manifest::{Column, Manifest, Part, ReadAs, Table};
use super::table_read::TableReader;
use super::{container, snapshots};
use crate::error::{Error, Result};
use crate::recording::{EventTable, Events, Field, FieldKind, Meta, Recording, Snapshot, Task};

/// A file that is open for reading.
pub struct Reader<R: Read + Seek> {
    pub(super) members: container::Reader<R>,
    pub(super) manifest: Manifest,
}

/// What is known of a part of the events before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartFacts {
    /// Number of its events.
    pub events: u64,
    /// Times of its first and last event, in nanoseconds of the trace clock; `None` where the file does not say.
    pub span: Option<(u64, u64)>,
}

impl Reader<BufReader<File>> {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// As [`Reader::new`]; names the file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::from);
        file.and_then(|f| Reader::new(BufReader::new(f)))
            .map_err(|e| e.in_file(path))
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads what a file says of itself.
    ///
    /// # Errors
    /// If it is no such file, is of a later version, or is damaged.
    pub fn new(from: R) -> Result<Self> {
        let mut members = container::Reader::open(from)?;
        let mut manifest = members.manifest()?;
        if manifest.parts.is_empty() && manifest.events.rows > 0 {
            let kinds = manifest.kinds.iter_mut();
            let (first, last) = manifest.span.unwrap_or((0, u64::MAX));
            let part = Part {
                first,
                last,
                events: std::mem::take(&mut manifest.events),
                kinds: kinds
                    .map(|k| {
                        let empty = Table {
                            columns: k.table.columns.clone(),
                            ..Table::default()
                        };
                        std::mem::replace(&mut k.table, empty)
                    })
                    .collect(),
            };
            manifest.parts.push(part);
        }
        Ok(Reader { members, manifest })
    }

    /// What is known of each part.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = PartFacts> + '_ {
        self.manifest.parts.iter().map(|p| PartFacts {
            events: p.events.rows,
            span: (p.last != u64::MAX).then_some((p.first, p.last)),
        })
    }

    /// The host and the recorder.
    pub fn meta(&self) -> Meta {
        self.manifest.meta.clone().into()
    }

    /// The recording without its events.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn rest(&mut self) -> Result<Recording> {
        let (tables, meta) = (self.tables()?, self.meta());
        let mut open = |table| TableReader::open(table, &mut self.members);
        let mut tasks = open(&self.manifest.tasks)?;
        let pids: Vec<i32> = tasks.numbers("pid")?;
        let comms = tasks.texts("comm")?;
        Ok(Recording {
            tasks: pids
                .into_iter()
                .zip(comms)
                .map(|(pid, comm)| Task { pid, comm })
                .collect(),
            strings: open(&self.manifest.strings)?.texts("string")?,
            meta,
            events: Events {
                tables,
                ..Events::default()
            },
            snapshots: vec![],
        })
    }

    /// The snapshots.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn snapshots(&mut self) -> Result<Vec<Snapshot>> {
        snapshots::read(TableReader::open(
            &self.manifest.snapshots,
            &mut self.members,
        )?)
    }

    /// Number of events of each kind of the file.
    pub fn rows(&self) -> Vec<u64> {
        let mut rows = vec![0; self.manifest.kinds.len()];
        for part in &self.manifest.parts {
            for (rows, kind) in rows.iter_mut().zip(&part.kinds) {
                *rows += kind.rows;
            }
        }
        rows
    }

    /// The tables of the kinds of events, without events.
    pub(super) fn tables(&self) -> Result<Vec<EventTable>> {
        let table = |k: &super::manifest::EventKind| {
            let fields = fields(&k.table.columns)?;
            Ok(EventTable {
                system: k.system.clone(),
                name: k.name.clone(),
                columns: vec![vec![]; fields.len()],
                fields,
            })
        };
        self.manifest.kinds.iter().map(table).collect()
    }
}

/// Index of the empty string.
pub(super) fn empty_string(mut strings: TableReader) -> Result<u64> {
    let texts = strings.texts("string")?;
    let index = texts.iter().position(String::is_empty);
    index
        .map(|i| i as u64)
        .ok_or_else(|| Error::malformed("strings.parquet: the empty string is missing"))
}

pub(super) fn fields(columns: &[Column]) -> Result<Vec<Field>> {
    columns.iter().map(field).collect()
}

fn field(column: &Column) -> Result<Field> {
    let kind = match column.read_as {
        ReadAs::Unsigned => FieldKind::Unsigned,
        ReadAs::Signed => FieldKind::Signed,
        ReadAs::String => FieldKind::String,
        ReadAs::Text | ReadAs::Bytes => {
            return Err(Error::malformed(format!(
                "manifest.json: field {:?} of an event is no number",
                column.name
            )));
        }
    };
    Ok(Field {
        name: column.name.clone(),
        kind,
    })
}
