//! A process that forks: the child gets the heap as no other thread is at work on what a lock guards.
//!
//! Order of the locks: tokens, slab caches, pages.

use super::state::State;
use super::{cpus, pages};
use std::cell::UnsafeCell;
use unfrag_slab::HeldLocks;

/// All locks of the heap.
struct Held {
    // Freed in this order.
    _pages: pages::Held,
    _slabs: HeldLocks<'static>,
    _cpus: cpus::Held,
}

/// The locks while the process forks.
struct Forking(UnsafeCell<Option<Held>>);

// SAFETY: only the thread that forks uses it, and while it does, the locks keep other such threads waiting.
unsafe impl Sync for Forking {}

static FORKING: Forking = Forking(UnsafeCell::new(None));

/// Has the C library call this module at each fork.
pub(super) fn watch() {
    // SAFETY: the functions keep to what may be done around a fork. Without them the process works until it forks.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

unsafe extern "C" fn before() {
    let Some(state) = State::get() else { return };
    let cpus = state.cpus.hold();
    let slabs = state.slabs.hold_locks();
    let held = Held {
        _pages: state.pages.hold(),
        _slabs: slabs,
        _cpus: cpus,
    };
    // SAFETY: as `Forking` says.
    unsafe { *FORKING.0.get() = Some(held) };
}

unsafe extern "C" fn after() {
    // SAFETY: as `Forking` says: in the parent and in the child this is the thread that has the locks.
    drop(unsafe { (*FORKING.0.get()).take() });
}
