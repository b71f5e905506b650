//! Where free memory of a class comes from, and where it goes when no thread keeps it: objects to their slabs, runs to the frames.

use super::classes::{CLASSES, batch_of, bytes_of, is_run};
use super::depot::Depot;
use super::ground::misuse;
use super::mark::Secret;
use super::pages::HeapPages;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use unfrag::Gfp;
use unfrag_slab::{Cpu, Kmalloc, Slabs};

/// The slabs and the frames, and what threads share of free memory.
pub(super) struct Store {
    pub secret: Secret,
    pub depot: &'static Depot,
    pub pages: &'static HeapPages,
    pub slabs: &'static Slabs<'static>,
    pub sizes: Kmalloc<'static>,
    /// The only token of the caches, whose lists hold nothing: they are emptied through it.
    pub cpu: Mutex<Cpu<'static>>,
}

/// Bytes that are taken from slabs at a time at the most, as long as there is more than one object.
const MOST_FETCHED: usize = 32 << 10;

/// How many of a class are taken from slabs at a time, at the most.
pub(super) fn fetched_of(class: usize) -> usize {
    (MOST_FETCHED / bytes_of(class)).clamp(1, batch_of(class))
}

impl Store {
    /// Takes some objects of a class from slabs. Returns how many there are; 0 if there is no memory.
    pub fn fetch(&self, class: usize, into: &mut [NonNull<u8>]) -> usize {
        match self.sizes.cache(bytes_of(class)) {
            Some(cache) => cache.alloc_some_without_cpu(Gfp::KERNEL, into),
            None => 0,
        }
    }

    /// One piece of a class, and whether it reads as zeros.
    pub fn fetch_one(&self, class: usize) -> Option<(NonNull<u8>, bool)> {
        if is_run(class) {
            return self.pages.allocate_of(class);
        }
        let mut one = [NonNull::dangling()];
        (self.fetch(class, &mut one) == 1).then_some((one[0], false))
    }

    /// Gives memory of a class, marked as free, back to where it came from.
    pub fn give_up(&self, class: usize, memory: &[NonNull<u8>]) {
        if is_run(class) {
            for run in memory {
                self.pages.free_of(class, *run);
            }
            return;
        }
        let Some(cache) = self.sizes.cache(bytes_of(class)) else {
            return;
        };
        // SAFETY: the caller has it, of this class by the table; what is no object is found, and is a misuse.
        let freed = unsafe { cache.free_bulk_without_cpu(memory) };
        if let Err(fault) = freed
            && let Some(at) = NonNull::new(std::ptr::without_provenance_mut(fault.object))
        {
            misuse("free of memory that is not in use", at);
        }
    }

    /// Gives up all that threads share, and has empty slabs give their pages back.
    pub fn give_up_shared(&self) {
        for class in 1..CLASSES {
            while let Some(batch) = self.depot.take_batch(class) {
                self.give_up(class, batch.memory());
            }
        }
        let cpu = self.cpu.lock().unwrap_or_else(PoisonError::into_inner);
        self.sizes.shrink(&cpu);
    }

    /// Bytes of free objects in slabs, and of what threads share.
    pub fn kept_bytes(&self) -> u64 {
        let mut free = 0;
        self.slabs.each_cache(|cache| {
            let objects = cache.total_objects.saturating_sub(cache.active_objects);
            free += objects * u64::from(cache.size);
        });
        free + self.depot.bytes()
    }

    /// Takes the lock of the token, for a fork.
    pub fn hold(&'static self) -> MutexGuard<'static, Cpu<'static>> {
        self.cpu.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
