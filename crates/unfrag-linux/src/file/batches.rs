//! Reads the events of a part some at a time.
//!
//! Invariant: the batches hold the events of the part in their order, and of each kind the fields that are wanted.

use std::io::{Read, Seek};

use super::check::check_events;
use super::reader::{Reader, empty_string, fields};
use super::table_read::TableReader;
use crate::error::{Error, Result};
use crate::recording::{EventTable, Events, FieldKind};

/// Events in a batch, at most: their columns stay in a CPU's cache.
pub const BATCH_EVENTS: usize = 1 << 15;

/// What is read of events.
#[derive(Clone, Copy)]
pub struct Wanted<'w> {
    /// Of each event its time and its kind, and of these columns those that are named; others are 0.
    pub common: &'w [Common],
    /// Of the event with the first name, whether the field with the second is read.
    pub field: &'w (dyn Fn(&str, &str) -> bool + Sync),
}

impl Wanted<'_> {
    /// Everything.
    pub const ALL: Wanted<'static> = Wanted {
        common: &[Common::Cpu, Common::Task, Common::Flags, Common::Preempt],
        field: &|_, _| true,
    };

    /// The numbers of the wanted fields of a table.
    fn fields(&self, table: &EventTable) -> Vec<usize> {
        let is_wanted = |&f: &usize| (self.field)(&table.name, &table.fields[f].name);
        (0..table.fields.len()).filter(is_wanted).collect()
    }

    /// Takes the other fields out of a table without events.
    pub(crate) fn choose(&self, table: &mut EventTable) {
        let fields = self.fields(table);
        table.fields = fields.iter().map(|&f| table.fields[f].clone()).collect();
        table.columns = vec![vec![]; fields.len()];
    }
}

/// Columns of all events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Common {
    /// [`Events::cpu`].
    Cpu,
    /// [`Events::task`].
    Task,
    /// [`Events::flags`].
    Flags,
    /// [`Events::preempt`].
    Preempt,
}

/// The batches of a part.
pub struct Batches<'a> {
    common: TableReader<'a>,
    wanted: Vec<Common>,
    /// For each kind of event that is known by the end of the part: its rows, and its wanted fields.
    kinds: Vec<(TableReader<'a>, Vec<Origin>)>,
    /// Events that are not read yet.
    left: usize,
    /// Tasks of the file.
    tasks: u64,
    /// Time of the last event that was read.
    newest: u64,
    /// The tables of a batch, without events.
    tables: Vec<EventTable>,
}

/// Where a field comes from.
#[derive(Clone, Copy)]
enum Origin {
    Column(usize),
    /// Only later parts have the field, and this stands for it.
    Constant(u64),
}

impl<R: Read + Seek> Reader<R> {
    /// A part of the events. Its tables are those of the whole file.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn part(&mut self, index: usize) -> Result<Events> {
        self.batches(index, Wanted::ALL)?.rest()
    }

    /// Gives the times of a part's events, some at a time.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn times(&mut self, index: usize, mut each: impl FnMut(&[u64])) -> Result<()> {
        let part = &self.manifest.parts[index];
        let mut common = TableReader::open(&part.events, &mut self.members)?;
        let mut left = usize::try_from(part.events.rows).unwrap_or(usize::MAX);
        let mut times = vec![];
        while left > 0 {
            times.clear();
            common.next_numbers("time", left.min(BATCH_EVENTS), &mut times)?;
            left -= times.len();
            each(&times);
        }
        Ok(())
    }

    /// The events of a part, in batches, with the wanted fields. Their tables are those of the whole file.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn batches(&mut self, index: usize, wanted: Wanted) -> Result<Batches<'_>> {
        let mut tables = self.tables()?;
        let (manifest, members) = (&self.manifest, &mut self.members);
        let part = &manifest.parts[index];
        if part.kinds.len() > tables.len() {
            return Err(Error::malformed(
                "manifest.json: a part with kinds of events that the file has not",
            ));
        }
        let common = TableReader::open(&part.events, members)?;
        let mut kinds = vec![];
        for (i, table) in tables.iter_mut().enumerate() {
            let wants = wanted.fields(table);
            let (name, all) = (&table.name, &table.fields);
            if let Some(rows) = part.kinds.get(i) {
                let known = fields(&rows.columns)?;
                if known.len() > all.len() || !known.iter().zip(all).all(|(a, b)| a.becomes(b)) {
                    return Err(Error::malformed(format!(
                        "manifest.json: the fields of {name} differ from part to part"
                    )));
                }
                let mut origins = vec![];
                for &f in &wants {
                    origins.push(match all[f].kind {
                        _ if f < known.len() => Origin::Column(f),
                        FieldKind::String => {
                            let strings = TableReader::open(&manifest.strings, members)?;
                            Origin::Constant(empty_string(strings)?)
                        }
                        _ => Origin::Constant(0),
                    });
                }
                kinds.push((TableReader::open(rows, members)?, origins));
            }
            wanted.choose(table);
        }
        Ok(Batches {
            common,
            wanted: wanted.common.to_vec(),
            kinds,
            left: usize::try_from(part.events.rows).unwrap_or(usize::MAX),
            tasks: manifest.tasks.rows,
            newest: 0,
            tables,
        })
    }
}

impl Batches<'_> {
    /// Reads the next events, at most so many, into a batch: one without tables, or one that was read from the same file
    /// with the same wishes. Gives whether there were any.
    ///
    /// # Errors
    /// If the part is damaged.
    pub fn next(&mut self, most: usize, batch: &mut Events) -> Result<bool> {
        let count = self.left.min(most);
        self.left -= count;
        batch.clear();
        if batch.tables.len() != self.tables.len() {
            batch.tables.clone_from(&self.tables);
        }
        let common = &mut self.common;
        common.next_numbers("time", count, &mut batch.time)?;
        common.next_numbers("kind", count, &mut batch.kind)?;
        for column in &self.wanted {
            match column {
                Common::Cpu => common.next_numbers("cpu", count, &mut batch.cpu)?,
                Common::Task => common.next_numbers("task", count, &mut batch.task)?,
                Common::Flags => common.next_numbers("flags", count, &mut batch.flags)?,
                Common::Preempt => common.next_numbers("preempt", count, &mut batch.preempt)?,
            }
        }
        batch.cpu.resize(count, 0);
        batch.task.resize(count, 0);
        batch.flags.resize(count, 0);
        batch.preempt.resize(count, 0);
        let mut rows = [0usize; 256];
        batch.kind.iter().for_each(|&k| rows[usize::from(k)] += 1);
        let tables = batch.tables.iter_mut().zip(&mut self.kinds).zip(rows);
        for ((table, (reader, origins)), rows) in tables {
            for (column, &origin) in table.columns.iter_mut().zip(&*origins) {
                match origin {
                    Origin::Column(index) => reader.next_numbers_at(index, rows, column)?,
                    Origin::Constant(value) => column.resize(rows, value),
                }
            }
        }
        check_events(batch)?;
        if batch.time.first().is_some_and(|&t| t < self.newest) {
            return Err(Error::malformed("the time of the events decreases"));
        }
        self.newest = batch.time.last().copied().unwrap_or(self.newest);
        if batch.task.iter().any(|&t| u64::from(t) >= self.tasks) {
            return Err(Error::malformed("an event names a task that is not there"));
        }
        Ok(count > 0)
    }

    /// All events that are left.
    ///
    /// # Errors
    /// If the part is damaged.
    pub fn rest(mut self) -> Result<Events> {
        let mut all = Events::default();
        self.next(usize::MAX, &mut all)?;
        Ok(all)
    }
}
