//! Reports to the host, by positions in the frame table.

use crate::frame::{FrameIx, FrameMap};
use crate::host::Host;
use crate::trace::Event;

/// The host, and the map from positions to frame numbers.
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

    /// Announces a page that the host will see soon.
    #[inline]
    pub fn prefetch(&self, ix: FrameIx) {
        if H::PREFETCHES {
            self.host.prefetch(self.map.pfn(ix));
        }
    }
}
