//! The report of a failed allocation. `spec: 4.3 (9)`
//!
//! Invariant: a report only reads; nothing of the run depends on it.

use crate::kernel::{Sim, World};
use crate::mm::alloc_failure::{AllocFailure, AllocFailures, ORDERS, ZoneState};
use std::collections::BTreeMap;
use unfrag_eras::kernel::Placement;
use unfrag_eras::reclaim::Lru;
use unfrag_eras::{Gfp, MigrateType, Order, v19_type_name};

/// Number of reports that are kept whole.
const KEPT: usize = 10;

impl World {
    /// Allocations that failed so far.
    pub fn alloc_failures(&self) -> &AllocFailures {
        &self.alloc_failures
    }
}

impl Sim {
    /// Reports a failed request, unless it has `__GFP_NOWARN`.
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
