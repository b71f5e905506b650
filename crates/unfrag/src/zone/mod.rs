//! A zone: a contiguous stretch of a node's memory with its placement, watermarks and reserves.
//!
//! - [`watermark`]: the marks, their boost, and the check in both of its forms.
//! - `highatomic`: pageblocks kept for high-order atomic requests, and `MIGRATE_RESERVE`.
//!
//! Invariant: `counter` plus the CPUs' deltas equals the pages on the buddy lists.

pub(crate) mod highatomic;
#[cfg(test)]
mod tests;
pub mod watermark;

use crate::frame::{Frames, Ix, MAX_ORDER, MigrateType, Pfn};
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::pcp::{CpuLists, Env};
use crate::place::lists::At;
use crate::place::{Memory, Place, V19Stats, Want};
use crate::trace::{Event, Tracer};
pub use watermark::Marks;

/// Number of zone kinds.
pub const NR_ZONE_KINDS: usize = 5;

/// Which addresses a zone holds. The order is that of `GFP_ZONEMASK`: a request may use its highest
/// zone and all below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ZoneKind {
    /// Below 16 MiB.
    Dma = 0,
    /// Below 4 GiB.
    Dma32 = 1,
    /// What the kernel maps for good.
    Normal = 2,
    /// What it does not (32 bits).
    HighMem = 3,
    /// For movable requests alone.
    Movable = 4,
}

impl ZoneKind {
    /// All kinds, lowest first.
    pub const ALL: [ZoneKind; NR_ZONE_KINDS] = [
        ZoneKind::Dma,
        ZoneKind::Dma32,
        ZoneKind::Normal,
        ZoneKind::HighMem,
        ZoneKind::Movable,
    ];

    /// Name as procfs prints it.
    pub const fn name(self) -> &'static str {
        match self {
            ZoneKind::Dma => "DMA",
            ZoneKind::Dma32 => "DMA32",
            ZoneKind::Normal => "Normal",
            ZoneKind::HighMem => "HighMem",
            ZoneKind::Movable => "Movable",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<ZoneKind> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }
}

/// What a zone is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneConfig {
    /// Node that it belongs to.
    pub node: u8,
    /// Kind.
    pub kind: ZoneKind,
    /// First frame.
    pub start: Pfn,
    /// Frames from the first to the last, holes included.
    pub spanned: u64,
    /// Frames without holes.
    pub present: u64,
    /// Frames that the allocator manages: present less what the boot keeps.
    pub managed: u64,
}

/// A zone at work.
pub(crate) struct Zone {
    pub id: u8,
    pub config: ZoneConfig,
    pub start: Ix,
    pub end: Ix,
    pub place: Place,
    pub marks: Marks,
    /// Pages kept from requests whose highest zone is of this kind.
    pub protection: [u64; NR_ZONE_KINDS],
    /// Pages in high-atomic pageblocks.
    pub highatomic: u64,
    /// A boost asks the next allocation to wake kswapd.
    pub boosted: bool,
    /// kswapd works on this zone: per-CPU lists stay small.
    pub reclaim_active: bool,
    /// Free memory fell below the high mark (6.7 and later).
    pub below_high: bool,
    /// Free pages as the watermark checks see them: without the CPUs' deltas.
    pub counter: i64,
    /// Deltas up to this size stay with their CPU.
    pub stat_threshold: i64,
    /// Pages that reclaim looked at since one was freed.
    pub pages_scanned: u64,
    /// Reclaim has given up here until a page is freed.
    pub all_unreclaimable: bool,
}

impl Zone {
    /// A zone without memory on its lists, at these positions of the frame table.
    pub fn new(id: u8, config: ZoneConfig, start: Ix, end: Ix, ungrouped: bool) -> Zone {
        let mut place = Place::new(id, start, end);
        place.v19 = V19Stats::start(config.present);
        place.ungrouped = ungrouped;
        Zone {
            id,
            config,
            start,
            end,
            place,
            marks: Marks::default(),
            protection: [0; NR_ZONE_KINDS],
            highatomic: 0,
            boosted: false,
            reclaim_active: false,
            below_high: false,
            counter: 0,
            stat_threshold: 0,
            pages_scanned: 0,
            all_unreclaimable: false,
        }
    }

