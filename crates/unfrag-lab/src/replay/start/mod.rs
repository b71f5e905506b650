//! The state of memory at which a replay begins.
//!
//! - [`exact`]: from the kernel's own free lists, where a mark of the recording holds them.
//! - [`counts`]: from what any host shows: numbers of free blocks by order and type, and what the
//!   trace itself says of the frames that it touches.
//!
//! Both give a [`Start`]: zones as recorded, each frame free or in use, and lists in order. From it
//! [`Start::manager`] builds the model.

pub mod anchor;
mod arrange;
mod block_types;
mod choice;
pub mod counts;
pub mod evidence;
pub mod exact;
mod pcp_trace;
mod percpu;
mod plan;
mod state;
mod touched;
mod zones;

pub use anchor::Anchor;
pub(crate) use arrange::is_cached;
pub use choice::StartChoice;
pub use evidence::Before;
pub use pcp_trace::PcpTrace;
pub use plan::{Beginning, Plan};
pub use state::{Frame, FreeBlock, SetStart, Start};
pub(crate) use zones::holds;
pub use zones::{ZoneFacts, highest_frame, zone_facts};
