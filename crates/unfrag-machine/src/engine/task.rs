//! What a task is.

use std::rc::Rc;

/// A task. Not used again for another task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// Scheduling class of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A program.
    Normal,
    /// A thread of the kernel: as a program, but a run does not wait for its end.
    Kthread,
    /// Before all others, and at once.
    Realtime,
}

/// What a new task is like.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name, for people.
    pub name: Rc<str>,
    /// Its class.
    pub priority: Priority,
    /// The one CPU on which it runs; any, if `None`.
    pub cpu: Option<usize>,
}

impl Spec {
    /// A program.
    pub fn new(name: impl Into<Rc<str>>) -> Spec {
        Spec {
            name: name.into(),
            priority: Priority::Normal,
            cpu: None,
        }
    }
    /// A thread of the kernel.
    pub fn kthread(name: impl Into<Rc<str>>) -> Spec {
        Spec::new(name).priority(Priority::Kthread)
    }
    /// The same in another class.
    pub fn priority(self, priority: Priority) -> Spec {
        Spec { priority, ..self }
    }
    /// The same, bound to one CPU.
    pub fn on(self, cpu: usize) -> Spec {
        Spec {
            cpu: Some(cpu),
            ..self
        }
    }
}
