//! The allocation calls of the C library, over unfrag's heap: a shared object for `LD_PRELOAD`.
//!
//! ```console
//! $ LD_PRELOAD=target/dist/libunfrag_malloc.so sqlite3 :memory: 'select sqlite_version()'
//! ```
//!
//! Each call keeps to the C standard and POSIX, and where these are silent to what glibc documents: sizes of zero get
//! memory that may be freed; memory is at a multiple of 16; a call that fails sets `errno`.
//!
//! `malloc` and `free` have the ABI that may unwind, though nothing in them does: so their fast paths need no frame for an end of the
//! program by a panic.
#![allow(unsafe_code)]

use libc::{EINVAL, ENOMEM, c_int, c_void, size_t};
use std::ptr::{NonNull, null_mut};
use unfrag_pool::{FRAME_BYTES, Heap};

static HEAP: Heap = Heap::new();

/// The alignment that all memory may rely on.
const USUAL: usize = 16;

#[inline(always)]
fn or_no_memory(got: Option<NonNull<u8>>) -> *mut c_void {
    match got {
        Some(memory) => memory.as_ptr().cast(),
        None => fails(ENOMEM),
    }
}

#[cold]
fn fails(code: c_int) -> *mut c_void {
    // SAFETY: the thread's own variable.
    unsafe { *libc::__errno_location() = code };
    null_mut()
}

/// `malloc(3)`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn malloc(size: size_t) -> *mut c_void {
    match HEAP.allocate_kept(size, USUAL) {
        Some(memory) => memory.as_ptr().cast(),
        None => malloc_elsewhere(size),
    }
}

#[cold]
#[inline(never)]
fn malloc_elsewhere(size: size_t) -> *mut c_void {
    or_no_memory(HEAP.allocate(size, USUAL, false))
}

/// `calloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: size_t, size: size_t) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) => or_no_memory(HEAP.allocate(bytes, USUAL, true)),
        None => fails(ENOMEM),
    }
}

/// `free(3)`. It leaves `errno` as it is.
///
/// # Safety
/// The memory is null, or came from here and is in use.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn free(memory: *mut c_void) {
    if let Some(memory) = NonNull::new(memory.cast()) {
        // SAFETY: as the caller says.
        unsafe { HEAP.free(memory) };
    }
}

/// `realloc(3)`. A size of zero frees the memory, as with glibc.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(memory: *mut c_void, size: size_t) -> *mut c_void {
    let Some(old) = NonNull::new(memory.cast()) else {
        return malloc(size);
    };
    // SAFETY: as the caller says.
    unsafe {
        if size == 0 {
            HEAP.free(old);
            return null_mut();
        }
        or_no_memory(HEAP.resize(old, USUAL, size))
    }
}

/// `reallocarray(3)`.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    memory: *mut c_void,
    count: size_t,
    size: size_t,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: as the caller says.
        Some(bytes) => unsafe { realloc(memory, bytes) },
        None => fails(ENOMEM),
    }
}

/// `memalign(3)`. An alignment that is no power of two is raised to the next one, as glibc does.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: size_t, size: size_t) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => or_no_memory(HEAP.allocate(size, align.max(USUAL), false)),
        None => fails(EINVAL),
    }
}

/// `aligned_alloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: size_t, size: size_t) -> *mut c_void {
    memalign(align, size)
}

/// `posix_memalign(3)`, which returns an error's number and leaves `errno` as it is.
///
/// # Safety
/// `to` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    to: *mut *mut c_void,
    align: size_t,
    size: size_t,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return EINVAL;
    }
    // SAFETY: the thread's own variable.
    let before = unsafe { *libc::__errno_location() };
    let got = HEAP.allocate(size, align.max(USUAL), false);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = before };
    match got {
        Some(memory) => {
            // SAFETY: as the caller says.
            unsafe { *to = memory.as_ptr().cast() };
            0
        }
        None => ENOMEM,
    }
}

/// `valloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: size_t) -> *mut c_void {
    memalign(FRAME_BYTES, size)
}

/// `pvalloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: size_t) -> *mut c_void {
    match size.max(1).checked_next_multiple_of(FRAME_BYTES) {
        Some(size) => memalign(FRAME_BYTES, size),
        None => fails(ENOMEM),
    }
}

/// `malloc_usable_size(3)`.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(memory: *mut c_void) -> size_t {
    // SAFETY: as the caller says.
    NonNull::new(memory.cast()).map_or(0, |memory| unsafe { HEAP.usable_size(memory) })
}

/// `malloc_trim(3)`. It keeps no padding.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_pad: size_t) -> c_int {
    c_int::from(HEAP.trim() > 0)
}

/// Where the memory is, as `struct mallinfo2` of `<malloc.h>` has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Mallinfo2 {
    /// Bytes that the heap has of the system, without mappings of their own.
    pub arena: size_t,
    /// Of glibc's bins alone: 0.
    pub ordblks: size_t,
    /// As `ordblks`.
    pub smblks: size_t,
    /// Mappings of their own: how many,
    pub hblks: size_t,
    /// and their bytes.
    pub hblkhd: size_t,
    /// Unused by glibc: 0.
    pub usmblks: size_t,
    /// As `ordblks`.
    pub fsmblks: size_t,
    /// Bytes in use, with what each thread keeps for its next requests, as with glibc.
    pub uordblks: size_t,
    /// Free bytes.
    pub fordblks: size_t,
    /// Free bytes that `malloc_trim` gives back at least: of whole free blocks of 2 MiB.
    pub keepcost: size_t,
}

/// `mallinfo2(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> Mallinfo2 {
    let of = HEAP.stats();
    let arena = of.usable_bytes - of.released_bytes;
    let free = (of.free_bytes + of.kept_bytes).min(arena);
    Mallinfo2 {
        arena: arena as size_t,
        hblks: of.mappings as size_t,
        hblkhd: of.mapped_bytes as size_t,
        uordblks: (arena - free) as size_t,
        fordblks: free as size_t,
        keepcost: of.whole_bytes as size_t,
        ..Mallinfo2::default()
    }
}

/// As [`Mallinfo2`], with numbers that are too small for today's memory: `struct mallinfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Mallinfo {
    numbers: [c_int; 10],
}

/// `mallinfo(3)`. A number that has no room is the largest that has.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> Mallinfo {
    let of = mallinfo2();
    let all = [
        of.arena,
        of.ordblks,
        of.smblks,
        of.hblks,
        of.hblkhd,
        of.usmblks,
        of.fsmblks,
        of.uordblks,
        of.fordblks,
        of.keepcost,
    ];
    Mallinfo {
        numbers: all.map(|n| c_int::try_from(n).unwrap_or(c_int::MAX)),
    }
}
