//! The operands of a slow path: the set, the cache, and the record of the CPU that it runs on.

use crate::cache_record::{CacheRecord, CpuRecord};
use crate::map::DirectMap;
use crate::object::{next, set_next};
use crate::set::Set;
use core::ptr::null_mut;
use lock_api::RawMutex;

/// A slow path's operands.
pub(crate) struct Work<'a, R: RawMutex> {
    pub set: &'a Set<R>,
    pub cache: &'a CacheRecord<R>,
    pub cpu: &'a CpuRecord<R>,
    /// Whether the caller has that CPU's token. If not, the CPU's lists must not be used.
    pub has_cpu: bool,
}

#[allow(unsafe_code)]
impl<'a, R: RawMutex> Work<'a, R> {
    /// Work of the CPU itself.
    pub fn new(set: &'a Set<R>, cache: &'a CacheRecord<R>, cpu: &'a CpuRecord<R>) -> Work<'a, R> {
        Work {
            set,
            cache,
            cpu,
            has_cpu: true,
        }
    }

    /// Work without a CPU.
    pub fn without_cpu(set: &'a Set<R>, cache: &'a CacheRecord<R>) -> Work<'a, R> {
        Work {
            has_cpu: false,
            ..Work::new(set, cache, cache.cpu(0))
        }
    }

    /// The set's direct map.
    #[inline(always)]
    pub fn map(&self) -> &'a DirectMap<R> {
        self.set.map()
    }

    /// Number of the CPU's slab (SLUB).
    pub fn current(&self) -> Option<u32> {
        let id = self.cpu.slab.get();
        (id != 0).then_some(id)
    }

    /// Takes an object off the CPU's chain.
    #[inline]
    pub fn pop(&self) -> Option<*mut u8> {
        let object = self.cpu.head.get();
        if object.is_null() {
            return None;
        }
        // SAFETY: the chain is the CPU's.
        self.cpu
            .head
            .set(unsafe { next(object, self.cache.next_at()) });
        self.cpu.nr.set(self.cpu.nr.get() - 1);
        Some(object)
    }

    /// Puts an object on the CPU's chain.
    #[inline]
    pub fn push(&self, object: *mut u8) {
        // SAFETY: the object was freed to the CPU.
        unsafe { set_next(object, self.cache.next_at(), self.cpu.head.get()) };
        self.cpu.head.set(object);
        self.cpu.nr.set(self.cpu.nr.get() + 1);
    }

    /// Makes the hidden chain of a checked cache visible to the designs.
    pub fn open(&self) {
        if self.cache.is_checked() {
            self.cpu.head.set(self.cpu.hidden.replace(null_mut()));
        }
    }

    /// Hides the chain of a checked cache again.
    pub fn close(&self) {
        if self.cache.is_checked() {
            self.cpu.hidden.set(self.cpu.head.replace(null_mut()));
        }
    }
}
