//! What all of the heap stands on: memory of the system, and the end of a program that misuses its memory.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::fmt::Write;
use std::ptr::{NonNull, null_mut};

/// `bytes` of new memory of the system, all zeros, for as long as the process lives.
pub(super) fn system_memory(bytes: usize) -> Option<NonNull<u8>> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let mapped = unsafe { mmap_anonymous(null_mut(), bytes, access, flags) };
    NonNull::new(mapped.ok()?.cast())
}

/// Moves a value into memory of the system.
pub(super) fn leak<T>(value: T) -> Option<&'static T> {
    let at = system_memory(size_of::<T>())?.cast::<T>();
    // SAFETY: the memory is ours, long enough, and aligned to a page.
    unsafe {
        at.write(value);
        Some(at.as_ref())
    }
}

/// As many values in memory of the system.
pub(super) fn leak_all<T>(count: usize, value: impl Fn() -> T) -> Option<&'static mut [T]> {
    let at = system_memory(count.checked_mul(size_of::<T>())?)?.cast::<T>();
    // SAFETY: the memory is ours, long enough, and aligned to a page.
    unsafe {
        (0..count).for_each(|i| at.add(i).write(value()));
        Some(std::slice::from_raw_parts_mut(at.as_ptr(), count))
    }
}

/// Milliseconds of the system's clock, as of its last tick.
pub(super) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// The thread's `errno`, which has its value again when this goes: locks and calls of the system change it, a free must not.
pub(super) struct Errno(libc::c_int);

impl Errno {
    pub fn keep() -> Errno {
        // SAFETY: the thread's own variable.
        Errno(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// A message without an allocation.
struct Message {
    bytes: [u8; 160],
    len: usize,
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Ends the program for a misuse of its memory.
#[cold]
#[inline(never)]
pub(super) fn misuse(what: &str, memory: NonNull<u8>) -> ! {
    let mut message = Message {
        bytes: [0; 160],
        len: 0,
    };
    // A message that is too long is cut.
    let _ = writeln!(message, "unfrag heap: {what}: address {memory:p}");
    // SAFETY: the bytes are ours. Nothing can be done if they cannot be written.
    unsafe {
        libc::write(2, message.bytes.as_ptr().cast(), message.len);
        libc::abort()
    }
}
