//! Who follows a replay while it runs.

use crate::replay::model::ReplayHost;
use unfrag::Manager;
use unfrag_linux::recording::Snapshot;
/// Who watches a replay.
pub trait Watch {
    /// Operations done, of all.
    fn progress(&mut self, done: u64, total: u64) {
        let _ = (done, total);
    }
    /// The model of `kernel` at the moment of a snapshot.
    fn at_snapshot(&mut self, kernel: &str, snap: &Snapshot, manager: &Manager<'_, ReplayHost>) {
        let _ = (kernel, snap, manager);
    }
}

/// Hears how far a replay is, and sees nothing of it.
pub(super) struct FromAfar<'w>(pub &'w mut dyn Watch);

impl Watch for FromAfar<'_> {
    fn progress(&mut self, done: u64, total: u64) {
        self.0.progress(done, total);
    }
}

/// Nobody.
pub struct Unwatched;
impl Watch for Unwatched {}
