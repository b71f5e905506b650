//! Where kswapd's runs begin and end: its sleeps, and the requests that it takes over.

use super::{Kswapd, Phase};
use crate::frame::{Order, ZoneKind};
use crate::host::Host;
use crate::kernel::KswapdSleep;
use crate::manager::Manager;
use crate::need::{Answer, Need};
use crate::reclaim::scan_control::Backlog;
use crate::reclaim::waits::{HZ_OVER_10_MS, turn};

/// Runs without progress after which kswapd gives up (`MAX_RECLAIM_RETRIES`, modern).
const HOPELESS: u32 = 16;

impl Kswapd {
    pub(super) fn after_sleep<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
        match self.take_asked_order(m) {
            // It has given up until direct reclaim makes progress. `spec: 4.8`
            Some(_) if self.hopeless_since == Some(m.reclaim.pgsteal_direct) => {
                Some(Need::Sleep(None))
            }
            Some(order) => {
                if self.hopeless_since.take().is_some() {
                    self.failures = 0;
                }
                self.start_run(m, order);
                None
            }
            None => Some(Need::Sleep(None)),
        }
    }

    pub(super) fn start_run<H: Host>(&mut self, m: &mut Manager<'_, H>, order: Order) {
        (self.asked, self.order) = (order, order);
        self.phase = Phase::Begin;
        self.run_reclaimed = 0;
        self.for_boost = 0;
        self.sc.backlog = Backlog::default();
        m.reclaim.pageoutrun += 1;
        for (i, z) in self.nodes_zones().enumerate() {
            self.boost[i] = m.zone(z).marks.boost;
            if Self::per_node(m) {
                self.for_boost += self.boost[i];
            }
            m.zones[z.index()].reclaim_active = true;
        }
    }

    /// Ends a run, as the goal is met or kswapd gives up; then it goes to sleep.
    pub(super) fn run_done<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
        let rules = m.policy.rules.kswapd;
        let per_node = Self::per_node(m);
        self.run_reclaimed += self.sc.reclaimed;
        let mut boosted = false;
        for (i, z) in self.nodes_zones().enumerate() {
            let boost = core::mem::take(&mut self.boost[i]);
            let z = &mut m.zones[z.index()];
            z.reclaim_active = false;
            z.marks.boost = z.marks.boost.saturating_sub(boost);
            boosted |= boost > 0;
        }
        if boosted && let Some(top) = self.top(m) {
            m.ask_kcompactd(self.node, m.frames.geometry.block_order, top);
        }
        if per_node && !self.balanced(m, self.order) {
            self.failures = if self.run_reclaimed == 0 {
                self.failures + 1
            } else {
                0
            };
            if self.failures >= HOPELESS {
                self.hopeless_since = Some(m.reclaim.pgsteal_direct);
                self.phase = Phase::Asleep;
                return Some(Need::Sleep(None));
            }
            // A run that could not reach its order is not repeated for it: only for what was asked meanwhile, else
            // for single pages. `spec: 4.8` leaves that open.
            let again = self.asked_order(m).unwrap_or(Order::ZERO);
            if !self.balanced(m, again) {
                m.reclaim.kswapd_high_wmark_hit_quickly += 1;
                self.clear_asked(m);
                self.start_run(m, again);
                return Some(turn(&mut self.sc));
            }
            // What could not be reclaimed is left to kcompactd.
            (self.asked, self.order) = (self.asked.max(again), again);
        } else {
            self.failures = 0;
        }
        // A higher order that was asked for meanwhile is begun at once.
        let wanted = self.asked_order(m).filter(|&order| order > self.asked);
        if !per_node && let Some(order) = wanted {
            self.clear_asked(m);
            self.start_run(m, order);
            return None;
        }
        if rules.sleep == KswapdSleep::Staged && self.balanced(m, self.order) {
            self.hand_over(m);
            self.phase = Phase::ShortSleep;
            return Some(Need::Sleep(Some(HZ_OVER_10_MS)));
        }
        self.phase = Phase::Asleep;
        self.clear_asked(m);
        Some(Need::Sleep(None))
    }

    pub(super) fn after_short_sleep<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        answer: Answer,
    ) -> Option<Need> {
        let woken_early = matches!(answer, Answer::Left(ms) if ms > 0);
        let high_ok = self.balanced(m, self.order);
        if woken_early {
            m.reclaim.kswapd_low_wmark_hit_quickly += 1;
        } else if !high_ok {
            m.reclaim.kswapd_high_wmark_hit_quickly += 1;
        } else {
            self.phase = Phase::Asleep;
            self.clear_asked(m);
            return Some(Need::Sleep(None));
        }
        // In eras that balance zones the order of the last run is not kept: without a request since, the
        // order is 0. `spec: 4.6` leaves that open.
        let kept = if Self::per_node(m) {
            self.order
        } else {
            Order::ZERO
        };
        let order = self.take_asked_order(m).map_or(kept, |o| o.max(kept));
        self.start_run(m, order);
        None
    }

    /// Before it sleeps: skip marks of compaction are cleared where a request's run reached the end of a zone, and
    /// kcompactd goes on for the order. `spec: 4.8, 5.3`
    fn hand_over<H: Host>(&self, m: &mut Manager<'_, H>) {
        for z in self.nodes_zones() {
            if m.zone(z).compact.flush_skips {
                m.reset_skips(z);
            }
        }
        if let Some(top) = self.top(m) {
            m.ask_kcompactd(self.node, self.asked, top);
        }
    }

    /// The highest zone of the node.
    fn top<H: Host>(&self, m: &Manager<'_, H>) -> Option<ZoneKind> {
        self.nodes_zones().next_back().map(|z| m.zone(z).kind)
    }
}
