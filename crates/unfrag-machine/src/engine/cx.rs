//! What a task sees of the machine: [`Cx`].

use super::channel::Channel;
use super::coroutine::{Baton, Fiber};
use super::cpu::Work;
use super::event_loop::step;
use super::outcome::Next;
use super::sched::Sched;
use super::shared::Shared;
use super::task::{Spec, TaskId, TaskTimes, Wait, Waited};
use super::time::Nanos;

/// A running task's hold on the machine.
pub struct Cx<'y, S: 'static> {
    baton: Baton<'y, S>,
    task: TaskId,
}

#[expect(private_bounds, reason = "the engine's own contract with the machine")]
impl<S: Shared> Cx<'_, S> {
    /// Borrows the shared value. No time passes inside.
    #[inline]
    pub fn with<R>(&mut self, f: impl FnOnce(&mut S) -> R) -> R {
        let sim = self.baton.value();
        let got = f(sim);
        sim.end_access();
        got
    }

    /// Borrows the shared value without the end of the access. A call of [`with`](Cx::with) has to follow
    /// before time passes.
    #[inline]
    pub(crate) fn within(&mut self) -> &mut S {
        self.baton.value()
    }

    #[inline]
    fn sched(&mut self) -> &mut Sched<S> {
        self.baton.value().sched()
    }

    /// The time.
    #[inline]
    pub fn now(&mut self) -> Nanos {
        self.sched().now
    }

    /// This task.
    pub fn task_id(&self) -> TaskId {
        self.task
    }

    /// Time of this task by what it was spent on.
    pub fn times(&mut self) -> TaskTimes {
        let slot = self.task.slot;
        self.sched().task_times(slot)
    }

    /// Uses CPU time for the program's own work. Others may run meanwhile, on this CPU too.
    #[inline]
    pub fn spend(&mut self, ns: Nanos) {
        self.spend_both(ns, 0);
    }

    /// Uses CPU time inside the kernel.
    #[inline]
    pub fn spend_system(&mut self, ns: Nanos) {
        self.spend_both(0, ns);
    }

    /// Uses CPU time for the program's own work, then inside the kernel.
    #[inline]
    pub fn spend_both(&mut self, user: Nanos, system: Nanos) {
        let work = Work { user, system };
        if work.total() > 0 && !self.sched().spend(work) {
            self.reschedule();
        }
    }

    /// Runs the machine until this task is to run.
    fn reschedule(&mut self) {
        let sim = self.baton.value();
        let next = step(sim);
        if next != Next::Run(self.task.slot) {
            sim.sched().handover = next;
            self.baton.pass();
        }
    }

    fn wait_as(&mut self, wait: Wait, timeout: Option<Nanos>) -> Waited {
        let slot = self.task.slot;
        let s = self.sched();
        let deadline = timeout.map(|t| match wait.ticks {
            true => s.tick_deadline(t),
            false => s.now.saturating_add(t),
        });
        if wait.killable && s.task(slot).killed {
            return Waited::Woken {
                left: timeout.unwrap_or(0),
            };
        }
        s.begin_wait(slot, Wait { deadline, ..wait });
        self.reschedule();
        self.sched().task(slot).outcome
    }

    /// Sleeps `ns` nanoseconds exactly. A kill ends it; returns what was left.
    pub fn sleep(&mut self, ns: Nanos) -> Nanos {
        let wait = Wait {
            killable: true,
            ..Wait::NONE
        };
        self.wait_as(wait, Some(ns)).left()
    }

    /// Waits until the channel is woken or the timeout is over. The timeout is rounded up to ticks and
    /// ends on the edge of a tick. A kill does not end it.
    pub fn wait(&mut self, channel: Channel, timeout: Option<Nanos>) -> Waited {
        let wait = Wait {
            channel: Some(channel),
            ticks: true,
            ..Wait::NONE
        };
        self.wait_as(wait, timeout)
    }

    /// Waits as [`wait`](Cx::wait) does; an idle CPU counts as waiting for I/O meanwhile.
    pub fn wait_io(&mut self, channel: Channel, timeout: Option<Nanos>) -> Waited {
        let wait = Wait {
            channel: Some(channel),
            ticks: true,
            io: true,
            ..Wait::NONE
        };
        self.wait_as(wait, timeout)
    }

    /// Waits as [`wait`](Cx::wait) does, but a kill ends it, also one that came before.
    pub fn wait_killable(&mut self, channel: Channel, timeout: Option<Nanos>) -> Waited {
        let wait = Wait {
            channel: Some(channel),
            ticks: true,
            killable: true,
            ..Wait::NONE
        };
        self.wait_as(wait, timeout)
    }

    /// Goes behind all tasks that wait for this CPU.
    pub fn yield_now(&mut self) {
        if self.sched().yield_cpu() {
            self.reschedule();
        }
    }

    /// Starts a task; it runs from now on, on its own.
    pub fn spawn(&mut self, spec: Spec, body: impl FnOnce(&mut Cx<S>) + 'static) -> TaskId {
        self.with(|sim| spawn(sim, spec, body))
    }

    /// Waits until a task has ended, or this one is killed.
    pub fn join(&mut self, task: TaskId) {
        while self.sched().slot(task).is_some() && !self.killed() {
            self.wait_killable(Channel::new(Channel::EXIT, task.number()), None);
        }
    }

    /// Kills a task: its [`killed`](Cx::killed) is true from now on, and its killable waits end. It ends
    /// by returning.
    pub fn kill(&mut self, task: TaskId) {
        self.with(|sim| sim.sched().kill(task));
    }

    /// Whether this task was killed.
    pub fn killed(&mut self) -> bool {
        let slot = self.task.slot;
        self.sched().task(slot).killed
    }
}

/// Starts a task of a machine; it runs from now on, on its own.
///
/// # Panics
/// If it is bound to a CPU that the machine has not.
pub(crate) fn spawn<S: Shared>(
    shared: &mut S,
    spec: Spec,
    body: impl FnOnce(&mut Cx<S>) + 'static,
) -> TaskId {
    let s = shared.sched();
    let task = s.enter(spec);
    let fiber = Fiber::new(&mut s.stacks, move |baton| {
        let mut cx = Cx { baton, task };
        body(&mut cx);
        cx.baton
    });
    s.newborn.push((task.slot, fiber));
    task
}
