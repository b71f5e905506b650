//! The host that a replay's model runs on.
//!
//! Invariant: nothing happens here by itself; it notes what the model asks for, and hands pages on to whoever
//! knows them.

use crate::reclaim::Pages;
use unfrag::Pfn;
use unfrag::host::Host;
use unfrag::reclaim::{Unmap, Written};
use unfrag::trace::{Event, Extfrag};

/// What the model sees of its host: a CPU at a time, and an ear for fallbacks.
#[derive(Debug, Default)]
pub struct ReplayHost {
    /// The CPU of the operation at hand.
    pub cpu: usize,
    /// Fallbacks so far.
    pub fallbacks: u64,
    /// Those that changed a pageblock's type.
    pub claims: u64,
    /// The blocks found by fallbacks, if wanted.
    pub extfrag: Option<Vec<Extfrag>>,
    /// Calls for kswapd.
    pub kswapd_wakes: u64,
    /// What is known of the pages, where the model reclaims by itself.
    pub pages: Option<Box<Pages>>,
}

impl Host for ReplayHost {
    const TRACING: bool = true;

    #[inline]
    fn cpu(&self) -> usize {
        self.cpu
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

    fn wake_kswapd(&mut self, _node: u8, _order: u8) {
        self.kswapd_wakes += 1;
        if let Some(p) = &mut self.pages {
            p.asked = true;
        }
    }

    fn try_to_unmap(&mut self, page: Pfn) -> Unmap {
        self.pages
            .as_mut()
            .map_or(Unmap::Busy, |p| p.try_to_unmap(page))
    }

    fn writepage(&mut self, page: Pfn, _sync: bool) -> Written {
        self.pages
            .as_mut()
            .map_or(Written::Failed, |p| p.writepage(page))
    }

    fn release_page(&mut self, page: Pfn) -> bool {
        self.pages.as_mut().is_some_and(|p| p.release_page(page))
    }

    fn nr_swap_pages(&self) -> u64 {
        self.pages.as_ref().map_or(0, |p| p.nr_swap_pages())
    }
}
