//! One pass of kswapd over its zones, at one priority.

use super::{Kswapd, Phase};
use crate::frame::{CpuId, Order, ZoneId, ZoneKind};
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::kernel::{CongestionWait, KswapdForm, KswapdNap};
use crate::lru::{DEF_PRIORITY, SWAP_CLUSTER_MAX};
use crate::manager::Manager;
use crate::need::{Answer, Need, Throttle};
use crate::reclaim::lru_scan::Work;
use crate::reclaim::scan::Scan;
use crate::reclaim::waits::{HZ_OVER_10_MS, congestion_wait, turn};

/// Zones with this many times their high mark are left alone.
const PLENTY: u64 = 8;

/// Below this priority reclaim counts as being in trouble.
const TROUBLE: u8 = DEF_PRIORITY - 2;

/// Reclaim for a boost alone does not go below this priority (modern).
const BOOST_PRIORITY: u8 = DEF_PRIORITY - 2;

impl Kswapd {
    pub(super) fn begin_priority<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
    ) -> Option<Need> {
        let rules = m.policy.rules.kswapd;
        // A patch of S4 that was dropped after V2: a higher order is noticed while reclaim runs.
        if rules.notices_order_at_once {
            let wanted = self.asked_order(m).filter(|&order| order > self.order);
            if let Some(order) = wanted {
                self.clear_asked(m);
                self.order = order;
                self.phase = Phase::Begin;
                return None;
            }
        }
        self.all_ok = true;
        self.below_min = false;
        if Self::per_node(m) {
            if !self.balanced(m, self.order) {
                self.for_boost = 0;
            } else if self.for_boost == 0 {
                return self.run_done(m);
            }
            self.end = self.len - 1;
        } else {
            let mut end = None;
            for i in (0..self.len).rev() {
                let z = self.zones[i];
                let lru = m.zone(z).lru;
                if m.all_unreclaimable(lru) && self.sc.priority != DEF_PRIORITY {
                    continue;
                }
                if m.inactive_is_low(lru, false) && m.nr_swap_pages > 0 {
                    m.shrink_active_list(cpu, (lru, false), SWAP_CLUSTER_MAX, &mut self.sc, true);
                }
                if !Self::zone_ok(m, z, self.order, 1, ZoneKind::Dma) {
                    end = Some(i);
                    break;
                }
            }
            match end {
                Some(end) => self.end = end,
                None => return self.run_done(m),
            }
        }
        let lrus = self.lrus(m, self.end + 1);
        self.lru_pages = lrus.map(|lru| m.reclaimable_pages(lru)).sum();
        self.at = 0;
        self.sc.clean_only = self.for_boost > 0;
        self.sc.backlog.next_pass();
        self.pass_start = (self.total_scanned, self.sc.reclaimed);
        self.phase = Phase::Zones;
        None
    }

    /// What a pass is to free: the high marks of the node's zones, or a batch where that is more.
    /// `spec: 4.8`
    pub(super) fn pass_goal<H: Host>(&self, m: &Manager<'_, H>) -> u64 {
        self.nodes_zones()
            .map(|z| m.zone(z).marks.of(AllocFlags::WMARK_HIGH))
            .map(|high| high.max(SWAP_CLUSTER_MAX))
            .sum()
    }

    pub(super) fn scan_zones<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
    ) -> Option<Need> {
        while self.at <= self.end {
            let zone = self.zones[self.at];
            if self.scan.is_none() && !self.start_zone(m, zone) {
                self.at += 1;
                continue;
            }
            if self.has_enough(m) {
                self.scan = None;
                return self.shrink(m);
            }
            let work = Work {
                sc: &mut self.sc,
                batch: &mut self.batch,
            };
            if let Some(scan) = &mut self.scan
                && let Some(need) = scan.step(m, cpu, work, answer)
            {
                return Some(need);
            }
            self.scan = None;
            return self.shrink(m);
        }
        self.after_zones(m)
    }

    /// Begins with a zone. A zone with plenty of free memory gets no scan, and only caches are shrunk. Returns
    /// false if there is nothing to do.
    pub(super) fn start_zone<H: Host>(&mut self, m: &mut Manager<'_, H>, zone: ZoneId) -> bool {
        let per_node = Self::per_node(m);
        let lru = m.zone(zone).lru;
        let class = m.zone(self.zones[self.end]).kind;
        // Lists that zones share are scanned once a pass.
        let earlier = &self.zones[..self.at];
        let twice = per_node && earlier.iter().any(|&z| m.zone(z).lru == lru);
        if twice || m.all_unreclaimable(lru) && self.sc.priority != self.first {
            return false;
        }
        if !Self::zone_ok(m, zone, self.order, 1, class) {
            self.all_ok = false;
            let z = m.zone(zone);
            let none = AllocFlags::empty();
            self.below_min |= !z.passes(&m.policy.rules, self.order, z.marks.of(none), class, none);
        }
        self.sc.scanned = 0;
        if !per_node && Self::zone_ok(m, zone, self.order, PLENTY, class) {
            return true;
        }
        let mut scan = Scan::new(m, lru, &self.sc, &mut self.batch);
        if let Scan::Lists(scan) = &mut scan
            && per_node
        {
            scan.enough = self.pass_start.1 + self.pass_goal(m);
        }
        self.scan = Some(scan);
        true
    }

    /// In generations of some eras a pass is over once it has freed its goal and the marks hold. `spec: 4.10`
    fn has_enough<H: Host>(&self, m: &Manager<'_, H>) -> bool {
        let Some(Scan::Generations(scan)) = &self.scan else {
            return false;
        };
        m.generations().is_some_and(|g| g.stops_at_marks)
            && scan.is_between_batches()
            && self.sc.reclaimed >= self.pass_start.1 + self.pass_goal(m)
            && self.balanced(m, self.order)
    }

    pub(super) fn shrink<H: Host>(&mut self, m: &Manager<'_, H>) -> Option<Need> {
        self.phase = Phase::Shrunk;
        Some(Need::Shrink {
            scanned: m.shrink_pressure(&self.sc, self.lru_pages),
            lru_pages: self.lru_pages,
        })
    }

    pub(super) fn shrunk<H: Host>(&mut self, m: &mut Manager<'_, H>, freed: u64) -> Option<Need> {
        self.total_scanned += core::mem::take(&mut self.sc.scanned);
        self.sc.reclaimed += freed;
        let lru = m.zone(self.zones[self.at]).lru;
        m.note_unreclaimable(lru, freed);
        self.at += 1;
        self.phase = Phase::Zones;
        (self.sc.unreported.0 > 0).then(|| turn(&mut self.sc))
    }

    pub(super) fn after_zones<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
        let rules = m.policy.rules.kswapd;
        let congestion = m.policy.rules.reclaim.congestion;
        let per_node = Self::per_node(m);
        if per_node {
            self.all_ok = self.balanced(m, self.order);
            // Enough was freed for the order; the rest is left to compaction.
            let enough = 2 * u64::from(self.order.frames());
            if self.order > Order::ZERO && self.sc.reclaimed >= enough {
                self.order = Order::ZERO;
                self.sc.order = Order::ZERO;
            }
        }
        let freed = self.sc.reclaimed - self.pass_start.1;
        let looked = self.total_scanned - self.pass_start.0;
        let for_boost = self.for_boost > 0;
        self.for_boost = self.for_boost.saturating_sub(freed);
        if self.all_ok && self.for_boost == 0 {
            return self.run_done(m);
        }
        // Nothing more can be freed without writing.
        if for_boost && freed == 0 && (looked > 0 || self.sc.priority <= BOOST_PRIORITY) {
            return self.run_done(m);
        }
        if per_node && self.sc.priority <= 1 {
            return self.run_done(m);
        }
        let level = match rules.nap {
            KswapdNap::TroubleLater => TROUBLE - self.order.0.min(TROUBLE),
            _ => TROUBLE,
        };
        let naps = self.total_scanned > 0 && self.sc.priority < level && rules.nap != KswapdNap::No;
        let skips = rules.nap == KswapdNap::NotBelowMin && self.below_min;
        if per_node {
            // A pass that looked at as much as it was to free goes on at its priority.
            let least = if for_boost { BOOST_PRIORITY } else { 0 };
            let slow = freed == 0 || looked < self.pass_goal(m) || m.generations().is_some();
            if self.sc.priority > least && slow {
                self.sc.priority -= 1;
            }
        } else if self.sc.reclaimed >= SWAP_CLUSTER_MAX || self.sc.priority == 0 {
            self.start_over(m);
        } else {
            self.sc.priority -= 1;
        }
        self.phase = Phase::Priority;
        if congestion == CongestionWait::Throttle && self.sc.backlog.outruns_the_disk() {
            return Some(Need::Throttle {
                why: Throttle::Writeback,
                ms: HZ_OVER_10_MS,
            });
        }
        if naps && !skips {
            self.phase = Phase::Nap;
            return Some(congestion_wait(congestion, HZ_OVER_10_MS));
        }
        m.reclaim.kswapd_skip_congestion_wait += u64::from(naps);
        Some(turn(&mut self.sc))
    }

    /// Starts over after the last priority, as the goal is not met: at order 0 if the order brought nothing and
    /// the era drops it then.
    fn start_over<H: Host>(&mut self, m: &Manager<'_, H>) {
        self.run_reclaimed += self.sc.reclaimed;
        let drops = m.policy.rules.kswapd.form == KswapdForm::PerZone { drops_order: true };
        if drops && self.sc.reclaimed < SWAP_CLUSTER_MAX {
            self.order = Order::ZERO;
        }
        self.begin(m);
    }
}
