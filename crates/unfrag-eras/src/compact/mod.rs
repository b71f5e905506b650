//! Compaction: pages in use are moved together, so that free blocks become large. `spec: 5`
//!
//! - `outcome`: how a run ends, its modes and priorities. What a zone remembers of runs (deferral, positions) stands
//!   with the zone.
//! - `suitable`: whether a zone is worth a run. `score`: how fragmented it is, for compaction ahead of demand.
//! - `sources`, `free_scan`, `fast`: the choosers: which pages move, and where to. `targets`: what the latter took.
//! - `mover`: isolates pages, claims targets, asks owners, and ends each move. `zone_run`: one run over one zone.
//! - `sourced`, `sourced_state`: a run whose choices are the host's.
//! - `direct`: the runs of an allocation over its zones. `kcompactd`: the daemon of a node.
//! - `demand`: how many huge blocks a node keeps free where the source chooses. `ahead`: what kcompactd does for that.
//!
//! Invariant: a run leaves as many pages free and in use as there were, but for what owners freed meanwhile; each
//! page that was isolated is moved, put back or freed.

mod ahead;
mod control;
mod demand;
mod direct;
mod fast;
mod free_scan;
mod kcompactd;
mod mover;
mod outcome;
pub mod score;
mod sourced;
mod sourced_state;
mod sources;
mod suitable;
mod targets;
mod zone_run;

#[cfg(feature = "lab")]
pub(crate) use control::Control;
pub(crate) use demand::HugeDemand;
pub(crate) use direct::DirectCompaction;
pub use kcompactd::{CHECK_INTERVAL_MS, Kcompactd};
pub(crate) use mover::{Mover, Supply};
pub use outcome::{Mode, Outcome, Priority};
pub(crate) use suitable::compact_gap;
pub(crate) use targets::{CLUSTER, Targets, has_room};
pub use zone_run::Compaction;
