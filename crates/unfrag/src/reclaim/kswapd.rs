//! kswapd: the daemon of a node that reclaims ahead of demand. `spec: linux-mm 4.2, 4.6, 4.8`
//!
//! Invariant: it sleeps only when its goal is met or nobody asked; what it was asked for is taken
//! over exactly once.

use super::direct::congestion_wait;
use super::scan::{Backlog, Scan};
use super::shrink::{TENTH, ZoneScan, turn};
use super::{Answer, DEF_PRIORITY, Need, SWAP_CLUSTER_MAX, Throttle, pressure};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::{CongestionWait, KswapdForm, KswapdNap, KswapdSleep};
use crate::page_alloc::{MAX_ZONES, Manager};
use crate::zone::ZoneKind;

/// Zones with this many times their high mark are left alone.
const PLENTY: u64 = 8;

/// Below this priority reclaim is in trouble.
const TROUBLE: u8 = DEF_PRIORITY - 2;

/// Reclaim for a boost alone does not go below this priority (modern).
const BOOST_PRIORITY: u8 = DEF_PRIORITY - 2;

/// Runs without any reclaim after which a node is hopeless (modern).
const HOPELESS: u32 = 16;

/// The daemon of one node.
#[derive(Clone, Copy, Debug)]
pub struct Kswapd {
    node: u8,
    /// Order that was asked for.
    asked: u8,
    /// Order that it works for: the one asked for, until that is given up.
    order: u8,
    sc: Scan,
    phase: Phase,
    /// Zones of the node, low to high, and how many.
    zones: [u8; MAX_ZONES],
    len: usize,
    /// The highest zone that is short, as a position in `zones`.
    end: usize,
    at: usize,
    zone: Option<ZoneScan>,
    total_scanned: u64,
    /// Pages looked at, and freed, when the pass began.
    pass_from: (u64, u64),
    all_ok: bool,
    below_min: bool,
    lru_pages: u64,
    run_reclaimed: u64,
    /// Boost seen at the start of a run, by zone.
    boost: [u64; MAX_ZONES],
    /// Pages still to be freed for that boost alone: as long as the node has enough even so, only
    /// what costs nothing is taken.
    for_boost: u64,
    failures: u32,
    /// Pages that direct reclaim had given back when kswapd gave up hope.
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
    pub fn new(node: u8) -> Kswapd {
        Kswapd {
            node,
            asked: 0,
            order: 0,
            sc: Scan {
                order: 0,
                priority: DEF_PRIORITY,
                clean_only: false,
                gfp: Gfp::KERNEL,
                kswapd: true,
                scanned: 0,
                reclaimed: 0,
                told: (0, 0),
                backlog: Backlog::default(),
            },
            phase: Phase::Asleep,
            zones: [0; MAX_ZONES],
            len: 0,
            end: 0,
            at: 0,
            zone: None,
            total_scanned: 0,
            pass_from: (0, 0),
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

    /// Goes on until something is needed. The first answer is [`Answer::Go`].
    pub fn step<H: Host>(&mut self, m: &mut Manager<'_, H>, answer: Answer) -> Need {
        let before = m.reclaim.pgsteal_kswapd;
        let need = if self.len == 0 {
            self.find_zones(m);
            Need::Sleep(None)
        } else {
            self.advance(m, answer)
        };
        if self.len == 0 {
            // A node without memory.
            return need;
        }
        let w = &mut m.kswapd[self.first()];
        w.helps = self.hopeless_since.is_none();
        w.works = !matches!(need, Need::Sleep(_));
        w.freed += m.reclaim.pgsteal_kswapd - before;
        need
    }

    fn advance<H: Host>(&mut self, m: &mut Manager<'_, H>, mut answer: Answer) -> Need {
        loop {
            let need = match self.phase {
                Phase::Asleep => self.woken(m),
                Phase::ShortSleep => self.slept_shortly(m, answer),
                Phase::Begin => {
                    self.begin();
                    None
                }
                Phase::Priority => self.begin_priority(m),
                Phase::Zones => self.scan_zones(m),
                Phase::Shrunk => {
                    let freed = match core::mem::replace(&mut answer, Answer::Go) {
                        Answer::Freed(n) => n,
                        _ => 0,
                    };
                    self.shrunk(m, freed)
                }
                Phase::Nap => {
                    let rule = m.env.sw.reclaim.congestion;
                    let both = rule == CongestionWait::BothEverywhere;
                    self.phase = Phase::Priority;
                    let second = super::direct::second_wait(rule, answer).filter(|_| both);
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
        for z in m.nodes_zones(self.node) {
            self.zones[self.len] = z as u8;
            self.len += 1;
        }
        self.phase = Phase::Asleep;
    }

    fn nodes_zones(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let zones = self.zones;
        (0..self.len).map(move |i| usize::from(zones[i]))
    }

    fn first(&self) -> usize {
        usize::from(self.zones[0])
    }

    /// What was asked for since the last look.
    fn take_wanted<H: Host>(&self, m: &mut Manager<'_, H>) -> Option<u8> {
        let w = &mut m.kswapd[self.first()];
        let order = core::mem::take(&mut w.order);
        core::mem::take(&mut w.asked).then_some(order)
    }

    fn woken<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
        match self.take_wanted(m) {
            // Until others get on. `spec: linux-mm 4.8`
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

    fn start_run<H: Host>(&mut self, m: &mut Manager<'_, H>, order: u8) {
        (self.asked, self.order) = (order, order);
        self.phase = Phase::Begin;
        self.run_reclaimed = 0;
        self.for_boost = 0;
        self.sc.backlog = Backlog::default();
        m.reclaim.pageoutrun += 1;
        for (i, z) in self.nodes_zones().enumerate() {
            self.boost[i] = m.zone(z).marks.boost;
            if m.env.sw.kswapd.form == KswapdForm::PerNode {
                self.for_boost += self.boost[i];
            }
            if let Some(z) = m.zones[z].as_mut() {
                z.reclaim_active = true;
            }
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
        zone: usize,
        order: u8,
        times: u64,
        class: ZoneKind,
    ) -> bool {
        let z = m.zone(zone);
        let mark = z.marks.of(AllocFlags::WMARK_HIGH) * times;
        z.passes(&m.env.sw, order, mark, class, AllocFlags::WMARK_HIGH)
    }

    /// Whether the node has what kswapd works for. `spec: linux-mm 4.2, 4.8`
    fn balanced<H: Host>(&self, m: &Manager<'_, H>, order: u8) -> bool {
        let top = m.zone(usize::from(self.zones[self.len - 1])).config.kind;
        if m.env.sw.kswapd.form == KswapdForm::PerNode {
            return self
                .nodes_zones()
                .any(|z| Self::zone_ok(m, z, order, 1, top));
        }
        let lowest = ZoneKind::Dma;
        self.nodes_zones()
            .all(|z| m.zone(z).all_unreclaimable || Self::zone_ok(m, z, order, 1, lowest))
    }

    fn begin_priority<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
        let rules = m.env.sw.kswapd;
        // The patch that was dropped after V2: a higher order is noticed while reclaim runs.
        if rules.notices_order_at_once {
            let w = m.kswapd[self.first()];
            if w.asked && w.order > self.order {
                m.kswapd[self.first()].asked = false;
                self.order = w.order;
                self.phase = Phase::Begin;
                return None;
            }
        }
        self.all_ok = true;
        self.below_min = false;
        if rules.form == KswapdForm::PerNode {
            if !self.balanced(m, self.order) {
                self.for_boost = 0;
            } else if self.for_boost == 0 {
                return self.run_done(m);
            }
            self.end = self.len - 1;
        } else {
            let mut end = None;
            for i in (0..self.len).rev() {
                let z = usize::from(self.zones[i]);
                if m.zone(z).all_unreclaimable && self.sc.priority != DEF_PRIORITY {
                    continue;
                }
                if m.inactive_is_low(z, false) && m.host.nr_swap_pages() > 0 {
                    m.shrink_active_list(z, false, SWAP_CLUSTER_MAX, &mut self.sc, true);
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
        self.lru_pages = self
            .nodes_zones()
            .take(self.end + 1)
            .map(|z| m.reclaimable_pages(z))
            .sum();
        self.at = 0;
        self.sc.clean_only = self.for_boost > 0;
        self.sc.backlog.next_pass();
        self.pass_from = (self.total_scanned, self.sc.reclaimed);
        self.phase = Phase::Zones;
        None
    }

    /// What a pass is to free: the high marks of the node's zones, or a batch where that is more.
    /// `spec: linux-mm 4.8`
    fn pass_goal<H: Host>(&self, m: &Manager<'_, H>) -> u64 {
        self.nodes_zones()
            .map(|z| m.zone(z).marks.of(AllocFlags::WMARK_HIGH))
            .map(|high| high.max(SWAP_CLUSTER_MAX))
            .sum()
    }

    fn scan_zones<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
        let per_node = m.env.sw.kswapd.form == KswapdForm::PerNode;
        while self.at <= self.end {
            let zone = usize::from(self.zones[self.at]);
            let vec = usize::from(m.lruvec_of[zone]);
            let class = m.zone(usize::from(self.zones[self.end])).config.kind;
            if self.zone.is_none() {
                // Lists by node are scanned once a pass.
                let twice =
                    per_node && self.at > 0 && vec == usize::from(m.lruvec_of[self.first()]);
                if twice || m.zone(zone).all_unreclaimable && self.sc.priority != DEF_PRIORITY {
                    self.at += 1;
                    continue;
                }
                if !Self::zone_ok(m, zone, self.order, 1, class) {
                    self.all_ok = false;
                    let z = m.zone(zone);
                    let min = z.marks.of(AllocFlags::empty());
                    self.below_min |=
                        !z.passes(&m.env.sw, self.order, min, class, AllocFlags::empty());
                }
                self.sc.scanned = 0;
                if !per_node && Self::zone_ok(m, zone, self.order, PLENTY, class) {
                    return self.shrink(m);
                }
                let mut scan = m.start_zone(vec, &self.sc);
                if per_node {
                    scan.enough = self.pass_from.1 + self.pass_goal(m);
                }
                self.zone = Some(scan);
            }
            if let Some(z) = &mut self.zone
                && let Some(need) = m.step_zone(z, &mut self.sc)
            {
                return Some(need);
            }
            self.zone = None;
            return self.shrink(m);
        }
        self.after_zones(m)
    }

    fn shrink<H: Host>(&mut self, _m: &mut Manager<'_, H>) -> Option<Need> {
        self.phase = Phase::Shrunk;
        Some(Need::Shrink {
            scanned: pressure(self.sc.scanned),
            lru_pages: self.lru_pages,
        })
    }

    fn shrunk<H: Host>(&mut self, m: &mut Manager<'_, H>, freed: u64) -> Option<Need> {
        self.total_scanned += core::mem::take(&mut self.sc.scanned);
        self.sc.reclaimed += freed;
        let zone = usize::from(self.zones[self.at]);
        m.note_unreclaimable(zone, freed);
        self.at += 1;
        self.phase = Phase::Zones;
        (self.sc.told.0 > 0).then(|| turn(&mut self.sc))
    }

    fn after_zones<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
        let rules = m.env.sw.kswapd;
        if rules.form == KswapdForm::PerNode {
            self.all_ok = self.balanced(m, self.order);
            // Enough for the order was freed: whoever wants a block can have it compacted.
            if self.order > 0 && self.sc.reclaimed >= 2 << self.order {
                self.order = 0;
                self.sc.order = 0;
            }
        }
        let freed = self.sc.reclaimed - self.pass_from.1;
        let looked = self.total_scanned - self.pass_from.0;
        let for_boost = self.for_boost > 0;
        self.for_boost = self.for_boost.saturating_sub(freed);
        if self.all_ok && self.for_boost == 0 {
            return self.run_done(m);
        }
        // Nothing can be had without writing.
        if for_boost && freed == 0 && (looked > 0 || self.sc.priority <= BOOST_PRIORITY) {
            return self.run_done(m);
        }
        if rules.form == KswapdForm::PerNode && self.sc.priority <= 1 {
            return self.run_done(m);
        }
        let level = match rules.nap {
            KswapdNap::TroubleLater => TROUBLE - self.order.min(TROUBLE),
            _ => TROUBLE,
        };
        let naps = self.total_scanned > 0 && self.sc.priority < level && rules.nap != KswapdNap::No;
        let skips = rules.nap == KswapdNap::NotBelowMin && self.below_min;
        if rules.form == KswapdForm::PerNode {
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
        if m.env.sw.reclaim.congestion == CongestionWait::Throttle
            && self.sc.backlog.outruns_the_disk()
        {
            return Some(Need::Throttle {
                why: Throttle::Writeback,
                ms: TENTH,
            });
        }
        if naps && !skips {
            self.phase = Phase::Nap;
            return Some(congestion_wait(m.env.sw.reclaim.congestion, TENTH));
        }
        m.reclaim.kswapd_skip_congestion_wait += u64::from(naps);
        Some(turn(&mut self.sc))
    }

    /// The goal is not met, but this round of priorities is over: from the start, and at order 0 if
    /// the order brought nothing and the era gives it up.
    fn start_over<H: Host>(&mut self, m: &Manager<'_, H>) {
        self.run_reclaimed += self.sc.reclaimed;
        if m.env.sw.kswapd.form == (KswapdForm::PerZone { drops_order: true })
            && self.sc.reclaimed < SWAP_CLUSTER_MAX
        {
            self.order = 0;
        }
        self.begin();
    }

    /// The goal is met (or there is no hope): towards sleep.
    fn run_done<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
        let rules = m.env.sw.kswapd;
        self.run_reclaimed += self.sc.reclaimed;
        for (i, z) in self.nodes_zones().enumerate() {
            let boost = core::mem::take(&mut self.boost[i]);
            if let Some(z) = m.zones[z].as_mut() {
                z.reclaim_active = false;
                z.marks.boost = z.marks.boost.saturating_sub(boost);
            }
        }
        if rules.form == KswapdForm::PerNode && !self.balanced(m, self.order) {
            self.failures = if self.run_reclaimed == 0 {
                self.failures + 1
            } else {
                0
            };
            if self.failures < HOPELESS {
                m.reclaim.kswapd_high_wmark_hit_quickly += 1;
                let again = self.take_wanted(m).unwrap_or(0);
                self.start_run(m, again.max(self.order));
                return Some(turn(&mut self.sc));
            }
            self.hopeless_since = Some(m.reclaim.pgsteal_direct);
            self.phase = Phase::Asleep;
            return Some(Need::Sleep(None));
        }
        self.failures = 0;
        // A higher order that was asked for meanwhile is begun at once.
        let wanted = m.kswapd[self.first()];
        let modern = rules.form == KswapdForm::PerNode;
        if !modern && wanted.asked && wanted.order > self.asked {
            m.kswapd[self.first()].asked = false;
            self.start_run(m, wanted.order);
            return None;
        }
        if rules.sleep == KswapdSleep::Staged && self.balanced(m, self.order) {
            self.phase = Phase::ShortSleep;
            return Some(Need::Sleep(Some(TENTH)));
        }
        self.phase = Phase::Asleep;
        m.kswapd[self.first()].asked = false;
        Some(Need::Sleep(None))
    }

    fn slept_shortly<H: Host>(&mut self, m: &mut Manager<'_, H>, answer: Answer) -> Option<Need> {
        let woken_early = matches!(answer, Answer::Left(ms) if ms > 0);
        let high_ok = self.balanced(m, self.order);
        if woken_early {
            m.reclaim.kswapd_low_wmark_hit_quickly += 1;
        } else if !high_ok {
            m.reclaim.kswapd_high_wmark_hit_quickly += 1;
        } else {
            self.phase = Phase::Asleep;
            m.kswapd[self.first()].asked = false;
            return Some(Need::Sleep(None));
        }
        // Before orders were balanced for any zone, nobody remembered that of the last run: without a
        // request since, the order is 0. `spec: linux-mm 4.6` leaves that open.
        let kept = match m.env.sw.kswapd.form {
            KswapdForm::PerNode => self.order,
            KswapdForm::PerZone { .. } => 0,
        };
        let order = self.take_wanted(m).map_or(kept, |o| o.max(kept));
        self.start_run(m, order);
        None
    }
}
