//! Writes the `.unfrag` file, part by part.
//!
//! Invariant: of the events no more than a part is held. Parts come in the order of time, and a kind of event keeps its
//! number from the part in which it is seen first.

use std::collections::BTreeSet;
use std::io::{Seek, Write};
use std::ops::Range;

use super::check::check_events;
use super::columns::Numbers;
use super::container;
use super::manifest::{self, EventKind, LATEST, Manifest, Part, ReadAs, Table};
use super::snapshots;
use super::table::{Data, Source};
use crate::error::{Error, Result};
use crate::recording::{EventTable, Events, Field, FieldKind, Recording, Task};

/// Events of a part, at most.
pub const PART_EVENTS: usize = 1 << 20;

/// A kind of event.
struct Kind {
    system: String,
    name: String,
    fields: Vec<Field>,
    /// Its name in the container.
    plain: String,
}

/// A file that is being written.
pub struct Writer<W: Write + Seek + Send> {
    members: container::Writer<W>,
    kinds: Vec<Kind>,
    names: BTreeSet<String>,
    parts: Vec<Part>,
    /// Time of the last event.
    newest: u64,
    /// The highest number of a task that an event names.
    highest_task: Option<u32>,
}

impl<W: Write + Seek + Send> Writer<W> {
    /// A file without events.
    pub fn new(to: W) -> Self {
        Writer {
            members: container::Writer::new(to),
            kinds: vec![],
            names: BTreeSet::new(),
            parts: vec![],
            newest: 0,
            highest_task: None,
        }
    }

    /// Adds the next events, as one part or several. Their tables and fields are those of the events before, and
    /// perhaps more; a number that was unsigned may be signed.
    ///
    /// # Errors
    /// If they break the invariants that their types state, or follow later ones; and if they cannot be written.
    pub fn events(&mut self, events: &Events) -> Result<()> {
        check_events(events)?;
        self.add_kinds(&events.tables)?;
        if events.time.first().is_some_and(|&t| t < self.newest) {
            return Err(Error::malformed("the time of the events decreases"));
        }
        let mut rows = vec![0; events.tables.len()];
        for start in (0..events.len()).step_by(PART_EVENTS) {
            let range = start..(start + PART_EVENTS).min(events.len());
            let before = rows.clone();
            for &kind in &events.kind[range.clone()] {
                rows[usize::from(kind)] += 1;
            }
            let of_kind: Vec<_> = before.iter().zip(&rows).map(|(a, b)| *a..*b).collect();
            self.part(events, range, &of_kind)?;
        }
        Ok(())
    }

    fn add_kinds(&mut self, tables: &[EventTable]) -> Result<()> {
        for (i, table) in tables.iter().enumerate() {
            if let Some(known) = self.kinds.get_mut(i) {
                let is_same = (&known.system, &known.name) == (&table.system, &table.name)
                    && known.fields.len() <= table.fields.len()
                    && known
                        .fields
                        .iter()
                        .zip(&table.fields)
                        .all(|(a, b)| a.becomes(b));
                if !is_same {
                    return Err(Error::malformed(format!(
                        "the kind of event {i} was {}, and is {} with other fields now",
                        known.name, table.name
                    )));
                }
                known.fields.clone_from(&table.fields);
                continue;
            }
            let name = match table.system.as_str() {
                "" => table.name.clone(),
                system => format!("{system}.{}", table.name),
            };
            self.kinds.push(Kind {
                system: table.system.clone(),
                name: table.name.clone(),
                fields: table.fields.clone(),
                plain: manifest::unique(&manifest::plain(&name), &mut self.names),
            });
        }
        Ok(())
    }

