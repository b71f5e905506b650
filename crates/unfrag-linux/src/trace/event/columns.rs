//! The events of a recording while they are being read.
//!
//! Invariant: all columns of `events` have one length, and so have all columns of a table. Events
//! may arrive in any order of time; [`Columns::finish`] sorts them, keeping the order of arrival
//! among equals. Where they are given away in batches ([`Columns::spill`]), each batch is sorted.

use crate::error::{Error, Result};
use crate::recording::{EventTable, Events, Field, Lost, Meta, Recording};

use super::batches::{Batches, not_in_batches};
use super::intern::{Strings, Tasks};
use super::stack::Stacks;

/// Most CPUs of a host; Linux allows 8,192. A larger number is damage.
pub(crate) const MAX_CPUS: u32 = u16::MAX as u32;

/// The fields that every event has.
#[derive(Clone, Copy, Default)]
pub(crate) struct Common {
    /// Nanoseconds of the trace clock.
    pub time: u64,
    /// CPU that recorded it.
    pub cpu: u16,
    /// Index of the task.
    pub task: u32,
    /// The kernel's `common_flags`.
    pub flags: u8,
    /// The kernel's `common_preempt_count`.
    pub preempt: u8,
    /// Index of the table.
    pub kind: u8,
}

/// Memory that a recording may still take.
///
/// A few hostile bytes can announce an event with hundreds of fields that its records lack; real
/// records take 5 to 20 times their bytes.
pub(crate) struct Budget(u64);

impl Budget {
    /// For an input of this many bytes, after decompression.
    pub fn for_input(bytes: u64) -> Self {
        Budget(bytes.saturating_mul(64).saturating_add(64 << 20))
    }
    /// Takes `bytes` from the budget.
    #[inline]
    pub fn charge(&mut self, bytes: u64) -> Result<()> {
        match self.0.checked_sub(bytes) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => Err(Error::malformed(
                "the events take far more memory than their bytes could hold",
            )
            .help("the event formats do not fit the events: the file is damaged")),
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget::for_input(0)
    }
}

/// The events, tasks, strings and gaps read so far.
#[derive(Default)]
pub(crate) struct Columns {
    pub events: Events,
    pub tasks: Tasks,
    pub strings: Strings,
    pub stacks: Stacks,
    pub lost: Vec<Lost>,
    pub budget: Budget,
    /// Rows of each table in `events`, where whoever fills it counts them.
    pub rows: Vec<usize>,
    unordered: bool,
    newest: u64,
    /// Number of events that were given away, and the time of the last of them.
    given: u64,
    given_until: u64,
    input: u64,
}

