//! How much of each list is scanned, and when a zone or a node counts as unreclaimable.
//! `spec: 4.1, 4.2`
//!
//! LRU lists are those of a zone or of a node. What is asked of "their" memory (free pages, high marks,
//! size) is summed over the zones whose lists they are.

use crate::frame::LruId;
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::kernel::{ActiveFiles, ScanBalance};
use crate::lru::Lru;
use crate::manager::Manager;
use crate::zone::Zone;
use crate::zone::watermark::isqrt;

/// A zone counts as unreclaimable when this many times its reclaimable pages were scanned without a free.
const UNRECLAIMABLE: u64 = 6;

impl<H: Host> Manager<'_, H> {
    /// The zones whose LRU lists these are.
    fn zones_of(&self, lru: LruId) -> impl Iterator<Item = &Zone> {
        self.zones.iter().filter(move |z| z.lru == lru)
    }

    /// Reclaimable pages of these lists.
    pub(crate) fn reclaimable_pages(&self, lru: LruId) -> u64 {
        let v = &self.lrus[lru.index()];
        let anon = if self.nr_swap_pages > 0 {
            v.of_kind(false)
        } else {
            0
        };
        anon + v.of_kind(true)
    }

    /// Share of anonymous pages in a scan, in percent of their list. `spec: 4.1`
    ///
    /// On 5.8 and later the costs of the two kinds are held to at most 2 to 1, so that anonymous pages in
    /// constant use are still scanned, as on recorded 6.1 hosts. `spec: 4.9`
    pub(super) fn anon_percent(&mut self, lru: LruId) -> u64 {
        let (mut free, mut high) = (0, 0);
        for z in self.zones_of(lru) {
            free += z.counter.max(0) as u64;
            high += z.marks.of(AllocFlags::WMARK_HIGH);
        }
        let balance = self.policy.rules.reclaim.lru.split().map(|s| s.balance);
        let swappiness = self.policy.sysctl.swappiness;
        let v = &mut self.lrus[lru.index()];
        let (anon, file) = (v.of_kind(false), v.of_kind(true));
        if file + free <= high {
            return 100;
        }
        for (i, pages) in [anon, file].into_iter().enumerate() {
            if v.recent_scanned[i] > pages / 4 {
                v.recent_scanned[i] /= 2;
                v.recent_rotated[i] /= 2;
            }
        }
        let file_prio = 200 - swappiness.min(200);
        if balance == Some(ScanBalance::Cost) {
            let [anon, file] = v.recent_rotated;
            let share = |prio: u64, cost: u64| prio * (3 * (anon + file) + 1) / (cost + 1);
            let ap = share(swappiness, 2 * anon + file);
            let fp = share(file_prio, anon + 2 * file);
            return 100 * ap / (ap + fp).max(1);
        }
        let pressure = |i: usize, prio: u64| {
            (prio + 1) * (v.recent_scanned[i] + 1) / (v.recent_rotated[i] + 1)
        };
        let (ap, fp) = (pressure(0, swappiness), pressure(1, file_prio));
        100 * ap / (ap + fp + 1)
    }

    /// Whether a kind's inactive list is too short, so that its active one is shortened.
    /// `spec: 4.1`
    pub(super) fn inactive_is_low(&self, lru: LruId, file: bool) -> bool {
        let rules = self.policy.rules.reclaim.lru;
        let v = &self.lrus[lru.index()];
        let (inactive, active) = (v.len(Lru::new(file, false)), v.len(Lru::new(file, true)));
        let by_ratio = || {
            let pages = self.zones_of(lru).map(|z| z.config().present).sum::<u64>();
            let gib = self.frames.geometry.kib(pages) >> 20;
            let ratio = if gib > 0 { isqrt(10 * gib) } else { 1 };
            inactive * ratio < active
        };
        match rules.split().map(|s| s.active_files) {
            _ if !file => by_ratio(),
            None | Some(ActiveFiles::EachScan) => true,
            Some(ActiveFiles::WhenLonger) => active > inactive,
            Some(ActiveFiles::ByRatio) => by_ratio(),
        }
    }

    /// With joined lists: whether mapped pages are taken too: mapped share / 2 + distress + swappiness ≥ 100
    /// (kernels to 2.6.27). `spec: 4.9`
    pub(super) fn takes_mapped(&self, lru: LruId, priority: u8) -> bool {
        let v = &self.lrus[lru.index()];
        let total: u64 = self.zones.iter().map(|z| z.managed).sum();
        let distress = 100u64 >> v.prev_priority.min(priority);
        let mapped = self.flag_counts.nr_mapped * 100 / total.max(1);
        mapped / 2 + distress + self.policy.sysctl.swappiness >= 100
    }

    /// Whether these lists are unreclaimable. A page freed in one of their zones ends that.
    pub(crate) fn all_unreclaimable(&self, lru: LruId) -> bool {
        self.lrus[lru.index()].all_unreclaimable && !self.zones_of(lru).any(|z| z.freed)
    }

    /// Resets the count of scanned pages if a page was freed since.
    pub(super) fn note_freed(&mut self, lru: LruId) {
        let mut freed = false;
        for z in self.zones.iter_mut().filter(|z| z.lru == lru) {
            freed |= core::mem::take(&mut z.freed);
        }
        if freed {
            let lists = &mut self.lrus[lru.index()];
            (lists.pages_scanned, lists.all_unreclaimable) = (0, false);
        }
    }

    /// Marks these lists as unreclaimable if they were scanned long enough without a free. `spec: 4.2`
    pub(super) fn note_unreclaimable(&mut self, lru: LruId, slab_freed: u64) {
        self.note_freed(lru);
        let reclaimable = self.reclaimable_pages(lru);
        let lists = &mut self.lrus[lru.index()];
        if slab_freed == 0 && lists.pages_scanned >= reclaimable * UNRECLAIMABLE {
            lists.all_unreclaimable = true;
        }
    }
}
