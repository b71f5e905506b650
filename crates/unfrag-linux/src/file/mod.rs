//! The `.unfrag` file: one file that holds a [`Recording`], losslessly.
//!
//! A ZIP container (`container`) of stored members: `manifest.json` (`manifest`), and a Parquet table for
//! everything that has rows (`table`, `table_read`; of snapshots: `snapshots`). Any tool that knows ZIP and Parquet reads it.
//! Numbers are stored as `columns` plans; `docs/file-format.md` describes all of it.
//!
//! Invariant: [`from_bytes`] gives back exactly what [`to_bytes`] was given, for any numbers and
//! strings, and takes no more memory than `manifest::least_size` allows for a file of that size.
//! Members carry checksums, so damage is noticed before anything is decoded; then `pages` checks the
//! decoder's input page by page.

mod columns;
mod container;
mod manifest;
mod pages;
mod snapshots;
mod table;
mod table_read;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::recording::{EventTable, Events, Field, FieldKind, Recording, Task};
use crate::target::Target;
use columns::Numbers;
use manifest::{Column, EventKind, Manifest, ReadAs, Table};
use table::{Data, Source};
use table_read::TableReader;

/// First bytes of every `.unfrag` file: those of a ZIP container whose first member is the manifest.
pub const MAGIC: &[u8] = b"PK\x03\x04";

/// Writes `recording` to `path`, which is a [`Target`]. A file appears there only once it is complete.
///
/// # Errors
/// As [`to_bytes`], and if the file cannot be written.
pub fn write(recording: &Recording, path: &Path) -> Result<()> {
    let bytes = to_bytes(recording).map_err(|e| e.in_file(path))?;
    Target::of(path)
        .and_then(|to| to.write(&bytes))
        .map_err(|e| Error::from(e).in_file(path))
}

/// Reads the recording at `path`.
///
/// # Errors
/// As [`from_bytes`], and if the file cannot be read; names the file.
pub fn read(path: &Path) -> Result<Recording> {
    let bytes = fs::read(path).map_err(|e| Error::from(e).in_file(path))?;
    from_bytes(&bytes).map_err(|e| e.in_file(path))
}

/// The bytes of the file that holds `recording`.
///
/// # Errors
/// If `recording` breaks the invariants that its types state (columns of different lengths, an
/// event of a kind or task that is not there, time that decreases), or holds a string of more than
/// 16 MiB.
pub fn to_bytes(recording: &Recording) -> Result<Vec<u8>> {
    check(recording)?;
    let mut members = container::Writer::default();
    let mut names = BTreeSet::new();
    let events = &recording.events;
    let numbers = |name, numbers| Source::numbers(name, ReadAs::Unsigned, numbers);
    let manifest = Manifest {
        meta: (&recording.meta).into(),
        events: members.table(
            "events",
            &[
                numbers("time", Numbers::U64(&events.time)),
                numbers("cpu", Numbers::U16(&events.cpu)),
                numbers("task", Numbers::U32(&events.task)),
                numbers("flags", Numbers::U8(&events.flags)),
                numbers("preempt", Numbers::U8(&events.preempt)),
                numbers("kind", Numbers::U8(&events.kind)),
            ],
        )?,
        kinds: events
            .tables
            .iter()
            .zip(rows_by_kind(events))
            .map(|(table, rows)| write_kind(table, rows, &mut names, &mut members))
            .collect::<Result<_>>()?,
        tasks: write_tasks(&recording.tasks, &mut members)?,
        strings: members.table(
            "strings",
            &[Source {
                name: "string",
                read_as: ReadAs::Text,
                data: Data::Bytes(recording.strings.iter().map(String::as_bytes).collect()),
            }],
        )?,
        snapshots: snapshots::write(&recording.snapshots, &mut members)?,
        ..Manifest::default()
    };
    members.finish(&manifest)
}

