//! In how many frames does a process' memory lie, in how few could it, and what would huge pages take?
//!
//! - [`process`]: the files of a process, and whose they are. [`group`]: the processes of a cgroup.
//! - `window`: the pages of a huge page's addresses. `blocks`: the frames that they lie in. `flags`: what the kernel says of
//!   these frames.
//! - [`collapse`]: what `MADV_COLLAPSE` would make of a mapping. [`mapping`]: all that is asked of one mapping.
//! - [`answer`]: all mappings together. [`text`]: for people.
//!
//! Invariant: what whoever asks has no right to see is `None`, and named; a page that is not in memory is in no frame.

pub mod answer;
mod blocks;
pub mod collapse;
mod flags;
pub mod group;
pub mod mapping;
pub mod process;
pub mod text;
mod window;
