//! The kernel's own statistics of memory, as text: read, and written as a kernel would write them.
//!
//! One module a file of `/proc` (and of debugfs' `extfrag`). Each has a type with `parse` and
//! `write`; a type can as well be filled by a model, and `write` then shows the model's state in
//! the form that every existing tool reads.
//!
//! Invariant: what `write` makes of what `parse` read is the same, byte for byte, for anything that
//! a kernel wrote. Names are never interpreted by position: counters, fields and migratetypes that
//! are not known here are kept where they stood. A text that does not end with a newline was cut
//! off, and is refused, since its last number may be.
//!
//! Formats: section 7.1 to 7.5 of the specification.

mod counters;
mod index_rows;
mod row;
pub(crate) mod scan;

pub mod buddyinfo;
pub mod extfrag_index;
pub mod freelists;
pub mod kpageflags;
pub mod meminfo;
pub mod pagetypeinfo;
pub mod slab_activity;
pub mod slabinfo;
pub mod unusable_index;
pub mod uptime;
pub mod vmstat;
pub mod zoneinfo;

pub use buddyinfo::BuddyInfo;
pub use counters::Counters;
pub use extfrag_index::ExtfragIndex;
pub use index_rows::IndexRow;
pub use meminfo::MemInfo;
pub use pagetypeinfo::PageTypeInfo;
pub use slabinfo::SlabInfo;
pub use unusable_index::UnusableIndex;
pub use vmstat::VmStat;
pub use zoneinfo::ZoneInfo;
