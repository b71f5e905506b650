//! Watches a replay: shows its progress, and writes the trees of procfs files that were asked for.

use crate::failure::Result;
use crate::output::Progress;
use std::path::Path;
use unfrag_eras::Manager;
use unfrag_lab::export::Exporter;
use unfrag_lab::replay::Watch;
use unfrag_lab::replay::model::ReplayHost;
use unfrag_linux::recording::Snapshot;

/// Who watches.
pub struct Watcher {
    progress: Progress,
    export: Option<Exporter>,
}

impl Watcher {
    /// Shows `progress`, and writes trees into `export`.
    pub fn new(progress: Progress, export: Option<&Path>, several_kernels: bool) -> Watcher {
        progress.message("replaying".into());
        Watcher {
            progress,
            export: export.map(|directory| Exporter::new(directory, several_kernels)),
        }
    }

    /// How many trees were written, if any were asked for.
    ///
    /// # Errors
    /// If one could not be written.
    pub fn finish(self) -> Result<Option<u64>> {
        Ok(self.export.map(Exporter::finish).transpose()?)
    }
}

impl Watch for Watcher {
    fn progress(&mut self, done: u64, total: u64) {
        self.progress.at(done, total);
    }

    fn wants_snapshots(&self) -> bool {
        self.export.is_some()
    }

    fn at_snapshot(&mut self, kernel: &str, snap: &Snapshot, manager: &Manager<'_, ReplayHost>) {
        if let Some(export) = &mut self.export {
            export.at_snapshot(kernel, snap, manager);
        }
    }
}
