//! Looking inside: what procfs shows of zones, lists and pageblocks.

use super::Manager;
use crate::frame::{Ix, Kind, MigrateType, NR_ORDERS, NR_TYPES, Pfn};
use crate::host::Host;
use crate::place::V19Stats;
use crate::zone::{Marks, NR_ZONE_KINDS, ZoneConfig};

/// A zone as seen from outside.
#[derive(Clone, Copy, Debug)]
pub struct ZoneView {
    /// What it is made of.
    pub config: ZoneConfig,
    /// Its marks.
    pub marks: Marks,
    /// What it keeps from requests for higher zones.
    pub protection: [u64; NR_ZONE_KINDS],
    /// Pages on the buddy lists.
    pub free_pages: u64,
    /// Free pages as watermark checks see them.
    pub free_counter: i64,
    /// Pages in high-atomic pageblocks.
    pub highatomic: u64,
    /// Free blocks of each order.
    pub nr_free: [u64; NR_ORDERS],
    /// V19's reserve and statistics.
    pub v19: V19Stats,
}

/// A CPU's lists of a zone as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetView {
    /// Base pages on the lists.
    pub count: i32,
    /// Pages from which on a free gives back.
    pub high: i32,
    /// Its bounds.
    pub high_min: i32,
    /// Its bounds.
    pub high_max: i32,
    /// Pages moved at a time.
    pub batch: i32,
    /// 6.1's `free_factor` or 6.18's `alloc_factor`.
    pub factor: i32,
}

/// What one pageblock holds, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockView {
    /// Frames of allocations, by type of the request.
    pub used: [u32; NR_TYPES],
    /// Frames on buddy or per-CPU lists.
    pub free: u32,
    /// Frames that the boot kept, or that are no memory.
    pub reserved: u32,
}

impl<H: Host> Manager<'_, H> {
    /// Address of the metadata memory, for an owner that asks whether this is the manager that lives
    /// in its memory.
    pub fn metadata_address(&self) -> usize {
        self.frames.meta.as_ptr().addr()
    }

    /// Number of zones.
    pub fn zones(&self) -> usize {
        self.nr_zones
    }

    /// Number of CPUs.
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// What a zone is made of.
    #[inline]
    pub fn zone_config(&self, zone: usize) -> &ZoneConfig {
        &self.zone(zone).config
    }

    /// A zone.
    pub fn zone_view(&self, zone: usize) -> ZoneView {
        let z = self.zone(zone);
        ZoneView {
            config: z.config,
            marks: z.marks,
            protection: z.protection,
            free_pages: z.place.lists.free_pages(),
            free_counter: z.counter,
            highatomic: z.highatomic,
            nr_free: z.place.lists.nr_free().map(u64::from),
            v19: z.place.v19,
        }
    }

    /// A CPU's lists of a zone.
    pub fn set_view(&self, zone: usize, cpu: usize) -> SetView {
        let s = &self.sets[cpu * self.nr_zones + zone];
        SetView {
            count: s.count,
            high: s.high,
            high_min: s.high_min,
            high_max: s.high_max,
            batch: s.batch,
            factor: s.factor,
        }
    }

    /// Base pages on all CPUs' lists of a zone.
    pub fn pcp_pages(&self, zone: usize) -> u64 {
        (0..self.cpus)
            .map(|c| self.set_view(zone, c).count as u64)
            .sum()
    }

    /// Blocks on the buddy list of an order and a type, from its head.
    pub fn free_list(&self, zone: usize, order: u8, mt: MigrateType) -> impl Iterator<Item = Pfn> {
        let list = *self.zone(zone).place.lists.list(order, mt);
        list.iter(self.frames.meta).map(|ix| self.map.pfn(ix))
    }

    /// Number of blocks on that list.
    pub fn free_list_len(&self, zone: usize, order: u8, mt: MigrateType) -> u64 {
        u64::from(self.zone(zone).place.lists.list(order, mt).len)
    }

    /// Blocks on a CPU's list `index`, from its head. Lists 0 to 11 are `3 * order + type`, 12 and
    /// 13 those of order 9 (other, movable), in eras that have them; types by the era's own numbers.
    pub fn pcp_list(&self, zone: usize, cpu: usize, index: usize) -> impl Iterator<Item = Pfn> {
        let list = self.sets[cpu * self.nr_zones + zone].lists[index];
        list.iter(self.frames.meta).map(|ix| self.map.pfn(ix))
    }

    /// What a frame is, its order if it begins a block, and the type of its list or request.
    pub fn frame(&self, pfn: Pfn) -> Option<(Kind, u8, MigrateType)> {
        let s = self.frames.state(self.map.ix(pfn)?);
        Some((s.kind(), s.order(), s.mt()))
    }

    /// Whether the frame may be given out, free or in use (not reserved by the boot).
    pub fn is_managed(&self, pfn: Pfn) -> bool {
        self.frame(pfn)
            .is_some_and(|(k, ..)| !matches!(k, Kind::Absent | Kind::Reserved))
    }

    /// Type of the pageblock that holds a frame.
    pub fn block_type(&self, pfn: Pfn) -> Option<MigrateType> {
        Some(self.frames.block_type(self.map.ix(pfn)?))
    }

    /// Frames in a pageblock.
    pub fn block_pages(&self) -> u32 {
        1 << self.frames.block_order
    }

    /// Pageblocks of a zone by type: those whose first frame in the zone is memory.
    pub fn blocks_by_type(&self, zone: usize) -> [u64; NR_TYPES] {
        let mut n = [0; NR_TYPES];
        for (_, mt, _) in self.blocks(zone) {
            n[mt as usize] += 1;
        }
        n
    }

    /// The pageblocks of a zone: first frame, type and content.
    pub fn blocks(&self, zone: usize) -> impl Iterator<Item = (Pfn, MigrateType, BlockView)> {
        let z = self.zone(zone);
        let size = self.block_pages();
        let (start, end) = (z.start, z.end);
        let mut at = start & !(size - 1);
        core::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let first = at;
            at += size;
            let (lo, hi) = (first.max(start), at.min(end));
            Some((
                self.map.pfn(first),
                self.frames.block_type(first),
                self.block_view(lo, hi),
            ))
        })
    }

    fn block_view(&self, lo: Ix, hi: Ix) -> BlockView {
        let mut v = BlockView::default();
        let mut at = lo;
        // A block larger than a pageblock may have begun before.
        let head = lo & !((1 << crate::frame::MAX_ORDER) - 1);
        let s = self.frames.state(head);
        if head < lo && s.order() > self.frames.block_order {
            match s.kind() {
                Kind::Buddy => {
                    v.free = hi - lo;
                    return v;
                }
                Kind::Used => {
                    v.used[s.mt() as usize] = hi - lo;
                    return v;
                }
                _ => {}
            }
        }
        while at < hi {
            let s = self.frames.state(at);
            let n = match s.kind() {
                Kind::Used | Kind::Buddy | Kind::Pcp | Kind::Isolated => {
                    (1 << s.order()).min(hi - at)
                }
                Kind::Absent | Kind::Reserved | Kind::Tail => 1,
            };
            match s.kind() {
                Kind::Used => v.used[s.mt() as usize] += n,
                Kind::Buddy | Kind::Pcp | Kind::Isolated => v.free += n,
                Kind::Absent | Kind::Reserved | Kind::Tail => v.reserved += n,
            }
            at += n;
        }
        v
    }
}
