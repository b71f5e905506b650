//! Watermarks: how much stays free, and whether a request may take more.
//!
//! `spec: linux-mm 1.3, 1.5, 1.6; linux-6.1 1.3`

use super::{NR_ZONE_KINDS, Zone, ZoneConfig, ZoneKind};
use crate::frame::{MAX_ORDER, MigrateType, NR_ORDERS};
use crate::gfp::AllocFlags;
use crate::kernel::{HighAtomicLimit, MarkCheck, MarkGap, Reserve, Rules, Sysctl, ZonePages};

/// The marks of a zone, in pages, without the boost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Below it only requests with special rights succeed.
    pub min: u64,
    /// Below it kswapd is woken.
    pub low: u64,
    /// kswapd stops here.
    pub high: u64,
    /// Memory tiering's mark.
    pub promo: u64,
    /// Added to every mark for the time being.
    pub boost: u64,
}

/// Integer square root, rounded down.
pub const fn isqrt(n: u64) -> u64 {
    n.isqrt()
}

/// `vm.min_free_kbytes` as the kernel derives it from the size of low memory, at most `cap`, all in KiB.
/// `spec: linux-mm 1.3`
pub const fn min_free_kbytes(lowmem_kbytes: u64, cap: u64) -> u64 {
    let kb = isqrt(lowmem_kbytes * 16);
    if kb < 128 {
        128
    } else if kb > cap {
        cap
    } else {
        kb
    }
}

/// `vm.min_free_kbytes` that khugepaged asks for when it starts, for a machine with `zones` populated
/// zones up to Normal that hold `above_high` pages above their high marks. `spec: linux-6.1 1.3`
pub const fn khugepaged_min_free_kbytes(zones: u64, above_high: u64, block_pages: u64) -> u64 {
    let (wanted, most) = (zones * 11 * block_pages, above_high / 20);
    4 * if wanted < most { wanted } else { most }
}

/// Whether a zone of this kind counts as low memory.
pub const fn is_lowmem(kind: ZoneKind, sw: &Rules) -> bool {
    match kind {
        ZoneKind::HighMem => false,
        ZoneKind::Movable => sw.marks.movable_is_lowmem,
        _ => true,
    }
}

impl Marks {
    /// The marks of a zone of `pages` pages (present in old kernels, managed in modern ones) on a
    /// machine with `lowmem` such pages that keeps `kbytes` (`vm.min_free_kbytes`) free.
    /// `spec: linux-mm 1.3`
    pub fn new(
        kind: ZoneKind,
        pages: u64,
        lowmem: u64,
        kbytes: u64,
        sw: &Rules,
        sysctl: &Sysctl,
    ) -> Marks {
        let pages_min = kbytes >> 2;
        let share = (pages_min * pages).checked_div(lowmem).unwrap_or(0);
        let min = if is_lowmem(kind, sw) {
            share
        } else {
            (pages / 1024).clamp(32, 128)
        };
        let quarter = share / 4;
        match sw.marks.gap {
            MarkGap::Quarter => Marks {
                min,
                low: share + quarter,
                high: share + share / 2,
                promo: share + share / 2,
                boost: 0,
            },
            MarkGap::Scaled => {
                let d = quarter.max(pages * sysctl.watermark_scale_factor / 10000);
                Marks {
                    min,
                    low: min + d,
                    high: min + 2 * d,
                    promo: min + 3 * d,
                    boost: 0,
                }
            }
        }
    }

    /// The mark that `flags` name, with the boost.
    #[inline]
    pub fn of(&self, flags: AllocFlags) -> u64 {
        self.boost
            + if flags.contains(AllocFlags::WMARK_HIGH) {
                self.high
            } else if flags.contains(AllocFlags::WMARK_LOW) {
                self.low
            } else {
                self.min
            }
    }

    /// Raises the boost by one pageblock, up to `watermark_boost_factor` of the high mark and at
    /// least one pageblock. `spec: linux-mm 1.3`
    pub(crate) fn raise_boost(&mut self, managed: u64, block_pages: u64, sysctl: &Sysctl) -> bool {
        if sysctl.watermark_boost_factor == 0 || 4 * block_pages > managed {
            return false;
        }
        let most = self.high * sysctl.watermark_boost_factor / 10000;
        if most == 0 {
            return false;
        }
        self.boost = (self.boost + block_pages).min(most.max(block_pages));
        true
    }
}

