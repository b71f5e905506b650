//! What the tests of the core share: a host that listens, and managers made by hand.

#![allow(dead_code)]

use unfrag::trace::{Event, Extfrag};
use unfrag::zone::Marks;
use unfrag::{
    Config, Gfp, Host, Manager, MigrateType, Pfn, Rules, Sysctl, ZoneConfig, ZoneKind, layout,
    preset,
};

/// A host that writes down what it is told.
#[derive(Debug, Default)]
pub struct Listener {
    pub cpu: usize,
    pub events: Vec<Event>,
    /// Node and order of each call for kswapd.
    pub wakes: Vec<(u8, u8)>,
    pub zeroed: Vec<(Pfn, u8)>,
}

impl Host for Listener {
    const TRACING: bool = true;
    fn cpu(&self) -> usize {
        self.cpu
    }
    fn trace(&mut self, event: &Event) {
        self.events.push(*event);
    }
    fn wake_kswapd(&mut self, node: u8, order: u8) {
        self.wakes.push((node, order));
    }
    fn zero(&mut self, first: Pfn, order: u8) {
        self.zeroed.push((first, order));
    }
}

impl Listener {
    /// The fallbacks heard so far.
    pub fn fallbacks(&self) -> Vec<Extfrag> {
        self.events
            .iter()
            .filter_map(|e| match e {
                Event::PageAllocExtfrag(x) => Some(*x),
                _ => None,
            })
            .collect()
    }
    /// Blocks that left the per-CPU lists, in order, with the list they went to.
    pub fn drained(&self) -> Vec<(u64, u8, MigrateType)> {
        self.events
            .iter()
            .filter_map(|e| match e {
                Event::PagePcpuDrain {
                    pfn,
                    order,
                    migratetype,
                } => Some((pfn.0, *order, *migratetype)),
                _ => None,
            })
            .collect()
    }
    /// Blocks that left the buddy lists, in order.
    pub fn taken(&self) -> Vec<(u64, u8, MigrateType)> {
        self.events
            .iter()
            .filter_map(|e| match e {
                Event::PageAllocZoneLocked {
                    pfn,
                    order,
                    migratetype,
                    ..
                } => Some((pfn.0, *order, *migratetype)),
                _ => None,
            })
            .collect()
    }
}

pub type M = Manager<'static, Listener>;

pub const UNM: Gfp = Gfp::KERNEL;
pub const MOV: Gfp = Gfp::HIGHUSER_MOVABLE;
pub const REC: Gfp = Gfp::KERNEL.union(Gfp::RECLAIMABLE);

pub fn rules(era: &str) -> Rules {
    preset(era)
        .unwrap_or_else(|| panic!("no preset {era}"))
        .rules
}

pub fn zone(node: u8, kind: ZoneKind, start: u64, pages: u64) -> ZoneConfig {
    ZoneConfig {
        node,
        kind,
        start: Pfn(start),
        spanned: pages,
        present: pages,
        managed: pages,
    }
}

/// Settings under which neither marks nor boosts disturb a scene.
pub fn quiet() -> Sysctl {
    Sysctl {
        min_free_kbytes: 4,
        watermark_scale_factor: 0,
        watermark_boost_factor: 0,
        ..Sysctl::default()
    }
}

/// Metadata for a configuration, for the rest of the test.
pub fn memory(config: &Config) -> &'static mut [u64] {
    let words = layout(config).expect("a layout").words;
    Vec::leak(vec![!0; words])
}

/// A manager with all frames reserved.
pub fn fresh(zones: &[ZoneConfig], cpus: usize, rules: Rules, sysctl: Sysctl) -> M {
    let config = Config {
        zones,
        cpus,
        rules,
        sysctl,
    };
    Manager::new(&config, Listener::default(), memory(&config)).expect("a manager")
}

/// A manager after a boot.
pub fn booted(zones: &[ZoneConfig], cpus: usize, rules: Rules, sysctl: Sysctl) -> M {
    let config = Config {
        zones,
        cpus,
        rules,
        sysctl,
    };
    Manager::boot(&config, Listener::default(), memory(&config)).expect("a manager")
}

/// Frame number of the scene's pageblock `i`.
pub const fn block(i: u64) -> u64 {
    BASE + i * 512
}

pub const BASE: u64 = 0x1_0000;

/// One quiet Normal zone of 8 pageblocks, all reserved; batch is 1, so that per-CPU lists take what
/// they are asked for and no more.
pub fn scene(era: &str) -> M {
    fresh(
        &[zone(0, ZoneKind::Normal, BASE, 4096)],
        1,
        rules(era),
        quiet(),
    )
}

/// What scenes are written with.
pub trait Stage {
    fn block_is(&mut self, i: u64, mt: MigrateType) -> &mut Self;
    fn free_at(&mut self, pfn: u64, order: u8, mt: MigrateType) -> &mut Self;
    fn used_at(&mut self, pfn: u64, order: u8, gfp: Gfp) -> &mut Self;
    fn list(&self, order: u8, mt: MigrateType) -> Vec<u64>;
    fn take(&mut self, order: u8, gfp: Gfp) -> u64;
    fn type_of(&self, pfn: u64) -> MigrateType;
    fn marks(&mut self, zone: usize, min: u64, low: u64, high: u64) -> &mut Self;
    fn pcp(&self, index: usize) -> Vec<u64>;
    fn forget(&mut self);
}

impl Stage for M {
    fn block_is(&mut self, i: u64, mt: MigrateType) -> &mut Self {
        self.restore_block_type(Pfn(block(i)), mt).expect("a block");
        self
    }
    fn free_at(&mut self, pfn: u64, order: u8, mt: MigrateType) -> &mut Self {
        self.restore_free(Pfn(pfn), order, mt)
            .expect("a free block");
        self
    }
    fn used_at(&mut self, pfn: u64, order: u8, gfp: Gfp) -> &mut Self {
        self.restore_used(Pfn(pfn), order, gfp)
            .expect("a used block");
        self
    }
    fn list(&self, order: u8, mt: MigrateType) -> Vec<u64> {
        self.free_list(0, order, mt).map(|p| p.0).collect()
    }
    fn take(&mut self, order: u8, gfp: Gfp) -> u64 {
        let got = self.alloc(order, gfp).expect("a block").0;
        self.validate().expect("a sound state");
        got
    }
    fn type_of(&self, pfn: u64) -> MigrateType {
        self.block_type(Pfn(pfn)).expect("a frame")
    }
    fn marks(&mut self, zone: usize, min: u64, low: u64, high: u64) -> &mut Self {
        let marks = Marks {
            min,
            low,
            high,
            promo: high,
            boost: 0,
        };
        let protection = self.zone_view(zone).protection;
        self.restore_marks(zone, marks, protection).expect("a zone");
        self
    }
    fn pcp(&self, index: usize) -> Vec<u64> {
        self.pcp_list(0, self.host().cpu, index)
            .map(|p| p.0)
            .collect()
    }
    fn forget(&mut self) {
        self.host_mut().events.clear();
        self.host_mut().wakes.clear();
    }
}
