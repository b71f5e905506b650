//! A process that forks: the child gets the heap as no other thread is at work on what a lock guards.
//!
//! Order of the locks: tokens, slab caches, pages.

use super::cpus::{self, Cpus};
use super::pages::{self, HeapPages};
use std::cell::UnsafeCell;
use std::sync::OnceLock;
use unfrag_slab::{HeldLocks, Slabs};

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

/// What has locks.
struct Parts {
    cpus: &'static Cpus,
    slabs: &'static Slabs<'static>,
    pages: &'static HeapPages,
}

static PARTS: OnceLock<Parts> = OnceLock::new();

/// Has the C library call this module at each fork.
pub(super) fn watch(
    cpus: &'static Cpus,
    slabs: &'static Slabs<'static>,
    pages: &'static HeapPages,
) {
    if PARTS.set(Parts { cpus, slabs, pages }).is_err() {
        return;
    }
    // SAFETY: the functions keep to what may be done around a fork. Without them the process works until it forks.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

unsafe extern "C" fn before() {
    let Some(parts) = PARTS.get() else { return };
    let cpus = parts.cpus.hold();
    let slabs = parts.slabs.hold_locks();
    let held = Held {
        _pages: parts.pages.hold(),
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
