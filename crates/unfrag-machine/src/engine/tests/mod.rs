//! The engine from outside: what tasks see. `spec: 8.6`

mod clock;
mod fairness;
mod interrupts;
mod policy;
mod tasks;

use crate::config::MachineConfig;
use crate::engine::{Fair, Nanos, Policy};
use crate::kernel::Engine;
use crate::test_support::machine_config;
use std::cell::RefCell;
use std::rc::Rc;

/// A machine on which switches and interrupts take no time, so that times are round.
fn free_machine(cpus: usize) -> Engine {
    Engine::new(&free_config(cpus)).unwrap()
}

fn free_config(cpus: usize) -> MachineConfig {
    let mut config = config(cpus);
    config.costs.context_switch = 0;
    config.costs.interrupt = 0;
    config
}

/// With time slices of 100 µs, so that much happens in little time.
fn config(cpus: usize) -> MachineConfig {
    let mut config = machine_config("2.6.32", 4096, cpus);
    config.sched.policy = Policy::Fair(Fair::rounds(100_000));
    config
}

/// Notes of tasks, in order.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<(Nanos, &'static str)>>>);

impl Log {
    fn note(&self, at: Nanos, what: &'static str) {
        self.0.borrow_mut().push((at, what));
    }
    fn taken(&self) -> Vec<(Nanos, &'static str)> {
        std::mem::take(&mut self.0.borrow_mut())
    }
}
