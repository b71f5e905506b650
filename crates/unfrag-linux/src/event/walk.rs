//! The loop over events that gives them, decoded, to whoever counts them.

use super::kind::Kind;
use super::page::Page;
use super::table::Table;
use super::unreadable::Unreadable;
use crate::recording::Events;

/// When, where and by whom an event was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// Nanoseconds of the trace clock.
    pub time: u64,
    /// CPU that recorded it.
    pub cpu: u16,
    /// Index of the task.
    pub task: u32,
    /// The kernel's `common_flags`.
    pub flags: u8,
}

/// Takes events one by one.
pub trait Tracker {
    /// What goes wrong.
    type Error: From<Unreadable>;

    /// Whether it takes events of a kind.
    fn takes(&self, kind: Kind) -> bool;

    /// An event; `page` is what it says, if it is of a kind that this takes (and may be if it is not).
    ///
    /// # Errors
    /// If it cannot be, and counting it makes no sense.
    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<(), Self::Error>;

    /// An event of a kind that this takes, which says nothing.
    ///
    /// # Errors
    /// This, unless the tracker can do without.
    fn unreadable(&mut self, _: &At, _: Kind, why: Unreadable) -> Result<(), Self::Error> {
        Err(why.into())
    }
}

/// Gives events in the order of time.
///
/// # Errors
/// Those of the tracker.
pub fn walk<T: Tracker + ?Sized>(
    events: &Events,
    strings: &[String],
    tracker: &mut T,
) -> Result<(), T::Error> {
    let table = |t| Table::of(t, strings).filter(|t| tracker.takes(t.kind));
    let tables: Vec<Option<Table<'_>>> = events.tables.iter().map(table).collect();
    let mut rows = vec![0usize; tables.len()];
    for (i, (&time, &kind)) in events.time.iter().zip(&events.kind).enumerate() {
        let kind = usize::from(kind);
        let row = rows[kind];
        rows[kind] += 1;
        // A column that was not read, or that a source lacks, is 0.
        let at = At {
            time,
            cpu: events.cpu.get(i).copied().unwrap_or(0),
            task: events.task.get(i).copied().unwrap_or(0),
            flags: events.flags.get(i).copied().unwrap_or(0),
        };
        match &tables[kind] {
            None => tracker.event(&at, None)?,
            Some(table) => match table.page(row) {
                Ok(page) => tracker.event(&at, Some(page))?,
                Err(why) => tracker.unreadable(&at, table.kind, why)?,
            },
        }
    }
    Ok(())
}
