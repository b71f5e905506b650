//! The mark of free memory: its second word says that it is free, by a number that depends on its address and on a secret.
//!
//! It is set when a slab is made and when memory is freed, and goes when the memory is handed out, so that a second free is seen wherever the memory is:
//! in a magazine, in the depot, in its slab. It costs a store for each of the two, and a load and a comparison for each free, all
//! to the memory itself. A copy of freed memory has no mark, as it has another address.
//!
//! Invariant: memory of a class that is in use has no mark, but by a chance of 1 in 2^64.

use std::ptr::NonNull;

/// What no program knows.
#[derive(Clone, Copy)]
pub(super) struct Secret(usize);

impl Secret {
    /// One of this process.
    pub fn new() -> Secret {
        // SAFETY: the call reads what the kernel gave the process.
        let random = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
        let seed = match NonNull::new(std::ptr::with_exposed_provenance_mut::<[usize; 2]>(random)) {
            // SAFETY: the kernel put 16 random bytes there; their alignment is not known.
            Some(at) => unsafe { at.read_unaligned() },
            // The place of the stack is random too.
            None => [std::ptr::addr_of!(random).addr(), random],
        };
        // The C library takes its own secrets from the same bytes: none of them can be found from this number.
        let mixed = seed[0].wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed[1].rotate_left(32);
        Secret((mixed >> 29 ^ mixed).wrapping_mul(0xBF58_476D_1CE4_E5B9) | 1)
    }

    #[inline(always)]
    fn of(self, memory: NonNull<u8>) -> usize {
        self.0 ^ memory.addr().get()
    }

    /// Marks memory as free.
    ///
    /// # Safety
    /// The caller has the memory, two words at least.
    #[inline(always)]
    pub unsafe fn set(self, memory: NonNull<u8>) {
        // SAFETY: as the caller says.
        unsafe { memory.cast::<usize>().add(1).write(self.of(memory)) };
    }

    /// Whether memory is marked as free.
    ///
    /// # Safety
    /// There are two words that can be read.
    #[inline(always)]
    pub unsafe fn is_set(self, memory: NonNull<u8>) -> bool {
        // Whatever it holds: its user may never have written it.
        // SAFETY: as the caller says.
        let word = unsafe { memory.cast::<usize>().add(1).as_ptr().read_volatile() };
        word == self.of(memory)
    }
}

/// Takes the mark away.
///
/// # Safety
/// The caller has the memory, two words at least.
#[inline(always)]
pub(super) unsafe fn clear(memory: NonNull<u8>) {
    // SAFETY: as the caller says.
    unsafe { memory.cast::<usize>().add(1).write(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_seen_where_it_was_set_and_not_in_a_copy() {
        let secret = Secret::new();
        let mut words = [[7_usize, 7]; 2];
        let [one, other] = &mut words;
        let (at, copy) = (
            NonNull::from(&mut *one).cast(),
            NonNull::from(&mut *other).cast(),
        );
        // SAFETY: two words each, which are the test's own.
        unsafe {
            assert!(!secret.is_set(at));
            secret.set(at);
            assert!(secret.is_set(at));
            copy.copy_from(at, 16);
            assert!(!secret.is_set(copy));
            clear(at);
            assert!(!secret.is_set(at));
        }
        assert_eq!(words[0], [7, 0]);
    }
}
