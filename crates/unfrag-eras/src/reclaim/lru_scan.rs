//! The scan of one zone or node at one priority of a reclaim (`shrink_zone`, `shrink_lruvec`). `spec: 4.1`

use super::batch::{PageBatch, PassOutcome};
use super::fate::Pass;
use super::scan_control::ScanControl;
use super::waits::{HZ_OVER_10_MS, HZ_OVER_50_MS, turn};
use crate::evict::Verdicts;
use crate::frame::{CpuId, FrameIx, LruId};
use crate::host::Host;
use crate::kernel::{CongestionWait, LruShape};
use crate::lru::{DEF_PRIORITY, Lru, SWAP_CLUSTER_MAX};
use crate::manager::Manager;
use crate::need::{Answer, Class, Need, Throttle};

/// What an operation scans with: its scan, and the one batch that it has.
pub(super) struct Work<'a> {
    pub sc: &'a mut ScanControl,
    pub batch: &'a mut PageBatch,
}

/// The scan of one zone (or node) at one priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct LruScan {
    lru: LruId,
    /// Pages to look at on each evictable list.
    nr: [u64; 4],
    list: usize,
    /// Number of freed pages at which the scan may end early.
    pub enough: u64,
    phase: Phase,
    /// It waited already for isolated pages of the list at hand.
    stalled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Scan,
    /// Owners are asked about a slice of the batch.
    Asked,
    /// The wait before a lumpy batch's second pass.
    Waited,
    /// Waiting for a page's writeback.
    Writeback(FrameIx),
}

impl LruScan {
    /// Begins the scan of a zone or node.
    pub fn new<H: Host>(
        m: &mut Manager<'_, H>,
        lru: LruId,
        sc: &ScanControl,
        batch: &mut PageBatch,
    ) -> LruScan {
        batch.of(lru);
        let no_swap = m.nr_swap_pages == 0 || sc.clean_only;
        let percent = if no_swap { 0 } else { m.anon_percent(lru) };
        let joined = is_joined(m);
        let lists = &mut m.lrus[lru.index()];
        let mut nr = [0; 4];
        for (nr, &list) in nr.iter_mut().zip(&Lru::EVICTABLE) {
            let mut scan = lists.len(list);
            if joined {
                // In these eras this is one list: all of it ages alike. Without swap, anonymous pages stay.
                scan = if !list.is_file() && no_swap {
                    0
                } else {
                    (scan >> sc.priority) + 1
                };
            } else if sc.priority > 0 || no_swap {
                let share = if list.is_file() {
                    100 - percent
                } else {
                    percent
                };
                scan = (scan >> sc.priority) * share / 100;
            }
            let saved = &mut lists.saved_scan[list.index()];
            *saved += scan;
            // For a boost alone, page cache is scanned without waiting for a whole batch.
            let at_once = sc.clean_only && list.is_file();
            if *saved >= SWAP_CLUSTER_MAX || at_once {
                *nr = core::mem::take(saved);
            }
        }
        lists.prev_priority = sc.priority;
        let cut_short = !sc.kswapd && sc.priority < DEF_PRIORITY;
        LruScan {
            lru,
            nr,
            list: 0,
            enough: if cut_short {
                sc.reclaimed + SWAP_CLUSTER_MAX
            } else {
                u64::MAX
            },
            phase: Phase::Scan,
            stalled: false,
        }
    }

