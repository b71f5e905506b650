//! What a nice level is worth: a weight, or a time slice.

use super::time::{MS, Nanos};

/// Weight of a task with nice 0.
pub(super) const NORMAL: u64 = 1024;

/// Weight of a nice level, against which shares of a CPU are computed: a factor of 5/4 for each step.
pub(super) fn weight(nice: i8) -> u64 {
    let steps = u32::from(nice.unsigned_abs());
    let more = (0..steps).fold(NORMAL, |w, _| w * 5 / 4);
    if nice > 0 {
        NORMAL * NORMAL / more
    } else {
        more
    }
}

/// Time slice of a nice level in a round of two arrays: 5 ms for each step from 20 down to 0, and 20 ms
/// for each below.
pub(super) fn timeslice(nice: i8) -> Nanos {
    let steps = (20 - i64::from(nice)) as Nanos;
    steps * if nice < 0 { 20 } else { 5 } * MS
}
