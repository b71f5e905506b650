//! Runs of a scenario's first machine.

use unfrag_machine::Calibration;
use unfrag_machine::scenario::{Kernel, Outcome, Run, Scenario};

/// The scenario `text` on a kernel, at its beginning.
pub fn start(name: &str, text: &str, kernel: &str, seed: u64) -> Run {
    let s = Scenario::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
    let kernel = Kernel::preset(kernel).unwrap();
    let machine = s.machine(None).unwrap();
    let run = s.start(machine, &kernel, &Calibration::standard(), seed);
    run.unwrap()
}

/// Runs the scenario to its end.
#[allow(dead_code, reason = "not every test runs to the end at once")]
pub fn run(name: &str, text: &str, kernel: &str) -> Outcome {
    start(name, text, kernel, 1).finish(|_| ())
}
