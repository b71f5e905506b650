//! The driver of a machine: resumes the coroutine of the task that is to run.

use super::coroutine::{Fiber, Resumed};
use super::cx::{Cx, spawn};
use super::event_loop::step;
use super::outcome::{Ended, Next};
use super::shared::Shared;
use super::task::{Spec, TaskId};
use super::time::Nanos;

/// A machine and its tasks.
pub struct Engine<S: 'static> {
    /// Coroutines by slot of their tasks. Dropped first: the unwinding of tasks that still wait
    /// drops what they hold.
    fibers: Vec<Option<Fiber<S>>>,
    /// None while a task runs, or after one panicked.
    sim: Option<Box<S>>,
}

#[expect(private_bounds, reason = "the engine's own contract with the machine")]
impl<S: Shared> Engine<S> {
    /// A machine over this shared value, at time 0.
    pub(crate) fn over(shared: S) -> Engine<S> {
        Engine {
            fibers: Vec::new(),
            sim: Some(Box::new(shared)),
        }
    }

    /// The shared value.
    ///
    /// # Panics
    /// If a task of this machine panicked, which takes the machine with it.
    pub fn sim(&mut self) -> &mut S {
        match &mut self.sim {
            Some(sim) => sim,
            None => panic!("a task of this machine panicked; it cannot go on"),
        }
    }

    /// Starts a task.
    pub fn spawn(&mut self, spec: Spec, body: impl FnOnce(&mut Cx<S>) + 'static) -> TaskId {
        spawn(self.sim(), spec, body)
    }

    /// Runs until all programs have ended, at most until time `limit`. May be called again with a
    /// later limit.
    pub fn run(&mut self, limit: Nanos) -> Ended {
        self.drive(limit, true)
    }

    /// Runs until time `limit`, also when all programs have ended or nothing is due.
    pub fn run_to(&mut self, limit: Nanos) -> Ended {
        self.drive(limit, false)
    }

    fn drive(&mut self, limit: Nanos, until_finished: bool) -> Ended {
        let s = self.sim().sched();
        s.limit = limit;
        s.until_finished = until_finished;
        s.stop = false;
        let Some(mut sim) = self.sim.take() else {
            unreachable!("`sim()` found it")
        };
        let mut next = step(&mut *sim);
        loop {
            let slot = match next {
                Next::Run(slot) => slot as usize,
                Next::End(why) => {
                    self.sim = Some(sim);
                    return why;
                }
            };
            self.take_newborn(&mut sim);
            let Some(fiber) = &mut self.fibers[slot] else {
                unreachable!("task {slot} has a coroutine")
            };
            match fiber.resume(sim) {
                Resumed::Suspended(back) => {
                    sim = back;
                    next = sim.sched().handover;
                }
                Resumed::Done(back) => {
                    sim = back;
                    let s = sim.sched();
                    if let Some(fiber) = self.fibers[slot].take() {
                        fiber.recycle(&mut s.stacks);
                    }
                    s.exit(slot as u32);
                    next = step(&mut *sim);
                }
            }
        }
    }

    #[inline]
    fn take_newborn(&mut self, sim: &mut S) {
        let s = sim.sched();
        if s.newborn.is_empty() {
            return;
        }
        if self.fibers.len() < s.tasks.len() {
            self.fibers.resize_with(s.tasks.len(), || None);
        }
        for (slot, fiber) in s.newborn.drain(..) {
            self.fibers[slot as usize] = Some(fiber);
        }
    }
}
