//! The driver of a machine.

use super::Nanos;
use super::coroutine::{Fiber, Resumed};
use super::cx::Cx;
use super::step::Next;
use super::task::{Spec, TaskId};
use crate::config::MachineConfig;
use crate::sim::Sim;
use unfrag::ConfigError;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every task but the kernel's threads has returned.
    Finished,
    /// The time limit.
    TimeLimit,
    /// [`World::stop`](crate::World::stop) was called.
    Stopped,
    /// Tasks wait for what can never happen.
    Stuck,
}

/// A machine and its tasks.
pub struct Engine {
    /// Coroutines by slot of their tasks. Dropped first: the unwinding of tasks that still wait
    /// drops what they hold.
    fibers: Vec<Option<Fiber<Sim>>>,
    /// None while a task runs, or if one panicked.
    sim: Option<Box<Sim>>,
}

impl Engine {
    /// A machine at time 0.
    pub fn new(config: &MachineConfig) -> Result<Engine, ConfigError> {
        Ok(Engine {
            fibers: Vec::new(),
            sim: Some(Box::new(Sim::new(config)?)),
        })
    }

    /// Everything shared.
    ///
    /// # Panics
    /// If a task of this machine panicked, which takes the machine with it.
    pub fn sim(&mut self) -> &mut Sim {
        match &mut self.sim {
            Some(sim) => sim,
            None => panic!("a task of this machine panicked; it cannot go on"),
        }
    }

    /// Starts a task.
    pub fn spawn(&mut self, spec: Spec, body: impl FnOnce(&mut Cx) + 'static) -> TaskId {
        self.sim().spawn(spec, body)
    }

    /// Runs until all programs have ended, at most until time `limit`. May be called again with a
    /// later limit.
    pub fn run(&mut self, limit: Nanos) -> Ended {
        self.drive(limit, true)
    }

    /// Runs until time `limit`, whoever has ended, and though nothing happens.
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
        let mut next = sim.step();
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
                    next = sim.step();
                }
            }
        }
    }

    #[inline]
    fn take_newborn(&mut self, sim: &mut Sim) {
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
