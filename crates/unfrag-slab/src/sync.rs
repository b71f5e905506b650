//! Atomics of the slab caches, with variants for the model checkers.
//!
//! Ordinarily these are `core`'s. Under `cfg(shuttle)` each operation first lets shuttle run another
//! thread (so a set of caches can be used inside shuttle's checks only); the layout stays, so
//! that zeroed memory is still a valid atomic. Under `cfg(loom)` the
//! modules with a lock-free word of their own use loom's types ([`model`]); nothing else does, and
//! nothing else is run under loom.

pub(crate) use core::sync::atomic::Ordering;

#[cfg(not(shuttle))]
mod native {
    pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
    /// A place where another thread may go on.
    #[inline(always)]
    pub(crate) fn spin() {
        core::hint::spin_loop();
    }
}
#[cfg(not(shuttle))]
pub(crate) use native::*;

#[cfg(shuttle)]
mod yielding {
    use super::Ordering;
    use core::sync::atomic;

    /// A place where another thread may go on.
    pub(crate) fn spin() {
        shuttle::thread::yield_now();
    }

    fn point() {
        shuttle::thread::yield_now();
    }

    macro_rules! yielding {
        ($name:ident, $int:ty) => {
            #[derive(Debug, Default)]
            #[repr(transparent)]
            pub(crate) struct $name(atomic::$name);
            #[allow(dead_code)]
            impl $name {
                pub const fn new(v: $int) -> Self {
                    Self(atomic::$name::new(v))
                }
                pub fn load(&self, o: Ordering) -> $int {
                    point();
                    self.0.load(o)
                }
                pub fn store(&self, v: $int, o: Ordering) {
                    point();
                    self.0.store(v, o);
                }
                pub fn swap(&self, v: $int, o: Ordering) -> $int {
                    point();
                    self.0.swap(v, o)
                }
                pub fn fetch_add(&self, v: $int, o: Ordering) -> $int {
                    point();
                    self.0.fetch_add(v, o)
                }
                pub fn fetch_sub(&self, v: $int, o: Ordering) -> $int {
                    point();
                    self.0.fetch_sub(v, o)
                }
                pub fn compare_exchange_weak(
                    &self,
                    a: $int,
                    b: $int,
                    s: Ordering,
                    f: Ordering,
                ) -> Result<$int, $int> {
                    point();
                    self.0.compare_exchange(a, b, s, f)
                }
                pub fn compare_exchange(
                    &self,
                    a: $int,
                    b: $int,
                    s: Ordering,
                    f: Ordering,
                ) -> Result<$int, $int> {
                    point();
                    self.0.compare_exchange(a, b, s, f)
                }
            }
        };
    }
    yielding!(AtomicU32, u32);
    yielding!(AtomicU64, u64);
    yielding!(AtomicUsize, usize);
}
#[cfg(shuttle)]
pub(crate) use yielding::*;

/// Types for the modules that loom checks.
pub(crate) mod model {
    #[cfg(not(loom))]
    pub(crate) use super::AtomicU64;
    #[cfg(loom)]
    pub(crate) use loom::sync::atomic::AtomicU64;
}
