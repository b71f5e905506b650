//! One CPU: what runs on it, until when, and what its time was spent on.
//!
//! Invariant: the times add up to the machine's time, once [`Cpu::charge_idle`] was called.

use super::runqueue::RunQueue;
use super::time::Nanos;

/// No task.
pub(crate) const NIL: u32 = u32::MAX;

/// Time of a CPU by what it was spent on, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Programs' own work.
    pub user: Nanos,
    /// The kernel's work for tasks.
    pub system: Nanos,
    /// Interrupts.
    pub irq: Nanos,
    /// Context switches.
    pub switching: Nanos,
    /// Idle, while a task that last ran here waits for I/O.
    pub iowait: Nanos,
    /// Idle.
    pub idle: Nanos,
}

impl CpuTimes {
    #[inline]
    pub(super) fn add(&mut self, work: Work) {
        self.user += work.user;
        self.system += work.system;
    }

    /// The sum.
    pub fn total(&self) -> Nanos {
        self.user + self.system + self.irq + self.switching + self.iowait + self.idle
    }
}

/// CPU time of a task, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Its own work.
    pub user: Nanos,
    /// The kernel's, which comes after it.
    pub system: Nanos,
}

impl Work {
    #[inline]
    pub fn total(self) -> Nanos {
        self.user + self.system
    }

    /// The first `ns` nanoseconds of it.
    #[inline]
    pub fn first(self, ns: Nanos) -> Work {
        let user = ns.min(self.user);
        let system = ns - user;
        Work { user, system }
    }

    /// Takes the first `ns` nanoseconds off, and returns them.
    #[inline]
    pub fn take(&mut self, ns: Nanos) -> Work {
        let first = self.first(ns);
        self.user -= first.user;
        self.system -= first.system;
        first
    }
}

/// One CPU.
pub(crate) struct Cpu {
    /// Slot of the task that runs, or [`NIL`].
    pub running: u32,
    /// Slot and generation of the task that ran last: going on with it costs no switch.
    pub last: (u32, u32),
    /// Time up to which the running task has been charged. Later than now while the CPU is busy with an
    /// interrupt or a context switch.
    pub run_from: Nanos,
    /// End of the interrupt that runs.
    pub irq_until: Nanos,
    /// Start of the running task's time slice.
    pub slice_from: Nanos,
    /// End of the running task's time slice, if another task waits.
    pub slice_end: Nanos,
    /// Least rank of the tasks of this CPU; never decreases.
    pub base: u64,
    /// Time since which a task has waited for the next round.
    pub expired_from: Option<Nanos>,
    /// Tasks that wait for I/O and last ran here.
    pub io_waiters: u32,
    pub idle_from: Nanos,
    pub queue: RunQueue,
    pub times: CpuTimes,
    /// Switches from one task to another.
    pub switches: u64,
}

impl Cpu {
    pub fn new() -> Cpu {
        Cpu {
            running: NIL,
            last: (NIL, 0),
            run_from: 0,
            irq_until: 0,
            slice_from: 0,
            slice_end: 0,
            base: 0,
            expired_from: None,
            io_waiters: 0,
            idle_from: 0,
            queue: RunQueue::default(),
            times: CpuTimes::default(),
            switches: 0,
        }
    }

    /// Tasks that run or wait here.
    pub fn load(&self) -> usize {
        self.queue.len() + usize::from(self.running != NIL)
    }

    /// Charges the idle time so far. To be called before `running` or `io_waiters` changes.
    pub fn charge_idle(&mut self, now: Nanos) {
        if self.running == NIL && now > self.idle_from {
            let d = now - self.idle_from;
            if self.io_waiters > 0 {
                self.times.iowait += d;
            } else {
                self.times.idle += d;
            }
            self.idle_from = now;
        }
    }
}
