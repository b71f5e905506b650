//! Reads the `.unfrag` file, part by part.
//!
//! Invariant: of the events no more than the parts that were asked for are read.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use super::check::check_events;
use super::manifest::{Column, Manifest, Part, ReadAs, Table};
use super::table_read::TableReader;
use super::{container, snapshots};
use crate::error::{Error, Result};
use crate::recording::{EventTable, Events, Field, FieldKind, Meta, Recording, Snapshot, Task};

/// A file that is open for reading.
pub struct Reader<R: Read + Seek> {
    members: container::Reader<R>,
    manifest: Manifest,
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

    /// A part of the events. Its tables are those of the whole file.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn part(&mut self, index: usize) -> Result<Events> {
        let mut tables = self.tables()?;
        let part = &self.manifest.parts[index];
        if part.kinds.len() > tables.len() {
            return Err(Error::malformed(
                "manifest.json: a part with kinds of events that the file has not",
            ));
        }
        let mut open = |table| TableReader::open(table, &mut self.members);
        let mut common = open(&part.events)?;
        for (table, rows) in tables.iter_mut().zip(&part.kinds) {
            let known = fields(&rows.columns)?;
            if known.len() > table.fields.len()
                || !known.iter().zip(&table.fields).all(|(a, b)| a.becomes(b))
            {
                return Err(Error::malformed(format!(
                    "manifest.json: the fields of {} differ from part to part",
                    table.name
                )));
            }
            let mut columns = open(rows)?;
            for (i, field) in table.fields.iter().enumerate() {
                table.columns[i] = match i < known.len() {
                    true => columns.numbers_at(i)?,
                    // Fields that only later parts have.
                    false => {
                        let nothing = match field.kind {
                            FieldKind::String => empty_string(open(&self.manifest.strings)?)?,
                            _ => 0,
                        };
                        vec![nothing; usize::try_from(rows.rows).unwrap_or(0)]
                    }
                };
            }
        }
        let events = Events {
            time: common.numbers("time")?,
            cpu: common.numbers("cpu")?,
            task: common.numbers("task")?,
            flags: common.numbers("flags")?,
            preempt: common.numbers("preempt")?,
            kind: common.numbers("kind")?,
            tables,
        };
        check_events(&events)?;
        Ok(events)
    }

    /// The tables of the kinds of events, without events.
    fn tables(&self) -> Result<Vec<EventTable>> {
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
fn empty_string(mut strings: TableReader) -> Result<u64> {
    let texts = strings.texts("string")?;
    let index = texts.iter().position(String::is_empty);
    index
        .map(|i| i as u64)
        .ok_or_else(|| Error::malformed("strings.parquet: the empty string is missing"))
}

fn fields(columns: &[Column]) -> Result<Vec<Field>> {
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