/// The recording that the file with these bytes holds.
///
/// # Errors
/// If it is no such file, is of a later version, or is damaged; names the member.
pub fn from_bytes(bytes: &[u8]) -> Result<Recording> {
    let mut members = container::Reader::open(bytes)?;
    let manifest = members.manifest()?;
    let mut open = |table| TableReader::open(table, &mut members);
    let mut common = open(&manifest.events)?;
    let mut events = Events {
        time: common.numbers("time")?,
        cpu: common.numbers("cpu")?,
        task: common.numbers("task")?,
        flags: common.numbers("flags")?,
        preempt: common.numbers("preempt")?,
        kind: common.numbers("kind")?,
        tables: vec![],
    };
    for kind in &manifest.kinds {
        let mut table = open(&kind.table)?;
        events.tables.push(EventTable {
            system: kind.system.clone(),
            name: kind.name.clone(),
            fields: kind
                .table
                .columns
                .iter()
                .map(field)
                .collect::<Result<_>>()?,
            columns: (0..kind.table.columns.len())
                .map(|i| table.numbers_at(i))
                .collect::<Result<_>>()?,
        });
    }
    let mut tasks = open(&manifest.tasks)?;
    let pids: Vec<i32> = tasks.numbers("pid")?;
    let comms = tasks.texts("comm")?;
    let recording = Recording {
        tasks: pids
            .into_iter()
            .zip(comms)
            .map(|(pid, comm)| Task { pid, comm })
            .collect(),
        strings: open(&manifest.strings)?.texts("string")?,
        snapshots: snapshots::read(open(&manifest.snapshots)?)?,
        meta: manifest.meta.into(),
        events,
    };
    check(&recording)?;
    Ok(recording)
}

fn write_kind(
    table: &EventTable,
    rows: usize,
    names: &mut BTreeSet<String>,
    members: &mut container::Writer,
) -> Result<EventKind> {
    let name = match table.system.as_str() {
        "" => table.name.clone(),
        system => format!("{system}.{}", table.name),
    };
    let member = format!("event/{}", manifest::unique(&manifest::plain(&name), names));
    let columns: Vec<_> = table
        .fields
        .iter()
        .zip(&table.columns)
        .map(|(f, column)| Source::numbers(&f.name, read_as(f.kind), Numbers::U64(column)))
        .collect();
    let mut written = members.table(&member, &columns)?;
    written.rows = rows as u64;
    Ok(EventKind {
        system: table.system.clone(),
        name: table.name.clone(),
        table: written,
    })
}

fn write_tasks(tasks: &[Task], members: &mut container::Writer) -> Result<Table> {
    let pids: Vec<i32> = tasks.iter().map(|t| t.pid).collect();
    members.table(
        "tasks",
        &[
            Source::numbers("pid", ReadAs::Signed, Numbers::I32(&pids)),
            Source {
                name: "comm",
                read_as: ReadAs::Text,
                data: Data::Bytes(tasks.iter().map(|t| t.comm.as_bytes()).collect()),
            },
        ],
    )
}

fn read_as(kind: FieldKind) -> ReadAs {
    match kind {
        FieldKind::Unsigned => ReadAs::Unsigned,
        FieldKind::Signed => ReadAs::Signed,
        FieldKind::String => ReadAs::String,
    }
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

/// Number of events of each kind.
fn rows_by_kind(events: &Events) -> [usize; 256] {
    let mut rows = [0; 256];
    events.kind.iter().for_each(|&k| rows[usize::from(k)] += 1);
    rows
}

/// Checks the invariants that the types of `recording` state: its users index by them.
fn check(recording: &Recording) -> Result<()> {
    let events = &recording.events;
    let n = events.len();
    let same = [
        events.cpu.len(),
        events.task.len(),
        events.flags.len(),
        events.preempt.len(),
    ];
    if same.iter().chain([&events.kind.len()]).any(|&len| len != n) {
        return Err(Error::malformed(
            "the columns of all events differ in length",
        ));
    }
    if !events.time.is_sorted() {
        return Err(Error::malformed("the time of the events decreases"));
    }
    if events
        .task
        .iter()
        .max()
        .is_some_and(|&t| t as usize >= recording.tasks.len())
    {
        return Err(Error::malformed("an event names a task that is not there"));
    }
    let rows = rows_by_kind(events);
    if events.tables.len() > 256 || rows[events.tables.len()..].iter().any(|&r| r != 0) {
        return Err(Error::malformed("an event is of a kind that is not there"));
    }
    for (table, rows) in events.tables.iter().zip(rows) {
        if table.fields.len() != table.columns.len()
            || table.columns.iter().any(|c| c.len() != rows)
        {
            return Err(Error::malformed(format!(
                "the columns of {} do not hold its {rows} events",
                table.name
            )));
        }
    }
    Ok(())
}
