//! The compactions of an allocation: when it compacts, and what follows from how that ended. `spec: 4.8, 5.3`

use super::allocation::{Allocation, Got, Phase};
use crate::compact::{DirectCompaction, Outcome, Priority};
use crate::frame::{FrameIx, MigrateType, Order};
use crate::gfp::Gfp;
use crate::host::Host;
use crate::kernel::{CompactRequests, GivesUp};
use crate::manager::Manager;
use crate::need::Step;

/// Compactions in a row that ended well without a block for the request (`MAX_COMPACT_RETRIES`).
const MAX_COMPACT_RETRIES: u32 = 16;

impl Allocation {
    /// Whether it may compact at all.
    pub(super) fn may_compact<H: Host>(&self, m: &Manager<'_, H>) -> bool {
        let d = &self.demand;
        let Some(rules) = m.policy.rules.compact else {
            return false;
        };
        let allowed = match rules.requests {
            CompactRequests::CostlyWithIo => {
                d.order > Order::COSTLY && d.gfp.contains(Gfp::IO | Gfp::FS)
            }
            CompactRequests::All => d.order > Order::ZERO,
        };
        allowed && d.gfp.contains(Gfp::DIRECT_RECLAIM)
    }

    /// Whether it compacts before it reclaims: costly requests, and those that cannot use movable pageblocks well.
    pub(super) fn compacts_first<H: Host>(&self, m: &Manager<'_, H>) -> bool {
        let d = &self.demand;
        let unmovable = d.order > Order::ZERO && d.mt != MigrateType::Movable;
        self.may_compact(m) && (d.order > Order::COSTLY || unmovable)
    }

    pub(super) fn start_compaction<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        priority: Priority,
        first: bool,
    ) -> Option<Step<Got>> {
        let run = DirectCompaction::new(m, &self.demand, &self.list, self.flags, priority);
        self.phase = Phase::Compact { run, first };
        None
    }

    /// After a compaction: the block, or what follows.
    pub(super) fn after_compaction<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        outcome: Outcome,
        captured: Option<FrameIx>,
        first: bool,
    ) -> Option<Step<Got>> {
        let d = self.demand;
        self.compacted = outcome;
        let rules = m.policy.rules.compact;
        let counted = match rules.is_some_and(|r| r.counts_deferred) {
            true => Outcome::Deferred,
            false => Outcome::NoSuitablePage,
        };
        if outcome >= counted {
            m.compact_counters.compact_stall += 1;
            self.was_captured = captured.is_some();
            let got = captured.or_else(|| m.get_page(&self.list, &d, self.flags));
            if let Some(ix) = got {
                let zone = m.frames.zone_of(ix);
                let state = &mut m.zones[zone.index()].compact;
                state.flush_skips = false;
                state.succeeded(d.order, true);
                m.compact_counters.compact_success += 1;
                return Some(Step::Done(Some(ix)));
            }
            m.compact_counters.compact_fail += 1;
        }
        if !first {
            return self.retry(m);
        }
        let rules = rules.filter(|r| r.modes);
        if d.order > Order::COSTLY
            && d.gfp.contains(Gfp::NORETRY)
            && let Some(rules) = rules
        {
            let one_node = d.gfp.contains(Gfp::THISNODE);
            let put_off = outcome <= Outcome::Deferred;
            let gives_up = match rules.gives_up {
                GivesUp::PutOff => put_off,
                GivesUp::PutOffOrOneNode => put_off || one_node,
                GivesUp::OneNode => one_node,
            };
            if gives_up {
                return Some(Step::Done(None));
            }
            self.priority = Priority::Async;
        }
        if m.policy.rules.retry.wake_on_restart {
            m.wake_kswapds(&self.list, &d);
        }
        self.pass(m, self.flags).or_else(|| self.start_reclaim(m))
    }

    /// Whether another compaction could bring the block (`should_compact_retry`).
    pub(super) fn worth_compacting<H: Host>(&mut self, m: &Manager<'_, H>) -> bool {
        let d = &self.demand;
        if !self.may_compact(m) {
            return false;
        }
        match self.compacted {
            Outcome::Skipped | Outcome::NotSuitableZone => {
                let zones = self.list.zones();
                return m.compaction_could_help(zones, d.order, self.flags, d.highest);
            }
            Outcome::Complete
            | Outcome::Deferred
            | Outcome::Contended
            | Outcome::PartialSkipped => {}
            Outcome::Success | Outcome::Continue | Outcome::NoSuitablePage => {
                self.compactions += u32::from(self.compacted == Outcome::Success);
                let most = if d.order > Order::COSTLY {
                    MAX_COMPACT_RETRIES / 4
                } else {
                    MAX_COMPACT_RETRIES
                };
                if self.compactions <= most {
                    return true;
                }
            }
        }
        let hardest = if d.order > Order::COSTLY {
            Priority::SyncLight
        } else {
            Priority::SyncFull
        };
        match self.priority.harder() {
            Some(next) if next >= hardest => {
                (self.priority, self.compactions) = (next, 0);
                true
            }
            _ => false,
        }
    }
}
