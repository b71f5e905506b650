//! Read access to a manager: what procfs shows of zones, lists, pageblocks and pages.

use crate::frame::{
    CpuId, FrameIx, FrameKind, Geometry, MigrateType, NR_TYPES, NR_ZONE_KINDS, NodeId, ORDER_SLOTS,
    Order, OwnerId, PageFlags, Pfn, Span, ZoneConfig, ZoneId,
};
use crate::host::Host;
use crate::kernel::{Rules, Sysctl};
use crate::lru::{Lru, NR_LRU};
use crate::manager::Manager;
use crate::pcp::{CpuZone, NR_LISTS};
use crate::placement::V19Stats;
use crate::restore::CompactPositions;
use crate::stat::{CompactCounters, Counters, ReclaimCounters};
use crate::zone::Marks;

/// A zone as seen from outside.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
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
    /// Free blocks of each order, up to the largest of any geometry.
    pub nr_free: [u64; ORDER_SLOTS],
    /// V19's reserve and statistics.
    pub v19: V19Stats,
}

/// A CPU's lists of a zone as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetView {
    /// Base pages on the lists.
    pub count: i32,
    /// Pages from which on a free gives back.
    pub high: i32,
    /// Least that `high` may be.
    pub high_min: i32,
    /// Most that `high` may be.
    pub high_max: i32,
    /// Pages moved at a time.
    pub batch: i32,
    /// 6.1's `free_factor` or 6.18's `alloc_factor`.
    pub factor: i32,
}

/// What one pageblock holds, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockView {
    /// Frames of allocations, by type of the request.
    pub used: [u32; NR_TYPES],
    /// Frames on buddy or per-CPU lists.
    pub free: u32,
    /// Frames reserved at boot, and frame numbers without memory.
    pub reserved: u32,
}

/// Pages on the LRU lists of a zone, or of the node whose first zone it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LruView {
    /// Pages by list, in the order of [`Lru`].
    pub pages: [u64; NR_LRU],
    /// Isolated pages: anonymous, file.
    pub isolated: [u64; 2],
    /// Reclaim has given up here.
    pub all_unreclaimable: bool,
}

/// A frame as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameView {
    /// What it is.
    pub kind: FrameKind,
    /// Order of the block that it begins.
    pub order: Order,
    /// Type of its list while it is free, of its request while it is in use.
    pub migratetype: MigrateType,
    /// Its owner.
    pub owner: OwnerId,
    /// The key that its owner stored.
    pub key: u32,
}

impl<'m, H: Host> Manager<'m, H> {
    /// Read access to the manager's state.
    #[inline]
    pub fn inspect(&self) -> Inspect<'_, 'm, H> {
        Inspect { manager: self }
    }
}

/// Read access to the state of a manager. From [`Manager::inspect`].
pub struct Inspect<'a, 'm, H: Host> {
    pub(crate) manager: &'a Manager<'m, H>,
}

impl<H: Host> Clone for Inspect<'_, '_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host> Copy for Inspect<'_, '_, H> {}

impl<'a, 'm, H: Host> Inspect<'a, 'm, H> {
    /// The zones, by ascending address.
    pub fn zones(self) -> impl DoubleEndedIterator<Item = ZoneId> + ExactSizeIterator + use<H> {
        (0..self.manager.zones.len() as u8).map(ZoneId)
    }

    /// The nodes, in the order of their first zones.
    pub fn nodes(self) -> impl Iterator<Item = NodeId> + use<'a, 'm, H> {
        self.manager.nodes.iter().map(|n| n.id)
    }

    /// The CPUs.
    pub fn cpus(self) -> impl ExactSizeIterator<Item = CpuId> + use<H> {
        (0..self.manager.cpus as usize).map(|cpu| CpuId(cpu as u32))
    }

    /// Sizes of pages, blocks and pageblocks.
    pub fn geometry(self) -> Geometry {
        self.manager.frames.geometry
    }

