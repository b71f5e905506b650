//! Per-CPU lists: how many pages move, which, and in what order they come back.

mod fixed;
mod single;
mod tuned;

use super::*;
use crate::frame::{
    BlockMeta, FrameIx, FrameMap, FrameMeta, FrameRange, Frames, Geometry, LruId, MigrateType,
    NodeId, Order, Pfn, Span, State, ZoneId,
};
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::kernel::{Drain, Pcp, Sysctl, preset};
use crate::placement::{BlockRequest, FreeBlock};
use crate::policy::Policy;
use crate::trace::Event;
use crate::tracer::Tracer;
use crate::zone::{Zone, ZoneConfig, ZoneKind, ZoneOps};
use MigrateType::{HighAtomic, Movable, Reclaimable, Reserve, Unmovable};
use std::vec::Vec;
use zerocopy::FromZeros;

const PAGES: u32 = 16384;

#[derive(Default)]
struct Ear(Vec<Event>);

impl Host for Ear {
    const TRACING: bool = true;
    fn trace(&mut self, event: &Event) {
        self.0.push(*event);
    }
}

/// One set of one zone whose memory is free, in blocks of the largest order.
struct Rig {
    frames: Frames<'static>,
    zone: Zone,
    set: CpuLists,
    delta: i32,
    policy: Policy,
    map: FrameMap,
    ear: Ear,
}

impl Rig {
    fn new(era: &str) -> Rig {
        let rules = preset(era).map(|p| p.rules);
        let rules = rules.unwrap_or_else(|| panic!("no preset {era}"));
        let geometry = Geometry::PAGES_4K.with_block_order(Order(rules.block_order));
        let config = ZoneConfig::whole(NodeId(0), ZoneKind::Normal, Pfn(0), PAGES.into());
        let range = FrameRange {
            start: Pfn(0),
            frames: PAGES.into(),
        };
        let sysctl = Sysctl {
            watermark_boost_factor: 0,
            ..Sysctl::default()
        };
        let blocks = (PAGES >> geometry.block_order.0) as usize;
        let meta: Vec<_> = (0..PAGES).map(|_| FrameMeta::new_zeroed()).collect();
        let blocks: Vec<_> = (0..blocks).map(|_| BlockMeta::new_zeroed()).collect();
        let mut frames = Frames::new(meta.leak(), blocks.leak(), geometry, Movable);
        let span = Span {
            start: FrameIx(0),
            end: FrameIx(PAGES),
        };
        frames.add_zone(ZoneId(0), span, LruId(0), State::TAIL);
        Rig {
            frames,
            zone: Zone::new(ZoneId(0), &config, span, geometry, false),
            set: CpuZone::new().lists,
            delta: 0,
            policy: Policy::new(rules, sysctl),
            map: FrameMap::new(&[range], geometry).expect("a map"),
            ear: Ear::default(),
        }
    }

    fn parts(&mut self) -> (&mut CpuLists, ZoneOps<'_, 'static, Ear>) {
        let ops = ZoneOps {
            zone: &mut self.zone,
            delta: &mut self.delta,
            frames: &self.frames,
            policy: &self.policy,
            tracer: Tracer {
                host: &mut self.ear,
                map: &self.map,
            },
        };
        (&mut self.set, ops)
    }

    /// All pageblocks get a type.
    fn all_blocks_are(&mut self, mt: MigrateType) {
        let order = self.frames.geometry.max_order;
        for ix in (0..PAGES).step_by(order.frames() as usize) {
            self.frames.set_block_types(FrameIx(ix), order, mt);
        }
    }

    /// Memory of a type: whole blocks on the buddy lists.
    fn stock(mut self, mt: MigrateType) -> Rig {
        self.all_blocks_are(mt);
        let order = self.frames.geometry.max_order;
        for ix in (0..PAGES).step_by(order.frames() as usize) {
            let ix = FrameIx(ix);
            self.zone
                .free_area
                .put(&self.frames, FreeBlock { ix, order, mt });
            self.zone.counter += i64::from(order.frames());
        }
        self
    }

    fn sized(mut self, batch: i32, high: i32) -> Rig {
        (self.set.batch, self.set.high) = (batch, high);
        (self.set.high_min, self.set.high_max) = (high, high);
        self
    }

    /// An allocation that is a sign of demand, or a bulk one, which is none.
    fn alloc_as(&mut self, order: u8, mt: MigrateType, demand: bool) -> Option<u32> {
        let request = BlockRequest {
            order: Order(order),
            mt,
            nofragment: false,
            wake: false,
        };
        let (set, mut z) = self.parts();
        set.take(&mut z, request, demand).map(|ix| ix.0)
    }

    fn alloc(&mut self, order: u8, mt: MigrateType) -> Option<u32> {
        self.alloc_as(order, mt, true)
    }

    /// Frees a block that was not allocated.
    fn free(&mut self, ix: u32, order: u8, mt: MigrateType) {
        let pressure = ZonePressure::of(&self.zone);
        let (set, mut z) = self.parts();
        let (ix, order) = (FrameIx(ix), Order(order));
        let freed = set.put_freed(
            z.frames,
            &z.policy.rules,
            FreeBlock { ix, order, mt },
            pressure,
        );
        if freed.surplus > 0 {
            set.give_surplus(&mut z, freed);
        }
    }

    fn release(&mut self, n: i32) {
        let (set, mut z) = self.parts();
        set.release(&mut z, n, 0);
    }

    fn decay(&mut self) {
        let (set, mut z) = self.parts();
        set.decay(&mut z);
    }

    /// Puts single pages on list `i`, the first named at its head, each two frames apart so that
    /// they do not merge.
    fn hold(&mut self, i: usize, from: u32, n: u32, mt: MigrateType) {
        for k in 0..n {
            let page = FreeBlock {
                ix: FrameIx(from + 2 * k),
                order: Order::ZERO,
                mt,
            };
            self.set.restore(&self.frames, i, page);
        }
    }

    fn list(&self, i: usize) -> Vec<u32> {
        self.set.iter(&self.frames, i).map(|ix| ix.0).collect()
    }

    /// Blocks given back since the last look: frame and list.
    fn given(&mut self) -> Vec<(u64, MigrateType)> {
        let heard = std::mem::take(&mut self.ear.0);
        let drain = |e: Event| match e {
            Event::PagePcpuDrain {
                pfn, migratetype, ..
            } => Some((pfn.0, migratetype)),
            _ => None,
        };
        heard.into_iter().filter_map(drain).collect()
    }

    fn given_frames(&mut self) -> Vec<u64> {
        self.given().into_iter().map(|g| g.0).collect()
    }
}
