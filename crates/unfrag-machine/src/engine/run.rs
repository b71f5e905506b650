//! The driver of a machine.

use super::Nanos;
use super::cx::Cx;
use super::task::{Spec, TaskId};
use crate::config::MachineConfig;
use crate::sim::Sim;
use unfrag::page_alloc::ConfigError;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every task but the kernel's threads has returned.
    Finished,
    /// The time limit.
    TimeLimit,
    /// [`Sim::stop`] was called.
    Stopped,
    /// Tasks wait for what can never happen.
    Stuck,
}

/// A machine and its tasks.
pub struct Engine {
    sim: Option<Box<Sim>>,
}

impl Engine {
    /// A machine at time 0.
    pub fn new(config: &MachineConfig) -> Result<Engine, ConfigError> {
        Ok(Engine {
            sim: Some(Box::new(Sim::new(config)?)),
        })
    }

    /// Everything shared.
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

    /// Runs until all programs have ended, at most until time `limit`.
    pub fn run(&mut self, limit: Nanos) -> Ended {
        let _ = limit;
        unimplemented!()
    }
}
