//! A recording of days: a directory of segments, and a window of time over them or over one file.
//!
//! A segment is an `.unfrag` file, complete in itself. Its name begins with the date at which it begins, so the order of
//! names is that of time. The clock of events begins at boot; the fact [`EPOCH_OFFSET`] says how far it is from the date,
//! and [`BOOT`] which boot it was.
//!
//! - `window`: windows, and the segments of a directory. `segment`: a segment, and which of them a window touches. `names`: one numbering of tasks, strings and kinds of
//!   events for several. `stream`: the events of a window, in batches: [`Open`].
//!
//! Invariant: no more is read than the parts of the files that the window touches. What is read begins at a snapshot with
//! page flags, where there is one before the window, so that it can be replayed by itself.

mod names;
mod segment;
mod stream;
mod window;

use std::path::Path;

use crate::error::{Error, Result};
use crate::file::Wanted;
use crate::recording::Recording;

pub use stream::{Open, WindowEvents};
pub use window::{BOOT, EPOCH_OFFSET, Extent, Moment, Window, list};

/// Reads the window of a file, or of a directory of segments. A window over several boots gives the last one of them:
/// their clocks have nothing in common.
///
/// # Errors
/// If a file cannot be read, nothing was recorded in the window, or a date is given and the recording has none.
pub fn read(path: &Path, window: &Window, extent: Extent) -> Result<Recording> {
    let open = Open::new(path, window)?;
    let mut recording = open.recording;
    if extent == Extent::All {
        let events = &mut recording.events;
        open.events.in_segments(Wanted::ALL, &mut |batch| {
            events.append(batch);
            Ok::<(), Error>(())
        })?;
        // Buffers of the CPUs are emptied one after the other, so the ends of segments overlap by a little.
        if !events.time.is_sorted() {
            events.sort_by_time(&mut recording.meta.lost);
        }
    }
    Ok(recording)
}
