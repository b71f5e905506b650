//! The rules and settings in force.

use crate::kernel::{Switches, Sysctl};

/// What decides, wherever a rule or a setting decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Env {
    pub sw: Switches,
    pub sysctl: Sysctl,
}
