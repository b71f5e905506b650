//! Requests with a mapping of their own, which are known by a list: no address is believed to be one of them, and what lies
//! there is not looked at.
//!
//! Invariants: the list names each mapping by the address of its memory, the highest first, from before anybody has the memory
//! until before the system has it back. No other lock is taken while that of the list is held.

use super::ground::{misuse, system_memory};
use crate::space::FRAME_BYTES;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap, munmap};
use std::ptr::{NonNull, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Mappings for which there is room at first: they fill a page.
const FIRST_ROOM: usize = FRAME_BYTES / size_of::<Mapping>();

/// A mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    /// What its user has.
    memory: usize,
    /// Where it begins, and its length.
    base: usize,
    len: usize,
}

/// All mappings.
#[derive(Debug)]
struct List {
    /// Room for them, of which `count` places are filled.
    room: &'static mut [Mapping],
    count: usize,
    /// Bytes of all.
    bytes: u64,
}

impl List {
    /// The place of a mapping, or where it would be. The system mostly puts a mapping below the last one, so what is new goes to
    /// the end.
    fn find(&self, memory: usize) -> Result<usize, usize> {
        self.room[..self.count].binary_search_by(|of| memory.cmp(&of.memory))
    }

    fn get(&self, memory: NonNull<u8>) -> Option<Mapping> {
        let at = self.find(memory.addr().get()).ok()?;
        Some(self.room[at])
    }

    /// Has room for one more; false if the system has no memory for it.
    fn make_room(&mut self) -> bool {
        if self.count < self.room.len() {
            return true;
        }
        let room = (2 * self.room.len()).max(FIRST_ROOM);
        let Some(new) = system_memory(room * size_of::<Mapping>()) else {
            return false;
        };
        // SAFETY: new memory of the system, that long; zeros are mappings, which nobody looks for.
        let new = unsafe { std::slice::from_raw_parts_mut(new.cast::<Mapping>().as_ptr(), room) };
        new[..self.count].copy_from_slice(&self.room[..self.count]);
        let old = std::mem::replace(&mut self.room, new);
        let (old, bytes) = (old.as_mut_ptr(), size_of_val(old));
        if bytes > 0 {
            // SAFETY: mapped by this function, and nobody refers to it.
            let _ = unsafe { munmap(old.cast(), bytes) };
        }
        true
    }

    /// Has a mapping that it has not. There is room.
    fn insert(&mut self, mapping: Mapping) {
        let (Ok(at) | Err(at)) = self.find(mapping.memory);
        self.room.copy_within(at..self.count, at + 1);
        self.room[at] = mapping;
        self.count += 1;
        self.bytes += mapping.len as u64;
    }

    fn remove(&mut self, memory: NonNull<u8>) -> Option<Mapping> {
        let at = self.find(memory.addr().get()).ok()?;
        let mapping = self.room[at];
        self.room.copy_within(at + 1..self.count, at);
        self.count -= 1;
        self.bytes -= mapping.len as u64;
        Some(mapping)
    }
}

/// All mappings.
#[derive(Debug)]
pub(super) struct Big {
    list: Mutex<List>,
}

/// The lock of the list, held.
pub(super) struct Held {
    _list: MutexGuard<'static, List>,
}

