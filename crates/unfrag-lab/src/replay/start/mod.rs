//! The state of memory at which a replay begins.
//!
//! [`Plan`] reads the recording: its clock, its causes, and what it shows of the beginning:
//! - [`exact`](mod@exact): the kernel's own free lists, where a mark of the recording holds them.
//! - [`anchor`]: the first snapshot within the trace, with numbers of free blocks by order and type.
//!   [`counts`](mod@counts) makes a start of it, with what the trace says of the frames that it touches
//!   ([`evidence`]). The model fits that start to the anchor.
//!
//! Both give a [`Start`] (`state`): zones as recorded (`zones`), each frame free or in use, and lists in order.
//! With page flags, the occupancy of the anchor is known, and the replay begins there.
//!
//! - `choice`: where a replay may begin. `plan`: [`Plan`].
//! - `arrange`, `block_types`: which frames were free, and types of pageblocks, where nobody recorded them.
//! - `used_up`, `refills`: what first allocations show of the lists. `list_order`: how much that covers.
//! - `cached`: which frames in use held page cache.
//! - `shown`: free lists of a snapshot, checked against their zone.
//! - `percpu`, `pcp_trace`: what waited on per-CPU lists. `touched`: what the trace before the anchor did.

pub mod anchor;
mod arrange;
mod block_types;
mod cached;
mod choice;
pub mod counts;
pub mod evidence;
pub mod exact;
mod list_order;
mod pcp_trace;
mod percpu;
mod plan;
mod refills;
pub(crate) mod shown;
mod state;
mod touched;
mod used_up;
mod zones;

pub use anchor::Anchor;
pub(crate) use arrange::is_cached;
pub(crate) use cached::cached_at_start;
pub use choice::StartChoice;
pub use evidence::BeforeAnchor;
pub use list_order::ListOrder;
pub use pcp_trace::PcpTrace;
pub use plan::{Beginning, Plan};
pub use state::{Frame, FreeBlock, SetStart, Start};
pub(crate) use zones::holds;
pub use zones::{PcpFacts, ZoneStart, highest_frame, zone_facts};
