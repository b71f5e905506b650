//! What long recordings are read as: a recording, with events that come in batches.
//!
//! A recording of days does not fit in memory. Its events are read as often as they are needed, a batch at a time, and
//! what is made of them is kept in compact columns ([`store`]): in memory up to a budget, and in unnamed files beyond.
//!
//! Invariant: however its events come, and whatever the budget, a recording gives the same replay.

pub mod bits;
pub(crate) mod counted;
mod cpus;
mod file_events;
pub(crate) mod running_sum;
mod source;
pub mod store;
mod trace_events;

use crate::error::{Error, Result};
use crate::geometry::recorded::{Question, RecordedGeometry};
pub use cpus::{Cpus, MAX_CPUS};
pub use file_events::FileEvents;
pub use source::EventSource;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use store::Room;
pub use trace_events::TraceEvents;
use unfrag_eras::Geometry;
use unfrag_linux::event::{At, Kind, Page, Tracker, Unreadable, walk};
use unfrag_linux::file::{Common, Wanted};
use unfrag_linux::recording::{EventTable, Events, Recording};
use unfrag_linux::share::{self, Share};

/// A recording, and where its events come from.
#[derive(Clone)]
pub struct Input<'r> {
    /// The recording; its events are in `events`.
    pub recording: &'r Recording,
    /// The events.
    pub events: &'r dyn EventSource,
    /// Where the window that was asked for begins, in the clock of the events. Those before it are read where they tell
    /// the state in which it begins.
    pub(crate) from: u64,
    /// Where the window begins and ends that was asked for, as far as that is within what was recorded.
    pub(crate) window: (Option<u64>, Option<u64>),
    /// Memory for what is made of them.
    pub(crate) room: Arc<Room>,
    /// Its CPUs, once they were asked for.
    cpus: Arc<Mutex<Option<Arc<Cpus>>>>,
    /// What its snapshots tell of its host, once it was asked for.
    recorded: Arc<Mutex<Option<Arc<RecordedGeometry>>>>,
}

/// Memory for what is made of a recording's events, in bytes, if nothing else is asked for: ten million operations.
pub const MEMORY_BUDGET: u64 = 128 << 20;

impl<'r> From<&'r Recording> for Input<'r> {
    fn from(recording: &'r Recording) -> Input<'r> {
        Input::new(recording, &recording.events, MEMORY_BUDGET)
    }
}

