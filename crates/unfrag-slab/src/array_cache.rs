//! SLAB's arrays of free objects, in the bootstrap cache. `spec: 6.1`
//!
//! Invariant: the entries below `avail` are objects, the coldest first. An [`Array`] is the only access to its
//! array at that time.

use crate::lock::Locked;
use crate::memory::Memory;
use core::ptr::NonNull;
use lock_api::RawMutex;
use unfrag::Gfp;

/// Objects that an array for another node holds.
const ALIEN_LIMIT: u32 = 12;

/// An array of free objects, the coldest first. The pointers follow it.
#[repr(C)]
pub(crate) struct ArrayCache {
    avail: u32,
    limit: u32,
    touched: bool,
}

const HEAD: usize = 16;
const _: () = assert!(size_of::<ArrayCache>() <= HEAD);

/// Bytes of an array for `limit` objects.
pub(crate) const fn array_bytes(limit: u32) -> usize {
    HEAD + limit as usize * size_of::<*mut u8>()
}

/// Exclusive access to an array.
#[derive(Clone, Copy)]
pub(crate) struct Array(NonNull<ArrayCache>);

#[allow(unsafe_code)]
impl Array {
    /// # Safety
    /// `at` is null, or an array that nothing else uses while the result lives.
    pub unsafe fn new(at: *mut ArrayCache) -> Option<Array> {
        NonNull::new(at).map(Array)
    }
    pub fn avail(&self) -> u32 {
        // SAFETY: the array lives, and is ours alone.
        unsafe { (*self.0.as_ptr()).avail }
    }
    pub fn set_avail(&mut self, n: u32) {
        // SAFETY: the array lives, and is ours alone.
        unsafe { (*self.0.as_ptr()).avail = n }
    }
    pub fn limit(&self) -> u32 {
        // SAFETY: the array lives, and is ours alone.
        unsafe { (*self.0.as_ptr()).limit }
    }
    /// Clears the mark of use. Returns whether the array was used since the last call.
    pub fn untouch(&mut self) -> bool {
        // SAFETY: the array lives, and is ours alone.
        unsafe { core::mem::replace(&mut (*self.0.as_ptr()).touched, false) }
    }
    pub fn is_touched(&self) -> bool {
        // SAFETY: the array lives, and is ours alone.
        unsafe { (*self.0.as_ptr()).touched }
    }
    fn entry(&self, i: u32) -> *mut *mut u8 {
        let base = self.0.as_ptr().cast::<u8>().wrapping_add(HEAD);
        base.cast::<*mut u8>().wrapping_add(i as usize)
    }
    pub fn pop(&mut self) -> Option<*mut u8> {
        let n = self.avail().checked_sub(1)?;
        self.set_avail(n);
        // SAFETY: entries below `avail` are set.
        unsafe {
            (*self.0.as_ptr()).touched = true;
            Some(self.entry(n).read())
        }
    }
    /// Puts an object on top; false if the array is full.
    pub fn push(&mut self, object: *mut u8) -> bool {
        let n = self.avail();
        if n >= self.limit() {
            return false;
        }
        // SAFETY: there is room for `limit` entries.
        unsafe { self.entry(n).write(object) };
        self.set_avail(n + 1);
        true
    }
    /// Takes up to `n` of the coldest.
    pub fn take_cold(&mut self, n: u32, mut f: impl FnMut(*mut u8)) {
        let n = n.min(self.avail());
        for i in 0..n {
            // SAFETY: entries below `avail` are set.
            f(unsafe { self.entry(i).read() });
        }
        let rest = self.avail() - n;
        // SAFETY: both ranges lie within the entries that are set.
        unsafe { self.entry(0).copy_from(self.entry(n), rest as usize) };
        self.set_avail(rest);
    }
}

/// Makes an empty array.
#[allow(unsafe_code)]
pub(crate) fn new_array<R: RawMutex>(
    memory: &Memory<R>,
    limit: u32,
    node: u8,
) -> Option<*mut ArrayCache> {
    let at = memory.alloc_record(array_bytes(limit), Gfp::KERNEL, node)?;
    let at = at.cast::<ArrayCache>();
    let empty = ArrayCache {
        avail: 0,
        limit,
        touched: false,
    };
    // SAFETY: the record is large enough and ours.
    unsafe { at.write(empty) };
    Some(at.as_ptr())
}

/// Makes the arrays for other nodes.
#[allow(unsafe_code)]
pub(crate) fn new_aliens<R: RawMutex>(
    memory: &Memory<R>,
    nodes: u8,
    own: u8,
) -> Option<*const Locked<*mut ArrayCache, R>> {
    let bytes = usize::from(nodes) * size_of::<Locked<*mut ArrayCache, R>>();
    let at = memory.alloc_record(bytes, Gfp::KERNEL, own)?;
    let at = at.cast::<Locked<*mut ArrayCache, R>>();
    for n in 0..nodes {
        let array = match n == own {
            true => core::ptr::null_mut(),
            false => new_array(memory, ALIEN_LIMIT, own).unwrap_or(core::ptr::null_mut()),
        };
        // SAFETY: there is room for one a node.
        unsafe { at.add(n.into()).write(Locked::new(array)) };
    }
    Some(at.as_ptr())
}

/// Returns an array, empty or not.
#[allow(unsafe_code)]
pub(crate) fn free_array<R: RawMutex>(memory: &Memory<R>, at: *mut ArrayCache) {
    if let Some(at) = NonNull::new(at) {
        // SAFETY: the caller has the array alone; it was allocated with that size.
        unsafe {
            let bytes = array_bytes(at.as_ref().limit);
            memory.free_record(at.cast(), bytes);
        }
    }
}

/// Returns the arrays for other nodes.
#[allow(unsafe_code)]
pub(crate) fn free_aliens<R: RawMutex>(
    memory: &Memory<R>,
    nodes: u8,
    aliens: *const Locked<*mut ArrayCache, R>,
) {
    let Some(at) = NonNull::new(aliens.cast_mut()) else {
        return;
    };
    for n in 0..usize::from(nodes) {
        // SAFETY: there is one a node; the caller has the cache alone.
        let array = unsafe { *at.add(n).as_ref().lock() };
        free_array(memory, array);
    }
    let bytes = usize::from(nodes) * size_of::<Locked<*mut ArrayCache, R>>();
    // SAFETY: allocated with that size.
    unsafe { memory.free_record(at.cast(), bytes) };
}
