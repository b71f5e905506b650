//! The model: the allocator of one era, driven by what the recorded workload asked for.
//!
//! - `prepared`: the recorded kernel's own model completes a plan: [`Prepared`]. `inference`: with an exact
//!   start, it infers what left no event, among the operations to come (`coming`). `fit`: without one, it fits the start to the anchor.
//! - `boot`, `reboot`: a manager at the start's state, or one that boots and takes as much.
//! - `sim`: carries out one operation after the other: [`Sim`]. `request_node`: the node near which it asks.
//!   `huge_faults`: huge pages that one host has and the other has not, with what is remembered of them (`huge_tries`) and
//!   how many small pages stand for one (`huge_touches`); `huge_rules`: which faults ask.
//!   `tally`: counts of what happened. `host`: what the allocator reports. `pause`: how long daemons work between two operations.
//! - `reclaim`, `compaction`: what the model does by itself, and what it takes from the recording.

mod boot;
mod coming;
pub mod compaction;
mod fit;
mod host;
mod huge_faults;
mod huge_rules;
mod huge_touches;
mod huge_tries;
mod inference;
mod pause;
mod prepared;
mod reboot;
pub mod reclaim;
mod request_node;
mod sim;
mod tally;

pub use fit::fitted;
pub use host::ReplayHost;
pub use huge_rules::{Advised, HugeRules, Silent};
pub use huge_touches::Touches;
pub use inference::{Inferred, infer};
pub use prepared::{Prepared, recorded_preset};
pub use reboot::{reboot, resized};
pub use sim::Sim;
pub use tally::Tally;
pub use tally::{FaultWork, HugeFaultCounts};
