//! A spin lock for short critical sections, and the [`Counter`] of one writer.
//!
//! The caches keep their per-node lists and their records behind it. Hosts that can sleep give the
//! page allocator's lock another type ([`lock_api::RawMutex`] is all that is asked for).
//!
//! Invariant: no constructor, shrinker or user code runs while one of these is held.

use crate::sync::{AtomicU32, Ordering, spin};
use core::sync::atomic::AtomicU64;

/// A test-and-set lock that spins.
pub struct SpinLock(AtomicU32);

/// A value behind a [`SpinLock`].
pub(crate) type Locked<T> = lock_api::Mutex<SpinLock, T>;

// SAFETY: `try_lock` succeeds for one caller until `unlock`; acquire and release order what lies
// between them.
#[allow(unsafe_code)]
unsafe impl lock_api::RawMutex for SpinLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: SpinLock = SpinLock(AtomicU32::new(0));
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        while !self.try_lock() {
            while self.0.load(Ordering::Relaxed) != 0 {
                spin();
            }
        }
    }
    #[inline]
    fn try_lock(&self) -> bool {
        self.0
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
    #[inline]
    unsafe fn unlock(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// A count that one CPU writes and all may read. Two CPUs that write at once lose events, as the
/// kernel's counters of slab events do.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline(always)]
    pub fn add(&self, n: u64) {
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(now.wrapping_add(n), Ordering::Relaxed);
    }
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
