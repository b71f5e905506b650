//! The host that a replay's model runs on.
//!
//! Invariant: it only counts and notes events. Nothing here changes the model, but for what chooses frames under the rules of
//! unfrag's own engine.

use unfrag_eras::host::Host;
use unfrag_eras::source::Source;
use unfrag_eras::trace::{Event, Extfrag};
use unfrag_eras::{NodeId, Order, Rules};
use unfrag_machine::own::Own;

/// Counts the fallbacks of a replay's model, and notes the calls for kswapd.
#[derive(Default)]
pub struct ReplayHost {
    /// Numbers of the CPUs on the recorded host, by their index in the model.
    pub cpus: Vec<u32>,
    /// Fallbacks so far.
    pub fallbacks: u64,
    /// Fallbacks that changed a pageblock's type.
    pub claims: u64,
    /// The fallbacks themselves, if they are to be kept.
    pub extfrag: Option<Vec<Extfrag>>,
    /// Calls for kswapd.
    pub kswapd_wakes: u64,
    /// Nodes whose kswapd was called for since this list was taken last, each once.
    pub asked: Vec<NodeId>,
    /// Nodes whose kcompactd was called for since this list was taken last, each once.
    pub compaction_asked: Vec<NodeId>,
    /// What chooses frames, if lists do not.
    own: Option<Box<Own>>,
}

impl ReplayHost {
    /// Of a model of these rules with these CPUs, as the recorded host numbers them.
    pub fn on(cpus: &[u32], rules: &Rules) -> ReplayHost {
        ReplayHost {
            cpus: cpus.to_vec(),
            own: Own::of(rules),
            ..ReplayHost::default()
        }
    }

    /// What chooses frames, if lists do not.
    pub fn own(&self) -> Option<&Own> {
        self.own.as_deref()
    }

    /// The host of a twin of its manager, which no source chooses frames for.
    pub(super) fn twin(&self) -> ReplayHost {
        ReplayHost {
            cpus: self.cpus.clone(),
            fallbacks: self.fallbacks,
            claims: self.claims,
            extfrag: self.extfrag.clone(),
            kswapd_wakes: self.kswapd_wakes,
            asked: self.asked.clone(),
            compaction_asked: self.compaction_asked.clone(),
            own: None,
        }
    }

    /// Whether a daemon was called for.
    #[inline]
    pub fn has_asked(&self) -> bool {
        !self.asked.is_empty() || !self.compaction_asked.is_empty()
    }
}

impl Host for ReplayHost {
    const TRACING: bool = true;
    const SOURCES: bool = true;

    fn source(&mut self) -> Option<&mut dyn Source> {
        Some(&mut **self.own.as_mut()?)
    }

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

    fn wake_kcompactd(&mut self, node: NodeId) {
        if !self.compaction_asked.contains(&node) {
            self.compaction_asked.push(node);
        }
    }
}
