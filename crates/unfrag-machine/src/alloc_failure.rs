//! Allocations that failed, as the kernel reports them: who asked for what, and what memory was like.
//! `spec: linux-mm 4.3 (9)`
//!
//! The first few are kept whole, all are counted. A request that wants no report (`__GFP_NOWARN`) gets none,
//! and neither does one that is tried again.
//!
//! Invariant: a report only looks; nothing of the run depends on it.

use crate::engine::Nanos;
use crate::{Sim, World};
use serde::Serialize;
use std::collections::BTreeMap;
use unfrag::kernel::Placement;
use unfrag::reclaim::Lru;
use unfrag::{Gfp, MAX_ORDER, MigrateType, Order, v19_type_name};

/// Failures that are kept whole.
const KEPT: usize = 10;

/// Orders of free blocks.
const ORDERS: usize = MAX_ORDER as usize + 1;

/// The failures of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AllocFailures {
    /// Failures that the kernel reports.
    pub reported: u64,
    /// The first of them.
    pub first: Vec<AllocFailure>,
}

/// An allocation that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AllocFailure {
    /// When.
    pub at_ns: Nanos,
    /// The task that ran, or that the interrupt interrupted; none on an idle CPU.
    pub task: Option<String>,
    /// The CPU.
    pub cpu: usize,
    /// Whether an interrupt asked.
    pub in_interrupt: bool,
    /// Order of the request.
    pub order: u8,
    /// Its flags, with the bits of Linux 6.1.
    pub gfp: u32,
    /// Memory at that moment.
    pub zones: Vec<ZoneState>,
}

/// A zone at that moment; amounts in pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are those of the kernel's report")]
pub struct ZoneState {
    pub node: u8,
    pub name: &'static str,
    /// As watermark checks see it.
    pub free: u64,
    pub min: u64,
    pub low: u64,
    pub high: u64,
    pub active_anon: u64,
    pub inactive_anon: u64,
    pub active_file: u64,
    pub inactive_file: u64,
    pub present: u64,
    pub managed: u64,
    pub all_unreclaimable: bool,
    /// Free blocks by order, for each type that has some.
    pub free_blocks: BTreeMap<&'static str, [u64; ORDERS]>,
}

impl World {
    /// Allocations that failed so far.
    pub fn alloc_failures(&self) -> &AllocFailures {
        &self.alloc_failures
    }
}

impl Sim {
    /// The kernel reports a request that failed, unless it wants no report.
    #[cold]
    pub(crate) fn report_alloc_failure(&mut self, order: u8, gfp: Gfp) {
        if gfp.contains(Gfp::NOWARN) {
            return;
        }
        if self.alloc_failures.first.len() < KEPT {
            let task = self.current().and_then(|t| self.task_name(t));
            let failure = AllocFailure {
                at_ns: self.now(),
                task: task.map(str::to_owned),
                cpu: self.cpu(),
                in_interrupt: self.in_interrupt(),
                order,
                gfp: gfp.bits(),
                zones: self.zone_states(),
            };
            self.world().alloc_failures.first.push(failure);
        }
        self.world().alloc_failures.reported += 1;
    }

    fn zone_states(&self) -> Vec<ZoneState> {
        let m = self.manager_ref().inspect();
        let v19 = m.rules().placement == Placement::V19;
        let state = |z| {
            let (v, lru) = (m.zone(z), m.lru(z));
            let pages = |l: Lru| lru.pages[l as usize - 1];
            let mut free_blocks = BTreeMap::new();
            for mt in MigrateType::ALL {
                let of: [u64; ORDERS] =
                    std::array::from_fn(|o| m.free_list_len(z, Order(o as u8), mt));
                if of.iter().any(|&n| n > 0) {
                    let name = if v19 { v19_type_name(mt) } else { mt.name() };
                    free_blocks.insert(name, of);
                }
            }
            ZoneState {
                node: v.config.node.0,
                name: v.config.kind.name(),
                free: v.free_counter.max(0) as u64,
                min: v.marks.min + v.marks.boost,
                low: v.marks.low + v.marks.boost,
                high: v.marks.high + v.marks.boost,
                active_anon: pages(Lru::ActiveAnon),
                inactive_anon: pages(Lru::InactiveAnon),
                active_file: pages(Lru::ActiveFile),
                inactive_file: pages(Lru::InactiveFile),
                present: v.config.present,
                managed: v.config.managed,
                all_unreclaimable: lru.all_unreclaimable,
                free_blocks,
            }
        };
        m.zones().map(state).collect()
    }
}
