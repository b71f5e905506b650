//! How much of a pause between two operations the model's daemons live through.
//!
//! Work is sized by the operations of a recording, never by the time between them: one event may lie centuries after
//! all others. After so long, daemons that look at memory that nobody changes have found what there is to find, and what
//! they would do next is the same as what they did last.

/// Nanoseconds of a pause in which daemons work: an hour, in which kcompactd looks 7,000 times and the per-CPU lists
/// shrink 3,600 times. No host that is recorded is without an allocation for so long.
pub const LONGEST_PAUSE_NS: u64 = 3_600_000_000_000;
