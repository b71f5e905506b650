//! What a task is.

use super::channel::Channel;
use super::cpu::{NIL, Work};
use super::nice::weight;
use super::time::Nanos;
use std::rc::Rc;

/// A task. Not used again for another task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl TaskId {
    /// A number below 2^48 that no other task of the run has (unless 2^24 others had its place).
    pub const fn number(self) -> u64 {
        ((self.generation & 0xff_ffff) as u64) << 24 | self.slot as u64
    }
}

/// Scheduling class of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A program.
    Normal,
    /// A thread of the kernel: in turns with programs.
    Kthread,
    /// A program before all others, and at once.
    Realtime,
}

/// What a new task is like.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name, for people.
    pub name: Rc<str>,
    /// Its class.
    pub priority: Priority,
    /// Its nice, from -20, which gets most of a CPU, to 19; if `None`, 0 or what the kernel gives its
    /// threads.
    pub nice: Option<i8>,
    /// The one CPU on which it runs; any, if `None`.
    pub cpu: Option<usize>,
    /// Whether a run goes on for its sake.
    pub awaited: bool,
}

impl Spec {
    /// A program.
    pub fn new(name: impl Into<Rc<str>>) -> Spec {
        Spec {
            name: name.into(),
            priority: Priority::Normal,
            nice: None,
            cpu: None,
            awaited: true,
        }
    }
    /// A thread of the kernel.
    pub fn kthread(name: impl Into<Rc<str>>) -> Spec {
        Spec::new(name).priority(Priority::Kthread)
    }
    /// The same in another class. A run does not wait for threads of the kernel.
    pub fn priority(self, priority: Priority) -> Spec {
        Spec {
            priority,
            awaited: self.awaited && priority != Priority::Kthread,
            ..self
        }
    }
    /// The same, but a run does not wait for its end.
    pub fn background(self) -> Spec {
        Spec {
            awaited: false,
            ..self
        }
    }
    /// The same, with another nice.
    pub fn nice(self, nice: i8) -> Spec {
        Spec {
            nice: Some(nice.clamp(-20, 19)),
            ..self
        }
    }
    /// The same, bound to one CPU.
    pub fn on(self, cpu: usize) -> Spec {
        Spec {
            cpu: Some(cpu),
            ..self
        }
    }
}

/// What a task's time went to, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTimes {
    /// Its own work.
    pub user: Nanos,
    /// The kernel's work for it.
    pub system: Nanos,
    /// Waiting for I/O.
    pub iowait: Nanos,
}

impl TaskTimes {
    #[inline]
    pub(super) fn add(&mut self, work: Work) {
        self.user += work.user;
        self.system += work.system;
    }
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The slot has no task.
    Free,
    /// In the queue of its CPU.
    Ready,
    /// On its CPU.
    Running,
    /// On a wait list, if it waits for a channel; on none otherwise.
    Waiting,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Somebody woke the channel, or killed the task, if the wait was killable.
    Woken {
        /// What was left of the timeout; in whole ticks where the timeout was. 0 without one.
        left: Nanos,
    },
    /// The time was over.
    TimedOut,
}

impl Waited {
    /// What was left of the timeout.
    pub fn left(self) -> Nanos {
        match self {
            Waited::Woken { left } => left,
            Waited::TimedOut => 0,
        }
    }
}

/// How a task waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub channel: Option<Channel>,
    /// Absolute.
    pub deadline: Option<Nanos>,
    /// Whether time counts in ticks.
    pub ticks: bool,
    pub io: bool,
    pub killable: bool,
}

impl Wait {
    pub const NONE: Wait = Wait {
        channel: None,
        deadline: None,
        ticks: false,
        io: false,
        killable: false,
    };
}

/// A task, as the scheduler knows it.
pub(crate) struct Task {
    pub generation: u32,
    pub state: State,
    pub name: Rc<str>,
    pub priority: Priority,
    /// Whether a run goes on for its sake.
    pub awaited: bool,
    pub bound: Option<u16>,
    /// CPU on which it runs, waits to run, or ran last.
    pub cpu: u16,
    pub killed: bool,
    /// Since when it has been on this CPU and no other.
    pub arrived: Nanos,
    /// Its place among those that wait for its CPU; least is next.
    pub rank: u64,
    /// Its nice, and the share of a CPU that comes of it.
    pub nice: i8,
    pub weight: u64,
    /// What is left of its time in this round, and sleep to its credit: with arrays only.
    pub turn_left: Nanos,
    pub rested: Nanos,
    /// CPU time that it wants before its code goes on.
    pub left: Work,
    pub wait: Wait,
    /// Number of its present wait, which is also that of the timer's event.
    pub wait_seq: u64,
    pub wait_from: Nanos,
    /// Neighbours on the wait list.
    pub prev: u32,
    pub next: u32,
    pub outcome: Waited,
    pub times: TaskTimes,
    /// Bios that it submitted and that wait for a request.
    pub unsettled: u32,
}

impl Task {
    pub fn vacant() -> Task {
        Task {
            generation: 0,
            state: State::Free,
            name: Rc::from(""),
            priority: Priority::Normal,
            awaited: false,
            bound: None,
            cpu: 0,
            killed: false,
            arrived: 0,
            rank: 0,
            nice: 0,
            weight: weight(0),
            turn_left: 0,
            rested: 0,
            left: Work::default(),
            wait: Wait::NONE,
            wait_seq: 0,
            wait_from: 0,
            prev: NIL,
            next: NIL,
            outcome: Waited::TimedOut,
            times: TaskTimes::default(),
            unsettled: 0,
        }
    }
}
