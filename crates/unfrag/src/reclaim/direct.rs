//! Direct reclaim: a request that found nothing reclaims by itself. `spec: linux-mm 4.3 (6), 4.8`

use super::scan::{Backlog, Scan};
use super::shrink::{TENTH, ZoneScan, turn};
use super::{Answer, Class, DEF_PRIORITY, Need, SWAP_CLUSTER_MAX, Step, Throttle, pressure};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::CongestionWait;
use crate::page_alloc::{MAX_ZONES, Manager};
use crate::zone::ZoneKind;

/// Pages looked at from which on flushers are woken: the wanted 32 and half as many.
const WRITES_FROM: u64 = SWAP_CLUSTER_MAX + SWAP_CLUSTER_MAX / 2;

/// Most milliseconds of one wait for kswapd.
const SECOND: u32 = 1000;

/// One direct reclaim on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectReclaim {
    sc: Scan,
    /// LRU lists to scan, best zone first.
    vecs: [u8; MAX_ZONES],
    len: usize,
    /// Zones that the request could use.
    zones: [u8; MAX_ZONES],
    nr_zones: usize,
    at: usize,
    zone: Option<ZoneScan>,
    total_scanned: u64,
    /// A wait for kswapd was in vain.
    pub in_vain: bool,
    phase: Phase,
}

/// A kswapd that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Helper {
    /// The first zone of its node.
    zone: u8,
    /// Pages that it had freed before.
    freed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before anything else: whether too little is free for those that reclaim.
    Stall,
    /// It waited for kswapd.
    Stalled(Helper),
    Zones,
    Shrink,
    Shrunk,
    Nap,
    /// With both classes: the second wait.
    SecondNap,
}

/// Waits of reclaim and of the allocator in the era's way. `both` says whether this caller is among
/// those that wait for both classes.
pub(crate) fn congestion_wait(rule: CongestionWait, ms: u32) -> Need {
    match rule {
        CongestionWait::Sync => Need::CongestionWait {
            class: Class::Sync,
            ms,
        },
        CongestionWait::Throttle => Need::Throttle {
            why: Throttle::NoProgress,
            ms: 0,
        },
        CongestionWait::Async | CongestionWait::Both | CongestionWait::BothEverywhere => {
            Need::CongestionWait {
                class: Class::Async,
                ms,
            }
        }
    }
}

/// What a caller that waits for both classes does with the time that the first wait left.
pub(crate) fn second_wait(rule: CongestionWait, answer: Answer) -> Option<Need> {
    let both = matches!(rule, CongestionWait::Both | CongestionWait::BothEverywhere);
    match answer {
        Answer::Left(ms) if both && ms > 0 => Some(Need::CongestionWait {
            class: Class::Sync,
            ms,
        }),
        _ => None,
    }
}

impl DirectReclaim {
    /// A reclaim for a block of `order` in these zones, with the rights of `gfp`. `stalls`: it may
    /// wait for kswapd first.
    pub fn new<H: Host>(
        m: &mut Manager<'_, H>,
        zones: &[u8],
        order: u8,
        gfp: Gfp,
        stalls: bool,
    ) -> DirectReclaim {
        let mut d = DirectReclaim {
            sc: Scan {
                order,
                priority: DEF_PRIORITY,
                clean_only: false,
                gfp,
                kswapd: false,
                scanned: 0,
                reclaimed: 0,
                told: (0, 0),
                backlog: Backlog::default(),
            },
            vecs: [0; MAX_ZONES],
            len: 0,
            zones: [0; MAX_ZONES],
            nr_zones: zones.len(),
            at: 0,
            zone: None,
            total_scanned: 0,
            in_vain: false,
            phase: if stalls { Phase::Stall } else { Phase::Zones },
        };
        d.zones[..zones.len()].copy_from_slice(zones);
        for &z in zones {
            let v = m.lruvec_of[usize::from(z)];
            if !d.vecs[..d.len].contains(&v) {
                d.vecs[d.len] = v;
                d.len += 1;
            }
        }
        m.reclaim.allocstall += 1;
        d
    }

    /// Pages freed so far.
    pub fn reclaimed(&self) -> u64 {
        self.sc.reclaimed
    }

