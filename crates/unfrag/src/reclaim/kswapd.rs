//! kswapd: the daemon of a node that reclaims ahead of demand. `spec: 4.2, 4.6, 4.8`
//!
//! Invariant: it sleeps only when its goal is met, when it was not asked, or when it has given up. Each request
//! is taken over exactly once.

use super::batch::PageBatch;
use super::lru_scan::{LruScan, Work};
use super::scan_control::{Backlog, ScanControl};
use super::waits::{HZ_OVER_10_MS, congestion_wait, pressure, second_wait, turn};
use crate::drive::Operation;
use crate::evict::Eviction;
use crate::frame::{CpuId, LruId, MAX_ZONES, NodeId, Order, ZoneId, ZoneKind};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::{CongestionWait, KswapdForm, KswapdNap, KswapdSleep};
use crate::lru::{DEF_PRIORITY, SWAP_CLUSTER_MAX};
use crate::manager::Manager;
use crate::need::{Answer, Need, Step, Throttle};
use core::convert::Infallible;

/// Zones with this many times their high mark are left alone.
const PLENTY: u64 = 8;

/// Below this priority reclaim counts as being in trouble.
const TROUBLE: u8 = DEF_PRIORITY - 2;

/// Reclaim for a boost alone does not go below this priority (modern).
const BOOST_PRIORITY: u8 = DEF_PRIORITY - 2;

/// Runs without progress after which kswapd gives up (`MAX_RECLAIM_RETRIES`, modern).
const HOPELESS: u32 = 16;

/// The daemon of one node.
#[derive(Clone, Copy, Debug)]
pub struct Kswapd {
    node: NodeId,
    /// Order that was asked for.
    asked: Order,
    /// Order that it works for: the one asked for, until that is given up.
    order: Order,
    sc: ScanControl,
    phase: Phase,
    /// Zones of the node, low to high, and how many.
    zones: [ZoneId; MAX_ZONES],
    len: usize,
    /// The highest zone that is short, as a position in `zones`.
    end: usize,
    at: usize,
    scan: Option<LruScan>,
    batch: PageBatch,
    total_scanned: u64,
    /// Pages looked at, and freed, when the pass began.
    pass_start: (u64, u64),
    all_ok: bool,
    below_min: bool,
    lru_pages: u64,
    run_reclaimed: u64,
    /// Boost seen at the start of a run, by zone.
    boost: [u64; MAX_ZONES],
    /// Pages still to be freed for that boost alone. While the node is balanced otherwise, only clean page
    /// cache is taken for it.
    for_boost: u64,
    failures: u32,
    /// Pages that direct reclaim had freed when kswapd gave up.
    hopeless_since: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Asleep,
    /// The first, short sleep of two.
    ShortSleep,
    Begin,
    Priority,
    Zones,
    Shrunk,
    Nap,
}

impl Kswapd {
    /// The daemon of `node`, asleep.
    pub fn new(node: NodeId) -> Kswapd {
        Kswapd {
            node,
            asked: Order::ZERO,
            order: Order::ZERO,
            sc: ScanControl::new(Order::ZERO, Gfp::KERNEL, true),
            phase: Phase::Asleep,
            zones: [ZoneId(0); MAX_ZONES],
            len: 0,
            end: 0,
            at: 0,
            scan: None,
            batch: PageBatch::new(),
            total_scanned: 0,
            pass_start: (0, 0),
            all_ok: false,
            below_min: false,
            lru_pages: 0,
            run_reclaimed: 0,
            boost: [0; MAX_ZONES],
            for_boost: 0,
            failures: 0,
            hopeless_since: None,
        }
    }