    /// Takes a block from the buddy lists, with all that a fallback brings: its event, and the boost
    /// of the marks. Does not touch the free counter. Returns the block and the type of the list
    /// that it came from (`__rmqueue`).
    #[inline(always)]
    pub fn take<H: Host>(
        &mut self,
        frames: &mut Frames,
        env: &Env,
        want: Want,
        memory: &mut Memory,
        t: &mut Tracer<H>,
    ) -> Option<(Ix, MigrateType)> {
        let taken = self.place.take(frames, &env.sw, want, memory)?;
        if let Some(f) = &taken.extfrag {
            t.emit(|m| Event::PageAllocExtfrag(f.event(m)));
        }
        if taken.boosts > 0 {
            let block = 1 << frames.block_order;
            for _ in 0..taken.boosts {
                let raised = self
                    .marks
                    .raise_boost(self.config.managed, block, &env.sysctl);
                self.boosted |= raised && want.wake;
            }
        }
        self.tell_taken(env, taken.ix, want.order, taken.list, t);
        Some((taken.ix, taken.list))
    }

    /// Takes from the high-atomic reserve.
    pub fn take_highatomic<H: Host>(
        &mut self,
        frames: &mut Frames,
        env: &Env,
        order: u8,
        t: &mut Tracer<H>,
    ) -> Option<Ix> {
        let ix = self
            .place
            .lists
            .smallest_fit(frames, order, MigrateType::HighAtomic)?;
        self.tell_taken(env, ix, order, MigrateType::HighAtomic, t);
        Some(ix)
    }

    #[inline]
    fn tell_taken<H: Host>(
        &self,
        env: &Env,
        ix: Ix,
        order: u8,
        list: MigrateType,
        t: &mut Tracer<H>,
    ) {
        t.emit(|m| Event::PageAllocZoneLocked {
            pfn: m.pfn(ix),
            order,
            migratetype: list,
            percpu_refill: CpuLists::serves(env.sw.pcp, order) && list.is_ordinary(),
        });
    }

    /// Frees a block to the buddy lists, to the list of its pageblock's type.
    pub fn give(
        &mut self,
        frames: &mut Frames,
        env: &Env,
        set: &mut CpuLists,
        ix: Ix,
        order: u8,
        at: At,
    ) {
        // Since 6.10 no list holds a block of several pageblocks that was not merged on it.
        let cut = order == MAX_ORDER && order > frames.block_order && env.sw.lists_follow_blocks();
        let piece = if cut { frames.block_order } else { order };
        for i in 0..1 << (order - piece) {
            let at_ix = ix + (i << piece);
            let mt = frames.block_type(at_ix);
            self.place.lists.free(frames, &env.sw, at_ix, piece, mt, at);
        }
        self.count(&mut set.delta, 1 << order);
    }

    /// Whether free memory is above the high mark.
    pub fn above_high(&self, env: &Env) -> bool {
        let mark = self.marks.of(AllocFlags::WMARK_HIGH);
        self.passes(&env.sw, 0, mark, ZoneKind::Movable, AllocFlags::WMARK_HIGH)
    }

    /// Adds to the free counter by way of a CPU's delta.
    #[inline]
    pub fn count(&mut self, delta: &mut i32, pages: i64) {
        if pages > 0 {
            (self.pages_scanned, self.all_unreclaimable) = (0, false);
        }
        let d = i64::from(*delta) + pages;
        if d.abs() > self.stat_threshold {
            self.counter += d;
            *delta = 0;
        } else {
            *delta = d as i32;
        }
    }
}
