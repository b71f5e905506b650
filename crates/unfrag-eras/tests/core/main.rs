//! The tests of the eras, as one program.
//!
//! - `support`: a host that records events, and managers made by hand. `model`: a naive allocator to compare
//!   with. `properties` runs both with the same random operations; `flips` changes each rule of each era.
//! - Placement: `buddy`, `grouping_old`, `grouping_6_1`, `grouping_6_12`, `grouping_6_18`, `v19`, `geometry`.
//! - Requests: `watermarks`, `zones`, `reserves`, `refusals`; `misuse`: wrong calls, and the answer that each must
//!   get. Pages in use: `moves`, `reclaim`, `compaction`, `contig`.
//! - `variance`: what the types with a parameter may stand for, and where they may go.
//! - `rules`: every field of every era. `embed`: the manager in a program that embeds it.

mod buddy;
#[path = "../../../../checks/chance.rs"]
mod chance;
mod compaction;
mod contig;
mod embed;
mod flips;
mod geometry;
mod grouping_6_1;
mod grouping_6_12;
mod grouping_6_18;
mod grouping_old;
mod misuse;
mod model;
mod moves;
mod properties;
mod reclaim;
mod refusals;
mod reserves;
mod rules;
mod sources;
mod support;
#[path = "../../../../checks/types.rs"]
mod types;
mod v19;
mod variance;
mod watermarks;
mod zones;
