//! How much of which list is scanned: the balance between anonymous and file pages, and one zone's
//! share at a priority. `spec: linux-mm 4.1`

use super::scan::{Batch, Scan};
use super::{DEF_PRIORITY, Lru, Need, SWAP_CLUSTER_MAX, Throttle};
use crate::frame::Ix;
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::kernel::{ActiveFiles, CongestionWait, LruShape, ScanBalance};
use crate::page_alloc::Manager;
use crate::place::List;
use crate::zone::watermark::isqrt;

/// Ticks of congestion waits, in milliseconds: HZ/10 and HZ/50.
pub(super) const TENTH: u32 = 100;
pub(crate) const FIFTIETH: u32 = 20;

/// Pages that may be scanned and yet freed by nobody, in multiples of what could be.
const UNRECLAIMABLE: u64 = 6;

/// One zone (or node) on its way through one priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZoneScan {
    vec: usize,
    /// Pages to look at on each evictable list.
    nr: [u64; 4],
    list: usize,
    /// Pages freed with which this zone's share need not be scanned to its end.
    pub enough: u64,
    /// What a lumpy batch left, held apart.
    held: List,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Scan,
    /// The wait before a lumpy batch's second pass.
    Waited,
    /// Waiting for a page's writeback.
    Writeback(Ix),
}

