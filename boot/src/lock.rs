//! The two kinds of locks: [`IrqLock`] spins with interrupts off, [`Mutex`] lets other tasks run.
//!
//! Invariant: a task that holds an `IrqLock` neither waits nor is interrupted. A handler takes no `Mutex`.

use crate::{cpu, faults, task};
use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A spin lock whose holder cannot be interrupted, for `Shared`, and for what handlers share with tasks.
pub struct IrqLock(AtomicBool);

// SAFETY: `swap` gives the lock to one CPU until `unlock`; acquire and release order what lies between.
unsafe impl lock_api::RawMutex for IrqLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: IrqLock = IrqLock(AtomicBool::new(false));
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        // Undone in `unlock`.
        let _off = ManuallyDrop::new(cpu::interrupts_off());
        while self.0.swap(true, Acquire) {
            while self.0.load(Relaxed) {
                core::hint::spin_loop();
            }
        }
        let own = cpu::this();
        own.holds.set(own.holds.get() + 1);
        faults::interrupt_here();
    }

    fn try_lock(&self) -> bool {
        let off = ManuallyDrop::new(cpu::interrupts_off());
        let got = !self.0.swap(true, Acquire);
        let own = cpu::this();
        if got {
            own.holds.set(own.holds.get() + 1);
        } else {
            drop(ManuallyDrop::into_inner(off));
        }
        got
    }

    unsafe fn unlock(&self) {
        let own = cpu::this();
        own.holds.set(own.holds.get() - 1);
        self.0.store(false, Release);
        // SAFETY: The lock was taken on this CPU, with this.
        unsafe { cpu::restore() };
    }
}

/// A value behind an [`IrqLock`].
pub type Spin<T> = lock_api::Mutex<IrqLock, T>;

/// A value that one task at a time has. A task that waits for it lets others run.
pub struct Mutex<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: The value is reached by the task that has it alone.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A value that nobody has.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until nobody has the value.
    pub fn lock(&self) -> Guard<'_, T> {
        while self.taken.swap(true, Acquire) {
            task::yield_now();
        }
        Guard(self)
    }
}

/// The right to a value.
pub struct Guard<'a, T>(&'a Mutex<T>);

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: The guard is the only one.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As above.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.taken.store(false, Release);
    }
}
