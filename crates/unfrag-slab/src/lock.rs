//! The locks of a set of caches, the spin lock that they are unless the embedder says otherwise, and the [`Counter`] of
//! one writer.
//!
//! A set keeps its list of caches, the lists of CPUs and nodes, and its records behind locks of one type, the parameter
//! `R` of [`Slabs`](crate::Slabs). What an interrupt may call depends on it; see the module `heap`.
//!
//! Invariant: while one of these is held, no page is taken from the source of pages or given back to it, and no
//! constructor runs. Where two are held at a time, they are released in reverse order, so that a lock that switches
//! interrupts off can restore what it found.

use crate::sync::{AtomicU32, Ordering, spin};
use core::sync::atomic::AtomicU64;

/// A test-and-set lock that spins: the lock of a set of caches by default. It does not switch interrupts off, so an
/// interrupt must not use a set with this lock on a CPU that may hold it.
pub struct SpinLock(AtomicU32);

/// A value behind a lock of a set of caches.
pub(crate) type Locked<T, R> = lock_api::Mutex<R, T>;

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
            // Relaxed: only a hint; `try_lock` decides.
            while self.0.load(Ordering::Relaxed) != 0 {
                spin();
            }
        }
    }
    #[inline]
    fn try_lock(&self) -> bool {
        // Acquire: pairs with the release in `unlock`. A failure reads nothing of what the lock guards.
        self.0
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
    #[inline]
    unsafe fn unlock(&self) {
        // Pairs with the acquire in `try_lock`.
        self.0.store(0, Ordering::Release);
    }
}

/// A count that one CPU writes and all may read. Two CPUs that write at once lose events, as the
/// kernel's counters of slab events do. Relaxed throughout: nothing is read because of a count.
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
