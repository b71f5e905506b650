//! The CPU tokens of threads.
//!
//! The first threads that live at a time, [`OWN`] to each CPU, have a token each, until they end; others, and threads that are about to
//! end, share [`SHARED`] tokens, each behind a lock.
//!
//! Invariant: a token of its own is used by one thread: the one whose word holds its address.

use super::tls;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::{addr_of, from_ref, null_mut};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};
use unfrag_slab::Cpu;

/// Threads to each CPU that have a token of their own at a time, and such tokens at least and at most.
const OWN: usize = 4;
const LEAST: usize = 12;
const MOST: usize = 252;

/// Tokens that other threads share.
const SHARED: usize = 4;

/// Tokens for so many CPUs.
pub(super) fn tokens(cpus: usize) -> u16 {
    (cpus.saturating_mul(OWN).clamp(LEAST, MOST) + SHARED) as u16
}

/// The word of a thread without a token of its own; 0 is one that has not asked.
const SHARES: usize = 1;

/// A token of its own of some thread.
struct Slot(UnsafeCell<Cpu<'static>>);

// SAFETY: one thread at a time uses it, as the module says.
unsafe impl Sync for Slot {}

/// Slots that no thread has.
struct Free {
    numbers: [u8; MOST],
    count: usize,
}

/// The tokens.
pub(super) struct Cpus {
    slots: [Option<Slot>; MOST],
    free: Mutex<Free>,
    shared: [Mutex<Cpu<'static>>; SHARED],
    /// Tells when a thread with a token ends.
    key: Option<libc::pthread_key_t>,
}

/// The tokens of the heap, for threads that end.
static ALL: AtomicPtr<Cpus> = AtomicPtr::new(null_mut());

/// The locks of the tokens, held.
pub(super) struct Held {
    _free: MutexGuard<'static, Free>,
    _shared: [MutexGuard<'static, Cpu<'static>>; SHARED],
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cpus {
    /// All `tokens`, each made by `cpu`.
    pub fn new(tokens: u16, mut cpu: impl FnMut() -> Option<Cpu<'static>>) -> Option<Cpus> {
        let mut shared = [const { None }; SHARED];
        for place in &mut shared {
            *place = Some(Mutex::new(cpu()?));
        }
        let count = usize::from(tokens).saturating_sub(SHARED).min(MOST);
        let mut slots = [const { None }; MOST];
        for slot in &mut slots[..count] {
            *slot = Some(Slot(UnsafeCell::new(cpu()?)));
        }
        let mut key = 0;
        // SAFETY: the destructor is called with what `own_token` sets, which is a slot.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(end_of_thread)) };
        Some(Cpus {
            slots,
            free: Mutex::new(Free {
                numbers: std::array::from_fn(|i| count.saturating_sub(1 + i) as u8),
                count,
            }),
            shared: match shared {
                [Some(a), Some(b), Some(c), Some(d)] => [a, b, c, d],
                _ => return None,
            },
            key: (made == 0).then_some(key),
        })
    }

    /// Calls `f` with a token. `f` must not allocate from the heap.
    #[inline(always)]
    pub fn with<T>(&'static self, f: impl FnOnce(&Cpu<'static>) -> T) -> T {
        let word = tls::get();
        if word > SHARES {
            // SAFETY: the word is the address of the thread's own slot.
            return f(unsafe { &*(*(word as *const Slot)).0.get() });
        }
        self.with_another(word, f)
    }

    #[cold]
    #[inline(never)]
    fn with_another<T>(&'static self, word: usize, f: impl FnOnce(&Cpu<'static>) -> T) -> T {
        if word == 0
            && let Some(slot) = self.own_token()
        {
            // SAFETY: the slot is this thread's.
            return f(unsafe { &*slot.0.get() });
        }
        // Stacks of threads lie apart, so the address tells them apart.
        let place = addr_of!(word) as usize >> 16;
        f(&lock(
            &self.shared[place.wrapping_mul(0x9E37_79B9) >> 8 & (SHARED - 1)],
        ))
    }

    /// Gives the thread a token of its own, if there is one.
    fn own_token(&'static self) -> Option<&'static Slot> {
        // What allocates meanwhile shares a token.
        tls::set(SHARES);
        ALL.store(from_ref(self).cast_mut(), Release);
        let key = self.key?;
        let slot = {
            let mut free = lock(&self.free);
            let last = free.count.checked_sub(1)?;
            free.count = last;
            self.slots[usize::from(free.numbers[last])].as_ref()?
        };
        // SAFETY: the key exists.
        let set = unsafe { libc::pthread_setspecific(key, from_ref(slot).cast()) };
        if set != 0 {
            self.give_back(slot);
            return None;
        }
        tls::set(from_ref(slot).addr());
        Some(slot)
    }

    fn give_back(&self, slot: &Slot) {
        let mut slots = self.slots.iter().flatten();
        let Some(number) = slots.position(|s| std::ptr::eq(s, slot)) else {
            return;
        };
        let mut free = lock(&self.free);
        let at = free.count;
        free.numbers[at] = number as u8;
        free.count = at + 1;
    }

    /// Takes all locks, for a fork.
    pub fn hold(&'static self) -> Held {
        Held {
            _free: lock(&self.free),
            _shared: self.shared.each_ref().map(lock),
        }
    }
}

/// A thread with a token of its own ends.
unsafe extern "C" fn end_of_thread(slot: *mut c_void) {
    // What it frees from now on goes through a shared token.
    tls::set(SHARES);
    // SAFETY: set by `own_token`; the tokens live as long as the process.
    if let Some(all) = unsafe { ALL.load(Acquire).as_ref() } {
        // SAFETY: as above.
        all.give_back(unsafe { &*slot.cast::<Slot>() });
    }
}
