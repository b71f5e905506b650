//! Per-CPU lists: how many pages move, which, and in what order they come back.

extern crate std;

use super::*;
use crate::frame::{FrameMap, FrameRange, HUGE_ORDER, MAX_ORDER, Pfn};
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
        let sw = preset(era).map(|p| p.switches);
        let sw = sw.unwrap_or_else(|| panic!("no preset {era}"));
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
            blocks: std::vec![Movable as u8; (PAGES >> sw.block_order) as usize],
            zone: Zone::new(0, config, 0, PAGES, false),
            set: CpuLists::new(),
            env: Env { sw, sysctl },
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
            block_order: self.env.sw.block_order,
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
        let (set, zone, mut frames, ..) = self.parts();
        for k in 0..n {
            let block = PcpBlock { order: 0, mt };
            set.put(&mut frames, zone.id, i, from + 2 * k, block, End::Tail);
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

// ---- one list a type: 2.6.32 ----------------------------------------------------------------

fn per_type(drain: Drain) -> Rig {
    let mut rig = Rig::new("2.6.32").sized(6, 100);
    rig.env.sw.pcp = Pcp::PerType {
        drain,
        keep_type: false,
    };
    rig
}

#[test]
fn batch_free_frees_more_of_a_list_after_empty_ones_spec_3_1() {
    // Lists 0:10, 1:0, 2:0; free 6: the first visit examines 1, 2, 0, so three pages; then again.
    let mut rig = per_type(Drain::BatchFree);
    rig.hold(0, 0, 10, Unmovable);
    rig.release(6);
    assert_eq!(rig.given_frames(), [18, 16, 14, 12, 10, 8]);
    assert_eq!(rig.set.count, 4);
}

#[test]
fn batch_free_visits_list_1_first_spec_3_1() {
    // Lists 0:4, 1:4, 2:0; free 6: one of list 1, two of 0 (after 2), one of 1, two of 0. Type 1 is
    // reclaimable in 2.6.32 and movable today.
    for (era, second) in [("2.6.32", Reclaimable), ("5.9", Movable)] {
        let mut rig = Rig::new(era).sized(6, 100);
        rig.hold(0, 0, 4, Unmovable);
        rig.hold(1, 100, 4, second);
        rig.release(6);
        let lists: Vec<_> = rig.given();
        let want = [106, 6, 4, 104, 2, 0].map(|ix| {
            let mt = if ix < 100 { Unmovable } else { second };
            (ix, mt)
        });
        assert_eq!(lists, want, "{era}");
    }
}

#[test]
fn batch_free_carries_what_is_left_when_a_list_empties_spec_3_1() {
    // 0:1, 1:1, 2:6. Credit 1 → one of list 1; 1 → list 2; then (0) 1 → list 0; then 1 is empty, so
    // 2 → two of list 2; then 0 and 1 are empty: 3 → three of list 2.
    let mut rig = per_type(Drain::BatchFree);
    rig.hold(0, 0, 1, Unmovable);
    rig.hold(1, 100, 1, Reclaimable);
    rig.hold(2, 200, 6, Movable);
    rig.release(8);
    assert_eq!(rig.given_frames(), [100, 210, 0, 208, 206, 204, 202, 200]);
}

#[test]
fn round_robin_takes_one_page_of_each_list_in_turn_spec_3_1_patch_1() {
    let mut rig = per_type(Drain::RoundRobin);
    rig.hold(0, 0, 3, Unmovable);
    rig.hold(1, 100, 1, Reclaimable);
    rig.hold(2, 200, 2, Movable);
    rig.release(6);
    assert_eq!(rig.given_frames(), [4, 100, 202, 2, 200, 0]);
}

#[test]
fn reserve_pages_leak_in_2_6_32_and_come_home_from_2_6_33_on_spec_3_1() {
    for (era, home) in [("2.6.32", Movable), ("2.6.36", Reserve)] {
        let mut rig = Rig::new(era).sized(4, 4);
        rig.blocks.fill(Reserve as u8);
        for k in 0..4 {
            rig.free(2 * k, 0, Reserve);
        }
        let given = rig.given();
        assert_eq!(given.len(), 4);
        assert!(given.iter().all(|g| g.1 == home), "{era}: {given:?}");
        let lists = &rig.zone.place.lists;
        assert_eq!(lists.list(0, home).len, 4, "{era}");
    }
}

#[test]
fn a_refill_takes_batch_pages_in_ascending_order_spec_3_1() {
    let mut rig = Rig::new("2.6.32").stock(Movable).sized(8, 48);
    let got: Vec<_> = (0..8).filter_map(|_| rig.alloc(0, Movable)).collect();
    assert_eq!(got, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(rig.set.count, 0);
    rig.alloc(0, Movable);
    assert_eq!(rig.set.count, 7);
    // A cold request takes the other end.
    let mut rig = Rig::new("2.6.32").stock(Movable).sized(8, 48);
    assert_eq!(rig.alloc_cold(0, Movable, true), Some(0));
    assert_eq!(rig.list(2), [7, 6, 5, 4, 3, 2, 1], "reverse order");
}

#[test]
fn a_full_set_gives_batch_pages_back_spec_3_1() {
    let mut rig = Rig::new("2.6.32").sized(2, 6);
    for k in 0..6 {
        rig.free(2 * k, 0, Movable);
    }
    assert_eq!(rig.given_frames(), [0, 2], "the coldest first");
    assert_eq!((rig.set.count, rig.list(2)), (4, std::vec![10, 8, 6, 4]));
}

// ---- V19 ------------------------------------------------------------------------------------

#[test]
fn v19_keeps_kernel_and_easy_pages_apart_and_refills_at_low_spec_2_2() {
    let mut rig = Rig::new("v19").stock(Unmovable).sized(2, 0);
    rig.zone.place.v19.fallback_needed = 0;
    // Low is two batches: at or below it a batch comes in.
    let counts: Vec<_> = (0..6)
        .map(|_| {
            rig.alloc(0, Unmovable);
            rig.list(0).len()
        })
        .collect();
    assert_eq!(counts, [1, 2, 3, 4, 5, 4]);
    assert!(rig.list(1).is_empty());
    // High is three batches: from there on a batch goes out.
    rig.free(4096, 0, Reclaimable);
    rig.free(4098, 0, Reclaimable);
    assert_eq!(rig.list(0).len(), 4, "kernel pages share a list");
    rig.free(4100, 0, Movable);
    assert_eq!(rig.list(1), [4100]);
    assert_eq!(rig.set.count as usize, rig.list(0).len() + 1);
}

// ---- a searched list: 2.6.24 to 2.6.31 --------------------------------------------------------

#[test]
fn a_searched_list_gives_a_page_of_the_type_spec_2_5() {
    for era in ["2.6.24", "2.6.28"] {
        let mut rig = Rig::new(era).stock(Movable).sized(4, 24);
        rig.hold(0, 1000, 2, Unmovable);
        rig.hold(0, 2000, 1, Movable);
        assert_eq!(rig.alloc(0, Movable), Some(2000), "{era}");
        assert_eq!(rig.alloc(0, Unmovable), Some(1000), "{era}");
        assert_eq!(rig.set.count, 1, "{era}");
    }
}

// ---- 6.1 --------------------------------------------------------------------------------------

#[test]
fn lists_of_6_1_are_by_order_and_type_spec_3_2() {
    use super::orders::list_index;
    assert_eq!(list_index(0, Unmovable), 0);
    assert_eq!(list_index(0, Reclaimable), 2);
    assert_eq!(list_index(3, Movable), 10);
    assert_eq!(list_index(HUGE_ORDER, Unmovable), 12);
    assert_eq!(list_index(HUGE_ORDER, Reclaimable), 12);
    assert_eq!(list_index(HUGE_ORDER, Movable), 13);
    let shape = preset("6.1").map(|p| p.switches.pcp).expect("6.1");
    let served: Vec<u8> = (0..=MAX_ORDER)
        .filter(|&o| CpuLists::serves(shape, o))
        .collect();
    assert_eq!(served, [0, 1, 2, 3, 9]);
}

#[test]
fn refill_of_6_1_is_batch_over_order_at_least_two_spec_6_1_3() {
    for (order, blocks) in [(0, 63), (1, 31), (2, 15), (3, 7), (9, 2)] {
        let mut rig = Rig::new("6.1").stock(Movable).sized(63, 5524);
        assert_eq!(rig.alloc(order, Movable), Some(0));
        assert_eq!(rig.set.count, (blocks - 1) << order, "order {order}");
        let i = super::orders::list_index(order, Movable);
        let want: Vec<u32> = (1..blocks as u32).map(|k| k << order).collect();
        assert_eq!(rig.list(i), want, "appended in ascending order");
    }
    for (batch, order, blocks) in [(1, 0, 1), (1, 3, 1), (1, 9, 1), (3, 2, 2)] {
        let mut rig = Rig::new("6.1").stock(Movable).sized(batch, 118);
        rig.alloc(order, Movable);
        assert_eq!(rig.set.count, (blocks - 1) << order, "batch {batch}");
    }
}

#[test]
fn a_refill_does_not_look_at_the_marks_spec_6_1_3() {
    let mut rig = Rig::new("6.1").stock(Movable).sized(63, 500);
    rig.zone.marks.min = 1 << 20;
    assert!(rig.alloc(0, Movable).is_some());
    assert_eq!(rig.set.count, 62);
}

#[test]
fn allocation_halves_the_free_factor_of_6_1_but_a_bulk_one_does_not_spec_6_1_3_10() {
    let mut rig = Rig::new("6.1").stock(Movable).sized(63, 500);
    rig.set.factor = 5;
    rig.alloc(0, Movable);
    assert_eq!(rig.set.factor, 2);
    let want = Want {
        order: 0,
        mt: Movable,
        nofragment: false,
        wake: false,
    };
    let (set, zone, mut frames, env, mut t) = rig.parts();
    assert!(
        set.alloc_bulk(zone, &mut frames, env, want, &mut t)
            .is_some()
    );
    assert_eq!(rig.set.factor, 2);
}

#[test]
fn thresholds_of_6_1_grow_with_the_factor_spec_6_1_3() {
    // batch 4, high 40: clamp(4 << factor, 4, 36), the factor growing while 4 << factor < 36.
    let mut rig = Rig::new("6.1").sized(4, 40);
    rig.hold(1, 0, 39, Movable);
    let (mut sizes, mut next) = (Vec::new(), 1000);
    for _ in 0..6 {
        while rig.given().is_empty() {
            let held = rig.set.count;
            rig.free(next, 0, Movable);
            next += 2;
            if rig.set.count <= held {
                sizes.push((held + 1 - rig.set.count, rig.set.factor));
                break;
            }
        }
        rig.given();
    }
    assert_eq!(sizes, [(4, 1), (8, 2), (16, 3), (32, 4), (36, 4), (36, 4)]);
}

#[test]
fn a_factor_stops_at_five_spec_6_1_3() {
    let mut rig = Rig::new("6.1").sized(1, 1000);
    rig.set.factor = 5;
    rig.hold(1, 0, 999, Movable);
    rig.free(4000, 0, Movable);
    assert_eq!((rig.set.count, rig.set.factor), (1000 - 32, 5));
}

#[test]
fn kswapd_at_work_keeps_sets_of_6_1_small_spec_6_1_3() {
    let mut rig = Rig::new("6.1").sized(4, 40);
    rig.zone.reclaim_active = true;
    rig.hold(1, 0, 15, Movable);
    rig.free(1000, 0, Movable);
    assert_eq!(rig.given_frames().len(), 4, "at 4 × batch");
    rig.zone.reclaim_active = false;
    rig.free(1002, 0, Movable);
    assert!(rig.given_frames().is_empty());
}

#[test]
fn a_burst_of_small_blocks_empties_a_set_of_6_1_spec_6_1_3() {
    let mut rig = Rig::new("6.1").sized(4, 4000);
    rig.hold(0, 0, 3, Unmovable);
    rig.hold(1, 100, 5, Movable);
    rig.free(1000, 2, Movable);
    assert_eq!(rig.set.count, 12, "no burst without a factor");
    rig.set.factor = 1;
    rig.free(2000, 0, Movable);
    assert_eq!(rig.set.count, 13, "nor for order 0");
    rig.free(3072, HUGE_ORDER, Movable);
    assert_eq!(rig.given_frames().len(), 0, "nor for order 9 below high");
    rig.free(4096, 3, Movable);
    assert_eq!(rig.set.count, 0);
    assert_eq!(rig.set.factor, 1);
}

#[test]
fn a_threshold_below_batch_frees_one_page_at_a_time_spec_6_1_3() {
    let mut rig = Rig::new("6.1").sized(8, 4);
    rig.hold(1, 0, 3, Movable);
    rig.free(1000, 0, Movable);
    assert_eq!(rig.set.count, 3);
}

#[test]
fn a_bulk_free_of_6_1_empties_list_after_list_from_the_one_just_freed_to_spec_6_1_3() {
    let mut rig = Rig::new("6.1").sized(6, 12);
    rig.hold(0, 0, 3, Unmovable);
    rig.hold(1, 100, 4, Movable);
    rig.hold(2, 200, 2, Reclaimable);
    rig.hold(1, 300, 2, Movable);
    rig.free(1000, 0, Reclaimable);
    // List 2 from its tail, then on past empty lists to 0, and then 1.
    assert_eq!(rig.given_frames(), [202, 200, 1000, 4, 2, 0]);
    rig.set.high = 0;
    rig.release(100);
    assert_eq!(rig.given_frames(), [302, 300, 106, 104, 102, 100]);
    assert_eq!(rig.set.count, 0);
}

#[test]
fn a_page_of_6_1_returns_to_the_list_of_its_type_when_freed_spec_6_1_1_2() {
    for (era, want) in [("6.1", Movable), ("6.18", Unmovable)] {
        let mut rig = Rig::new(era).sized(1, 100);
        rig.blocks.fill(Movable as u8);
        rig.free(100, 0, Movable);
        // Its pageblock changes hands while it waits.
        rig.blocks.fill(Unmovable as u8);
        rig.release(1);
        assert_eq!(rig.given(), [(100, want)], "{era}");
    }
}

#[test]
fn high_atomic_pages_wait_on_the_movable_list_spec_3_2() {
    for era in ["6.1", "6.18"] {
        let mut rig = Rig::new(era).sized(4, 400);
        rig.blocks.fill(HighAtomic as u8);
        rig.free(100, 1, HighAtomic);
        assert_eq!(rig.list(3 + 1), [100], "{era}");
        rig.release(2);
        assert_eq!(rig.given(), [(100, HighAtomic)], "{era}");
    }
}

// ---- 6.18 -------------------------------------------------------------------------------------

fn tuned(batch: i32, high_min: i32, high_max: i32) -> Rig {
    let mut rig = Rig::new("6.18").stock(Movable);
    rig.set.batch = batch;
    (rig.set.high, rig.set.high_min, rig.set.high_max) = (high_min, high_min, high_max);
    rig
}

#[test]
fn refills_of_6_18_double_while_demand_lasts_spec_3_2() {
    let mut rig = tuned(4, 16, 400);
    let mut sizes = Vec::new();
    for _ in 0..8 {
        while rig.set.count > 0 {
            rig.alloc(0, Movable);
        }
        rig.alloc(0, Movable);
        sizes.push((rig.set.count + 1, rig.set.high, rig.set.factor));
    }
    // n = 4 << factor; high grows by n; room = high - count - batch caps n.
    assert_eq!(
        sizes,
        [
            (4, 20, 1),
            (8, 28, 2),
            (16, 44, 3),
            (32, 76, 4),
            (64, 140, 5),
            (128, 268, 5),
            (128, 396, 5),
            (128, 400, 5),
        ]
    );
}

#[test]
fn room_limits_a_refill_of_6_18_spec_3_2() {
    let mut rig = tuned(4, 16, 16);
    rig.set.factor = 3;
    rig.alloc(0, Movable);
    // Not self-tuned: high stays; room = max(16 - 0 - 4, 4) = 12 < 32, so the factor stays too.
    assert_eq!(
        (rig.set.count + 1, rig.set.factor, rig.set.high),
        (12, 3, 16)
    );
    let mut rig = tuned(20, 16, 16);
    rig.alloc(0, Movable);
    assert_eq!(rig.set.count + 1, 1, "high below batch: one page");
}

#[test]
fn higher_orders_of_6_18_take_a_batch_in_pages_spec_3_2() {
    for (order, blocks) in [(1, 31), (2, 15), (3, 7), (9, 2)] {
        let mut rig = tuned(63, 321, 8192);
        rig.set.factor = 4;
        rig.alloc(order, Movable);
        assert_eq!(rig.set.count, (blocks - 1) << order);
        assert_eq!(rig.set.factor, 4, "only order 0 raises it");
        assert_eq!(rig.set.high, 321 + 63);
    }
}

#[test]
fn a_zone_below_its_high_mark_does_not_grow_its_sets_spec_3_2() {
    let mut rig = tuned(4, 16, 400);
    rig.zone.below_high = true;
    rig.alloc(0, Movable);
    assert_eq!(rig.set.high, 16);
    // Frees shrink high, and the threshold is what is held.
    rig.set.high = 100;
    rig.hold(1, 8000, 30, Movable);
    rig.zone.counter = 0;
    rig.zone.marks.high = 1 << 20;
    let held = rig.set.count + 1;
    rig.free(9000, 0, Movable);
    assert_eq!(rig.set.high, 96, "by max(free_count, batch)");
    assert_eq!(rig.set.count, held - 4);
    assert!(rig.zone.below_high);
    rig.zone.marks.high = 0;
    rig.free(9002, 0, Movable);
    assert!(!rig.zone.below_high, "cleared once the zone is above");
}

#[test]
fn frees_count_up_and_allocations_halve_them_spec_3_2() {
    let mut rig = tuned(4, 400, 400);
    rig.set.factor = 4;
    for k in 0..10 {
        rig.free(8000 + 2 * k, 0, Movable);
    }
    assert_eq!((rig.set.free_count, rig.set.factor), (10, 0));
    rig.alloc(0, Movable);
    assert_eq!(rig.set.free_count, 5);
    for k in 0..20 {
        rig.free(9000 + 16 * k, 3, Movable);
        rig.set.prev_free_high = 0;
    }
    assert_eq!(rig.set.free_count, 133, "until it reaches 4 << 5");
}

#[test]
fn a_set_of_6_18_gives_back_what_was_freed_of_late_spec_3_2() {
    let mut rig = tuned(4, 40, 40);
    rig.hold(1, 8000, 39, Movable);
    rig.set.free_count = 9;
    rig.free(9000, 0, Movable);
    assert_eq!(
        rig.set.count,
        40 - 10,
        "clamp(free_count, batch, T - batch)"
    );
    let mut rig = tuned(4, 40, 40);
    rig.hold(1, 8000, 39, Movable);
    rig.free(9000, 0, Movable);
    assert_eq!(rig.set.count, 40 - 4);
    let mut rig = tuned(4, 40, 40);
    rig.hold(1, 8000, 39, Movable);
    rig.set.free_count = 100;
    rig.free(9000, 0, Movable);
    assert_eq!(rig.set.count, 4);
}

#[test]
fn high_of_6_18_grows_to_hold_what_is_freed_spec_3_2() {
    let mut rig = tuned(4, 40, 400);
    rig.hold(1, 8000, 39, Movable);
    rig.set.free_count = 100;
    rig.free(9000, 0, Movable);
    assert_eq!(rig.set.high, 105, "free_count + batch");
    assert_eq!(rig.set.count, 4, "the threshold was still 40");
}

#[test]
fn kswapd_at_work_shrinks_sets_of_6_18_spec_3_2() {
    let mut rig = tuned(4, 16, 400);
    rig.set.high = 100;
    rig.zone.reclaim_active = true;
    rig.hold(1, 8000, 15, Movable);
    rig.free(9000, 0, Movable);
    assert_eq!(rig.set.high, 96);
    assert_eq!(rig.set.count, 12, "T = 4 × batch");
}

#[test]
fn a_burst_in_6_18_needs_two_small_blocks_in_a_row_spec_3_2() {
    let mut rig = tuned(4, 40, 400);
    rig.set.high = 200;
    rig.set.free_count = 4 + 20 - 2;
    rig.hold(1, 8000, 50, Movable);
    rig.free(9000, 1, Movable);
    assert_eq!(rig.set.count, 52, "the first of a row");
    rig.free(9008, 1, Movable);
    assert_eq!(rig.set.count, 0, "min(count, batch << 5)");
    assert_eq!(rig.set.high, 72, "200 - (4 << 5)");
    rig.free(9016, 0, Movable);
    rig.set.free_count = 100;
    rig.free(9024, 1, Movable);
    assert_eq!(rig.set.count, 3, "order 0 in between ends the row");
}

#[test]
fn idle_sets_of_6_18_decay_spec_3_2() {
    let mut rig = tuned(2, 16, 400);
    rig.set.high = 80;
    rig.hold(1, 8000, 76, Movable);
    let (set, zone, mut frames, env, mut t) = rig.parts();
    assert!(set.decay(zone, &mut frames, env, &mut t));
    // max(76 - 64, 80 - 10, 16) = 70.
    assert_eq!((rig.set.high, rig.set.count), (70, 70));
    let (set, zone, mut frames, env, mut t) = rig.parts();
    set.high = 17;
    set.decay(zone, &mut frames, env, &mut t);
    assert_eq!((rig.set.high, rig.set.count), (16, 16));
    let mut rig = tuned(2, 16, 16);
    let (set, zone, mut frames, env, mut t) = rig.parts();
    assert!(
        !set.decay(zone, &mut frames, env, &mut t),
        "only where high is tuned"
    );
}

#[test]
fn the_free_counter_moves_beyond_the_stat_threshold_only_spec_6_1_10() {
    let mut rig = Rig::new("6.1").stock(Movable).sized(8, 48);
    rig.zone.stat_threshold = 10;
    let before = rig.zone.counter;
    rig.alloc(0, Movable);
    assert_eq!((rig.zone.counter, rig.set.delta), (before, -8));
    for _ in 0..8 {
        rig.alloc(0, Movable);
    }
    assert_eq!((rig.zone.counter, rig.set.delta), (before - 16, 0));
    let mark = rig.zone.marks.of(AllocFlags::empty());
    assert!(
        rig.zone
            .passes(&rig.env.sw, 0, mark, ZoneKind::Normal, AllocFlags::empty())
    );
}
