//! The rules and settings in force.

use crate::kernel::{Rules, Sysctl};

/// What decides, wherever a rule or a setting decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Env {
    pub rules: Rules,
    pub sysctl: Sysctl,
}
