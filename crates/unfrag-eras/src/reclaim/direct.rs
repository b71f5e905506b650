//! Direct reclaim: a request that found nothing reclaims by itself. `spec: 4.3 (6), 4.8`

use super::batch::PageBatch;
use super::lru_scan::Work;
use super::scan::Scan;
use super::scan_control::ScanControl;
use super::waits::{HZ_OVER_10_MS, congestion_wait, second_wait, turn};
use crate::compact::compact_gap;
use crate::evict::{Eviction, Verdicts};
use crate::frame::{CpuId, LruId, MAX_ZONES, NodeId, Order, ZoneKind};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::CongestionWait;
use crate::lru::{DEF_PRIORITY, SWAP_CLUSTER_MAX};
use crate::manager::Manager;
use crate::need::{Answer, Need, Step, Throttle};
use crate::zone::ZoneList;

/// Pages looked at from which on flushers are woken: the wanted 32 and half as many.
const WRITES_FROM: u64 = SWAP_CLUSTER_MAX + SWAP_CLUSTER_MAX / 2;

/// Most milliseconds of one wait for kswapd.
const RESERVES_WAIT_MS: u32 = 1000;

/// One direct reclaim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectReclaim {
    sc: ScanControl,
    /// LRU lists to scan, best zone first.
    lrus: [LruId; MAX_ZONES],
    len: usize,
    /// Zones that the request could use.
    zones: ZoneList,
    at: usize,
    scan: Option<Scan>,
    batch: PageBatch,
    total_scanned: u64,
    /// Pages freed before the last priority.
    freed_before: u64,
    /// It waited for kswapd, and kswapd freed nothing meanwhile.
    pub throttle_failed: bool,
    phase: Phase,
}

/// A kswapd that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KswapdWait {
    node: NodeId,
    /// Pages that it had freed before.
    freed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// First: whether so little is free that it must wait for kswapd.
    Throttle,
    /// After a wait for kswapd.
    Throttled(KswapdWait),
    Zones,
    Shrink,
    Shrunk,
    Nap,
    /// With both classes: the second wait.
    SecondNap,
}

impl DirectReclaim {
    /// A reclaim for a block of `order` in these zones, with the rights of `gfp`. `may_throttle`: it may
    /// wait for kswapd first.
    pub fn new<H: Host>(
        m: &mut Manager<'_, H>,
        zones: &ZoneList,
        order: Order,
        gfp: Gfp,
        may_throttle: bool,
    ) -> DirectReclaim {
        let mut d = DirectReclaim {
            sc: ScanControl::new(order, gfp, false),
            lrus: [LruId(0); MAX_ZONES],
            len: 0,
            zones: *zones,
            at: 0,
            scan: None,
            batch: PageBatch::new(),
            total_scanned: 0,
            freed_before: 0,
            throttle_failed: false,
            phase: if may_throttle {
                Phase::Throttle
            } else {
                Phase::Zones
            },
        };
        for z in zones.zones() {
            let lru = m.zone(z).lru;
            if !d.lrus[..d.len].contains(&lru) {
                d.lrus[d.len] = lru;
                d.len += 1;
            }
        }
        m.reclaim.allocstall += 1;
        d
    }

    /// Pages whose owners are to be asked.
    pub fn eviction(&self) -> &Eviction {
        self.batch.eviction()
    }

    /// Pages freed so far.
    pub fn reclaimed(&self) -> u64 {
        self.sc.reclaimed
    }

