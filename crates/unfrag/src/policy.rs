//! The rules and settings in force.

use crate::kernel::{Placement, Rules, Sysctl};

/// What decides, wherever a rule or a setting decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub rules: Rules,
    pub sysctl: Sysctl,
    /// Each type has lists of its own.
    pub grouped: bool,
}

impl Policy {
    pub fn new(rules: Rules, sysctl: Sysctl) -> Policy {
        let ungrouped = matches!(rules.placement, Placement::Ungrouped);
        Policy {
            rules,
            sysctl,
            grouped: !ungrouped && !sysctl.group_by_mobility_disabled,
        }
    }
}
