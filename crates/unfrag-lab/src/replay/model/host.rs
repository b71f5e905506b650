//! The host that a replay's model runs on.
//!
//! Invariant: nothing happens here by itself; it notes what the model tells and asks for.

use unfrag::host::Host;
use unfrag::trace::{Event, Extfrag};
use unfrag::{NodeId, Order};

/// Who listens to a replay's model: an ear for fallbacks, and for calls for kswapd.
#[derive(Debug, Default)]
pub struct ReplayHost {
    /// Fallbacks so far.
    pub fallbacks: u64,
    /// Those that changed a pageblock's type.
    pub claims: u64,
    /// The blocks found by fallbacks, if wanted.
    pub extfrag: Option<Vec<Extfrag>>,
    /// Calls for kswapd.
    pub kswapd_wakes: u64,
    /// Nodes whose kswapd was asked for since somebody looked, each once.
    pub asked: Vec<NodeId>,
}

impl Host for ReplayHost {
    const TRACING: bool = true;

    #[inline]
    fn trace(&mut self, event: &Event) {
        if let Event::PageAllocExtfrag(e) = event {
            self.fallbacks += 1;
            self.claims += u64::from(e.change_ownership);
            if let Some(list) = &mut self.extfrag {
                list.push(*e);
            }
        }
    }

    fn wake_kswapd(&mut self, node: NodeId, _order: Order) {
        self.kswapd_wakes += 1;
        if !self.asked.contains(&node) {
            self.asked.push(node);
        }
    }
}
