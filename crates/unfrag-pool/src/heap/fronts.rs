//! The fronts of threads: each thread that lives has one, which another has when it ended.
//!
//! A thread that is about to end, or whose front cannot be had, keeps nothing: what it takes comes from the slabs and the
//! frames, and goes back there.

use super::front::{Front, WITHOUT};
use super::store::Store;
use super::tls;
use std::ffi::c_void;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The fronts that no thread has.
struct Free(Option<&'static Front>);

/// The fronts.
pub(super) struct Fronts {
    free: Mutex<Free>,
    /// Tells when a thread with a front ends.
    key: Option<libc::pthread_key_t>,
}

/// The fronts of the heap, for threads that end. A thread reads what it has written itself, and found them through the heap's
/// state; so the word orders nothing.
static ALL: AtomicPtr<Fronts> = AtomicPtr::new(null_mut());

/// The lock of the fronts, held.
pub(super) struct Held {
    _free: MutexGuard<'static, Free>,
}

impl Fronts {
    /// None as yet.
    pub fn new() -> Fronts {
        let mut key = 0;
        // SAFETY: the destructor is called with what `own` sets, which is a front.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(end_of_thread)) };
        Fronts {
            free: Mutex::new(Free(None)),
            key: (made == 0).then_some(key),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The front of this thread, which gets one if it has not asked before.
    pub fn own(&'static self, store: &'static Store) -> Option<&'static Front> {
        match tls::get() {
            0 => self.give(store),
            _ => Front::own(),
        }
    }

    fn give(&'static self, store: &'static Store) -> Option<&'static Front> {
        // What allocates meanwhile has no front.
        tls::set(WITHOUT);
        ALL.store(from_ref(self).cast_mut(), Relaxed);
        let key = self.key?;
        let before = {
            let mut free = self.lock();
            let first = free.0;
            free.0 = first.and_then(|front| front.next.take());
            first
        };
        let front = match before {
            Some(front) => front,
            None => Front::new(store)?,
        };
        // SAFETY: the key exists.
        let set = unsafe { libc::pthread_setspecific(key, from_ref(front).cast()) };
        if set != 0 {
            self.put(front);
            return None;
        }
        tls::set(from_ref(front).expose_provenance());
        Some(front)
    }

    /// Keeps a front, which is empty, for another thread.
    fn put(&self, front: &'static Front) {
        let mut free = self.lock();
        front.next.set(free.0.replace(front));
    }

    /// Takes the lock, for a fork.
    pub fn hold(&'static self) -> Held {
        Held { _free: self.lock() }
    }
}

/// A thread with a front ends.
unsafe extern "C" fn end_of_thread(front: *mut c_void) {
    // What it frees from now on goes past it.
    tls::set(WITHOUT);
    // SAFETY: set by `give`; it lives as long as the process, and is this thread's still.
    let front = unsafe { &*front.cast::<Front>() };
    front.empty();
    // SAFETY: the fronts live as long as the process.
    if let Some(all) = unsafe { ALL.load(Relaxed).as_ref() } {
        all.put(front);
    }
}
