//! The events about processes, read from a recording's columns.
//!
//! Invariant: a field that an event lacks is an error.

use crate::error::{Error, Result};
use unfrag_linux::recording::{EventTable, FieldKind, Recording};

/// An event about processes. Tasks are named by their numbers.
pub(super) enum ProcessEvent<'a> {
    /// A task is created by the current one.
    NewTask { pid: u64, clone_flags: u64 },
    /// A process begins to run a program.
    Exec { pid: u64, path: &'a str },
    /// A task begins to exit.
    Exit { pid: u64 },
    /// A CPU switches to another task.
    Switch { from: u64, state: u64, to: u64 },
}

/// The tracepoints that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tracepoint {
    /// `task_newtask`.
    NewTask,
    /// `sched_process_exec`.
    Exec,
    /// `sched_process_exit`.
    Exit,
    /// `sched_switch`.
    Switch,
}

/// The columns of one table of events.
struct Columns<'a> {
    tracepoint: Tracepoint,
    columns: [&'a [u64]; 3],
}

/// The tracepoint of this name, and its fields that are read.
fn named(event: &str) -> Option<(Tracepoint, &'static [&'static str])> {
    Some(match event {
        "task_newtask" => (Tracepoint::NewTask, &["pid", "clone_flags"]),
        "sched_process_exec" => (Tracepoint::Exec, &["pid", "filename"]),
        "sched_process_exit" => (Tracepoint::Exit, &["pid"]),
        "sched_switch" => (Tracepoint::Switch, &["prev_pid", "prev_state", "next_pid"]),
        _ => return None,
    })
}

/// Whether this field of this event is read.
pub(crate) fn reads(event: &str, field: &str) -> bool {
    named(event).is_some_and(|(_, fields)| fields.contains(&field))
}

impl Columns<'_> {
    fn of(table: &EventTable) -> Result<Option<Columns<'_>>> {
        let Some((tracepoint, names)) = named(&table.name) else {
            return Ok(None);
        };
        let mut columns: [&[u64]; 3] = [&[]; 3];
        for (column, name) in columns.iter_mut().zip(names) {
            let lacking =
                || Error::lacking(format!("the event {} has no field {name}", table.name));
            *column = table.column(name).ok_or_else(lacking)?;
        }
        let path = table.fields.iter().find(|f| f.name == "filename");
        if path.is_some_and(|f| f.kind != FieldKind::String) {
            return Err(Error::lacking(
                "the field filename of sched_process_exec is no text",
            ));
        }
        Ok(Some(Columns {
            tracepoint,
            columns,
        }))
    }
}

/// The columns of a recording's tables, `None` for those of other events.
pub(super) struct ProcessTables<'a> {
    rec: &'a Recording,
    tables: Vec<Option<Columns<'a>>>,
}

impl<'a> ProcessTables<'a> {
    /// Of a recording.
    ///
    /// # Errors
    /// If an event lacks a field.
    pub(super) fn of(rec: &'a Recording) -> Result<Self> {
        let tables = rec.events.tables.iter().map(Columns::of);
        Ok(ProcessTables {
            rec,
            tables: tables.collect::<Result<_>>()?,
        })
    }

    /// Whether the recording has such events.
    pub(super) fn has(&self, tracepoint: Tracepoint) -> bool {
        self.all(tracepoint).any(|c| !c.columns[0].is_empty())
    }

    /// Numbers of the tasks that the recording shows created.
    pub(super) fn created(&self) -> &'a [u64] {
        let first = self.all(Tracepoint::NewTask).next();
        first.map_or(&[], |c| c.columns[0])
    }

    fn all(&self, tracepoint: Tracepoint) -> impl Iterator<Item = &Columns<'a>> {
        let tables = self.tables.iter().flatten();
        tables.filter(move |c| c.tracepoint == tracepoint)
    }

    /// Visits the recording's events in the order of time: the index of each, and what it tells of processes.
    pub(super) fn visit(&self, mut each: impl FnMut(usize, Option<ProcessEvent<'a>>)) {
        let mut rows = vec![0; self.tables.len()];
        for (i, &table) in self.rec.events.kind.iter().enumerate() {
            let table = usize::from(table);
            let row = rows[table];
            rows[table] += 1;
            let columns = self.tables[table].as_ref();
            each(i, columns.map(|c| self.event(c, row)));
        }
    }

    fn event(&self, c: &Columns<'_>, row: usize) -> ProcessEvent<'a> {
        let field = |n: usize| c.columns[n].get(row).copied().unwrap_or(0);
        let pid = field(0);
        match c.tracepoint {
            Tracepoint::NewTask => ProcessEvent::NewTask {
                pid,
                clone_flags: field(1),
            },
            Tracepoint::Exec => {
                let path = self.rec.strings.get(field(1) as usize);
                ProcessEvent::Exec {
                    pid,
                    path: path.map_or("", String::as_str),
                }
            }
            Tracepoint::Exit => ProcessEvent::Exit { pid },
            Tracepoint::Switch => ProcessEvent::Switch {
                from: pid,
                state: field(1),
                to: field(2),
            },
        }
    }
}
