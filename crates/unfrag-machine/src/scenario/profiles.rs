//! Recorded programs of a scenario: looks up their profiles before the run.

use super::file::File;
use super::source::Source;
use crate::input::ScenarioError;
use crate::program::Step;
use crate::program::recorded::Profiles;
use std::rc::Rc;
use toml::Spanned;

/// Sets the behaviour of each step `recorded` from its profile.
///
/// # Errors
/// The first that is not found, at its outermost step.
pub(super) fn find(
    file: &mut File,
    profiles: &dyn Profiles,
    source: &Source,
) -> Result<(), ScenarioError> {
    for program in file.programs.values_mut() {
        // The steps of a file that was just read are not shared yet.
        let steps = Rc::get_mut(&mut program.steps).into_iter().flatten();
        for (step, span) in steps.zip(&program.spans) {
            in_step(step, profiles).map_err(|(message, help)| {
                let at = Spanned::new(span.clone(), ());
                source.error(&at, message).help(help)
            })?;
        }
    }
    Ok(())
}

fn in_step(step: &mut Step, profiles: &dyn Profiles) -> Result<(), (String, String)> {
    if let Step::Recorded(r) = step {
        let found = profiles.behaviour(&r.profile, r.program.as_deref())?;
        r.behaviour = Some(Rc::new(found));
    }
    let mut inner = step.inner_mut().iter_mut();
    inner.try_for_each(|s| in_step(s, profiles))
}
