//! A task: its identity, its properties, its wait, its times.

use super::channel::Channel;
use super::cpu::{NIL, Work};
use super::nice::weight;
use super::time::Nanos;
use std::rc::Rc;

/// The id of a task. It is not used again for another task.
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
    /// A thread of the kernel; shares the CPU with programs.
    Kthread,
    /// A program that preempts all others.
    Realtime,
}

/// Properties of a new task.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name, for people.
    pub name: Rc<str>,
    /// Its class.
    pub priority: Priority,
    /// Its nice level, from -20 (most of a CPU) to 19. `None`: 0, or the default of kernel threads.
    pub nice: Option<i8>,
    /// The one CPU on which it runs; any, if `None`.
    pub cpu: Option<usize>,
    /// Whether a run waits for its end.
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
    /// Sets the class. A run does not wait for threads of the kernel.
    pub fn priority(self, priority: Priority) -> Spec {
        Spec {
            priority,
            awaited: self.awaited && priority != Priority::Kthread,
            ..self
        }
    }
    /// A run does not wait for its end.
    pub fn background(self) -> Spec {
        Spec {
            awaited: false,
            ..self
        }
    }
    /// Sets the nice level, clamped to -20 to 19.
    pub fn nice(self, nice: i8) -> Spec {
        Spec {
            nice: Some(nice.clamp(-20, 19)),
            ..self
        }
    }
    /// Binds it to one CPU.
    pub fn on(self, cpu: usize) -> Spec {
        Spec {
            cpu: Some(cpu),
            ..self
        }
    }
}

/// Time of a task by what it was spent on, in nanoseconds.
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
pub(crate) enum TaskState {
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
    /// The channel was woken, or a killable wait was ended by a kill.
    Woken {
        /// What was left of the timeout, in ticks if the timeout was. 0 without a timeout.
        left: Nanos,
    },
    /// The timeout was over.
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
    pub state: TaskState,
    pub name: Rc<str>,
    pub priority: Priority,
    /// Whether a run waits for its end.
    pub awaited: bool,
    pub bound: Option<u16>,
    /// CPU on which it runs, waits to run, or ran last.
    pub cpu: u16,
    pub killed: bool,
    /// Time of its last move to this CPU.
    pub arrived: Nanos,
    /// Its rank among those that wait for its CPU; the least is next.
    pub rank: u64,
    /// Its nice level, and the weight of that level.
    pub nice: i8,
    pub weight: u64,
    /// With [`Policy::Arrays`](super::Policy::Arrays): what is left of its time in this round, and credit
    /// for sleep.
    pub slice_left: Nanos,
    pub rested: Nanos,
    /// CPU time that it uses before its code goes on.
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
            state: TaskState::Free,
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
            slice_left: 0,
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
