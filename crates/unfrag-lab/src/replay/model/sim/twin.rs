//! Simulations that are one up to some moment: what they may differ in, and a second one in the state of the first.
//!
//! Invariant: before a daemon was woken, and before reclaim asked for a page in use, a simulation depends on nothing that
//! is chosen for a member of an ensemble.

use super::Sim;
use crate::afford;
use crate::error::{Error, Result};
use crate::replay::model::reclaim::{Effort, Reclaim, Unknowns};

impl<'m> Sim<'m> {
    /// Whether a daemon was called for, which begins with the next operation.
    pub fn calls_for_daemon(&self) -> bool {
        self.manager.host().has_asked()
    }

    /// Whether anything so far depends on what no recording shows of how a host reclaims.
    pub fn depends_on_unknowns(&self) -> bool {
        self.reclaim.as_ref().is_some_and(Reclaim::depends)
    }

    /// Takes these for what no recording shows of how a host reclaims, on which nothing depends so far.
    pub fn choose(&mut self, effort: Effort, unknowns: Unknowns) {
        if let Some(reclaim) = &mut self.reclaim {
            reclaim.choose(effort, unknowns);
        }
    }

    /// A simulation in the same state, with a manager in `memory`.
    ///
    /// # Errors
    /// If there is no memory for it, or frames are chosen by what has no twin.
    pub fn twin<'n>(&self, memory: &'n mut Vec<u64>) -> Result<Sim<'n>>
    where
        'm: 'n,
    {
        *memory = afford::model(self.manager.words())?;
        let host = self.manager.host().twin();
        let twin = self.manager.twin(host, memory);
        let manager = twin.map_err(|e| Error::contradiction(e.to_string()))?;
        Ok(Sim {
            manager,
            model_frames: self.model_frames.clone(),
            recorded_era: self.recorded_era,
            cpu: self.cpu,
            near: self.near,
            request_node: self.request_node.clone(),
            next_tick: self.next_tick,
            tally: self.tally.clone(),
            huge_order: self.huge_order,
            huge: self.huge.clone(),
            in_migration: self.in_migration.clone(),
            reclaim: self.reclaim.clone(),
            compaction: self.compaction.clone(),
        })
    }
}
