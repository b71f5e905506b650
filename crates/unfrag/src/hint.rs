//! Hints to the processor and to the compiler.

/// Asks for the cache line in which `t` begins, and does not wait for it. Does nothing where there is no
/// such instruction.
#[inline]
pub fn prefetch<T>(t: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[allow(unsafe_code)]
    // SAFETY: the instruction reads nothing that the program could see, and a reference is valid anyway.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(t).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = t;
}

/// Tells the compiler that what calls it is seldom done.
#[cold]
#[inline(always)]
pub fn seldom() {}