/// Pages that each zone keeps from requests that could also use higher zones.
///
/// `sizes` are the pages of the node's zones by kind; result `[i][j]`: what zone `i` keeps from a
/// request whose highest zone is `j`. `spec: linux-mm 1.6`
pub fn lowmem_reserve(
    sizes: &[u64; NR_ZONE_KINDS],
    ratio: &[u64; NR_ZONE_KINDS],
    zero_means_none: bool,
) -> [[u64; NR_ZONE_KINDS]; NR_ZONE_KINDS] {
    let mut all = [[0; NR_ZONE_KINDS]; NR_ZONE_KINDS];
    for (i, row) in all.iter_mut().enumerate() {
        let mut above = 0;
        for j in i + 1..NR_ZONE_KINDS {
            above += sizes[j];
            row[j] = match ratio[i] {
                0 if zero_means_none => 0,
                r => above / r.max(1),
            };
        }
    }
    all
}

/// What a check looks at: the state of one zone.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Free pages.
    pub free: i64,
    /// Free blocks of each order.
    pub nr_free: &'a [u32; NR_ORDERS],
    /// Orders (a bit each) with a free block of an ordinary type.
    pub ordinary: u16,
    /// Orders with a free block in the high-atomic reserve.
    pub highatomic: u16,
    /// Orders with a free block in contiguous memory areas.
    pub cma: u16,
    /// Pages hidden from callers without reserve rights.
    pub hidden: u64,
    /// Pages hidden from callers without [`AllocFlags::CMA`].
    pub cma_pages: u64,
}

/// The check of 2.6.x to 4.3: counts only blocks that are large enough, against a mark that halves
/// with each order. `spec: linux-mm 1.5`
pub fn per_order(v: &View, order: u8, mark: u64, keep: u64, flags: AllocFlags) -> bool {
    let mut free = v.free - (1 << order) + 1;
    let mut min = mark as i64;
    if flags.contains(AllocFlags::MIN_RESERVE) {
        min -= min / 2;
    }
    if flags.contains(AllocFlags::NON_BLOCK) {
        min -= min / 4;
    }
    if free <= min + keep as i64 {
        return false;
    }
    for o in 0..order {
        free -= i64::from(v.nr_free[o as usize]) << o;
        min >>= 1;
        if free <= min {
            return false;
        }
    }
    true
}

/// The check of 4.4 and later: enough pages in sum, and one block that fits. `spec: linux-mm 1.5`
pub fn block_exists(v: &View, order: u8, mark: u64, keep: u64, flags: AllocFlags) -> bool {
    let rights = AllocFlags::NON_BLOCK
        .union(AllocFlags::MIN_RESERVE)
        .union(AllocFlags::HIGHATOMIC)
        .union(AllocFlags::OOM);
    let mut unusable = (1 << order) - 1;
    if !flags.intersects(rights) {
        unusable += v.hidden as i64;
    }
    if !flags.contains(AllocFlags::CMA) {
        unusable += v.cma_pages as i64;
    }
    let free = v.free - unusable;
    let mut min = mark as i64;
    if flags.contains(AllocFlags::MIN_RESERVE) {
        min -= min / 2;
        if flags.contains(AllocFlags::NON_BLOCK) {
            min -= min / 4;
        }
    }
    if flags.contains(AllocFlags::OOM) {
        min -= min / 2;
    }
    if free <= min + keep as i64 {
        return false;
    }
    if order == 0 {
        return true;
    }
    let mut fits = v.ordinary;
    if flags.contains(AllocFlags::CMA) {
        fits |= v.cma;
    }
    if flags.intersects(AllocFlags::HIGHATOMIC.union(AllocFlags::OOM)) {
        fits |= v.highatomic;
    }
    fits >> order != 0
}

impl Zone {
    /// Whether a request of `order` passes `mark` (which includes the boost). `highest` is the
    /// highest zone that the request could use.
    #[inline]
    pub(crate) fn passes(
        &self,
        sw: &Rules,
        order: u8,
        mark: u64,
        highest: ZoneKind,
        flags: AllocFlags,
    ) -> bool {
        let keep = self.protection[highest as usize];
        // Order 0 with nothing to hide: the sum decides.
        if order == 0
            && self.highatomic == 0
            && self.place.lists.fits(MigrateType::Cma) == 0
            && self.counter > (mark + keep) as i64
        {
            return true;
        }
        let v = self.view(sw);
        match sw.marks.check {
            MarkCheck::PerOrder => per_order(&v, order, mark, keep, flags),
            MarkCheck::BlockExists => {
                block_exists(&v, order, mark, keep, flags)
                    || order == 0
                        && self.marks.boost > 0
                        && flags.contains(AllocFlags::UNBOOSTED_RECHECK)
                        && !flags.intersects(AllocFlags::WMARK_LOW | AllocFlags::WMARK_HIGH)
                        && block_exists(&v, 0, self.marks.min, keep, flags)
            }
        }
    }

