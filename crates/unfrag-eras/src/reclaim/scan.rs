//! The scan of one zone or node at one priority: of active and inactive lists, or of generations.

use super::batch::PageBatch;
use super::generation_scan::GenerationScan;
use super::lru_scan::{LruScan, Work};
use super::scan_control::ScanControl;
use super::waits::pressure;
use crate::frame::{CpuId, LruId};
use crate::host::Host;
use crate::kernel::GenerationRules;
use crate::manager::Manager;
use crate::need::{Answer, Need};

/// The scan of one zone or node at one priority.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scan {
    Lists(LruScan),
    Generations(GenerationScan),
}

impl Scan {
    /// Begins the scan of a zone or node: of what its pages stand in now.
    pub fn new<H: Host>(
        m: &mut Manager<'_, H>,
        lru: LruId,
        sc: &ScanControl,
        batch: &mut PageBatch,
    ) -> Scan {
        match m.generations() {
            Some(rules) => Scan::Generations(GenerationScan::new(m, lru, rules, sc, batch)),
            None => Scan::Lists(LruScan::new(m, lru, sc, batch)),
        }
    }

    /// Continues until something is needed; `None` when the scan is done.
    pub fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        work: Work,
        answer: Answer,
    ) -> Option<Need> {
        match self {
            Scan::Lists(scan) => scan.step(m, cpu, work, answer),
            Scan::Generations(scan) => scan.step(m, cpu, work, answer),
        }
    }
}

impl<H: Host> Manager<'_, H> {
    /// The rules of generations, if pages stand in them.
    pub(super) fn generations(&self) -> Option<GenerationRules> {
        let rules = self.policy.rules.generations().copied();
        rules.filter(|_| self.policy.sysctl.lru_gen)
    }

    /// Number of scanned pages that shrinkers get for a pass: in generations, what the priority asks for.
    pub(super) fn shrink_pressure(&self, sc: &ScanControl, lru_pages: u64) -> u64 {
        pressure(match self.policy.sysctl.lru_gen {
            true => lru_pages >> sc.priority,
            false => sc.scanned,
        })
    }
}
