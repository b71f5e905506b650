//! The check that no program starts itself, directly or through others: it would do so forever.

use super::spec::{Step, Steps};
use crate::input::{Mistake, ScenarioPart};
use std::collections::{BTreeMap, BTreeSet};

/// # Errors
/// The first step that leads back to its own program.
pub(super) fn check(programs: &BTreeMap<String, Steps>) -> Result<(), Mistake> {
    for (program, steps) in programs {
        for (i, step) in steps.iter().enumerate() {
            let place = ScenarioPart::Step {
                program: program.clone(),
                step: i,
            };
            if let Some(way) = way_back(program, step, programs) {
                let message = format!("program `{program}` starts itself without end: {way}");
                let help =
                    "let a program start others only; `repeat` and `parallel` do things again";
                return Err(Mistake::new(&place, message, help));
            }
        }
    }
    Ok(())
}

/// The chain of programs by which a step leads back to a program, if it does.
fn way_back(program: &str, step: &Step, programs: &BTreeMap<String, Steps>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![];
    started(step, &mut |name| {
        open.push((name.to_owned(), format!("{program} > {name}")))
    });
    while let Some((name, way)) = open.pop() {
        if name == program {
            return Some(way);
        }
        if seen.insert(name.clone()) {
            for step in programs.get(&name).into_iter().flat_map(|s| s.iter()) {
                started(step, &mut |next| {
                    open.push((next.to_owned(), format!("{way} > {next}")))
                });
            }
        }
    }
    None
}

/// Calls `visit` for each program that a step starts.
fn started(step: &Step, visit: &mut impl FnMut(&str)) {
    match step {
        Step::Fork(f) => visit(&f.program),
        Step::Parallel(p) => visit(&p.program),
        _ => {}
    }
    for s in step.inner() {
        started(s, visit);
    }
}
