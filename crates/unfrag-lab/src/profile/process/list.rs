//! The processes of a recording, and which of them a task was at a time.

/// A process: threads that share memory.
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
    /// The processes that each task of the recording was, ascending by start: kernels reuse task numbers.
    pub(super) of_task: Vec<Vec<(u64, Option<usize>)>>,
}

impl Processes {
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
