//! Where is the memory? Every frame that exists, once, by what it is used for, beside what the kernel's counters say.
//!
//! - [`uses`]: what a frame's flags tell. [`tally`]: the frames of each zone, and what zoneinfo settles of them.
//! - [`counters`]: the kernel's own counters. [`sites`]: places of its source that allocate, from allocinfo.
//! - [`look`]: what was read at one moment. [`answer`]: the account of it. [`compared`]: flags beside counters. [`growth`]: what changed between two.
//! - [`text`]: the answer for people. [`svg`]: as a picture.
//!
//! Invariant: the uses add up to the frames that exist, exactly. What no counter has is a number by its bounds, and what could
//! not be read is named.

pub mod answer;
pub mod compared;
pub mod counters;
pub mod growth;
pub mod look;
pub mod sites;
pub mod svg;
pub mod tally;
pub mod text;
pub mod uses;
