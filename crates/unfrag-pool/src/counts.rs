//! What a thread took and gave, in frames.
//!
//! Only the thread writes its counts, so a load and a store make an addition. Others read them for sums that are as of some
//! moment; a thread that has ended has been seen by the lock of the list, or by whoever joined it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use unfrag::Order;

/// What a thread took and gave, in frames. Only the thread writes.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Counts {
    pub pgalloc: AtomicU64,
    pub pgfree: AtomicU64,
}

impl Counts {
    #[inline]
    pub fn add(of: &AtomicU64, order: Order) {
        of.store(of.load(Relaxed) + u64::from(order.frames()), Relaxed);
    }

    /// Adds the counts of a thread that has ended.
    pub fn add_all(&mut self, of: &Counts) {
        *self.pgalloc.get_mut() += of.pgalloc.load(Relaxed);
        *self.pgfree.get_mut() += of.pgfree.load(Relaxed);
    }
}