    /// Adds the events with these numbers, of each kind those with these.
    fn part(
        &mut self,
        events: &Events,
        range: Range<usize>,
        of_kind: &[Range<usize>],
    ) -> Result<()> {
        let directory = match self.parts.len() {
            0 => String::new(),
            n => format!("part-{n}/"),
        };
        let numbers = |name, numbers| Source::numbers(name, ReadAs::Unsigned, numbers);
        let r = range.clone();
        let columns = [
            numbers("time", Numbers::U64(&events.time[r.clone()])),
            numbers("cpu", Numbers::U16(&events.cpu[r.clone()])),
            numbers("task", Numbers::U32(&events.task[r.clone()])),
            numbers("flags", Numbers::U8(&events.flags[r.clone()])),
            numbers("preempt", Numbers::U8(&events.preempt[r.clone()])),
            numbers("kind", Numbers::U8(&events.kind[r])),
        ];
        let table = self
            .members
            .table(&format!("{directory}events"), &columns)?;
        let mut kinds = vec![];
        for ((kind, table), rows) in self.kinds.iter().zip(&events.tables).zip(of_kind) {
            let member = format!("{directory}event/{}", kind.plain);
            let fields = table.fields.iter().zip(&table.columns);
            let columns: Vec<_> = fields
                .map(|(f, column)| {
                    let numbers = Numbers::U64(&column[rows.clone()]);
                    Source::numbers(&f.name, read_as(f.kind), numbers)
                })
                .collect();
            let mut written = self.members.table(&member, &columns)?;
            written.rows = rows.len() as u64;
            kinds.push(written);
        }
        let highest = events.task[range.clone()].iter().max().copied();
        self.highest_task = self.highest_task.max(highest);
        self.newest = events.time[range.end - 1];
        self.parts.push(Part {
            first: events.time[range.start],
            last: self.newest,
            events: table,
            kinds,
        });
        Ok(())
    }

    /// Ends the file with everything of `rest` but the events.
    ///
    /// # Errors
    /// If an event names a task that is not there, a string has more than 16 MiB, or it cannot be written.
    pub fn finish(mut self, rest: &Recording) -> Result<W> {
        if self
            .highest_task
            .is_some_and(|t| t as usize >= rest.tasks.len())
        {
            return Err(Error::malformed("an event names a task that is not there"));
        }
        let mut manifest = Manifest {
            meta: (&rest.meta).into(),
            tasks: write_tasks(&rest.tasks, &mut self.members)?,
            strings: self.members.table(
                "strings",
                &[Source {
                    name: "string",
                    read_as: ReadAs::Text,
                    data: Data::Bytes(rest.strings.iter().map(String::as_bytes).collect()),
                }],
            )?,
            snapshots: snapshots::write(&rest.snapshots, &mut self.members)?,
            ..Manifest::default()
        };
        // A file without events says what columns they would have.
        if self.parts.is_empty() {
            self.add_kinds(&rest.events.tables)?;
        }
        let kind = |(k, table): (Kind, Table)| EventKind {
            system: k.system,
            name: k.name,
            table,
        };
        if self.parts.len() == 1
            && self.parts[0].kinds.len() == self.kinds.len()
            && let Some(only) = self.parts.pop()
        {
            manifest.span = Some((only.first, only.last));
            manifest.events = only.events;
            manifest.kinds = self.kinds.into_iter().zip(only.kinds).map(kind).collect();
        } else {
            if !self.parts.is_empty() {
                manifest.version = LATEST;
            }
            let (events, kinds) = self.described()?;
            manifest.events = events;
            manifest.kinds = self.kinds.into_iter().zip(kinds).map(kind).collect();
            manifest.parts = self.parts;
        }
        self.members.finish(&manifest)
    }

    /// The tables of a part without events.
    fn described(&mut self) -> Result<(Table, Vec<Table>)> {
        let none: &[u64] = &[];
        let names = ["time", "cpu", "task", "flags", "preempt", "kind"];
        let columns = names.map(|n| Source::numbers(n, ReadAs::Unsigned, Numbers::U64(none)));
        let events = self.members.table("events", &columns)?;
        let mut kinds = vec![];
        for kind in &self.kinds {
            let fields = kind.fields.iter();
            let columns: Vec<_> = fields
                .map(|f| Source::numbers(&f.name, read_as(f.kind), Numbers::U64(none)))
                .collect();
            kinds.push(self.members.table(&kind.plain, &columns)?);
        }
        Ok((events, kinds))
    }
}

fn write_tasks<W: Write + Seek + Send>(
    tasks: &[Task],
    members: &mut container::Writer<W>,
) -> Result<Table> {
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
