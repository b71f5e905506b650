//! A recording that can be shared: one that answers as before, and names nobody.
//!
//! - `names`: names that are the kernel's own, and numbers in the place of all others. `events`: fields of events.
//!   `snapshots`: files of snapshots. `meta`: facts. `removed`: what was taken
//!   out.
//!
//! Invariant: what is not known to be harmless is left out. What stays beside numbers of pages, orders, flags, times and
//! counts is on a list here: names of kernel threads, of the kernel's events, of slab caches and of counters, and the
//! kernel's release. What is one thing before is one thing after, and what is two is two, so that every count is the
//! same.

mod events;
mod meta;
mod names;
mod removed;
mod snapshots;

use std::path::Path;

use crate::error::{Error, Result};
use crate::event::Roles;
use crate::file::{Wanted, Writer};
use crate::output::{Holds, Output};
use crate::recording::{Events, Recording};
use crate::segments::{Beginning, Covered, Open, Window};
use crate::target::Target;
use events::Fields;
use names::Names;

pub use removed::Removed;

/// A file that was made.
#[derive(Debug)]
pub struct Done {
    /// What was taken out.
    pub removed: Removed,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Events in it.
    pub events: u64,
    /// What of the recording it is.
    pub covered: Covered,
}

/// What becomes of a recording's names and numbers, while its events pass.
struct Redactor {
    names: Names,
    fields: Fields,
}

impl Redactor {
    /// Of this recording, whose events are to come.
    fn of(recording: &Recording) -> Redactor {
        Redactor {
            names: Names::of(recording, &Roles::of(recording)),
            fields: Fields::default(),
        }
    }

    /// Everything but the events.
    fn rest(mut self, recording: Recording) -> (Recording, Removed) {
        let mut removed = Removed::default();
        let Recording {
            meta,
            mut events,
            mut tasks,
            strings,
            snapshots,
        } = recording;
        // Where there was no event, its columns are named all the same.
        let tables = self.fields.pass(&mut events, &strings, &mut self.names);
        for (task, comm) in tasks.iter_mut().zip(self.names.comms()) {
            task.pid = self.names.pid(task.pid.into()) as i32;
            task.comm = comm;
        }
        let snapshots = snapshots::redact(snapshots, &mut self.names, &mut removed);
        let meta = meta::redact(meta, &mut self.names, &mut removed);
        let (fields, renamed) = self.fields.left_out();
        removed.fields = fields;
        removed.events = renamed;
        self.names.count(&mut removed);
        events.tables = tables;
        let strings = self.names.into_strings();
        let rest = Recording {
            meta,
            events,
            tasks,
            strings,
            snapshots,
        };
        (rest, removed)
    }
}

/// Makes a recording that can be shared of one in memory.
pub fn recording(mut recording: Recording) -> (Recording, Removed) {
    let mut redactor = Redactor::of(&recording);
    let mut events = std::mem::take(&mut recording.events);
    redactor
        .fields
        .batch(&mut events, &recording.strings, &mut redactor.names);
    let (mut rest, removed) = redactor.rest(recording);
    rest.events = events;
    (rest, removed)
}

/// Makes `to`, which can be shared, of the window of the file or the directory of segments `from`, in bounded memory. What
/// `to` names is a [`Target`].
///
/// # Errors
/// If `from` cannot be read, nothing was recorded in the window, or `to` cannot be written.
pub fn redact(from: &Path, to: &Path, window: &Window) -> Result<Done> {
    let Open {
        recording,
        events: source,
        covered,
    } = Open::new(from, window, Beginning::Exact)?;
    let begun = Target::of(to).and_then(|target| Output::create(&target, Holds::Recording));
    let mut writer = Writer::new(begun.map_err(|e| Error::from(e).in_file(to))?);
    let mut redactor = Redactor::of(&recording);
    let mut events = 0;
    let mut memory = Events::default;
    source.each(
        &(0..=u64::MAX),
        Wanted::ALL,
        &mut memory,
        &mut |mut batch| -> Result<()> {
            events += batch.len() as u64;
            redactor
                .fields
                .batch(&mut batch, &recording.strings, &mut redactor.names);
            writer.events(&batch).map_err(|e| e.in_file(to))
        },
    )?;
    let (rest, removed) = redactor.rest(recording);
    let written = writer.finish(&rest).and_then(|to| Ok(to.commit()?));
    Ok(Done {
        removed,
        file_bytes: written.map_err(|e| e.in_file(to))?,
        events,
        covered,
    })
}