impl<H: Host> Manager<'_, H> {
    /// Reclaimable pages of a zone's lists.
    pub(crate) fn reclaimable_pages(&self, vec: usize) -> u64 {
        let v = &self.lruvecs[vec];
        let file = v.len(Lru::InactiveFile) + v.len(Lru::ActiveFile);
        if self.host.nr_swap_pages() > 0 {
            file + v.len(Lru::InactiveAnon) + v.len(Lru::ActiveAnon)
        } else {
            file
        }
    }

    /// Share of anonymous pages in a scan, in percent of their list. `spec: linux-mm 4.1 get_scan_ratio`
    ///
    /// On 5.8 and later the specification is silent. The counters of a recorded 6.1 say that
    /// anonymous pages in constant use are scanned on: while none of 38,000 that it looked at could
    /// be taken, the share of that list that it scanned was a fourth of that of page cache, all of
    /// which could. With the costs held to at most 2 to 1 it is 30 to 140.
    fn anon_percent(&mut self, vec: usize) -> u64 {
        let free = self.zone(vec).counter.max(0) as u64;
        let high = self.zone(vec).marks.of(AllocFlags::WMARK_HIGH);
        let swappiness = self.env.sysctl.swappiness;
        let lru = self.env.sw.reclaim.lru;
        let v = &mut self.lruvecs[vec];
        let anon = v.len(Lru::InactiveAnon) + v.len(Lru::ActiveAnon);
        let file = v.len(Lru::InactiveFile) + v.len(Lru::ActiveFile);
        if file + free <= high {
            return 100;
        }
        for (i, pages) in [anon, file].into_iter().enumerate() {
            if v.recent_scanned[i] > pages / 4 {
                v.recent_scanned[i] /= 2;
                v.recent_rotated[i] /= 2;
            }
        }
        if lru.split().is_some_and(|s| s.balance == ScanBalance::Cost) {
            let [anon, file] = v.recent_rotated;
            let share = |prio: u64, cost: u64| prio * (3 * (anon + file) + 1) / (cost + 1);
            let ap = share(swappiness, 2 * anon + file);
            let fp = share(200 - swappiness.min(200), anon + 2 * file);
            return 100 * ap / (ap + fp).max(1);
        }
        let pressure = |i: usize, prio: u64| {
            (prio + 1) * (v.recent_scanned[i] + 1) / (v.recent_rotated[i] + 1)
        };
        let (ap, fp) = (
            pressure(0, swappiness),
            pressure(1, 200 - swappiness.min(200)),
        );
        100 * ap / (ap + fp + 1)
    }

    /// Whether a kind's inactive list is too short, so that its active one is shortened; that of page
    /// cache always, where the era spares none. `spec: linux-mm 4.1`
    pub(super) fn inactive_is_low(&self, vec: usize, file: bool) -> bool {
        let lru = self.env.sw.reclaim.lru;
        let rule = match lru.split() {
            Some(s) if file => s.active_files,
            _ => ActiveFiles::ByRatio,
        };
        if rule == ActiveFiles::EachScan {
            return true;
        }
        let v = &self.lruvecs[vec];
        let (inactive, active) = (v.len(Lru::new(file, false)), v.len(Lru::new(file, true)));
        if rule == ActiveFiles::WhenLonger {
            return active > inactive;
        }
        let gib = self.zone(vec).config.present >> 18;
        let ratio = if gib > 0 { isqrt(10 * gib) } else { 1 };
        inactive * ratio < active
    }

    /// With joined lists: whether mapped pages are to be taken too. Of common knowledge, since the
    /// specification begins with 2.6.31: mapped share / 2 + distress + swappiness ≥ 100.
    fn takes_mapped(&self, vec: usize, priority: u8) -> bool {
        let v = &self.lruvecs[vec];
        let total: u64 = (0..self.nr_zones)
            .map(|z| self.zone(z).config.managed)
            .sum();
        let distress = 100u64 >> v.prev_priority.min(priority);
        let mapped = self.nr_mapped() * 100 / total.max(1);
        mapped / 2 + distress + self.env.sysctl.swappiness >= 100
    }

    /// Begins a zone's share of a reclaim.
    pub(super) fn start_zone(&mut self, vec: usize, sc: &Scan) -> ZoneScan {
        let no_swap = self.host.nr_swap_pages() == 0 || sc.clean_only;
        let percent = if no_swap { 0 } else { self.anon_percent(vec) };
        let joined = self.env.sw.reclaim.lru.shape() == LruShape::Joined;
        let mut nr = [0; 4];
        for (i, &lru) in Lru::EVICTABLE.iter().enumerate() {
            let v = &mut self.lruvecs[vec];
            let mut scan = v.len(lru);
            if joined {
                // One list in truth: all of it ages alike. Without swap, anonymous pages stay.
                scan = if !lru.is_file() && no_swap {
                    0
                } else {
                    (scan >> sc.priority) + 1
                };
            } else if sc.priority > 0 || no_swap {
                scan >>= sc.priority;
                scan =
                    scan * if lru.is_file() {
                        100 - percent
                    } else {
                        percent
                    } / 100;
            }
            let saved = &mut v.saved_scan[lru.index()];
            *saved += scan;
            // For a boost alone the priority does not go on until there is a batch.
            let at_once = sc.clean_only && lru.is_file();
            if *saved >= SWAP_CLUSTER_MAX || at_once {
                nr[i] = core::mem::take(saved);
            }
        }
        self.lruvecs[vec].prev_priority = sc.priority;
        let cut_short = !sc.kswapd && sc.priority < DEF_PRIORITY;
        ZoneScan {
            vec,
            nr,
            list: 0,
            enough: if cut_short {
                sc.reclaimed + SWAP_CLUSTER_MAX
            } else {
                u64::MAX
            },
            held: List::EMPTY,
            phase: Phase::Scan,
        }
    }

    /// Goes on with a zone until something is needed; `None` when its share is scanned.
    pub(super) fn step_zone(&mut self, z: &mut ZoneScan, sc: &mut Scan) -> Option<Need> {
        match z.phase {
            Phase::Writeback(_) | Phase::Waited => {
                match self.shrink_again(z.vec, sc, &mut z.held) {
                    Batch::Writeback(ix) => {
                        z.phase = Phase::Writeback(ix);
                        return Some(Need::PageWriteback(self.map.pfn(ix)));
                    }
                    _ => z.phase = Phase::Scan,
                }
            }
            Phase::Scan => {}
        }
        // The order of the kernel: inactive anonymous, active anonymous, inactive file, active file.
        // Active anonymous pages alone keep a scan going only where lists are joined.
        let joined = self.env.sw.reclaim.lru.shape() == LruShape::Joined;
        while z.nr[0] + z.nr[2] + z.nr[3] + if joined { z.nr[1] } else { 0 } > 0 {
            let i = z.list;
            if z.nr[i] == 0 {
                z.list = (i + 1) % 4;
                if z.list == 0 && sc.reclaimed > z.enough {
                    break;
                }
                continue;
            }
            let lru = Lru::EVICTABLE[i];
            let nr = z.nr[i].min(SWAP_CLUSTER_MAX);
            if !lru.is_active() && self.too_many_isolated(z.vec, lru.is_file(), sc) {
                return Some(self.isolated_wait());
            }
            z.nr[i] -= nr;
            z.list = (i + 1) % 4;
            if let Some(need) = self.shrink_list(z, lru, nr, sc) {
                return Some(need);
            }
            if z.list == 0 && sc.reclaimed > z.enough {
                break;
            }
            if sc.told.0 >= SWAP_CLUSTER_MAX as u32 {
                return Some(turn(sc));
            }
        }
        if !joined && self.inactive_is_low(z.vec, false) && self.host.nr_swap_pages() > 0 {
            self.shrink_active_list(z.vec, false, SWAP_CLUSTER_MAX, sc, true);
        }
        z.nr = [0; 4];
        None
    }

    fn isolated_wait(&self) -> Need {
        if self.env.sw.reclaim.congestion == CongestionWait::Throttle {
            return Need::Throttle {
                why: Throttle::Isolated,
                ms: FIFTIETH,
            };
        }
        Need::CongestionWait {
            class: super::Class::Async,
            ms: TENTH,
        }
    }

    fn shrink_list(&mut self, z: &mut ZoneScan, lru: Lru, nr: u64, sc: &mut Scan) -> Option<Need> {
        let joined = self.env.sw.reclaim.lru.shape() == LruShape::Joined;
        if lru.is_active() {
            if joined || self.inactive_is_low(z.vec, lru.is_file()) {
                let mapped = self.takes_mapped(z.vec, sc.priority);
                self.shrink_active_list(z.vec, lru.is_file(), nr, sc, mapped);
            }
            return None;
        }
        match self.shrink_inactive_list(z.vec, lru.is_file(), nr, sc, &mut z.held) {
            Batch::Again => {
                z.phase = Phase::Waited;
                Some(Need::CongestionWait {
                    class: self.wait_class(),
                    ms: TENTH,
                })
            }
            _ => None,
        }
    }

    /// Class that waits inside reclaim are for.
    pub(super) fn wait_class(&self) -> super::Class {
        match self.env.sw.reclaim.congestion {
            CongestionWait::Sync => super::Class::Sync,
            _ => super::Class::Async,
        }
    }

    /// Whether a zone's scans have come to nothing. `spec: linux-mm 4.2`
    pub(super) fn note_unreclaimable(&mut self, zone: usize, slab_freed: u64) {
        let reclaimable = self.reclaimable_pages(usize::from(self.lruvec_of[zone]));
        if let Some(z) = self.zones[zone].as_mut()
            && slab_freed == 0
            && z.pages_scanned >= reclaimable * UNRECLAIMABLE
        {
            z.all_unreclaimable = true;
        }
    }
}

/// Lets others have a turn, and says what was done.
pub(super) fn turn(sc: &mut Scan) -> Need {
    let (scanned, freed) = core::mem::take(&mut sc.told);
    Need::Turn { scanned, freed }
}
