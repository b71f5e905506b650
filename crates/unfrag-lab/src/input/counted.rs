//! What of the events is in the window that was asked for: what is read may begin before it.

use super::Input;
use crate::error::{Error, Result};
use unfrag_linux::event::Tracker;
use unfrag_linux::file::Common;
use unfrag_linux::recording::Events;

/// The events of the window so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    from: u64,
    /// Events.
    pub(crate) events: u64,
    /// Times of the first and the last.
    pub(crate) span: Option<(u64, u64)>,
    /// Events of each kind of the recording.
    pub(crate) rows: Vec<u64>,
}

impl Counted {
    /// Gives all events to a tracker, as [`Input::walk`] does, and counts them.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn walk<T: Tracker<Error = Error>>(
        input: &Input,
        common: &[Common],
        tracker: &mut T,
    ) -> Result<Counted> {
        let mut counted = Counted::of(input);
        let all = 0..=u64::MAX;
        input.walk_and(all, common, tracker, &|_, _| false, &mut |batch| {
            counted.add(batch);
            Ok(())
        })?;
        Ok(counted)
    }

    /// None so far.
    pub(crate) fn of(input: &Input) -> Counted {
        Counted {
            from: input.from,
            rows: vec![0; input.recording.events.tables.len()],
            ..Counted::default()
        }
    }

    /// Counts a batch, which comes behind the others.
    pub(crate) fn add(&mut self, batch: &Events) {
        let first = batch.time.partition_point(|&t| t < self.from);
        let (Some(&begin), Some(&end)) = (batch.time.get(first), batch.time.last()) else {
            return;
        };
        self.events += (batch.len() - first) as u64;
        self.span = Some((self.span.map_or(begin, |(begin, _)| begin), end));
        for &kind in &batch.kind[first..] {
            self.rows[usize::from(kind)] += 1;
        }
    }
}
