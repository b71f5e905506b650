//! A value that is set once while the machine starts, and read by all after that.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};

/// The value.
pub struct Once<T> {
    set: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: It is written once, by one CPU, before `set` is true, and read after that.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    /// No value as yet.
    pub const fn new() -> Once<T> {
        Once {
            set: AtomicBool::new(false),
            value: UnsafeCell::new(None),
        }
    }

    /// Sets the value. Only the first CPU does, while it starts.
    pub fn set(&'static self, value: T) -> &'static T {
        assert!(
            !self.is_set() && crate::cpu::id() == 0,
            "set once, by the first CPU"
        );
        // SAFETY: Nobody reads it as yet.
        unsafe { *self.value.get() = Some(value) };
        self.set.store(true, Release);
        self.get()
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.set.load(Acquire)
    }

    /// The value.
    pub fn get(&'static self) -> &'static T {
        assert!(self.is_set(), "used before it was set");
        // SAFETY: It is not written any more.
        let value = unsafe { &*self.value.get() };
        value.as_ref().expect("it is set")
    }
}