    /// The rules in force.
    pub fn rules(self) -> &'a Rules {
        &self.manager.policy.rules
    }

    /// The settings in force.
    pub fn sysctl(self) -> &'a Sysctl {
        &self.manager.policy.sysctl
    }

    /// Events since the start.
    pub fn counters(self) -> &'a Counters {
        &self.manager.counters
    }

    /// Events of reclaim since the start.
    pub fn reclaim_counters(self) -> &'a ReclaimCounters {
        &self.manager.reclaim
    }

    /// Events of compaction since the start.
    pub fn compact_counters(self) -> &'a CompactCounters {
        &self.manager.compact_counters
    }

    /// Where a zone's compactions go on, and how long it is put off.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn compaction(self, zone: ZoneId) -> CompactPositions {
        let z = &self.manager.zone(zone).compact;
        let (considered, defer_shift, order_failed) = z.deferral();
        let pfn = |ix| self.manager.map.pfn(ix);
        CompactPositions {
            migrate: z.migrate.map(pfn),
            free: pfn(z.free),
            considered,
            defer_shift,
            order_failed,
        }
    }

    /// Whether compaction skips the pageblock that holds a frame.
    pub fn is_skipped(self, pfn: Pfn) -> bool {
        let ix = self.manager.map.ix(pfn);
        ix.is_some_and(|ix| self.manager.frames.is_skipped(ix))
    }

    /// Address of the metadata memory, for an owner that asks whether this is the manager that lives
    /// in its memory.
    pub fn metadata_address(self) -> usize {
        self.manager.frames.address()
    }

    /// What a zone is made of.
    ///
    /// # Panics
    /// If there is no such zone.
    #[inline]
    pub fn zone_config(self, zone: ZoneId) -> ZoneConfig {
        self.manager.zone(zone).config()
    }

    /// A zone.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn zone(self, zone: ZoneId) -> ZoneView {
        let z = self.manager.zone(zone);
        ZoneView {
            config: z.config(),
            marks: z.marks,
            protection: z.protection,
            free_pages: z.free_area.free_pages(),
            free_counter: z.counter,
            highatomic: z.highatomic,
            nr_free: z.free_area.nr_free().map(u64::from),
            v19: z.free_area.v19,
        }
    }

    /// The lists and the counter of a CPU for a zone.
    pub(crate) fn cpu_zone(self, zone: ZoneId, cpu: CpuId) -> &'a CpuZone {
        let m = self.manager;
        let (zones, cpus) = (m.zones.len(), m.cpus);
        assert!(
            zone.index() < zones && cpu.0 < cpus,
            "zone {} of {zones}, CPU {} of {cpus}",
            zone.0,
            cpu.0
        );
        &m.sets[m.set_of(zone, cpu)]
    }

    /// A CPU's lists of a zone.
    ///
    /// # Panics
    /// If there is no such zone or CPU.
    pub fn set(self, zone: ZoneId, cpu: CpuId) -> SetView {
        let s = &self.cpu_zone(zone, cpu).lists;
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
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn pcp_pages(self, zone: ZoneId) -> u64 {
        self.cpus()
            .map(|cpu| self.set(zone, cpu).count as u64)
            .sum()
    }

    /// Blocks on the buddy list of an order and a type, from its head.
    ///
    /// # Panics
    /// If there is no such zone, or the order is above [`MAX_MAX_ORDER`](crate::frame::MAX_MAX_ORDER).
    pub fn free_list(
        self,
        zone: ZoneId,
        order: Order,
        mt: MigrateType,
    ) -> impl Iterator<Item = Pfn> + use<'a, 'm, H> {
        let list = *self.manager.zone(zone).free_area.list(order, mt);
        let frames = list.iter(self.manager.frames.table);
        frames.map(|ix| self.manager.map.pfn(ix))
    }

    /// Number of blocks on the buddy list of an order and a type.
    ///
    /// # Panics
    /// If there is no such zone, or the order is above [`MAX_MAX_ORDER`](crate::frame::MAX_MAX_ORDER).
    pub fn free_list_len(self, zone: ZoneId, order: Order, mt: MigrateType) -> u64 {
        u64::from(self.manager.zone(zone).free_area.list(order, mt).len)
    }

    /// Blocks on a CPU's list `index`, from its head. Lists 0 to 11 are `3 * order + type`, 12 and
    /// 13 those of huge pages (other, movable), in eras that have them; types by the era's own numbers.
    ///
    /// # Panics
    /// If there is no such zone, CPU or list (there are [`NR_LISTS`]).
    pub fn pcp_list(
        self,
        zone: ZoneId,
        cpu: CpuId,
        index: usize,
    ) -> impl Iterator<Item = Pfn> + use<'a, 'm, H> {
        assert!(index < NR_LISTS, "list {index} of {NR_LISTS}");
        let set = &self.cpu_zone(zone, cpu).lists;
        let frames = set.iter(&self.manager.frames, index);
        frames.map(|ix| self.manager.map.pfn(ix))
    }

    /// The free block of the buddy lists that holds a frame: its first frame and order.
    pub fn free_block(self, pfn: Pfn) -> Option<(Pfn, Order)> {
        let head = self.manager.frames.buddy_of(self.manager.map.ix(pfn)?)?;
        Some((
            self.manager.map.pfn(head),
            self.manager.frames.state(head).order(),
        ))
    }

    /// A frame, if a table holds it.
    pub fn frame(self, pfn: Pfn) -> Option<FrameView> {
        let ix = self.manager.map.ix(pfn)?;
        let s = self.manager.frames.state(ix);
        let (owner, key) = self.manager.frames.owner(ix);
        Some(FrameView {
            kind: s.kind(),
            order: s.order(),
            migratetype: s.mt(),
            owner,
            key,
        })
    }

    /// Zone that a frame belongs to.
    pub fn zone_of(self, pfn: Pfn) -> Option<ZoneId> {
        let ix = self.manager.map.ix(pfn)?;
        let zone = self.manager.frames.zone_of(ix);
        let z = self.manager.zones.get(zone.index())?;
        z.span.holds(ix).then_some(zone)
    }

    /// Whether the frame may be given out, free or in use (not reserved by the boot).
    pub fn is_managed(self, pfn: Pfn) -> bool {
        let frame = self.frame(pfn);
        frame.is_some_and(|f| !matches!(f.kind, FrameKind::Absent | FrameKind::Reserved))
    }

    /// Type of the pageblock that holds a frame.
    pub fn block_type(self, pfn: Pfn) -> Option<MigrateType> {
        Some(self.manager.frames.block_type(self.manager.map.ix(pfn)?))
    }

    /// Frames in a pageblock.
    pub fn block_pages(self) -> u32 {
        self.manager.frames.geometry.block_order.frames()
    }

    /// Pageblocks of a zone by type, without its holes.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn blocks_by_type(self, zone: ZoneId) -> [u64; NR_TYPES] {
        let mut n = [0; NR_TYPES];
        for (_, mt, _) in self.blocks(zone) {
            n[mt as usize] += 1;
        }
        n
    }

    /// The pageblocks of a zone, without its holes: first frame, type and content.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn blocks(
        self,
        zone: ZoneId,
    ) -> impl Iterator<Item = (Pfn, MigrateType, BlockView)> + use<'a, 'm, H> {
        self.block_spans(zone).map(move |(first, of_zone)| {
            let view = self.block_view(of_zone.start, of_zone.end);
            let mt = self.manager.frames.block_type(first);
            (self.manager.map.pfn(first), mt, view)
        })
    }

    /// The pageblocks of a zone, without its holes: first frame, type, and the frames of allocations by type of the request.
    /// Where they are [counted](crate::lab::Lab::count_uses), no frame is looked at.
    ///
    /// # Panics
    /// If there is no such zone.
    #[cfg(feature = "lab")]
    pub fn uses(
        self,
        zone: ZoneId,
    ) -> impl Iterator<Item = (Pfn, MigrateType, [u32; NR_TYPES])> + use<'a, 'm, H> {
        let frames = &self.manager.frames;
        self.block_spans(zone).map(move |(first, of_zone)| {
            let used = match frames.uses {
                // In one that two zones share, those of both are counted together.
                Some(uses) if !frames.is_shared(first) => uses.of(first),
                _ => self.block_view(of_zone.start, of_zone.end).used,
            };
            (self.manager.map.pfn(first), frames.block_type(first), used)
        })
    }

    /// The pageblocks of a zone, without its holes: the first frame, and the frames that are the zone's.
    fn block_spans(self, zone: ZoneId) -> impl Iterator<Item = (FrameIx, Span)> + use<'a, 'm, H> {
        let span = self.manager.zone(zone).span;
        let order = self.manager.frames.geometry.block_order;
        let mut at = span.start.head(order);
        core::iter::from_fn(move || {
            while at < span.end && self.manager.frames.is_hole(at) {
                at = at.plus(order.frames());
            }
            if at >= span.end {
                return None;
            }
            let first = at;
            at = at.plus(order.frames());
            let of_zone = Span {
                start: first.max(span.start),
                end: at.min(span.end),
            };
            Some((first, of_zone))
        })
    }

    /// The content of the frames from `lo` up to `hi`, which lie in one pageblock.
    fn block_view(self, lo: FrameIx, hi: FrameIx) -> BlockView {
        let mut v = BlockView::default();
        let whole = hi.0 - lo.0;
        if let Some(s) = self.manager.frames.larger_block(lo) {
            match s.kind() {
                FrameKind::Used => v.used[s.mt() as usize] = whole,
                _ => v.free = whole,
            }
            return v;
        }
        let mut at = lo;
        while at < hi {
            let s = self.manager.frames.state(at);
            let n = if s.kind().heads_block() {
                s.order().frames().min(hi.0 - at.0)
            } else {
                1
            };
            match s.kind() {
                FrameKind::Used => v.used[s.mt() as usize] += n,
                FrameKind::Buddy | FrameKind::Pcp => v.free += n,
                FrameKind::Absent | FrameKind::Reserved | FrameKind::Tail => v.reserved += n,
            }
            at = at.plus(n);
        }
        v
    }

    /// Flags of a page; empty for a frame that is in no zone.
    #[inline]
    pub fn page_flags(self, pfn: Pfn) -> PageFlags {
        let ix = self.manager.map.ix(pfn);
        ix.map_or(PageFlags::empty(), |ix| {
            let s = self.manager.frames.state(ix);
            match Lru::from_code(s.lru()) {
                Some(_) => self.manager.lrus[self.manager.frames.lru_of(ix).index()].flags_of(s),
                None => s.flags(),
            }
        })
    }

    /// Number of times that a page in use has lost [`PageFlags::YOUNG`]. While it stays the same, accessing a
    /// young page again changes nothing.
    #[inline]
    pub fn nr_aged(self) -> u64 {
        self.manager.flag_counts.nr_aged
    }

    /// Pages that some process maps.
    pub fn nr_mapped(self) -> u64 {
        self.manager.flag_counts.nr_mapped
    }

    /// The LRU list that a page is on.
    pub fn lru_of(self, pfn: Pfn) -> Option<Lru> {
        let ix = self.manager.map.ix(pfn)?;
        let s = self.manager.frames.state(ix);
        // A frame in no zone is on no list, and has no lists.
        Lru::from_code(s.lru())?;
        let lists = &self.manager.lrus[self.manager.frames.lru_of(ix).index()];
        lists.list_of(s)
    }

    /// The LRU lists of a zone; of a node where the era has them by node (at its first zone, empty at
    /// the others).
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn lru(self, zone: ZoneId) -> LruView {
        let own = self.manager.zone(zone).lru.index() == zone.index();
        let v = &self.manager.lrus[zone.index()];
        LruView {
            pages: Lru::ALL.map(|lru| v.len(lru)),
            isolated: v.isolated,
            all_unreclaimable: own && self.manager.all_unreclaimable(self.manager.zone(zone).lru),
        }
    }

    /// Pages on an LRU list, from the newest.
    ///
    /// # Panics
    /// If there is no such zone.
    pub fn lru_list(self, zone: ZoneId, lru: Lru) -> impl Iterator<Item = Pfn> + use<'a, 'm, H> {
        let lists = &self.manager.lrus[zone.index()];
        let frames = lists.pages(&self.manager.frames, lru);
        frames.map(|ix| self.manager.map.pfn(ix))
    }
}
