//! The memory of a manager's metadata, owned beside the manager.
//!
//! A simulated machine keeps its manager and that manager's memory in one value, so the manager's lifetime
//! is `'static`; the memory is lent once and freed when the machine ends.
//!
//! Invariant: the memory is freed only after [`release`](Metadata::release), which promises that no
//! reference to it is used again. Otherwise it leaks; there is never a dangling reference.
#![allow(unsafe_code)]

use std::ptr::NonNull;

/// Memory of one manager.
pub(crate) struct Metadata {
    words: NonNull<[u64]>,
    released: bool,
}

impl Metadata {
    /// Zeroed memory of `words` words: its owner, and the one reference to it.
    pub fn new(words: usize) -> (Metadata, &'static mut [u64]) {
        let mut words = NonNull::from(Box::leak(vec![0u64; words].into_boxed_slice()));
        let owner = Metadata {
            words,
            released: false,
        };
        // SAFETY: the allocation was leaked just above; `owner` touches it only when dropped, and
        // only after its holder said that this reference is gone.
        (owner, unsafe { words.as_mut() })
    }

    /// Address of the memory.
    pub fn address(&self) -> usize {
        self.words.as_ptr().cast::<u64>().addr()
    }

    /// Lets the memory go when this value is dropped.
    ///
    /// # Safety
    /// The holder of the reference of [`new`](Metadata::new) must be dropped before this value, or never use
    /// it again.
    pub unsafe fn release(&mut self) {
        self.released = true;
    }
}

impl Drop for Metadata {
    fn drop(&mut self) {
        if self.released {
            // SAFETY: the box was leaked in `new`, and `release` promises that it is not in use.
            drop(unsafe { Box::from_raw(self.words.as_ptr()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Sim;
    use crate::test_support::machine_config;
    use unfrag_eras::{CpuId, Gfp, Order, Request};

    fn sim() -> Sim {
        Sim::new(&machine_config("2.6.32", 4096, 1)).unwrap()
    }

    // AddressSanitizer would report a use after free. The test leaks the memory of two managers.
    #[test]
    #[cfg_attr(feature = "sanitizer", ignore = "leaks the memory of two managers")]
    fn swapped_manager_keeps_its_memory() {
        let (mut a, mut b) = (sim(), sim());
        std::mem::swap(a.manager(), b.manager());
        drop(a);
        let page = b.manager().alloc(&Request::new(Order::ZERO, Gfp::KERNEL));
        let page = page.unwrap();
        assert!(b.manager().free(CpuId(0), page, Order::ZERO).is_ok());
    }
}
