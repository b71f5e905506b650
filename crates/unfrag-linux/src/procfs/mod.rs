//! The kernel's statistics of memory: read, and written as a kernel writes them.
//!
//! One module a file of `/proc` (and of debugfs' `extfrag`), each with a type that has `parse` and
//! `write`. A model can fill such a type too; `write` then shows the model's state to any tool that
//! reads the kernel's file. `scan` is the cursor that all of them read with, `row` what their rows have
//! in common.
//!
//! Invariant: for any text that a kernel wrote, `write` gives back what `parse` read, byte for byte.
//! Counters, fields and migratetypes go by their names, never by position, and unknown ones are kept
//! in their places. A text that no kernel wrote as it stands (cut off, pasted, of an unusual kernel) is read
//! line by line; [`Notes`] has what was not understood, and `write` gives that back too.
//!
//! Files of a process ([`smaps`], [`pagemap`]) and [`vmallocinfo`] are read alone: no model fills them.
//!
//! `spec: 7.1, 7.2, 7.3, 7.4, 7.5, 7.9, 7.10`

mod counters;
mod index_rows;
mod notes;
mod row;
pub(crate) mod scan;

pub mod allocinfo;
pub mod buddyinfo;
pub mod extfrag_index;
pub mod freelists;
pub mod kpageflags;
pub mod meminfo;
pub mod pagemap;
pub mod pagetypeinfo;
pub mod slab_activity;
pub mod slabinfo;
pub mod smaps;
pub mod unusable_index;
pub mod uptime;
pub mod vmallocinfo;
pub mod vmstat;
pub mod zoneinfo;

pub use allocinfo::AllocInfo;
pub use buddyinfo::BuddyInfo;
pub use counters::Counters;
pub use extfrag_index::ExtfragIndex;
pub use index_rows::IndexRow;
pub use meminfo::MemInfo;
pub use notes::{Notes, Unknown};
pub use pagetypeinfo::PageTypeInfo;
pub use slabinfo::SlabInfo;
pub use unusable_index::UnusableIndex;
pub use vmstat::VmStat;
pub use zoneinfo::ZoneInfo;

/// Names of zones, of all kernels.
pub(crate) const ZONES: [&str; 6] = ["DMA", "DMA32", "Normal", "HighMem", "Movable", "Device"];
