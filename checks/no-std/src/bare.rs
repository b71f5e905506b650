//! What a C library would bring: a way to end the process, and the functions that the compiler calls by
//! name.

use core::arch::asm;

/// Ends the process.
pub fn exit(status: i32) -> ! {
    // SAFETY: the system call `exit_group` does not return and touches no memory.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("syscall", in("rax") 231, in("rdi") status, options(noreturn, nostack));
        #[cfg(target_arch = "aarch64")]
        asm!("svc #0", in("x8") 94, in("x0") status, options(noreturn, nostack));
    }
}

// Volatile accesses keep the compiler from turning these loops into calls of themselves.

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, n: usize) -> *mut u8 {
    for i in 0..n {
        // SAFETY: the caller promises `n` writable bytes.
        unsafe { to.add(i).write_volatile(byte as u8) };
    }
    to
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    for i in 0..n {
        // SAFETY: the caller promises `n` readable and `n` writable bytes.
        unsafe { to.add(i).write_volatile(from.add(i).read_volatile()) };
    }
    to
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    if (to as usize) <= from as usize {
        // SAFETY: ascending, each byte is read before it is overwritten.
        return unsafe { memcpy(to, from, n) };
    }
    for i in (0..n).rev() {
        // SAFETY: descending, each byte is read before it is overwritten.
        unsafe { to.add(i).write_volatile(from.add(i).read_volatile()) };
    }
    to
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
    for i in 0..n {
        // SAFETY: the caller promises `n` readable bytes in both.
        let (x, y) = unsafe { (a.add(i).read_volatile(), b.add(i).read_volatile()) };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
    }
    0
}

/// # Safety
/// As in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: `memcmp` asks for what the caller promises.
    unsafe { memcmp(a, b, n) }
}

/// `core` as shipped names it; with panics that abort, it is not called.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
