//! The states of a task while the trace is walked.

use unfrag_eras::NodeId;
use unfrag_linux::event::Role;

/// The node whose kswapd a task of this role is.
pub(crate) fn kswapd_of(role: &Role) -> Option<NodeId> {
    match role {
        Role::Kswapd(node) => Some(*node),
        _ => None,
    }
}

pub(super) const COMPACTING: u8 = 1;
pub(super) const RECLAIMING: u8 = 2;
pub(super) const KSWAPD: u8 = 4;
pub(super) const KCOMPACTD: u8 = 8;
pub(super) const KWORKER: u8 = 16;
/// Between the isolation of sources and the end of their migration.
pub(super) const MIGRATING: u8 = 32;
/// It makes huge pages of small ones: khugepaged, by its name or by what it looks at.
pub(super) const COLLAPSING: u8 = 64;

/// The state in which a task of this role begins.
pub(super) fn first_state(role: &Role) -> u8 {
    match role {
        Role::Kswapd(_) => KSWAPD,
        Role::Kcompactd => KCOMPACTD,
        Role::Kworker => KWORKER,
        Role::Khugepaged => COLLAPSING,
        _ => 0,
    }
}
