//! The thread's word: what a thread knows about its CPU token.
//!
//! In a shared object, an ordinary thread-local variable is reached through a function of the C library that may allocate;
//! an allocator must not need that. So on x86-64 Linux the variable is one of the initial-exec model, which is two
//! instructions, in a program as in an object that is loaded at its start.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod word {
    use std::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss,\"awT\",@nobits",
        ".globl unfrag_heap_thread",
        ".hidden unfrag_heap_thread",
        ".type unfrag_heap_thread,@object",
        ".size unfrag_heap_thread,8",
        ".p2align 3",
        "unfrag_heap_thread:",
        ".zero 8",
        ".popsection",
    );

    /// The word, 0 in a new thread.
    #[inline(always)]
    pub fn get() -> usize {
        let word;
        // SAFETY: it reads a variable of this thread that exists as long as the thread.
        unsafe {
            asm!(
                "mov {at}, qword ptr [rip + unfrag_heap_thread@GOTTPOFF]",
                "mov {word}, qword ptr fs:[{at}]",
                at = out(reg) _,
                word = lateout(reg) word,
                options(nostack, readonly, preserves_flags),
            );
        }
        word
    }

    /// Sets the word.
    #[inline(always)]
    pub fn set(word: usize) {
        // SAFETY: it writes a variable of this thread that only this module uses.
        unsafe {
            asm!(
                "mov {at}, qword ptr [rip + unfrag_heap_thread@GOTTPOFF]",
                "mov qword ptr fs:[{at}], {word}",
                at = out(reg) _,
                word = in(reg) word,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod word {
    use std::cell::Cell;

    thread_local! {
        static WORD: Cell<usize> = const { Cell::new(0) };
    }

    /// The word, 0 in a new thread.
    #[inline(always)]
    pub fn get() -> usize {
        WORD.get()
    }

    /// Sets the word.
    #[inline(always)]
    pub fn set(word: usize) {
        WORD.set(word);
    }
}

pub(super) use word::{get, set};
