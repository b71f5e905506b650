//! The lock of tasks: whoever waits for it lets others run.
//!
//! Invariant: no interrupt handler takes one.

use crate::task;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};

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