impl<'r> Input<'r> {
    /// A recording whose events come from a source; `budget` is the memory for what is made of them, in bytes.
    pub fn new(recording: &'r Recording, events: &'r dyn EventSource, budget: u64) -> Input<'r> {
        Input {
            recording,
            events,
            from: 0,
            window: (None, None),
            room: Arc::new(Room::new(budget)),
            cpus: Arc::default(),
            recorded: Arc::default(),
        }
    }

    /// The same, where what was asked for begins at a time of the clock of the events.
    #[must_use]
    pub fn asked_from(mut self, time: u64) -> Input<'r> {
        self.from = time;
        self
    }

    /// The same, where a window within what was recorded begins and ends at these times, as far as it was asked for.
    #[must_use]
    pub fn within(mut self, window: (Option<u64>, Option<u64>)) -> Input<'r> {
        self.window = window;
        self
    }

    /// Its CPUs, which are looked for once.
    ///
    /// # Errors
    /// If they are more than a kernel can have, or the events cannot be read.
    pub fn cpus(&self) -> Result<Arc<Cpus>> {
        // Held while they are looked for: whoever else asks meanwhile needs the same answer.
        let mut known = self.cpus.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cpus) = &*known {
            return Ok(Arc::clone(cpus));
        }
        let cpus = Arc::new(Cpus::of(&self.recorded().cpus, self.events)?);
        *known = Some(Arc::clone(&cpus));
        Ok(cpus)
    }

    /// What its snapshots tell of its host: they are read once.
    fn recorded(&self) -> Arc<RecordedGeometry> {
        let mut known = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || Arc::new(RecordedGeometry::of(self.recording));
        Arc::clone(known.get_or_insert_with(read))
    }

    /// The sizes that a replay has of its host.
    ///
    /// # Errors
    /// If the recording contradicts itself, or tells sizes that no replay can have.
    pub fn geometry(&self) -> Result<Geometry> {
        self.recorded().check(Question::Replay)
    }

    /// Whether there are events of this kind with this field.
    pub(crate) fn happened(&self, kind: Kind, field: &str) -> bool {
        let has = |table: &EventTable| {
            Kind::of(&table.name) == Some(kind) && table.fields.iter().any(|f| f.name == field)
        };
        let tables = self.recording.events.tables.iter();
        tables
            .zip(self.events.rows())
            .any(|(t, rows)| rows > 0 && has(t))
    }

    /// Which share of the pages that its host allocated is in its events; `None` if it does not tell.
    ///
    /// # Errors
    /// If the events cannot be read.
    pub fn share(&self) -> Result<Option<Share>> {
        if !self.happened(Kind::Alloc, "order") {
            return Ok(None);
        }
        let mut pages = Pages(share::Count::of(self.recording));
        self.walk(0..=u64::MAX, &[], &mut pages)?;
        Ok(pages.0.share())
    }

    /// Checks that the events of these kinds can be read at all.
    ///
    /// # Errors
    /// If they lack a field.
    pub(crate) fn check(&self, kinds: &[Kind]) -> Result<()> {
        for table in &self.recording.events.tables {
            if let Some(kind) = Kind::of(&table.name).filter(|k| kinds.contains(k)) {
                kind.check(table)?;
            }
        }
        Ok(())
    }

    /// Gives the events to a tracker, or to several at once, in the order of time; those outside of `times` may be left
    /// out. Of each, these common columns are read, and others are 0.
    ///
    /// # Errors
    /// If they cannot be read; and those of the tracker.
    pub(crate) fn walk<T: Tracker<Error = Error> + ?Sized>(
        &self,
        times: RangeInclusive<u64>,
        common: &[Common],
        tracker: &mut T,
    ) -> Result<()> {
        self.walk_and(times, common, tracker, &|_, _| false, &mut |_| Ok(()))
    }

    /// The same; each batch of events goes to `also`, too, with the further fields that `field` names, by event and
    /// field.
    ///
    /// # Errors
    /// As there; and those of `also`.
    pub(crate) fn walk_and<T: Tracker<Error = Error> + ?Sized>(
        &self,
        times: RangeInclusive<u64>,
        common: &[Common],
        tracker: &mut T,
        field: &(dyn Fn(&str, &str) -> bool + Sync),
        also: &mut dyn FnMut(&Events) -> Result<()>,
    ) -> Result<()> {
        let taken: Vec<Kind> = Kind::all().filter(|k| tracker.takes(*k)).collect();
        let wanted = Wanted {
            common,
            field: &|event, name| {
                let kind = Kind::of(event).filter(|k| taken.contains(k));
                kind.is_some_and(|k| k.fields().contains(&name)) || field(event, name)
            },
        };
        let strings = &self.recording.strings;
        self.events.each(times, wanted, &mut |batch| {
            walk(batch, strings, tracker)?;
            also(batch)
        })
    }
}

/// The count of pages that events allocate, with the laboratory's errors.
struct Pages(share::Count);

impl Tracker for Pages {
    type Error = Error;

    fn takes(&self, kind: Kind) -> bool {
        self.0.takes(kind)
    }

    #[inline]
    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<()> {
        Ok(self.0.event(at, page)?)
    }

    fn unreadable(&mut self, at: &At, kind: Kind, why: Unreadable) -> Result<()> {
        Ok(self.0.unreadable(at, kind, why)?)
    }
}
