//! Which processes a recording shows: who started them, what they ran, when they were on a CPU.
//!
//! Of a recorded command these are its first process, all that descend from it, and nobody else: not the recorder,
//! not the kernel's threads. Of a recorded host they are all tasks. A recording without `task_newtask` does not tell
//! processes apart; then all tasks but the recorder and named kernel threads count as one.
//!
//! Invariant: threads belong to the process whose memory they share; a process that runs several programs one after
//! the other belongs to the last; one that runs none to ` (fork)` of its parent's.

mod builder;

use unfrag_linux::Result;
use unfrag_linux::recording::Recording;

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The program that it ran last.
    pub program: String,
    /// Index of the process that started it.
    pub parent: Option<usize>,
    /// Nanoseconds of the trace clock.
    pub started: u64,
    /// When its end began; `None` if it outlived the recording.
    pub ended: Option<u64>,
    /// Whether it shared its parent's memory at first.
    pub vforked: bool,
    /// Threads beside the first.
    pub threads: u64,
    /// Nanoseconds on a CPU, all threads together.
    pub cpu_ns: u64,
    /// Nanoseconds in uninterruptible sleep, all threads together.
    pub blocked_ns: u64,
}

/// The processes of a recording.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// In the order of their starts.
    pub list: Vec<Process>,
    /// Whether the recording tells processes apart.
    pub known: bool,
    /// Whether it says when they were on a CPU.
    pub timed: bool,
    /// Of each task of the recording the processes that it was, ascending by start: a number may be given again.
    of_task: Vec<Vec<(u64, Option<usize>)>>,
}

impl Processes {
    /// The processes of a recording.
    ///
    /// # Errors
    /// If an event about them lacks a field.
    pub fn of(rec: &Recording) -> Result<Processes> {
        Ok(builder::build(rec)?.unwrap_or_else(|| all_as_one(rec)))
    }

    /// The process that a task of the recording was at a time.
    #[inline]
    pub fn owner(&self, task: u32, time: u64) -> Option<usize> {
        let of_task = self.of_task.get(task as usize)?;
        let after = of_task.partition_point(|(since, _)| *since <= time);
        of_task[after.checked_sub(1)?].1
    }

    /// Their programs, each once, in the order of first starts.
    pub fn programs(&self) -> Vec<String> {
        let mut names: Vec<String> = vec![];
        for p in &self.list {
            if !names.contains(&p.program) {
                names.push(p.program.clone());
            }
        }
        names
    }
}

/// Names of kernel threads that reclaim or compact for whoever needs it.
pub fn makes_room(comm: &str) -> bool {
    let all = ["kswapd", "kcompactd", "khugepaged", "kdamond"];
    all.iter().any(|n| comm.starts_with(n))
}

/// Where processes are not told apart: one for all tasks but the recorder, which writes the markers, and kernel threads.
fn all_as_one(rec: &Recording) -> Processes {
    let events = &rec.events;
    let marker = events.tables.iter().position(|t| t.name == "print");
    let recorder = marker.and_then(|m| events.kind.iter().position(|&k| usize::from(k) == m));
    let recorder = recorder.map(|i| events.task[i] as usize);
    let one_command = is_one_command(rec);
    let counts = |(i, t): (usize, &unfrag_linux::recording::Task)| {
        let kernels = t.pid == 0 || makes_room(&t.comm) || t.comm.starts_with("ksoftirqd");
        match !one_command || (Some(i) != recorder && !kernels) {
            true => vec![(0, Some(0))],
            false => vec![],
        }
    };
    let first = events.time.first().copied().unwrap_or(0);
    let command = rec.meta.facts.get("command").map_or("", String::as_str);
    Processes {
        list: vec![Process {
            program: command.split(' ').next().unwrap_or_default().to_owned(),
            started: first,
            ..Process::default()
        }],
        of_task: rec.tasks.iter().enumerate().map(counts).collect(),
        ..Processes::default()
    }
}

/// Whether a recorder followed one command.
fn is_one_command(rec: &Recording) -> bool {
    rec.meta.facts.get("scope").is_some_and(|s| s == "command")
}
