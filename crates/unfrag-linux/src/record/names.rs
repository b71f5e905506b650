//! Names of tasks, and which tasks are the recorder's own.
//!
//! Names are those of this moment; what begins or changes its name later has an event ([`events::NAMES`](super::events::NAMES)).
//!
//! Invariant: in a recording without names, kernel threads are the only tasks whose names are noted.

use std::fs;
use std::path::Path;

use super::spool::{NAMES, RECORDER, Spool, THREADS};
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

/// The daemons that reclaim and compact for nodes.
pub fn of_daemons() -> Vec<i32> {
    let threads = kernel_threads();
    let of_line = |line: &str| {
        let (pid, name) = line.split_once(' ')?;
        let role = of_kernel_thread(name)?;
        matches!(role, Role::Kswapd(_) | Role::Kcompactd).then(|| pid.parse().ok())?
    };
    threads.lines().filter_map(of_line).collect()
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
    for process in numbers_in(Path::new("/proc")) {
        if let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat"))
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

/// Adds the names of all tasks of this moment to the spool.
///
/// # Errors
/// If the spool cannot be written.
pub fn note_tasks(spool: &Spool) -> Result<()> {
    let mut lines = String::new();
    for process in numbers_in(Path::new("/proc")) {
        for task in numbers_in(&Path::new("/proc").join(&process).join("task")) {
            lines += &line_of(&process, &task);
        }
    }
    spool.add_lines(NAMES, lines.as_bytes())
}

/// Adds the numbers of this process's tasks to the spool, in lines, with those of `guardian`; their names, too, if
/// `named`.
///
/// # Errors
/// If the spool cannot be written.
pub fn note_recorder(spool: &Spool, guardian: u32, named: bool) -> Result<()> {
    let (mut numbers, mut names) = (String::new(), String::new());
    for process in [std::process::id(), guardian] {
        for task in numbers_in(Path::new(&format!("/proc/{process}/task"))) {
            names += &line_of(process, &task);
            numbers += &format!("{task}\n");
        }
    }
    if named {
        spool.add_lines(NAMES, names.as_bytes())?;
    }
    spool.add_lines(RECORDER, numbers.as_bytes())
}

/// The line `PID NAME` of a task; empty for one that ended meanwhile.
fn line_of(process: impl std::fmt::Display, task: &str) -> String {
    let comm = fs::read(format!("/proc/{process}/task/{task}/comm")).unwrap_or_default();
    let comm = String::from_utf8_lossy(&comm);
    match comm.trim_end_matches('\n') {
        comm if comm.is_empty() || comm.contains('\n') => String::new(),
        comm => format!("{task} {comm}\n"),
    }
}

/// The entries of a directory whose names are numbers.
fn numbers_in(dir: &Path) -> Vec<String> {
    let items = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = items.filter_map(|item| item.file_name().into_string().ok());
    names
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .collect()
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
