//! A process that forks: the child gets the heap as no other thread is at work on what a lock guards.
//!
//! Order of the locks: fronts, depot, the caches' token, slab caches, pages, mappings.

use super::big::{self, Big};
use super::fronts::{self, Fronts};
use super::store::Store;
use super::{depot, pages};
use std::cell::UnsafeCell;
use std::sync::{MutexGuard, OnceLock};
use unfrag_slab::{Cpu, HeldLocks};

/// All locks of the heap.
struct Held {
    // Freed in this order.
    _big: big::Held,
    _pages: pages::Held,
    _slabs: HeldLocks<'static>,
    _cpu: MutexGuard<'static, Cpu<'static>>,
    _depot: depot::Held,
    _fronts: fronts::Held,
}

/// The locks while the process forks.
struct Forking(UnsafeCell<Option<Held>>);

// SAFETY: only the thread that forks uses it, and while it does, the locks keep other such threads waiting.
unsafe impl Sync for Forking {}

static FORKING: Forking = Forking(UnsafeCell::new(None));

/// What has locks.
struct Parts {
    fronts: &'static Fronts,
    store: &'static Store,
    big: &'static Big,
}

static PARTS: OnceLock<Parts> = OnceLock::new();

/// Has the C library call this module at each fork.
pub(super) fn watch(fronts: &'static Fronts, store: &'static Store, big: &'static Big) {
    if PARTS.set(Parts { fronts, store, big }).is_err() {
        return;
    }
    // SAFETY: the functions keep to what may be done around a fork. Without them the process works until it forks.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

unsafe extern "C" fn before() {
    let Some(parts) = PARTS.get() else { return };
    let fronts = parts.fronts.hold();
    let depot = parts.store.depot.hold();
    let cpu = parts.store.hold();
    let slabs = parts.store.slabs.hold_locks();
    let pages = parts.store.pages.hold();
    let held = Held {
        _big: parts.big.hold(),
        _pages: pages,
        _slabs: slabs,
        _cpu: cpu,
        _depot: depot,
        _fronts: fronts,
    };
    // SAFETY: as `Forking` says.
    unsafe { *FORKING.0.get() = Some(held) };
}

unsafe extern "C" fn after() {
    // SAFETY: as `Forking` says: in the parent and in the child this is the thread that has the locks.
    drop(unsafe { (*FORKING.0.get()).take() });
}