impl Big {
    /// None as yet.
    pub fn new() -> Big {
        Big {
            list: Mutex::new(List {
                room: &mut [],
                count: 0,
                bytes: 0,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A mapping of its own. Its memory is all zeros.
    pub fn allocate(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let align = align.max(FRAME_BYTES);
        let len = size.max(1).checked_next_multiple_of(FRAME_BYTES)?;
        // An alignment above that of a page is found within a longer mapping.
        let len = len.checked_add(align - FRAME_BYTES)?;
        if isize::try_from(len).is_err() {
            return None;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base = unsafe { mmap_anonymous(null_mut(), len, access, MapFlags::PRIVATE) };
        let base = NonNull::new(base.ok()?.cast::<u8>())?;
        let at = base.addr().get().next_multiple_of(align);
        let mut list = self.lock();
        if !list.make_room() {
            drop(list);
            // SAFETY: mapped above, and nobody knows of it.
            let _ = unsafe { munmap(base.as_ptr().cast(), len) };
            return None;
        }
        list.insert(Mapping {
            memory: at,
            base: base.addr().get(),
            len,
        });
        Some(base.with_addr(at.try_into().ok()?))
    }

    /// Bytes that may be used. Another address is a misuse.
    pub fn usable_size(&self, memory: NonNull<u8>) -> usize {
        let found = self.lock().get(memory);
        let Some(Mapping { base, len, .. }) = found else {
            misuse(FOREIGN, memory);
        };
        base + len - memory.addr().get()
    }

    /// Ends a mapping, after a call of `before` if it is one. Another address is a misuse.
    ///
    /// # Safety
    /// The caller gives the memory up, if it came from [`allocate`](Big::allocate) or [`resize`](Big::resize).
    pub unsafe fn free(&self, memory: NonNull<u8>, before: impl FnOnce()) {
        let found = self.lock().remove(memory);
        let Some(Mapping { base, len, .. }) = found else {
            misuse(FOREIGN, memory);
        };
        before();
        // SAFETY: a mapping of ours, which the caller gives up.
        let _ = unsafe { munmap(memory.as_ptr().with_addr(base).cast(), len) };
    }

    /// Makes the mapping longer or shorter; it may move. `None`, and the mapping is as it was, if the system cannot. Another
    /// address is a misuse.
    ///
    /// # Safety
    /// As [`free`](Big::free).
    pub unsafe fn resize(
        &self,
        memory: NonNull<u8>,
        align: usize,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // The lock is held while the mapping moves: who gets the addresses that it leaves finds it gone.
        let mut list = self.lock();
        let Some(old) = list.get(memory) else {
            drop(list);
            misuse(FOREIGN, memory);
        };
        let before = memory.addr().get() - old.base;
        let new_len = size
            .checked_add(before)?
            .checked_next_multiple_of(FRAME_BYTES)?;
        let flags = if align <= FRAME_BYTES {
            MremapFlags::MAYMOVE
        } else {
            MremapFlags::empty()
        };
        let base = memory.as_ptr().with_addr(old.base).cast();
        // SAFETY: a mapping of ours, which nobody else uses.
        let moved = unsafe { mremap(base, old.len, new_len, flags) };
        let moved = NonNull::new(moved.ok()?.cast::<u8>())?;
        // SAFETY: the memory is as far into the mapping as before.
        let new = unsafe { moved.add(before) };
        list.remove(memory);
        list.insert(Mapping {
            memory: new.addr().get(),
            base: moved.addr().get(),
            len: new_len,
        });
        Some(new)
    }

    /// How many mappings there are.
    pub fn count(&self) -> u64 {
        self.lock().count as u64
    }

    /// Bytes of all mappings.
    pub fn mapped_bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Takes the lock, for a fork.
    pub fn hold(&'static self) -> Held {
        Held { _list: self.lock() }
    }
}

const FOREIGN: &str = "memory that is not of the heap";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_mappings_is_known_until_it_ends_and_nothing_else_is() {
        let big = Big::new();
        let mut all: Vec<_> = (1..=3 * FIRST_ROOM)
            .map(|n| (big.allocate(n, FRAME_BYTES << (n % 3)).expect("memory"), n))
            .collect();
        for (memory, n) in &all {
            assert!(memory.addr().get().is_multiple_of(FRAME_BYTES << (n % 3)));
            assert!(big.usable_size(*memory) >= *n);
            // SAFETY: within the mapping, which is longer than that.
            assert_eq!(big.lock().get(unsafe { memory.add(1) }), None);
        }
        assert_eq!(big.count(), all.len() as u64);
        // Neither from the first to the last nor the other way round.
        all.sort_by_key(|(_, n)| n.wrapping_mul(0x9E37_79B9) % 997);
        for (i, (memory, n)) in all.iter().enumerate() {
            if i % 2 == 0 {
                // SAFETY: in use, and nobody's any more.
                unsafe { big.free(*memory, || ()) };
                assert_eq!(big.lock().get(*memory), None);
                continue;
            }
            // SAFETY: in use, and not used at its old place any more.
            let longer = unsafe { big.resize(*memory, 1, *n << 16) }.expect("memory");
            assert!(big.usable_size(longer) >= *n << 16);
            // SAFETY: as above.
            unsafe { big.free(longer, || ()) };
        }
        assert_eq!((big.count(), big.mapped_bytes()), (0, 0));
    }
}
