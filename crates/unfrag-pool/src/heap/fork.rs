//! A process that forks: the child gets the heap as no other thread is at work on what a lock guards.
//!
//! The C library calls the functions of a fork in the order in which they were registered, those from before it in reverse. While
//! the locks are held nobody may allocate: so those of the heap are registered when the program starts, before those of others,
//! which may allocate.
//!
//! Order of the locks: fronts, depot, the caches' token, slab caches, pages, mappings.

use super::big::{self, Big};
use super::fronts::{self, Fronts};
use super::store::Store;
use super::{depot, pages};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Says what has locks, before anybody takes one.
pub(super) fn guard(fronts: &'static Fronts, store: &'static Store, big: &'static Big) {
    let _ = PARTS.set(Parts { fronts, store, big });
}

/// Has the C library call this module at each fork.
pub(super) extern "C" fn watch() {
    // One of all threads registers, and the word orders nothing.
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: the functions keep to what may be done around a fork. Without them the process works until it forks.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
    }
}

/// When the program starts.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = watch;

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
