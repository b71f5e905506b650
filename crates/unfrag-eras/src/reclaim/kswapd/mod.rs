//! kswapd: the daemon of a node that reclaims ahead of demand. `spec: 4.2, 4.6, 4.8`
//!
//! `sleep`: how a run begins and ends. `pass`: one pass over the zones, at one priority.
//!
//! Invariant: it sleeps only when its goal is met, when it was not asked, or when it has given up. Each request
//! is taken over exactly once.

use crate::drive::Operation;
use crate::evict::{Eviction, Verdicts};
use crate::frame::{CpuId, LruId, MAX_ZONES, NodeId, Order, ZoneId, ZoneKind};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::{CongestionWait, KswapdForm};
use crate::lru::{DEF_PRIORITY, first_priority};
use crate::manager::Manager;
use crate::need::{Answer, Need, Step};
use crate::reclaim::batch::PageBatch;
use crate::reclaim::scan::Scan;
use crate::reclaim::scan_control::ScanControl;
use crate::reclaim::waits::second_wait;
use core::convert::Infallible;

mod pass;
mod sleep;

/// The daemon of one node. It holds pages between two steps: it ends by [`abort`](Kswapd::abort).
#[derive(Debug)]
// For the twin of a manager, in which it holds the same again.
#[cfg_attr(feature = "lab", derive(Clone))]
#[must_use = "it holds pages until it is aborted"]
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
    /// The priority of the run's first pass.
    first: u8,
    scan: Option<Scan>,
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
            first: DEF_PRIORITY,
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

    /// Ends it, as its node goes away. `answer` is what became of its last need: without an answer, pages that it asked
    /// about stay. What it holds goes back to its lists.
    pub fn abort<H: Host>(mut self, m: &mut Manager<'_, H>, cpu: CpuId, answer: Answer) {
        let verdicts = match answer {
            Answer::Evicted(verdicts) => verdicts,
            _ => Verdicts::NONE,
        };
        self.batch.abort(m, cpu, &mut self.sc, verdicts);
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
                    self.begin(m);
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

    fn begin<H: Host>(&mut self, m: &Manager<'_, H>) {
        self.sc.order = self.order;
        self.first = self.first_priority(m);
        self.sc.priority = self.first;
        (self.sc.scanned, self.sc.reclaimed) = (0, 0);
        self.total_scanned = 0;
        self.phase = Phase::Priority;
    }

    /// The priority of the first pass: in generations of some eras, that at which it is about to free its goal.
    /// `spec: 4.10`
    fn first_priority<H: Host>(&self, m: &Manager<'_, H>) -> u8 {
        if m.generations().is_none_or(|g| !g.starts_by_size) {
            return DEF_PRIORITY;
        }
        let lrus = self.lrus(m, self.len);
        let pages = lrus.map(|lru| m.evictable_pages(lru, &self.sc)).sum();
        first_priority(pages, self.pass_goal(m))
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
            return self.nodes_zones().any(|z| m.is_balanced(z, order, top));
        }
        let lowest = ZoneKind::Dma;
        self.nodes_zones()
            .all(|z| m.all_unreclaimable(m.zone(z).lru) || Self::zone_ok(m, z, order, 1, lowest))
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
