//! What long recordings are read as: a recording, with events that come in batches.
//!
//! A recording of days does not fit in memory. Its events are read as often as they are needed, a batch at a time, and
//! what is made of them is kept in compact columns ([`store`]): in memory up to a budget, and in unnamed files beyond.
//!
//! Invariant: however its events come, and whatever the budget, a recording gives the same replay.

pub mod bits;
mod cpus;
mod file_events;
pub(crate) mod running_sum;
mod source;
pub mod store;

use crate::error::Result;
use crate::geometry::recorded::{Question, RecordedGeometry};
pub use cpus::{Cpus, MAX_CPUS};
pub use file_events::FileEvents;
pub use source::EventSource;
pub(crate) use source::needed;
use std::sync::{Arc, Mutex, PoisonError};
use store::Room;
use unfrag::Geometry;
use unfrag_linux::recording::Recording;

/// A recording, and where its events come from.
#[derive(Clone)]
pub struct Input<'r> {
    /// The recording; its events are in `events`.
    pub recording: &'r Recording,
    /// The events.
    pub events: &'r dyn EventSource,
    /// Memory for what is made of them.
    pub(crate) room: Arc<Room>,
    /// Its CPUs, once they were asked for.
    cpus: Arc<Mutex<Option<Arc<Cpus>>>>,
    /// The sizes of its host, once they were asked for.
    geometry: Arc<Mutex<Option<Geometry>>>,
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
            room: Arc::new(Room::new(budget)),
            cpus: Arc::default(),
            geometry: Arc::default(),
        }
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
        let cpus = Arc::new(Cpus::of(self.recording, self.events)?);
        *known = Some(Arc::clone(&cpus));
        Ok(cpus)
    }

    /// The sizes that a replay has of its host, which are looked for once.
    ///
    /// # Errors
    /// If the recording contradicts itself, or tells sizes that no replay can have.
    pub fn geometry(&self) -> Result<Geometry> {
        let mut known = self.geometry.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some(geometry) => Ok(geometry),
            None => {
                let geometry = RecordedGeometry::of(self.recording).check(Question::Replay)?;
                *known = Some(geometry);
                Ok(geometry)
            }
        }
    }

    /// Whether there are events of this name with this field.
    pub(crate) fn happened(&self, name: &str, field: &str) -> bool {
        let tables = &self.recording.events.tables;
        let has = |field_of: &unfrag_linux::recording::EventTable| {
            field_of.name == name && field_of.fields.iter().any(|f| f.name == field)
        };
        tables
            .iter()
            .zip(self.events.rows())
            .any(|(t, rows)| rows > 0 && has(t))
    }
}
