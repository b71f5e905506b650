//! Words that are zeros, of which those that nobody has written take no memory.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU64;

/// So many of them.
pub(crate) fn zeros(count: usize) -> Box<[AtomicU64]> {
    let words = Box::into_raw(vec![0_u64; count].into_boxed_slice());
    // SAFETY: an atomic word has the layout of a word, and the box owns them.
    unsafe { Box::from_raw(words as *mut [AtomicU64]) }
}