    /// Ends it early. `answer` is what became of its last need: without an answer, pages that it asked about stay.
    pub fn abort<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, answer: Answer) {
        let verdicts = match answer {
            Answer::Evicted(verdicts) => verdicts,
            _ => Verdicts::NONE,
        };
        self.batch.abort(m, cpu, &mut self.sc, verdicts);
    }

    /// Goes on until something is needed or done; the result is whether there was progress.
    pub fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
    ) -> Step<bool> {
        let mut answer = answer;
        loop {
            match self.phase {
                Phase::Throttle => {
                    if let Some(need) = self.throttle(m) {
                        m.reclaim.pgscan_direct_throttle += 1;
                        return Step::Need(need);
                    }
                }
                // After a wait in which kswapd freed nothing there is no other one: kswapd may itself wait
                // for this task.
                Phase::Throttled(h)
                    if m.node(h.node).is_some_and(|n| n.kswapd_freed == h.freed) =>
                {
                    self.throttle_failed = true;
                    self.phase = Phase::Zones;
                }
                Phase::Throttled(_) => {
                    if let Some(need) = self.throttle(m) {
                        return Step::Need(need);
                    }
                }
                Phase::Zones => {
                    if let Some(need) = self.scan_zones(m, cpu, &mut answer) {
                        return Step::Need(need);
                    }
                    self.phase = Phase::Shrink;
                }
                Phase::Shrink => {
                    self.phase = Phase::Shrunk;
                    let lrus = &self.lrus[..self.len];
                    let lru_pages = lrus.iter().map(|&v| m.reclaimable_pages(v)).sum();
                    return Step::Need(Need::Shrink {
                        scanned: m.shrink_pressure(&self.sc, lru_pages),
                        lru_pages,
                    });
                }
                Phase::Shrunk => {
                    if let Answer::Freed(n) = core::mem::replace(&mut answer, Answer::Go) {
                        self.sc.reclaimed += n;
                    }
                    match self.after_priority(m) {
                        Some(step) => return step,
                        None => continue,
                    }
                }
                Phase::Nap | Phase::SecondNap => {
                    let rule = m.policy.rules.reclaim.congestion;
                    let first = self.phase == Phase::Nap;
                    self.phase = Phase::Zones;
                    if first && let Some(need) = second_wait(rule, answer) {
                        self.phase = Phase::SecondNap;
                        return Step::Need(need);
                    }
                }
            }
        }
    }

    /// Waits for kswapd while less than half of the min marks is free: the rest is kept for
    /// tasks that reclaim. `spec: 4.8`
    fn throttle<H: Host>(&mut self, m: &Manager<'_, H>) -> Option<Need> {
        self.phase = Phase::Zones;
        let node = m.node(m.zone(self.zones.zones().next()?).node)?;
        let comes = node.kswapd_usable && (node.kswapd_awake || node.kswapd_asked);
        if !m.policy.rules.reclaim.reserves_throttle || !comes {
            return None;
        }
        let zones = node.zones().map(|z| m.zone(z));
        let (mut free, mut min) = (0, 0);
        for z in zones.filter(|z| z.kind <= ZoneKind::Normal) {
            free += z.counter.max(0) as u64;
            min += z.marks.of(AllocFlags::empty());
        }
        if free >= min / 2 {
            return None;
        }
        self.phase = Phase::Throttled(KswapdWait {
            node: node.id,
            freed: node.kswapd_freed,
        });
        Some(Need::Throttle {
            why: Throttle::Reserves,
            ms: RESERVES_WAIT_MS,
        })
    }

    fn scan_zones<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: &mut Answer,
    ) -> Option<Need> {
        while self.at < self.len {
            let lru = self.lrus[self.at];
            if self.scan.is_none() {
                // Unreclaimable lists are scanned at the first priority only.
                if m.all_unreclaimable(lru) && self.sc.priority != DEF_PRIORITY {
                    self.at += 1;
                    continue;
                }
                self.scan = Some(Scan::new(m, lru, &self.sc, &mut self.batch));
            }
            let answer = core::mem::replace(answer, Answer::Go);
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
            self.at += 1;
        }
        self.at = 0;
        None
    }

    /// Whether it is for a costly order, and has not yet made the room that compaction needs. `spec: 4.8`
    fn goes_on_for_room<H: Host>(&self, m: &Manager<'_, H>) -> bool {
        let (order, rules) = (self.sc.order, &m.policy.rules.reclaim);
        if !rules.direct_makes_room || m.policy.sysctl.lru_gen || order <= Order::COSTLY {
            return false;
        }
        self.sc.reclaimed < compact_gap(order)
    }

    /// What follows a priority: done, a nap, or the next one.
    fn after_priority<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Step<bool>> {
        let scanned = core::mem::take(&mut self.sc.scanned);
        self.total_scanned += scanned;
        let before = core::mem::replace(&mut self.freed_before, self.sc.reclaimed);
        let in_vain = scanned > 0 && self.sc.reclaimed == before;
        if self.sc.reclaimed >= SWAP_CLUSTER_MAX {
            if in_vain || self.sc.priority == 0 || !self.goes_on_for_room(m) {
                return Some(Step::Done(true));
            }
            // Once more at the same priority; where that was too little for a batch, at the next.
            self.sc.priority -= u8::from(scanned == 0);
            self.phase = Phase::Zones;
            return (self.sc.unreported.0 > 0).then(|| Step::Need(turn(&mut self.sc)));
        }
        if self.sc.priority == 0 {
            let lrus = &self.lrus[..self.len];
            for &lru in lrus {
                m.note_unreclaimable(lru, 0);
            }
            // In some eras reclaim counts as progress while some list is not unreclaimable.
            let alive = lrus.iter().any(|&lru| !m.all_unreclaimable(lru));
            let unexhausted = m.policy.rules.reclaim.hope_is_progress && alive;
            return Some(Step::Done(self.sc.reclaimed > 0 || unexhausted));
        }
        let rule = m.policy.rules.reclaim.congestion;
        let wants_flushers = self.total_scanned > WRITES_FROM;
        let congested = rule == CongestionWait::Throttle && self.sc.backlog.congested();
        self.sc.backlog.next_pass();
        let naps = scanned > 0 && self.sc.priority < DEF_PRIORITY - 2;
        self.sc.priority -= 1;
        if naps && rule != CongestionWait::Throttle {
            self.phase = Phase::Nap;
            return Some(Step::Need(congestion_wait(rule, HZ_OVER_10_MS)));
        }
        self.phase = Phase::Zones;
        // Flushers are not woken for pages that wait for a congested device.
        if congested {
            return Some(Step::Need(Need::Throttle {
                why: Throttle::Congested,
                ms: 0,
            }));
        }
        if wants_flushers {
            return Some(Step::Need(Need::WakeFlushers(self.total_scanned)));
        }
        (self.sc.unreported.0 > 0).then(|| Step::Need(turn(&mut self.sc)))
    }
}