    /// Whether the first attempt of any request passes here and changes nothing by being checked: what
    /// [`passes`](Self::passes) would find where nothing is hidden. The form to 4.3, of order 0 alone.
    #[inline]
    pub(crate) fn has_plenty(&self, order: u8, highest: ZoneKind, tuned: bool) -> bool {
        let mark = if tuned && !self.below_high {
            self.marks.high
        } else {
            self.marks.low
        };
        let needed = mark + self.marks.boost + self.protection[highest as usize];
        self.highatomic == 0
            && self.place.lists.fits(MigrateType::Cma) == 0
            && self.counter - ((1 << order) - 1) > needed as i64
            && (order == 0 || self.place.lists.ordinary() >> order != 0)
    }

    fn view(&self, sw: &Rules) -> View<'_> {
        let l = &self.place.lists;
        let mut ordinary = l.ordinary();
        if sw.marks.check == MarkCheck::PerOrder {
            ordinary = (1 << (MAX_ORDER + 1)) - 1;
        }
        let hidden = match sw.reserve() {
            Reserve::HighAtomic(HighAtomicLimit::PercentPlusBlock) => self.highatomic,
            Reserve::HighAtomic(HighAtomicLimit::PercentRoundedUp) => {
                l.pages_of(MigrateType::HighAtomic)
            }
            _ => 0,
        };
        View {
            free: self.counter,
            nr_free: l.nr_free(),
            ordinary,
            highatomic: l.fits(MigrateType::HighAtomic),
            cma: l.fits(MigrateType::Cma),
            hidden,
            cma_pages: l.pages_of(MigrateType::Cma),
        }
    }
}

/// Pages that a zone's marks are computed from: present in old kernels, managed in modern ones.
pub(crate) const fn pages(c: &ZoneConfig, sw: &Rules) -> u64 {
    match sw.marks.pages {
        ZonePages::Present => c.present,
        ZonePages::Managed => c.managed,
    }
}

/// Marks and protections for all zones of a machine, as the kernel derives them at boot.
pub(crate) fn setup(zones: &mut [Option<Zone>], sw: &Rules, sysctl: &Sysctl) {
    let lowmem: u64 = zones
        .iter()
        .flatten()
        .filter(|z| is_lowmem(z.config.kind, sw))
        .map(|z| pages(&z.config, sw))
        .sum();
    match sysctl.min_free_kbytes {
        0 => {
            let kbytes = min_free_kbytes(lowmem * 4, sw.marks.min_free_kbytes_cap);
            set_marks(zones, lowmem, kbytes, sw, sysctl);
            if sw.marks.khugepaged && sysctl.transparent_hugepage {
                let (mut n, mut above) = (0, 0);
                for z in zones.iter().flatten() {
                    if z.config.kind <= ZoneKind::Normal && z.config.managed > 0 {
                        n += 1;
                        above += z.config.managed.saturating_sub(z.marks.high);
                    }
                }
                let raised = khugepaged_min_free_kbytes(n, above, 1 << sw.block_order);
                if raised > kbytes {
                    set_marks(zones, lowmem, raised, sw, sysctl);
                }
            }
        }
        set => set_marks(zones, lowmem, set, sw, sysctl),
    }
    for node in 0..=u8::MAX {
        let mut sizes = [0; NR_ZONE_KINDS];
        for z in zones.iter().flatten().filter(|z| z.config.node == node) {
            sizes[z.config.kind as usize] = pages(&z.config, sw);
        }
        if sizes.iter().all(|&s| s == 0) {
            continue;
        }
        let none = sw.marks.zero_ratio_is_none;
        let keep = lowmem_reserve(&sizes, &sysctl.lowmem_reserve_ratio, none);
        for z in zones.iter_mut().flatten().filter(|z| z.config.node == node) {
            z.protection = keep[z.config.kind as usize];
        }
    }
}

fn set_marks(zones: &mut [Option<Zone>], lowmem: u64, kbytes: u64, sw: &Rules, sysctl: &Sysctl) {
    for z in zones.iter_mut().flatten() {
        let (c, boost) = (z.config, z.marks.boost);
        z.marks = Marks::new(c.kind, pages(&c, sw), lowmem, kbytes, sw, sysctl);
        z.marks.boost = boost;
    }
}
