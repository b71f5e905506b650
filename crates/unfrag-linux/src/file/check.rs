//! The invariants that the types of a recording state, checked before a file is written and after it was read.

use crate::error::{Error, Result};
use crate::recording::Events;

/// Number of events of each kind.
fn rows_by_kind(events: &Events) -> [usize; 256] {
    let mut rows = [0; 256];
    events.kind.iter().for_each(|&k| rows[usize::from(k)] += 1);
    rows
}

/// Checks the invariants that the type of `events` states.
pub(super) fn check_events(events: &Events) -> Result<()> {
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
