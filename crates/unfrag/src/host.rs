//! What the core needs from the world that it runs in.
//!
//! Replay, the simulated machine, a process with real memory and bare metal each implement
//! [`Host`]; the core calls nothing else.

use crate::frame::Pfn;
use crate::reclaim::{Unmap, Written};
use crate::trace::Event;

/// The world of a [`Manager`](crate::page_alloc::Manager).
pub trait Host {
    /// The CPU that the caller runs on; below the number given at `init`.
    fn cpu(&self) -> usize {
        0
    }
    /// Whether [`trace`](Host::trace) wants events. A constant, so that nobody pays for no listener.
    const TRACING: bool = false;
    /// Takes a tracepoint.
    fn trace(&mut self, event: &Event) {
        let _ = event;
    }
    /// Whether [`prefetch`](Host::prefetch) wants pages. A constant, too.
    const PREFETCHES: bool = false;
    /// A page that a per-CPU list has taken and will hand out, or that reclaim will ask about: a host with
    /// a record of each page may fetch this one's, before it is needed. Nothing may depend on it.
    fn prefetch(&self, page: Pfn) {
        let _ = page;
    }
    /// An allocation went below a mark: kswapd of `node` should run for `order`.
    fn wake_kswapd(&mut self, node: u8, order: u8) {
        let _ = (node, order);
    }
    /// A frame is about to be handed out zeroed.
    fn zero(&mut self, first: Pfn, order: u8) {
        let _ = (first, order);
    }

    /// Reclaim wants this page unmapped everywhere; an anonymous one gets a place in swap.
    fn try_to_unmap(&mut self, page: Pfn) -> Unmap {
        let _ = page;
        Unmap::Busy
    }
    /// Reclaim wants this dirty page written. With `sync` somebody waits for it.
    fn writepage(&mut self, page: Pfn, sync: bool) -> Written {
        let _ = (page, sync);
        Written::Failed
    }
    /// Reclaim takes this clean, unmapped page: its owner forgets it. With `false` it stays.
    fn release_page(&mut self, page: Pfn) -> bool {
        let _ = page;
        false
    }
    /// Free places in swap.
    fn nr_swap_pages(&self) -> u64 {
        0
    }
}

/// A host with one CPU that listens to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullHost;

impl Host for NullHost {}
