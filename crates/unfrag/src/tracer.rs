//! Tells the host what the core does, in the core's own terms.

use crate::frame::{FrameIx, FrameMap};
use crate::host::Host;
use crate::trace::Event;

/// A host that listens, and the map that turns positions into frame numbers for it.
pub(crate) struct Tracer<'a, H> {
    pub host: &'a mut H,
    pub map: &'a FrameMap,
}

impl<H: Host> Tracer<'_, H> {
    #[inline]
    pub fn emit(&mut self, event: impl FnOnce(&FrameMap) -> Event) {
        if H::TRACING {
            let e = event(self.map);
            self.host.trace(&e);
        }
    }

    /// Tells the host of a page that it will see soon.
    #[inline]
    pub fn prefetch(&self, ix: FrameIx) {
        if H::PREFETCHES {
            self.host.prefetch(self.map.pfn(ix));
        }
    }
}
