//! What a task sees of the machine: [`Cx`].

use super::Nanos;
use super::channel::Channel;
use super::coroutine::Baton;
use super::task::{Spec, TaskId};
use crate::sim::Sim;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Somebody woke the channel (or the task was killed; ask [`Cx::killed`]).
    Woken {
        /// What was left of the timeout, in whole ticks; 0 without a timeout.
        left: Nanos,
    },
    /// The time was over.
    TimedOut,
}

/// A running task's hold on the machine.
pub struct Cx<'y> {
    baton: Baton<'y, Sim>,
    task: TaskId,
}

impl Cx<'_> {
    /// Borrows everything shared. No time passes in here.
    #[inline]
    pub fn with<R>(&mut self, f: impl FnOnce(&mut Sim) -> R) -> R {
        f(self.baton.value())
    }

    /// The time.
    pub fn now(&mut self) -> Nanos {
        self.with(|sim| sim.now())
    }

    /// This task.
    pub fn task_id(&self) -> TaskId {
        self.task
    }

    /// Uses so much CPU time for the program's own work. Others may run meanwhile, on this CPU too.
    pub fn spend(&mut self, ns: Nanos) {
        let _ = ns;
        unimplemented!()
    }

    /// Uses so much CPU time inside the kernel.
    pub fn spend_system(&mut self, ns: Nanos) {
        let _ = ns;
        unimplemented!()
    }

    /// Sleeps so long, to the nanosecond. A kill ends it; returns what was left.
    pub fn sleep(&mut self, ns: Nanos) -> Nanos {
        let _ = ns;
        unimplemented!()
    }

    /// Waits until the channel is woken, or the timeout, in ticks rounded up, is over: it ends on the
    /// edge of a tick, as many edges from now as it has ticks. Not ended by a kill.
    pub fn wait(&mut self, channel: Channel, timeout: Option<Nanos>) -> Waited {
        let _ = (channel, timeout);
        unimplemented!()
    }

    /// The same; an idle CPU counts as waiting for I/O meanwhile.
    pub fn wait_io(&mut self, channel: Channel, timeout: Option<Nanos>) -> Waited {
        let _ = (channel, timeout);
        unimplemented!()
    }

    /// As [`wait`](Cx::wait), but a kill ends it, also one that came before.
    pub fn wait_killable(&mut self, channel: Channel, timeout: Option<Nanos>) -> Waited {
        let _ = (channel, timeout);
        unimplemented!()
    }

    /// Lets others that wait for this CPU run first.
    pub fn yield_now(&mut self) {
        unimplemented!()
    }

    /// Starts a task; it runs from now on, on its own.
    pub fn spawn(&mut self, spec: Spec, body: impl FnOnce(&mut Cx) + 'static) -> TaskId {
        self.with(|sim| sim.spawn(spec, body))
    }

    /// Waits until a task has ended, or this one is killed.
    pub fn join(&mut self, task: TaskId) {
        let _ = task;
        unimplemented!()
    }

    /// Tells a task to end: its [`killed`](Cx::killed) is true from now on, and its killable waits
    /// end. It ends by returning.
    pub fn kill(&mut self, task: TaskId) {
        self.with(|sim| sim.kill(task))
    }

    /// Whether this task was told to end.
    pub fn killed(&mut self) -> bool {
        let task = self.task;
        self.with(|sim| sim.is_killed(task))
    }
}
