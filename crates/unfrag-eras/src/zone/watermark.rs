//! Watermarks: their computation from the size of zones, and the checks of a request against them.
//!
//! `spec: 1.3, 1.5, 1.6`

use crate::frame::{NR_ZONE_KINDS, Order, ZoneConfig, ZoneKind};
use crate::gfp::AllocFlags;
use crate::kernel::{MarkCheck, MarkGap, Rules, Sysctl, ZonePages};
pub use unfrag::formulas::min_free_kbytes;
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// The marks of a zone, in pages, without the boost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct Marks {
    /// Below it only requests with special rights succeed.
    pub min: u64,
    /// Below it kswapd is woken.
    pub low: u64,
    /// kswapd stops here.
    pub high: u64,
    /// Memory tiering's mark.
    pub promo: u64,
    /// Temporary addition to every mark.
    pub boost: u64,
}

/// Integer square root, rounded down.
pub const fn isqrt(n: u64) -> u64 {
    n.isqrt()
}

/// Pages that khugepaged wants kept free when it starts, for a machine with `zones` populated zones up
/// to Normal that hold `above_high` pages above their high marks. `spec: 1.3`
pub const fn khugepaged_min_free_pages(zones: u64, above_high: u64, block_pages: u64) -> u64 {
    let (wanted, most) = (zones * 11 * block_pages, above_high / 20);
    if wanted < most { wanted } else { most }
}

/// Whether a zone of this kind counts as low memory.
pub const fn is_lowmem(kind: ZoneKind, rules: &Rules) -> bool {
    match kind {
        ZoneKind::HighMem => false,
        ZoneKind::Movable => rules.marks.movable_is_lowmem,
        _ => true,
    }
}

/// What the marks of a zone are computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkSize {
    /// Kind of the zone.
    pub kind: ZoneKind,
    /// Its pages: present in old kernels, managed in modern ones.
    pub pages: u64,
    /// Such pages of the machine's low memory.
    pub lowmem: u64,
    /// Pages that the machine keeps free (`vm.min_free_kbytes`).
    pub min_free: u64,
}

impl Marks {
    /// The marks of a zone of this size. `spec: 1.3`
    pub fn new(size: MarkSize, rules: &Rules, sysctl: &Sysctl) -> Marks {
        let MarkSize {
            kind,
            pages,
            lowmem,
            min_free,
        } = size;
        let share = (min_free * pages).checked_div(lowmem).unwrap_or(0);
        let min = if is_lowmem(kind, rules) {
            share
        } else {
            (pages / 1024).clamp(32, 128)
        };
        let quarter = share / 4;
        match rules.marks.gap {
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
    /// least one pageblock. `spec: 1.3`
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
/// request whose highest zone is `j`. `spec: 1.6`
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

/// The state of a zone that a check looks at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Free pages.
    pub free: i64,
    /// Free blocks of each order.
    pub nr_free: &'a [u32],
    /// Orders (a bit each) with a free block of an ordinary type.
    pub ordinary: u32,
    /// Orders with a free block in the high-atomic reserve.
    pub highatomic: u32,
    /// Orders with a free block in contiguous memory areas.
    pub cma: u32,
    /// Pages hidden from callers without reserve rights.
    pub hidden: u64,
    /// Pages hidden from callers without [`AllocFlags::CMA`].
    pub cma_pages: u64,
}

/// A mark as a check lowers it for callers with rights to the reserve below it. `spec: 1.5`
#[inline]
pub const fn lowered(check: MarkCheck, mark: u64, flags: AllocFlags) -> i64 {
    let mut min = mark as i64;
    let urgent = flags.contains(AllocFlags::MIN_RESERVE);
    if urgent {
        min -= min / 2;
    }
    match check {
        MarkCheck::PerOrder if flags.contains(AllocFlags::NON_BLOCK) => min -= min / 4,
        MarkCheck::PerOrder => {}
        MarkCheck::BlockExists => {
            if urgent && flags.contains(AllocFlags::NON_BLOCK) {
                min -= min / 4;
            }
            if flags.contains(AllocFlags::OOM) {
                min -= min / 2;
            }
        }
    }
    min
}

/// The check of 2.6.x to 4.3: counts only blocks that are large enough, against a mark that halves
/// with each order. `spec: 1.5`
pub fn per_order(v: &View, order: Order, mark: u64, keep: u64, flags: AllocFlags) -> bool {
    let mut free = v.free - i64::from(order.frames()) + 1;
    let mut min = lowered(MarkCheck::PerOrder, mark, flags);
    if free <= min + keep as i64 {
        return false;
    }
    for (o, n) in v.nr_free.iter().enumerate().take(order.index()) {
        free -= i64::from(*n) << o;
        min >>= 1;
        if free <= min {
            return false;
        }
    }
    true
}

/// The check of 4.4 and later: enough pages in sum, and one block that fits. `spec: 1.5`
pub fn block_exists(v: &View, order: Order, mark: u64, keep: u64, flags: AllocFlags) -> bool {
    let rights = AllocFlags::NON_BLOCK
        .union(AllocFlags::MIN_RESERVE)
        .union(AllocFlags::HIGHATOMIC)
        .union(AllocFlags::OOM);
    let mut unusable = i64::from(order.frames()) - 1;
    if !flags.intersects(rights) {
        unusable += v.hidden as i64;
    }
    if !flags.contains(AllocFlags::CMA) {
        unusable += v.cma_pages as i64;
    }
    let free = v.free - unusable;
    let min = lowered(MarkCheck::BlockExists, mark, flags);
    if free <= min + keep as i64 {
        return false;
    }
    if order == Order::ZERO {
        return true;
    }
    let mut fits = v.ordinary;
    if flags.contains(AllocFlags::CMA) {
        fits |= v.cma;
    }
    if flags.intersects(AllocFlags::HIGHATOMIC.union(AllocFlags::OOM)) {
        fits |= v.highatomic;
    }
    fits >> order.0 != 0
}

/// Pages that a zone's marks are computed from.
pub(crate) const fn pages(c: &ZoneConfig, rules: &Rules) -> u64 {
    match rules.marks.pages {
        ZonePages::Present => c.present,
        ZonePages::Managed => c.managed,
    }
}
