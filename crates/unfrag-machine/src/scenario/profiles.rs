//! Recorded programs of a scenario: finds what their profiles say, before anything runs.

use super::file::File;
use super::source::Source;
use crate::input::ScenarioError;
use crate::program::Step;
use crate::program::recorded::Profiles;
use std::rc::Rc;
use toml::Spanned;

/// Gives each recorded step the behaviour that its profile says.
///
/// # Errors
/// The first that is not there; at the outermost step that it is in.
pub(super) fn find(
    file: &mut File,
    profiles: &dyn Profiles,
    source: &Source,
) -> Result<(), ScenarioError> {
    for program in file.programs.values_mut() {
        // A file that was just read shares its steps with nobody.
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
