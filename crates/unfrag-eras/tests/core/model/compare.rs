//! Copying the state of a manager into the model, and comparing the two.

use super::{Family, Frame, Model, Zone};
use std::collections::VecDeque;
use unfrag_eras::frame::FrameKind;
use unfrag_eras::{CpuId, Host, Manager, MigrateType, Order, Pfn, ZoneConfig, ZoneId};

impl Zone {
    pub fn like<H: Host>(m: &Manager<H>, i: usize, config: ZoneConfig) -> Zone {
        let v = m.inspect().zone(ZoneId(i as u8));
        Zone {
            config,
            lists: (0..11).map(|_| Default::default()).collect(),
            min: v.marks.min,
            low: v.marks.low,
            high: v.marks.high,
            boost: 0,
            protection: v.protection,
            highatomic: 0,
            boosted: false,
            reclaim: false,
            below_high: false,
            counter: v.free_pages as i64,
            threshold: 0,
            v19_blocks: [config.present >> 10, 0, 0, 0],
            v19_allocs: [0; 4],
        }
    }
}

impl Model {
    /// Takes over the free lists and the types of pageblocks.
    pub fn copy_lists<H: Host>(&mut self, m: &Manager<H>) {
        for i in 0..self.block_types.len() {
            let pfn = self.base + ((i as u64) << self.block_order);
            if let Some(mt) = m.inspect().block_type(Pfn(pfn)) {
                self.block_types[i] = mt;
            }
        }
        for z in 0..self.zones.len() {
            for order in 0..=10 {
                for mt in MigrateType::ALL {
                    let zone = ZoneId(z as u8);
                    for pfn in m.inspect().free_list(zone, Order(order), mt) {
                        self.push(z, pfn.0, order, mt, true);
                    }
                }
            }
        }
    }

    /// Compares all that is visible of a manager with the model.
    pub fn compare<H: Host>(&self, m: &Manager<H>) {
        let see = m.inspect();
        see.validate().expect("a sound state");
        for (z, zone) in self.zones.iter().enumerate() {
            let id = ZoneId(z as u8);
            for order in 0..=10u8 {
                for mt in MigrateType::ALL {
                    let theirs = see.free_list(id, Order(order), mt);
                    let theirs: VecDeque<u64> = theirs.map(|p| p.0).collect();
                    assert_eq!(
                        zone.list(order, mt),
                        &theirs,
                        "zone {z} order {order} {mt:?}"
                    );
                }
            }
            let v = see.zone(id);
            assert_eq!(v.free_pages, zone.free_pages(), "free pages of zone {z}");
            assert_eq!(v.free_counter, zone.counter, "free counter of zone {z}");
            assert_eq!(v.marks.boost, zone.boost, "boost of zone {z}");
            assert_eq!(v.highatomic, zone.highatomic, "reserve of zone {z}");
            for order in 0..=10u8 {
                assert_eq!(v.nr_free[order as usize], zone.nr_free(order));
            }
            if self.family == Family::V19 {
                assert_eq!(v.v19.reserve, zone.v19_blocks);
                assert_eq!(v.v19.allocs, zone.v19_allocs);
            }
            for cpu in 0..self.sets.len() {
                let on = CpuId(cpu as u32);
                let (set, s) = (&self.sets[cpu][z], see.set(id, on));
                for (i, list) in set.lists.iter().enumerate() {
                    let theirs: VecDeque<u64> = see.pcp_list(id, on, i).map(|p| p.0).collect();
                    assert_eq!(list, &theirs, "zone {z} CPU {cpu} list {i}");
                }
                assert_eq!(i64::from(s.count), self.held(cpu, z));
                assert_eq!(i64::from(s.high), set.high, "high of zone {z} CPU {cpu}");
                assert_eq!(
                    i64::from(s.factor),
                    set.factor,
                    "factor of zone {z} CPU {cpu}"
                );
            }
        }
        for (i, mt) in self.block_types.iter().enumerate() {
            let pfn = Pfn(self.base + ((i as u64) << self.block_order));
            assert_eq!(
                see.block_type(pfn).unwrap_or(*mt),
                *mt,
                "pageblock at {pfn:?}"
            );
        }
        self.compare_frames(m);
    }

    /// Each frame is in exactly one place, and its state is that of the manager.
    fn compare_frames<H: Host>(&self, m: &Manager<H>) {
        for (i, what) in self.frames.iter().enumerate() {
            let pfn = self.base + i as u64;
            let Some(theirs) = m.inspect().frame(Pfn(pfn)) else {
                continue;
            };
            let (kind, order) = (theirs.kind, theirs.order.0);
            let want = match *what {
                Frame::Reserved => {
                    assert!(
                        matches!(kind, FrameKind::Reserved | FrameKind::Absent),
                        "{pfn:#x}: {kind:?}"
                    );
                    continue;
                }
                Frame::Used { order, head, .. } => (FrameKind::Used, order, head),
                Frame::Free { order, head, .. } => (FrameKind::Buddy, order, head),
                Frame::Pcp { order, head, .. } => (FrameKind::Pcp, order, head),
            };
            if want.2 == pfn {
                assert_eq!((kind, order), (want.0, want.1), "{pfn:#x}");
            } else {
                assert_eq!(kind, FrameKind::Tail, "{pfn:#x}");
            }
        }
    }
}