impl Columns {
    /// For an input of this many bytes, after decompression.
    pub fn for_input(bytes: u64) -> Self {
        Columns {
            budget: Budget::for_input(bytes),
            input: bytes,
            ..Columns::default()
        }
    }
    /// A new table; its index.
    ///
    /// # Errors
    /// A recording holds at most 256 kinds of events.
    pub fn add_table(&mut self, system: &str, name: &str, fields: Vec<Field>) -> Result<u8> {
        let kind = u8::try_from(self.events.tables.len()).map_err(|_| {
            Error::too_large("the number of kinds of events", 257, 256)
                .help("record fewer kinds of events, such as kmem, compaction, vmscan, migrate")
        })?;
        self.rows.push(0);
        self.events.tables.push(EventTable {
            system: system.to_owned(),
            name: name.to_owned(),
            columns: vec![Vec::new(); fields.len()],
            fields,
        });
        Ok(kind)
    }
    /// Adds an event's common part; the caller adds its row to the table of `common.kind`.
    #[inline]
    pub fn push(&mut self, common: Common) {
        if common.time < self.newest {
            self.unordered = true;
        } else {
            self.newest = common.time;
        }
        let e = &mut self.events;
        e.time.push(common.time);
        e.cpu.push(common.cpu);
        e.task.push(common.task);
        e.flags.push(common.flags);
        e.preempt.push(common.preempt);
        e.kind.push(common.kind);
    }
    /// Whether there was no event at all.
    pub fn is_empty(&self) -> bool {
        self.given == 0 && self.events.is_empty()
    }
    /// Makes room for `n` more events.
    pub fn reserve(&mut self, n: usize) {
        let e = &mut self.events;
        e.time.reserve(n);
        e.cpu.reserve(n);
        e.task.reserve(n);
        e.flags.reserve(n);
        e.preempt.reserve(n);
        e.kind.reserve(n);
    }
    /// Notes a gap before the next event.
    pub fn push_lost(&mut self, cpu: u16, count: Option<u64>) {
        self.lost.push(Lost {
            cpu,
            before_event: self.given + self.events.len() as u64,
            count,
        });
    }
    /// Gives events away, if there are enough for a batch. The rows of all events must be complete.
    ///
    /// # Errors
    /// If an event is earlier than one that was given away ([`Cause::NotInBatches`](crate::error::Cause::NotInBatches)), or
    /// the taker fails.
    #[inline]
    pub fn spill(&mut self, batches: &mut Batches<'_>) -> Result<()> {
        match self.events.len() < batches.limit {
            true => Ok(()),
            false => self.give(batches, batches.held_back()),
        }
    }
    /// Gives away all events that are left.
    ///
    /// # Errors
    /// As [`Columns::spill`].
    pub fn spill_rest(&mut self, batches: &mut Batches<'_>) -> Result<()> {
        match batches.limit {
            usize::MAX => Ok(()),
            _ => self.give(batches, 0),
        }
    }
    #[cold]
    fn give(&mut self, batches: &mut Batches<'_>, held_back: usize) -> Result<()> {
        self.sort();
        if self
            .events
            .time
            .first()
            .is_some_and(|&t| t < self.given_until)
        {
            return Err(not_in_batches("events are far out of the order of time"));
        }
        let n = self.events.len() - held_back;
        let rest = self.events.split_off(n);
        let batch = std::mem::replace(&mut self.events, rest);
        for &kind in &batch.kind {
            let rows = &mut self.rows[usize::from(kind)];
            *rows = rows.saturating_sub(1);
        }
        if held_back > 0 {
            self.reserve(n);
            for (table, given) in self.events.tables.iter_mut().zip(&batch.tables) {
                let rows = given.columns.first().map_or(0, Vec::len);
                table.columns.iter_mut().for_each(|c| c.reserve(rows));
            }
        }
        self.given += n as u64;
        self.given_until = batch.time.last().copied().unwrap_or(self.given_until);
        self.budget = Budget::for_input(self.input);
        (batches.give)(batch)
    }
    /// Checks that no event was given away, so that all can be changed.
    ///
    /// # Errors
    /// [`Cause::NotInBatches`](crate::error::Cause::NotInBatches) if one was.
    pub fn all_are_here(&self) -> Result<()> {
        match self.given {
            0 => Ok(()),
            _ => Err(not_in_batches(
                "a field that was a number in all events before is text in a later one",
            )),
        }
    }
    fn sort(&mut self) {
        if std::mem::take(&mut self.unordered) {
            let held = self.lost.partition_point(|l| l.before_event < self.given);
            let lost = &mut self.lost[held..];
            lost.iter_mut().for_each(|l| l.before_event -= self.given);
            self.events.sort_by_time(lost);
            lost.iter_mut().for_each(|l| l.before_event += self.given);
        }
    }
    /// The recording, in the order of time, without what was given away.
    pub fn finish(mut self, mut meta: Meta) -> Recording {
        self.sort();
        meta.lost = self.lost;
        Recording {
            meta,
            events: self.events,
            tasks: self.tasks.into_list(),
            strings: self.strings.into_list(),
            snapshots: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::FieldKind;

    fn number(name: &str) -> Field {
        Field {
            name: name.into(),
            kind: FieldKind::Unsigned,
        }
    }

    #[test]
    fn events_out_of_order_are_sorted_with_their_rows_and_gaps() {
        let mut c = Columns::default();
        let a = c.add_table("kmem", "a", vec![number("x")]).unwrap();
        let b = c.add_table("kmem", "b", vec![number("x")]).unwrap();
        for (time, kind) in [(5, a), (9, b), (7, a), (6, b), (7, b)] {
            if time == 6 {
                c.push_lost(1, Some(3));
            }
            c.push(Common {
                time,
                kind,
                ..Common::default()
            });
            c.events.tables[kind as usize].columns[0].push(time);
        }
        c.push_lost(0, None);
        let r = c.finish(Meta::default());
        assert_eq!(r.events.time, [5, 6, 7, 7, 9]);
        assert_eq!(r.events.kind, [a, b, a, b, b]);
        assert_eq!(r.events.tables[0].columns[0], [5, 7]);
        assert_eq!(r.events.tables[1].columns[0], [6, 7, 9]);
        assert_eq!(r.meta.lost[0].before_event, 1);
        assert_eq!(r.meta.lost[1].before_event, 5);
    }
}
