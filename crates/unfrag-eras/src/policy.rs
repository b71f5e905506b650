//! The rules and the settings in force, as they take effect.

use crate::kernel::{Placement, Rules, Sysctl};

/// The rules of the era, and the settings as they take effect in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub rules: Rules,
    pub sysctl: Sysctl,
    /// Memory is grouped by mobility: each migrate type has lists of its own.
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
