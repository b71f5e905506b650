//! Per-CPU lists: how many pages move, which, and in what order they come back.

mod fixed;
mod single;
mod tuned;

use super::*;
use crate::frame::{FrameMap, FrameMeta, FrameRange, HUGE_ORDER, MAX_ORDER, Pfn};
use crate::gfp::AllocFlags;
use crate::kernel::{Drain, preset};
use crate::zone::{ZoneConfig, ZoneKind};
use MigrateType::{HighAtomic, Movable, Reclaimable, Reserve, Unmovable};
use std::vec::Vec;

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
    meta: Vec<FrameMeta>,
    blocks: Vec<u8>,
    zone: Zone,
    set: CpuLists,
    env: Env,
    map: FrameMap,
    ear: Ear,
}

impl Rig {
    fn new(era: &str) -> Rig {
        let rules = preset(era).map(|p| p.rules);
        let rules = rules.unwrap_or_else(|| panic!("no preset {era}"));
        let config = ZoneConfig {
            node: 0,
            kind: ZoneKind::Normal,
            start: Pfn(0),
            spanned: PAGES.into(),
            present: PAGES.into(),
            managed: PAGES.into(),
        };
        let range = FrameRange {
            start: Pfn(0),
            frames: PAGES.into(),
        };
        let sysctl = Sysctl {
            watermark_boost_factor: 0,
            ..Sysctl::default()
        };
        let mut rig = Rig {
            meta: std::vec![bytemuck::Zeroable::zeroed(); PAGES as usize],
            blocks: std::vec![Movable as u8; (PAGES >> rules.block_order) as usize],
            zone: Zone::new(0, config, 0, PAGES, false),
            set: CpuLists::new(),
            env: Env { rules, sysctl },
            map: FrameMap::new(&[range]).expect("a map"),
            ear: Ear::default(),
        };
        for m in &mut rig.meta {
            m.set_state(State::new(Kind::Tail, 0, Unmovable, 0));
        }
        rig
    }

    fn parts(&mut self) -> (&mut CpuLists, &mut Zone, Frames<'_>, &Env, Tracer<'_, Ear>) {
        let frames = Frames {
            meta: &mut self.meta,
            blocks: &mut self.blocks,
            block_order: self.env.rules.block_order,
        };
        let tracer = Tracer {
            host: &mut self.ear,
            map: &self.map,
        };
        (&mut self.set, &mut self.zone, frames, &self.env, tracer)
    }

    /// Memory of a type: whole blocks on the buddy lists.
    fn stock(mut self, mt: MigrateType) -> Rig {
        let (_, zone, mut frames, ..) = self.parts();
        frames.blocks.fill(mt as u8);
        for ix in (0..PAGES).step_by(1 << MAX_ORDER) {
            zone.place.lists.push(&mut frames, ix, MAX_ORDER, mt, true);
            zone.counter += 1 << MAX_ORDER;
        }
        self
    }

    fn sized(mut self, batch: i32, high: i32) -> Rig {
        (self.set.batch, self.set.high) = (batch, high);
        (self.set.high_min, self.set.high_max) = (high, high);
        self
    }

    fn alloc_cold(&mut self, order: u8, mt: MigrateType, cold: bool) -> Option<u32> {
        let want = Want {
            order,
            mt,
            nofragment: false,
            wake: false,
        };
        let (set, zone, mut frames, env, mut t) = self.parts();
        set.alloc(zone, &mut frames, env, want, cold, &mut t)
    }

    fn alloc(&mut self, order: u8, mt: MigrateType) -> Option<u32> {
        self.alloc_cold(order, mt, false)
    }

    /// Frees a block that nobody allocated.
    fn free(&mut self, ix: u32, order: u8, mt: MigrateType) {
        let (set, zone, mut frames, env, mut t) = self.parts();
        set.free(zone, &mut frames, env, ix, order, mt, false, &mut t);
    }

    fn release(&mut self, n: i32) {
        let (set, zone, mut frames, env, mut t) = self.parts();
        set.release(zone, &mut frames, env, n, 0, &mut t);
    }

    /// Puts single pages on list `i`, the first named at its head, each two frames apart so that
    /// they do not merge.
    fn hold(&mut self, i: usize, from: u32, n: u32, mt: MigrateType) {
        let (set, zone, mut frames, env, _) = self.parts();
        for k in 0..n {
            let at = (i, End::Tail);
            set.put_single(&mut frames, zone.id, env.rules.pcp, at, from + 2 * k, mt);
        }
    }

    fn list(&self, i: usize) -> Vec<u32> {
        self.set.lists[i].iter(&self.meta).collect()
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
