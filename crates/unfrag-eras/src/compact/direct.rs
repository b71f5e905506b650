//! The compaction of a request: runs over its zones, best first, until one brings a block. `spec: 5.3`

use super::control::Control;
use super::outcome::{Mode, Outcome, Priority};
use super::zone_run::Compaction;
use crate::drive::Operation;
use crate::frame::{CpuId, FrameIx, Order};
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::manager::Manager;
use crate::migrate::Migration;
use crate::need::{Answer, Step};
use crate::request::Demand;
use crate::trace::Event;
use crate::zone::ZoneList;

/// The compaction of a request (`try_to_compact_pages`).
#[derive(Debug)]
pub(crate) struct DirectCompaction {
    demand: Demand,
    flags: AllocFlags,
    priority: Priority,
    zones: ZoneList,
    at: usize,
    run: Option<Compaction>,
    best: Outcome,
    captured: Option<FrameIx>,
}

impl DirectCompaction {
    /// A compaction for a request that is held against the mark in `flags`.
    pub fn new<H: Host>(
        m: &mut Manager<'_, H>,
        demand: &Demand,
        zones: &ZoneList,
        flags: AllocFlags,
        priority: Priority,
    ) -> DirectCompaction {
        if H::TRACING {
            m.host.trace(&Event::CompactionTryToCompactPages {
                order: demand.order,
                gfp: demand.gfp,
                priority: priority as u8,
            });
        }
        DirectCompaction {
            demand: *demand,
            flags,
            priority,
            zones: *zones,
            at: 0,
            run: None,
            best: Outcome::Skipped,
            captured: None,
        }
    }

    /// What is asked.
    pub fn migration(&self) -> &Migration {
        self.run
            .as_ref()
            .map_or(&Migration::EMPTY, Operation::migration)
    }

    /// The block that came together for the request.
    pub fn take_captured(&mut self) -> Option<FrameIx> {
        self.captured.take()
    }

    /// Ends it early; see [`Compaction::abort`].
    pub fn abort<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, answer: Answer) {
        if let Some(run) = self.run.take() {
            run.abort(m, cpu, answer);
        }
    }

    /// Continues; the result is the best outcome of all zones.
    pub fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
    ) -> Step<Outcome> {
        let order = self.demand.order;
        let by_order = m.policy.rules.compact.is_some_and(|r| r.order_failed);
        let mut answer = answer;
        loop {
            if let Some(run) = &mut self.run {
                let outcome = match run.step(m, cpu, core::mem::replace(&mut answer, Answer::Go)) {
                    Step::Need(need) => return Step::Need(need),
                    Step::Done(outcome) => outcome,
                };
                self.captured = run.take_captured();
                self.run = None;
                if self.ends_with(m, outcome, order) {
                    return Step::Done(self.best);
                }
                self.at += 1;
            }
            let Some(zone) = self.zones.zones().nth(self.at) else {
                return Step::Done(self.best);
            };
            let deferral = &mut m.zones[zone.index()].compact;
            if self.priority > Priority::SyncFull && deferral.is_deferred(order, by_order) {
                self.best = self.best.max(Outcome::Deferred);
                self.at += 1;
                continue;
            }
            self.run = Some(Compaction::new(self.control(m)));
        }
    }

    fn control<H: Host>(&self, m: &Manager<'_, H>) -> Control {
        let full = self.priority == Priority::SyncFull;
        let zone = self.zones.zones().nth(self.at);
        Control {
            zone: zone.unwrap_or_default(),
            order: Some(self.demand.order),
            mt: self.demand.mt,
            mode: if has_modes(m) {
                self.priority.mode()
            } else {
                Mode::Sync
            },
            whole_zone: full,
            ignores_skips: full,
            any_source: full,
            direct: true,
            in_blocks: false,
            proactive: false,
            goal: None,
            highest: self.demand.highest,
            flags: self.flags,
        }
    }

    /// After a zone: whether it was the last one.
    fn ends_with<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        outcome: Outcome,
        order: Order,
    ) -> bool {
        self.best = self.best.max(outcome);
        let modes = has_modes(m);
        let zone = self.zones.zones().nth(self.at).unwrap_or_default();
        let state = &mut m.zones[zone.index()].compact;
        if outcome == Outcome::Success {
            state.succeeded(order, false);
            return true;
        }
        let waits = self.priority != Priority::Async || !modes;
        if waits && outcome.is_vain() {
            state.defer(order);
        }
        false
    }
}

/// Whether runs differ by priority; else each of them may wait.
fn has_modes<H: Host>(m: &Manager<'_, H>) -> bool {
    m.policy.rules.compact.is_some_and(|r| r.modes)
}
