//! The host of a manager: the receiver of tracepoints, prefetch hints and calls for kswapd. The allocator wants no
//! answer from it. What the allocator needs before it can go on is a [`Need`](crate::need::Need).

use crate::frame::{NodeId, Order, Pfn};
use crate::source::Source;
use crate::trace::Event;

/// The receiver of what a [`Manager`](crate::Manager) reports. Called in the middle of an operation, with the
/// manager's lock held where there is one: it must neither wait nor enter the manager.
pub trait Host {
    /// Whether [`trace`](Host::trace) wants events. A constant, so that
    /// tracing costs nothing where it is off.
    const TRACING: bool = false;
    /// Takes a tracepoint.
    fn trace(&mut self, event: &Event) {
        let _ = event;
    }
    /// Whether compaction may move pages that are on no LRU list. A constant. A host whose pages off the lists are
    /// the kernel's own, or are about to get an owner, says no.
    const MOVES_UNLISTED: bool = true;
    /// Whether [`prefetch`](Host::prefetch) wants pages. A constant, as [`TRACING`](Host::TRACING) is.
    const PREFETCHES: bool = false;
    /// A page that a per-CPU list has taken and will hand out, or that reclaim will ask about: a host with
    /// a record of each page may fetch this one's, before it is needed. Nothing may depend on it.
    fn prefetch(&self, page: Pfn) {
        let _ = page;
    }
    /// Whether [`source`](Host::source) may have an answer. A constant, as [`TRACING`](Host::TRACING) is.
    const SOURCES: bool = false;
    /// Who chooses frames, for a kernel whose rules leave that to the host
    /// ([`Chooser::Source`](crate::kernel::Chooser::Source)).
    fn source(&mut self) -> Option<&mut dyn Source> {
        None
    }
    /// An allocation went below a mark: kswapd of `node` should run for `order`.
    fn wake_kswapd(&mut self, node: NodeId, order: Order) {
        let _ = (node, order);
    }
    /// kcompactd of `node` has work.
    fn wake_kcompactd(&mut self, node: NodeId) {
        let _ = node;
    }
}

/// A host that ignores all calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullHost;

impl Host for NullHost {}