    /// Goes on until something is needed or done; the result is whether there was progress.
    pub fn step<H: Host>(&mut self, m: &mut Manager<'_, H>, answer: Answer) -> Step<bool> {
        let mut answer = answer;
        loop {
            match self.phase {
                Phase::Stall => {
                    if let Some(need) = self.stall(m) {
                        m.reclaim.pgscan_direct_throttle += 1;
                        return Step::Need(need);
                    }
                }
                // A wait in which kswapd freed nothing is the last: it may wait for this very task.
                Phase::Stalled(h) if h.freed == m.kswapd[usize::from(h.zone)].freed => {
                    self.in_vain = true;
                    self.phase = Phase::Zones;
                }
                Phase::Stalled(_) => {
                    if let Some(need) = self.stall(m) {
                        return Step::Need(need);
                    }
                }
                Phase::Zones => {
                    if let Some(need) = self.scan_zones(m) {
                        return Step::Need(need);
                    }
                    self.phase = Phase::Shrink;
                }
                Phase::Shrink => {
                    self.phase = Phase::Shrunk;
                    let lru_pages = self.vecs[..self.len]
                        .iter()
                        .map(|&v| m.reclaimable_pages(v.into()))
                        .sum();
                    return Step::Need(Need::Shrink {
                        scanned: pressure(self.sc.scanned),
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
                    let rule = m.env.sw.reclaim.congestion;
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

    /// Waits for kswapd while less than half of the min marks is free: the rest is for those that
    /// reclaim. `spec: linux-mm 4.8`
    fn stall<H: Host>(&mut self, m: &Manager<'_, H>) -> Option<Need> {
        self.phase = Phase::Zones;
        let node = m.zone(usize::from(self.zones[0])).config.node;
        let first = m.nodes_zones(node).next()?;
        let w = m.kswapd[first];
        let comes = w.helps && (w.works || w.asked);
        if !m.env.sw.reclaim.reserves_throttle || !comes {
            return None;
        }
        let lower = m
            .nodes_zones(node)
            .map(|z| m.zone(z))
            .filter(|z| z.config.kind <= ZoneKind::Normal);
        let (mut free, mut min) = (0, 0);
        for z in lower {
            free += z.counter.max(0) as u64;
            min += z.marks.of(AllocFlags::empty());
        }
        if free >= min / 2 {
            return None;
        }
        self.phase = Phase::Stalled(Helper {
            zone: first as u8,
            freed: w.freed,
        });
        Some(Need::Throttle {
            why: Throttle::Reserves,
            ms: SECOND,
        })
    }

    fn scan_zones<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Need> {
        while self.at < self.len {
            let vec = usize::from(self.vecs[self.at]);
            if self.zone.is_none() {
                // A zone that gave nothing for long is looked at once in a while.
                if m.zone(vec).all_unreclaimable && self.sc.priority != DEF_PRIORITY {
                    self.at += 1;
                    continue;
                }
                self.zone = Some(m.start_zone(vec, &self.sc));
            }
            if let Some(z) = &mut self.zone
                && let Some(need) = m.step_zone(z, &mut self.sc)
            {
                return Some(need);
            }
            self.zone = None;
            self.at += 1;
        }
        self.at = 0;
        None
    }

    /// What follows a priority: done, a nap, or the next one.
    fn after_priority<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Step<bool>> {
        let scanned = core::mem::take(&mut self.sc.scanned);
        self.total_scanned += scanned;
        if self.sc.reclaimed >= SWAP_CLUSTER_MAX {
            return Some(Step::Done(true));
        }
        if self.sc.priority == 0 {
            let zones = &self.zones[..self.nr_zones];
            for &z in zones {
                m.note_unreclaimable(z.into(), 0);
            }
            // Zones that have not given up may count as progress.
            let alive = zones.iter().any(|&z| !m.zone(z.into()).all_unreclaimable);
            let hopes = m.env.sw.reclaim.hope_is_progress && alive;
            return Some(Step::Done(self.sc.reclaimed > 0 || hopes));
        }
        let rule = m.env.sw.reclaim.congestion;
        let wants_flushers = self.total_scanned > WRITES_FROM;
        let congested = rule == CongestionWait::Throttle && self.sc.backlog.congested();
        self.sc.backlog.next_pass();
        let naps = scanned > 0 && self.sc.priority < DEF_PRIORITY - 2;
        self.sc.priority -= 1;
        if naps && rule != CongestionWait::Throttle {
            self.phase = Phase::Nap;
            return Some(Step::Need(congestion_wait(rule, TENTH)));
        }
        self.phase = Phase::Zones;
        // Nobody needs to be told to write what waits for a busy disk.
        if congested {
            return Some(Step::Need(Need::Throttle {
                why: Throttle::Congested,
                ms: 0,
            }));
        }
        if wants_flushers {
            return Some(Step::Need(Need::WakeFlushers(self.total_scanned)));
        }
        (self.sc.told.0 > 0).then(|| Step::Need(turn(&mut self.sc)))
    }
}
