//! Tables in memory that the caller hands in.
//!
//! An allocator computes what its tables take with [`room`], asks its caller for so many words and a [`LINE`] more, and
//! takes the tables from an [`Arena`] over them.
//!
//! Invariant: each table begins with a cache line, and no two share one.

use zerocopy::{FromBytes, IntoBytes, KnownLayout, TryFromBytes};

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Bytes of whole cache lines for `n` values.
pub const fn room<T>(n: usize) -> usize {
    (n * size_of::<T>()).next_multiple_of(LINE)
}

/// The rest of the caller's memory, zeroed. Tables are taken from its start.
pub struct Arena<'m>(&'m mut [u8]);

impl<'m> Arena<'m> {
    /// The whole memory, from its first whole cache line on.
    pub fn new(memory: &'m mut [u64]) -> Arena<'m> {
        memory.fill(0);
        let bytes = memory.as_mut_bytes();
        let skip = bytes.as_ptr().align_offset(LINE).min(bytes.len());
        Arena(&mut bytes[skip..])
    }

    /// Takes whole cache lines for `n` values of a type.
    fn bytes<T>(&mut self, n: usize) -> &'m mut [u8] {
        const { assert!(align_of::<T>() <= LINE, "a table begins with a cache line") };
        let rest = core::mem::take(&mut self.0);
        let (taken, rest) = rest.split_at_mut(room::<T>(n));
        self.0 = rest;
        &mut taken[..n * size_of::<T>()]
    }

    /// A table of `n` values, all zeroes.
    ///
    /// # Panics
    /// If the rest of the memory is smaller than [`room`] says.
    pub fn table<T: FromBytes + IntoBytes + KnownLayout>(&mut self, n: usize) -> &'m mut [T] {
        match <[T]>::mut_from_bytes(self.bytes::<T>(n)) {
            Ok(table) => table,
            Err(_) => unreachable!("whole lines are aligned for every table"),
        }
    }

    /// The same for values of which not all bytes are valid.
    ///
    /// # Panics
    /// As [`table`](Self::table); and if all zeroes is no valid value.
    pub fn checked_table<T: TryFromBytes + IntoBytes + KnownLayout>(
        &mut self,
        n: usize,
    ) -> &'m mut [T] {
        match <[T]>::try_mut_from_bytes(self.bytes::<T>(n)) {
            Ok(table) => table,
            Err(_) => {
                unreachable!("whole lines are aligned for every table, and all zeroes is valid")
            }
        }
    }
}