    /// The node whose daemon it is.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Continues on a CPU until something is needed. The first answer is [`Answer::Go`].
    pub fn run<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, answer: Answer) -> Need {
        let before = m.reclaim.pgsteal_kswapd;
        let need = if self.len == 0 {
            self.find_zones(m);
            Need::Sleep(None)
        } else {
            self.advance(m, cpu, answer)
        };
        let freed = m.reclaim.pgsteal_kswapd - before;
        // A node without memory has no record.
        if let Some(node) = m.node_mut(self.node) {
            node.kswapd_usable = self.hopeless_since.is_none();
            node.kswapd_awake = !matches!(need, Need::Sleep(_));
            node.kswapd_freed += freed;
        }
        need
    }

    fn advance<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, mut answer: Answer) -> Need {
        loop {
            let need = match self.phase {
                Phase::Asleep => self.after_sleep(m),
                Phase::ShortSleep => self.after_short_sleep(m, answer),
                Phase::Begin => {
                    self.begin();
                    None
                }
                Phase::Priority => self.begin_priority(m, cpu),
                Phase::Zones => {
                    let answer = core::mem::replace(&mut answer, Answer::Go);
                    self.scan_zones(m, cpu, answer)
                }
                Phase::Shrunk => {
                    let freed = match core::mem::replace(&mut answer, Answer::Go) {
                        Answer::Freed(n) => n,
                        _ => 0,
                    };
                    self.shrunk(m, freed)
                }
                Phase::Nap => {
                    let rule = m.policy.rules.reclaim.congestion;
                    let both = rule == CongestionWait::BothEverywhere;
                    self.phase = Phase::Priority;
                    let second = second_wait(rule, answer).filter(|_| both);
                    answer = Answer::Go;
                    second
                }
            };
            if let Some(need) = need {
                return need;
            }
        }
    }

    fn find_zones<H: Host>(&mut self, m: &Manager<'_, H>) {
        for z in m.node(self.node).into_iter().flat_map(|n| n.zones()) {
            self.zones[self.len] = z;
            self.len += 1;
        }
        self.phase = Phase::Asleep;
    }

    fn nodes_zones(&self) -> impl DoubleEndedIterator<Item = ZoneId> + use<> {
        let zones = self.zones;
        (0..self.len).map(move |i| zones[i])
    }

    /// Whether the era balances the node, not its zones.
    fn per_node<H: Host>(m: &Manager<'_, H>) -> bool {
        m.policy.rules.kswapd.form == KswapdForm::PerNode
    }

    /// The LRU lists of the node's first zones, each once.
    fn lrus<H: Host>(&self, m: &Manager<'_, H>, zones: usize) -> impl Iterator<Item = LruId> {
        let lrus = self.zones.map(|z| m.zones.get(z.index()).map(|z| z.lru));
        let lrus_before = lrus;
        (0..zones.min(self.len)).filter_map(move |i| {
            let seen = lrus_before[..i].contains(&lrus[i]);
            lrus[i].filter(|_| !seen)
        })
    }

    /// Takes the order that was asked for since the last look.
    fn take_asked_order<H: Host>(&self, m: &mut Manager<'_, H>) -> Option<Order> {
        m.node_mut(self.node)?.take_asked_order()
    }

    /// The order that was asked for since the last look.
    fn asked_order<H: Host>(&self, m: &Manager<'_, H>) -> Option<Order> {
        m.node(self.node)?.asked_order()
    }

    /// Clears the request, but not its order.
    fn clear_asked<H: Host>(&self, m: &mut Manager<'_, H>) {
        if let Some(node) = m.node_mut(self.node) {
            node.kswapd_asked = false;
        }
    }

    fn after_sleep<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
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

    fn start_run<H: Host>(&mut self, m: &mut Manager<'_, H>, order: Order) {
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

    fn begin(&mut self) {
        self.sc.order = self.order;
        self.sc.priority = DEF_PRIORITY;
        (self.sc.scanned, self.sc.reclaimed) = (0, 0);
        self.total_scanned = 0;
        self.phase = Phase::Priority;
    }

    fn zone_ok<H: Host>(
        m: &Manager<'_, H>,
        zone: ZoneId,
        order: Order,
        times: u64,
        class: ZoneKind,
    ) -> bool {
        let z = m.zone(zone);
        let mark = z.marks.of(AllocFlags::WMARK_HIGH) * times;
        z.passes(&m.policy.rules, order, mark, class, AllocFlags::WMARK_HIGH)
    }

    /// Whether the node has what kswapd works for. `spec: 4.2, 4.8`
    fn balanced<H: Host>(&self, m: &Manager<'_, H>, order: Order) -> bool {
        let top = m.zone(self.zones[self.len - 1]).kind;
        if Self::per_node(m) {
            return self
                .nodes_zones()
                .any(|z| Self::zone_ok(m, z, order, 1, top));
        }
        let lowest = ZoneKind::Dma;
        self.nodes_zones()
            .all(|z| m.all_unreclaimable(m.zone(z).lru) || Self::zone_ok(m, z, order, 1, lowest))
    }

    fn begin_priority<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) -> Option<Need> {
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
    fn pass_goal<H: Host>(&self, m: &Manager<'_, H>) -> u64 {
        self.nodes_zones()
            .map(|z| m.zone(z).marks.of(AllocFlags::WMARK_HIGH))
            .map(|high| high.max(SWAP_CLUSTER_MAX))
            .sum()
    }

    fn scan_zones<H: Host>(
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
            return self.shrink();
        }
        self.after_zones(m)
    }

    /// Begins with a zone. A zone with plenty of free memory gets no scan, and only caches are shrunk. Returns
    /// false if there is nothing to do.
    fn start_zone<H: Host>(&mut self, m: &mut Manager<'_, H>, zone: ZoneId) -> bool {
        let per_node = Self::per_node(m);
        let lru = m.zone(zone).lru;
        let class = m.zone(self.zones[self.end]).kind;
        // Lists that zones share are scanned once a pass.
        let earlier = &self.zones[..self.at];
        let twice = per_node && earlier.iter().any(|&z| m.zone(z).lru == lru);
        if twice || m.all_unreclaimable(lru) && self.sc.priority != DEF_PRIORITY {
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
        let mut scan = LruScan::new(m, lru, &self.sc, &mut self.batch);
        if per_node {
            scan.enough = self.pass_start.1 + self.pass_goal(m);
        }
        self.scan = Some(scan);
        true
    }

    fn shrink(&mut self) -> Option<Need> {
        self.phase = Phase::Shrunk;
        Some(Need::Shrink {
            scanned: pressure(self.sc.scanned),
            lru_pages: self.lru_pages,
        })
    }

    fn shrunk<H: Host>(&mut self, m: &mut Manager<'_, H>, freed: u64) -> Option<Need> {
        self.total_scanned += core::mem::take(&mut self.sc.scanned);
        self.sc.reclaimed += freed;
        let lru = m.zone(self.zones[self.at]).lru;
        m.note_unreclaimable(lru, freed);
        self.at += 1;
        self.phase = Phase::Zones;
        (self.sc.unreported.0 > 0).then(|| turn(&mut self.sc))
    }

    fn after_zones<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
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
            if self.sc.priority > least && (freed == 0 || looked < self.pass_goal(m)) {
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
        self.begin();
    }

    /// Ends a run, as the goal is met or kswapd gives up; then it goes to sleep.
    fn run_done<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
        let rules = m.policy.rules.kswapd;
        let per_node = Self::per_node(m);
        self.run_reclaimed += self.sc.reclaimed;
        for (i, z) in self.nodes_zones().enumerate() {
            let boost = core::mem::take(&mut self.boost[i]);
            let z = &mut m.zones[z.index()];
            z.reclaim_active = false;
            z.marks.boost = z.marks.boost.saturating_sub(boost);
        }
        if per_node && !self.balanced(m, self.order) {
            self.failures = if self.run_reclaimed == 0 {
                self.failures + 1
            } else {
                0
            };
            if self.failures < HOPELESS {
                m.reclaim.kswapd_high_wmark_hit_quickly += 1;
                let again = self.take_asked_order(m).unwrap_or(Order::ZERO);
                self.start_run(m, again.max(self.order));
                return Some(turn(&mut self.sc));
            }
            self.hopeless_since = Some(m.reclaim.pgsteal_direct);
            self.phase = Phase::Asleep;
            return Some(Need::Sleep(None));
        }
        self.failures = 0;
        // A higher order that was asked for meanwhile is begun at once.
        let wanted = self.asked_order(m).filter(|&order| order > self.asked);
        if !per_node && let Some(order) = wanted {
            self.clear_asked(m);
            self.start_run(m, order);
            return None;
        }
        if rules.sleep == KswapdSleep::Staged && self.balanced(m, self.order) {
            self.phase = Phase::ShortSleep;
            return Some(Need::Sleep(Some(HZ_OVER_10_MS)));
        }
        self.phase = Phase::Asleep;
        self.clear_asked(m);
        Some(Need::Sleep(None))
    }

    fn after_short_sleep<H: Host>(
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
}

impl Operation for Kswapd {
    /// It never ends.
    type Output = Infallible;

    fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
    ) -> Step<Infallible> {
        Step::Need(self.run(m, cpu, answer))
    }

    fn eviction(&self) -> &Eviction {
        self.batch.eviction()
    }
}
