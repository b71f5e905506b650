//! The CPU tokens of threads.
//!
//! The first [`OWN`] threads that live at a time have a token each, until they end; others, and threads that are about to
//! end, share [`SHARED`] tokens, each behind a lock.
//!
//! Invariant: a token of its own is used by one thread: the one whose word holds its address.

use super::tls;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{addr_of, from_ref};
use std::sync::{Mutex, MutexGuard, PoisonError};
use unfrag_slab::Cpu;

/// Threads that have a token of their own at a time.
pub(super) const OWN: usize = 28;

/// Tokens that other threads share.
const SHARED: usize = 4;

/// All tokens.
pub(super) const TOKENS: u16 = (OWN + SHARED) as u16;

/// The word of a thread without a token of its own; 0 is one that has not asked.
const SHARES: usize = 1;

/// A token of its own of some thread.
struct Slot(UnsafeCell<Cpu<'static>>);

// SAFETY: one thread at a time uses it, as the module says.
unsafe impl Sync for Slot {}

/// Slots that no thread has.
struct Free {
    numbers: [u8; OWN],
    count: usize,
}

/// The tokens.
pub(super) struct Cpus {
    slots: [Slot; OWN],
    free: Mutex<Free>,
    shared: [Mutex<Cpu<'static>>; SHARED],
    /// Tells when a thread with a token ends.
    key: Option<libc::pthread_key_t>,
}

/// The locks of the tokens, held.
pub(super) struct Held {
    _free: MutexGuard<'static, Free>,
    _shared: [MutexGuard<'static, Cpu<'static>>; SHARED],
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cpus {
    /// All tokens, each made by `cpu`.
    pub fn new(mut cpu: impl FnMut() -> Option<Cpu<'static>>) -> Option<Cpus> {
        let mut slots = [const { MaybeUninit::uninit() }; OWN];
        for slot in &mut slots {
            slot.write(Slot(UnsafeCell::new(cpu()?)));
        }
        let mut shared = [const { MaybeUninit::uninit() }; SHARED];
        for place in &mut shared {
            place.write(Mutex::new(cpu()?));
        }
        let mut key = 0;
        // SAFETY: the destructor is called with what `own_token` sets, which is a slot.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(end_of_thread)) };
        Some(Cpus {
            // SAFETY: both arrays are filled.
            slots: slots.map(|s| unsafe { s.assume_init() }),
            free: Mutex::new(Free {
                numbers: std::array::from_fn(|i| (OWN - 1 - i) as u8),
                count: OWN,
            }),
            // SAFETY: as above.
            shared: shared.map(|s| unsafe { s.assume_init() }),
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
        let key = self.key?;
        let slot = {
            let mut free = lock(&self.free);
            let last = free.count.checked_sub(1)?;
            free.count = last;
            &self.slots[usize::from(free.numbers[last])]
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
        let first = self.slots.as_ptr().addr();
        let number = (from_ref(slot).addr() - first) / size_of::<Slot>();
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
    if let Some(state) = super::state::State::get() {
        // SAFETY: set by `own_token`; slots live as long as the process.
        state.cpus.give_back(unsafe { &*slot.cast::<Slot>() });
    }
}
