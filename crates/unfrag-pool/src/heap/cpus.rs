//! The CPU tokens of threads.
//!
//! The first threads that live at a time, [`OWN`] to each CPU, have a token each, until they end; others, and threads that are about to
//! end, share [`SHARED`] tokens, each behind a lock.
//!
//! A token is claimed from the caches while a thread has it, and given back when the thread ends: what its lists hold is
//! within reach of [`Heap::trim`](crate::Heap::trim) then.
//!
//! Invariant: a slot and its token are used by one thread: the one whose word holds the slot's address.

use super::tls;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{addr_of, from_ref, null_mut};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use unfrag_slab::{Cpu, Slabs};

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

/// Room for the token of a thread. A token is in it while a thread has the slot.
struct Slot(UnsafeCell<MaybeUninit<Cpu<'static>>>);

// SAFETY: one thread at a time uses it, as the module says.
unsafe impl Sync for Slot {}

/// Slots that no thread has.
struct Free {
    numbers: [u8; MOST],
    count: usize,
}

impl Free {
    fn take(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        Some(self.numbers[self.count].into())
    }

    fn put(&mut self, number: usize) {
        self.numbers[self.count] = number as u8;
        self.count += 1;
    }
}

/// The tokens.
pub(super) struct Cpus {
    slabs: &'static Slabs<'static>,
    slots: [Slot; MOST],
    free: Mutex<Free>,
    shared: [Mutex<Cpu<'static>>; SHARED],
    /// Held while tokens that no thread has are borrowed, so that a fork leaves none borrowed for ever.
    emptying: Mutex<()>,
    /// Tells when a thread with a token ends.
    key: Option<libc::pthread_key_t>,
}

/// The tokens of the heap, for threads that end. A thread reads what it has written itself, and found them through the heap's
/// state; so the word orders nothing.
static ALL: AtomicPtr<Cpus> = AtomicPtr::new(null_mut());

/// The locks of the tokens, held.
pub(super) struct Held {
    _emptying: MutexGuard<'static, ()>,
    _free: MutexGuard<'static, Free>,
    _shared: [MutexGuard<'static, Cpu<'static>>; SHARED],
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cpus {
    /// The tokens of a set of caches, of which there are `tokens`.
    pub fn new(slabs: &'static Slabs<'static>, tokens: u16) -> Option<Cpus> {
        let mut shared = [const { None }; SHARED];
        // The first ones are shared, the others belong to slots.
        for (id, place) in (0..).zip(&mut shared) {
            *place = Some(Mutex::new(slabs.cpu(id).ok()?));
        }
        let count = usize::from(tokens).saturating_sub(SHARED).min(MOST);
        let mut key = 0;
        // SAFETY: the destructor is called with what `own_token` sets, which is a slot.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(end_of_thread)) };
        Some(Cpus {
            slabs,
            slots: [const { Slot(UnsafeCell::new(MaybeUninit::uninit())) }; MOST],
            free: Mutex::new(Free {
                numbers: std::array::from_fn(|i| count.saturating_sub(1 + i) as u8),
                count,
            }),
            shared: match shared {
                [Some(a), Some(b), Some(c), Some(d)] => [a, b, c, d],
                _ => return None,
            },
            emptying: Mutex::new(()),
            key: (made == 0).then_some(key),
        })
    }

    /// Calls `f` with a token. `f` must not allocate from the heap.
    #[inline(always)]
    pub fn with<T>(&'static self, f: impl FnOnce(&Cpu<'static>) -> T) -> T {
        let word = tls::get();
        if word > SHARES {
            // SAFETY: the word is the address of the thread's own slot, and so has its token.
            return f(unsafe { (*(*(word as *const Slot)).0.get()).assume_init_ref() });
        }
        self.with_another(word, f)
    }

    #[cold]
    #[inline(never)]
    fn with_another<T>(&'static self, word: usize, f: impl FnOnce(&Cpu<'static>) -> T) -> T {
        if word == 0
            && let Some(slot) = self.own_token()
        {
            // SAFETY: the slot is this thread's, and has its token.
            return f(unsafe { (*slot.0.get()).assume_init_ref() });
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
        ALL.store(from_ref(self).cast_mut(), Relaxed);
        let key = self.key?;
        let number = lock(&self.free).take()?;
        let slot = &self.slots[number];
        // Nobody else claims it; whoever has borrowed it to empty its lists gives it back soon.
        let Ok(cpu) = self.slabs.cpu((SHARED + number) as u16) else {
            lock(&self.free).put(number);
            return None;
        };
        // SAFETY: the slot is this thread's from now on.
        unsafe { (*slot.0.get()).write(cpu) };
        // SAFETY: the key exists.
        let set = unsafe { libc::pthread_setspecific(key, from_ref(slot).cast()) };
        if set != 0 {
            self.give_back(slot);
            return None;
        }
        tls::set(from_ref(slot).addr());
        Some(slot)
    }

    /// The thread that has a slot gives it back, and its token.
    fn give_back(&self, slot: &Slot) {
        let mut slots = self.slots.iter();
        let Some(number) = slots.position(|s| std::ptr::eq(s, slot)) else {
            return;
        };
        // SAFETY: the slot is this thread's still, and has a token, which is not used any more.
        unsafe { (*slot.0.get()).assume_init_drop() };
        lock(&self.free).put(number);
    }

    /// Has `empty` empty the lists of a token, for this thread's own and for each shared one: with any of them it also
    /// reaches those that no thread has.
    pub fn each_within_reach(&'static self, mut empty: impl FnMut(&Cpu<'static>)) {
        // A thread's first call may allocate, and come here in need: not with the lock held.
        self.with(|_| ());
        let _one = lock(&self.emptying);
        self.with(&mut empty);
        for shared in &self.shared {
            empty(&lock(shared));
        }
    }

    /// Takes all locks, for a fork.
    pub fn hold(&'static self) -> Held {
        Held {
            _emptying: lock(&self.emptying),
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
    if let Some(all) = unsafe { ALL.load(Relaxed).as_ref() } {
        // SAFETY: as above.
        all.give_back(unsafe { &*slot.cast::<Slot>() });
    }
}