    /// Continues until something is needed; `None` when the scan is done.
    pub fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        work: Work,
        answer: Answer,
    ) -> Option<Need> {
        let Work { sc, batch } = work;
        let mut after_list = false;
        if self.phase != Phase::Scan {
            let pages = if self.phase == Phase::Asked {
                let verdicts = match answer {
                    Answer::Evicted(verdicts) => verdicts,
                    _ => Verdicts::NONE,
                };
                batch.answered(m, cpu, sc, verdicts)
            } else {
                batch.begin(sc, Pass::Sync);
                batch.run(m, cpu, sc)
            };
            after_list = batch.pass() == Pass::First;
            if let Some(need) = self.after(m, cpu, Work { sc, batch }, pages) {
                return Some(need);
            }
        }
        // The order of the kernel: inactive anonymous, active anonymous, inactive file, active file.
        // Active anonymous pages alone keep a scan going only where lists are joined.
        let joined = is_joined(m);
        loop {
            if core::mem::take(&mut after_list) {
                if self.list == 0 && sc.reclaimed > self.enough {
                    break;
                }
                if sc.unreported.0 >= SWAP_CLUSTER_MAX as u32 {
                    return Some(turn(sc));
                }
            }
            let active_anon = if joined { self.nr[1] } else { 0 };
            if self.nr[0] + self.nr[2] + self.nr[3] + active_anon == 0 {
                break;
            }
            let i = self.list;
            if self.nr[i] == 0 {
                self.list = (i + 1) % 4;
                if self.list == 0 && sc.reclaimed > self.enough {
                    break;
                }
                continue;
            }
            let lru = Lru::EVICTABLE[i];
            let nr = self.nr[i].min(SWAP_CLUSTER_MAX);
            let crowded = !lru.is_active() && too_many_isolated(m, self.lru, lru.is_file(), sc);
            if crowded && !self.stalled {
                self.stalled = true;
                return Some(isolated_wait(m));
            }
            self.stalled = false;
            self.nr[i] -= nr;
            self.list = (i + 1) % 4;
            if crowded {
                // After one wait the list yields nothing, so that a request never waits for ever for an operation
                // that stands still.
                continue;
            }
            if let Some(need) = self.shrink_list(m, cpu, Work { sc, batch }, (lru, nr)) {
                return Some(need);
            }
            after_list = true;
        }
        if !joined && m.inactive_is_low(self.lru, false) && m.nr_swap_pages > 0 {
            m.shrink_active_list(cpu, (self.lru, false), SWAP_CLUSTER_MAX, sc, true);
        }
        self.nr = [0; 4];
        None
    }

    /// Scans some pages of a list.
    fn shrink_list<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        work: Work,
        (lru, nr): (Lru, u64),
    ) -> Option<Need> {
        let Work { sc, batch } = work;
        let list = (self.lru, lru.is_file());
        if lru.is_active() {
            if is_joined(m) || m.inactive_is_low(self.lru, lru.is_file()) {
                let mapped = m.takes_mapped(self.lru, sc.priority);
                m.shrink_active_list(cpu, list, nr, sc, mapped);
            }
            return None;
        }
        m.isolate_inactive(list, nr, sc, &mut batch.held);
        batch.begin(sc, Pass::First);
        let pages = batch.run(m, cpu, sc);
        self.after(m, cpu, Work { sc, batch }, pages)
    }

    /// Continues after a part of a pass.
    fn after<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        work: Work,
        pages: PassOutcome,
    ) -> Option<Need> {
        let Work { sc, batch } = work;
        match pages {
            PassOutcome::Ask => {
                self.phase = Phase::Asked;
                return Some(Need::Evict);
            }
            PassOutcome::Writeback(ix) => {
                self.phase = Phase::Writeback(ix);
                return Some(Need::PageWriteback(m.map.pfn(ix)));
            }
            PassOutcome::Done => {}
        }
        let first = batch.pass() == Pass::First;
        if first && sc.waits_for_batch(m.policy.rules.reclaim.high_order) && !batch.held.is_empty()
        {
            self.phase = Phase::Waited;
            return Some(Need::CongestionWait {
                class: match m.policy.rules.reclaim.congestion {
                    CongestionWait::Sync => Class::Sync,
                    _ => Class::Async,
                },
                ms: HZ_OVER_10_MS,
            });
        }
        batch.putback_lru(m, cpu);
        self.phase = Phase::Scan;
        None
    }
}

fn is_joined<H: Host>(m: &Manager<'_, H>) -> bool {
    m.policy.rules.reclaim.lru.shape() == LruShape::Joined
}

/// Whether the operation should first wait until fewer pages are isolated (`too_many_isolated`).
fn too_many_isolated<H: Host>(
    m: &Manager<'_, H>,
    lru: LruId,
    file: bool,
    sc: &ScanControl,
) -> bool {
    let v = &m.lrus[lru.index()];
    !sc.kswapd
        && m.policy.rules.reclaim.isolated_throttle
        && v.isolated[usize::from(file)] > v.len(Lru::new(file, false))
}

fn isolated_wait<H: Host>(m: &Manager<'_, H>) -> Need {
    if m.policy.rules.reclaim.congestion == CongestionWait::Throttle {
        return Need::Throttle {
            why: Throttle::Isolated,
            ms: HZ_OVER_50_MS,
        };
    }
    Need::CongestionWait {
        class: Class::Async,
        ms: HZ_OVER_10_MS,
    }
}
