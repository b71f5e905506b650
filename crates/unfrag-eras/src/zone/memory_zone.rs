//! The state of a zone.
//!
//! Invariant: `counter` plus the CPUs' deltas equals the pages on the buddy lists.

use super::compact_state::CompactState;
use super::watermark::Marks;
use crate::frame::{
    Geometry, LruId, NR_ZONE_KINDS, NodeId, Pfn, Span, ZoneConfig, ZoneId, ZoneKind,
};
use crate::placement::{FreeArea, V19Stats};
use zerocopy::{IntoBytes, KnownLayout, TryFromBytes};

/// The state of a zone. It lives in the caller's memory, so its layout has no gaps.
#[derive(Clone, TryFromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Zone {
    pub free_area: FreeArea,
    pub marks: Marks,
    /// Pages kept from requests whose highest zone is of this kind.
    pub protection: [u64; NR_ZONE_KINDS],
    /// Pages in high-atomic pageblocks.
    pub highatomic: u64,
    /// Free pages as the watermark checks see them: without the CPUs' deltas.
    pub counter: i64,
    /// Deltas up to this size stay with their CPU.
    pub stat_threshold: i64,
    first: u64,
    spanned: u64,
    present: u64,
    pub managed: u64,
    pub span: Span,
    pub node: NodeId,
    pub kind: ZoneKind,
    id: u8,
    /// A boost asks the next allocation to wake kswapd.
    pub boosted: bool,
    /// kswapd works on this zone: per-CPU lists stay small.
    pub reclaim_active: bool,
    /// Free memory fell below the high mark (6.7 and later).
    pub below_high: bool,
    /// A page was freed here since reclaim last looked.
    pub freed: bool,
    /// The set of LRU lists for the pages of the zone.
    pub lru: LruId,
    /// What it remembers of compactions.
    pub compact: CompactState,
}

impl Zone {
    /// A zone without memory on its lists, at these positions of the frame table.
    pub fn new(
        id: ZoneId,
        config: &ZoneConfig,
        span: Span,
        geometry: Geometry,
        ungrouped: bool,
    ) -> Zone {
        let v19 = V19Stats::start(config.present, geometry.max_order.frames().into());
        Zone {
            free_area: FreeArea::new(span, v19, ungrouped),
            marks: Marks::default(),
            protection: [0; NR_ZONE_KINDS],
            highatomic: 0,
            counter: 0,
            stat_threshold: 0,
            first: config.start.0,
            spanned: config.spanned,
            present: config.present,
            managed: config.managed,
            span,
            node: config.node,
            kind: config.kind,
            id: id.0,
            boosted: false,
            reclaim_active: false,
            below_high: false,
            freed: false,
            lru: LruId(id.0),
            compact: CompactState::new(span, geometry),
        }
    }

    /// Its number.
    pub const fn id(&self) -> ZoneId {
        ZoneId(self.id)
    }

    /// Its extent.
    pub const fn config(&self) -> ZoneConfig {
        ZoneConfig {
            node: self.node,
            kind: self.kind,
            start: Pfn(self.first),
            spanned: self.spanned,
            present: self.present,
            managed: self.managed,
        }
    }

    /// Counts pages that have come online, or gone.
    pub fn resize(&mut self, pages: u64, online: bool) {
        for of in [&mut self.present, &mut self.managed] {
            *of = if online { *of + pages } else { *of - pages };
        }
    }

    /// Adds to the free counter by way of a CPU's delta.
    #[inline]
    pub fn count(&mut self, delta: &mut i32, pages: i64) {
        self.freed |= pages > 0;
        let d = i64::from(*delta) + pages;
        if d.abs() > self.stat_threshold {
            self.counter += d;
            *delta = 0;
        } else {
            *delta = d as i32;
        }
    }
}
