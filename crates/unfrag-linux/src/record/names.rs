//! Names of tasks and of kernel threads.
//!
//! Invariant: unless names were asked for, kernel threads are the only tasks whose names are noted.

use std::fs;
use std::path::Path;

use super::spool::{NAMES, Spool, THREADS};
use super::tracefs::Instance;
use crate::error::Result;
use crate::event::Role;
use crate::event::role::of_kernel_thread;

/// `PF_KTHREAD` among the flags in /proc/PID/stat (proc(5)).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The tasks that a recording of a command follows besides the command's own. The idle task and each CPU's
/// ksoftirqd do work that the kernel puts off, such as freeing page tables after a grace period. Others
/// reclaim, compact or collapse memory, the command's included.
pub fn of_kernel() -> Vec<i32> {
    let threads = kernel_threads();
    let of_line = |line: &str| {
        let (pid, name) = line.split_once(' ')?;
        let role = of_kernel_thread(name)?;
        (role == Role::Ksoftirqd || role.works_for_all()).then(|| pid.parse().ok())?
    };
    std::iter::once(0)
        .chain(threads.lines().filter_map(of_line))
        .collect()
}

/// Whether a kernel thread of this name only runs soft interrupts.
pub fn runs_softirqs(name: &str) -> bool {
    of_kernel_thread(name) == Some(Role::Ksoftirqd)
}

/// Adds the kernel threads of this moment to the spool.
///
/// # Errors
/// If the spool cannot be written.
pub fn note_kernel_threads(spool: &Spool) -> Result<()> {
    spool.add_lines(THREADS, kernel_threads().as_bytes())
}

/// Lines `PID NAME` of the kernel threads of this moment.
fn kernel_threads() -> String {
    let mut lines = String::new();
    for item in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = item.file_name();
        if name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
            && let Ok(stat) = fs::read_to_string(item.path().join("stat"))
            && let Some(line) = kernel_thread(&stat)
        {
            lines += &line;
        }
    }
    lines
}

/// The line of a kernel thread, out of its /proc/PID/stat.
fn kernel_thread(stat: &str) -> Option<String> {
    let (pid, rest) = stat.split_once(" (")?;
    // The name may hold anything, brackets too.
    let (name, rest) = rest.rsplit_once(") ")?;
    let flags: u64 = rest.split(' ').nth(6)?.parse().ok()?;
    (flags & KERNEL_THREAD != 0).then(|| format!("{pid} {name}\n"))
}

/// Adds the names that the tracer remembers to the spool; it remembers the latest 128.
///
/// # Errors
/// If the spool cannot be written.
pub fn note_traced(instance: &Instance, spool: &Spool) -> Result<()> {
    // The file exists for the whole tracer only; it is read, never written.
    let root = instance.dir().ancestors().nth(2).unwrap_or(Path::new("/"));
    let saved = fs::read(root.join("saved_cmdlines")).unwrap_or_default();
    spool.add_lines(NAMES, &saved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_thread_is_recognised_by_its_flag() {
        let thread = "73 (kswapd0) S 2 0 0 0 -1 2097216 0 0 0 0";
        assert_eq!(kernel_thread(thread).as_deref(), Some("73 kswapd0\n"));
        let liar = "74 (kswapd0) x) S 2 0 0 0 -1 4194304 0 0 0 0";
        assert_eq!(kernel_thread(liar), None);
        assert_eq!(kernel_thread("75 (cut"), None);
    }
}
