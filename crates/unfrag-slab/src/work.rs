//! What a slow path works on: the set, the cache, and the records of the CPU it runs on.

use crate::desc::{CpuRecord, Desc};
use crate::object::{next, set_next};
use crate::system::Inner;
use core::ptr::null_mut;

/// A slow path's operands.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub s: &'a Inner,
    pub d: &'a Desc,
    pub c: &'a CpuRecord,
    /// Whether the caller is that CPU. If not, its lists are out of bounds.
    pub has_cpu: bool,
}

#[allow(unsafe_code)]
impl Work<'_> {
    /// Number of the CPU's slab (SLUB).
    pub fn current(&self) -> Option<u32> {
        let id = self.c.slab.get();
        (id != 0).then_some(id)
    }

    /// Takes an object off the CPU's chain.
    #[inline]
    pub fn pop(&self) -> Option<*mut u8> {
        let object = self.c.head.get();
        if object.is_null() {
            return None;
        }
        // SAFETY: the chain is the CPU's.
        self.c.head.set(unsafe { next(object, self.d.next_at()) });
        self.c.nr.set(self.c.nr.get() - 1);
        Some(object)
    }

    /// Puts an object on the CPU's chain.
    #[inline]
    pub fn push(&self, object: *mut u8) {
        // SAFETY: the object was freed to the CPU.
        unsafe { set_next(object, self.d.next_at(), self.c.head.get()) };
        self.c.head.set(object);
        self.c.nr.set(self.c.nr.get() + 1);
    }

    /// Shows a checked cache's chain to the designs, which know of no checks.
    pub fn open(&self) {
        if self.d.is_checked() {
            self.c.head.set(self.c.hidden.replace(null_mut()));
        }
    }

    /// Hides it again.
    pub fn close(&self) {
        if self.d.is_checked() {
            self.c.hidden.set(self.c.head.replace(null_mut()));
        }
    }
}
