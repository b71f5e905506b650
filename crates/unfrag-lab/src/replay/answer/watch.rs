//! An observer of a replay while it runs.

use crate::replay::model::ReplayHost;
use unfrag_eras::Manager;
use unfrag_linux::recording::Snapshot;

/// Observes a replay. Both methods do nothing unless they are overridden.
pub trait Watch {
    /// So many operations of all are carried out.
    fn progress(&mut self, done: u64, total: u64) {
        let _ = (done, total);
    }

    /// Whether snapshots are observed, for which the replays of several kernels come one after the other.
    fn wants_snapshots(&self) -> bool {
        true
    }

    /// The model of `kernel` at the moment of a snapshot.
    fn at_snapshot(&mut self, kernel: &str, snap: &Snapshot, manager: &Manager<'_, ReplayHost>) {
        let _ = (kernel, snap, manager);
    }
}

/// Observes nothing.
pub struct NoWatch;

impl Watch for NoWatch {
    fn wants_snapshots(&self) -> bool {
        false
    }
}
