//! A recording of days: a directory of segments, and a window of time over them or over one file.
//!
//! A segment is an `.unfrag` file, complete in itself. Its name begins with the date at which it begins, so the order of
//! names is that of time. The clock of events begins at boot; the fact [`EPOCH_OFFSET`] says how far it is from the date,
//! and [`BOOT`] which boot it was.
//!
//! - `window`: windows, and the segments of a directory. `covered`: what a window turned out to be. `segment`: a segment, and which of them a window touches. `names`: one numbering of tasks, strings and kinds of
//!   events for several. `stream`: the events of a window, in batches: [`Open`]. `cut`: the same of what is in memory.
//!
//! Invariant: no more is read than the parts of the files that the window touches. What is to be replayed begins at a
//! snapshot with page flags ([`Beginning::PageFlags`]), where there is one before the window.

mod covered;
mod cut;
mod names;
mod segment;
mod stream;
mod window;

use std::path::Path;

use crate::error::{Error, Result};
use crate::file::Wanted;
use crate::recording::Recording;

pub use covered::{Covered, CoveredData, FIRST_DATE};
pub use cut::{cut, keep, whole};
pub use stream::{Open, WindowEvents};
pub use window::{BOOT, Beginning, EPOCH_OFFSET, Extent, Moment, Window, list};

/// Reads the window of a file, or of a directory of segments, and says what it is. A window over several boots gives the
/// last one of them: their clocks have nothing in common.
///
/// # Errors
/// If a file cannot be read, nothing was recorded in the window, or a date is given and the recording has none.
pub fn read(
    path: &Path,
    window: &Window,
    extent: Extent,
    beginning: Beginning,
) -> Result<(Recording, Covered)> {
    let open = Open::new(path, window, beginning)?;
    let Open {
        mut recording,
        covered,
        events: from,
        ..
    } = open;
    match extent {
        Extent::All => {
            let events = &mut recording.events;
            from.in_segments(Wanted::ALL, &mut |batch| {
                events.append(batch);
                Ok::<(), Error>(())
            })?;
            // Buffers of the CPUs are emptied one after the other, so the ends of segments overlap by a little.
            if !events.time.is_sorted() {
                events.sort_by_time(&mut recording.meta.lost);
            }
        }
        Extent::Snapshots if recording.snapshots.is_empty() && !window.is_all() => {
            return Err(covered.nothing("no snapshot was taken").in_file(path));
        }
        Extent::Snapshots => {}
    }
    Ok((recording, covered))
}
