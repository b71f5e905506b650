//! Shared by the tests: a host that records events, and managers made by hand.

pub mod flatten;

pub use crate::chance::setting;
use std::ops::{Deref, DerefMut};
use unfrag_eras::inspect::{SetView, ZoneView};
use unfrag_eras::page_alloc::Move;
use unfrag_eras::restore::{Restore, SetSizes};
use unfrag_eras::trace::{Event, Extfrag};
use unfrag_eras::zone::Marks;
use unfrag_eras::{
    AllocError, Config, CpuId, FreeError, Geometry, Gfp, Host, Manager, MigrateType, MoveError,
    NodeId, Order, Pfn, Request, Rules, Sysctl, ZoneConfig, ZoneId, ZoneKind, layout, preset,
};

/// A host that records its calls.
#[derive(Debug, Default)]
pub struct Recorder {
    pub events: Vec<Event>,
    /// Node and order of each call for kswapd.
    pub wakes: Vec<(u8, u8)>,
}

impl Host for Recorder {
    const TRACING: bool = true;
    fn trace(&mut self, event: &Event) {
        self.events.push(*event);
    }
    fn wake_kswapd(&mut self, node: NodeId, order: Order) {
        self.wakes.push((node.0, order.0));
    }
}

impl Recorder {
    /// The fallback events so far.
    pub fn fallbacks(&self) -> Vec<Extfrag> {
        self.events
            .iter()
            .filter_map(|e| match e {
                Event::PageAllocExtfrag(x) => Some(*x),
                _ => None,
            })
            .collect()
    }
}

/// A manager and the CPU that a test runs on. Orders, nodes, zones and CPUs are plain numbers here, so
/// that scenes stay readable; all else is the manager's own.
pub struct Scene {
    m: Manager<'static, Recorder>,
    pub cpu: CpuId,
}

pub type M = Scene;

impl Deref for Scene {
    type Target = Manager<'static, Recorder>;
    fn deref(&self) -> &Self::Target {
        &self.m
    }
}

impl DerefMut for Scene {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.m
    }
}

/// Numbers of zones and CPUs, of whatever type they come.
pub trait Number: TryInto<u32> {
    fn number(self) -> u32 {
        self.try_into().ok().expect("a small number")
    }
}

impl<T: TryInto<u32>> Number for T {}

pub fn zone_id(z: impl Number) -> ZoneId {
    ZoneId(z.number() as u8)
}

pub fn cpu_id(cpu: impl Number) -> CpuId {
    CpuId(cpu.number())
}

impl Scene {
    pub fn new(m: Manager<'static, Recorder>) -> Scene {
        Scene { m, cpu: CpuId(0) }
    }

    /// From here on, the test runs on another CPU.
    pub fn on(&mut self, cpu: impl Number) -> &mut Scene {
        self.cpu = cpu_id(cpu);
        self
    }

    pub fn request(&self, order: u8, gfp: Gfp) -> Request {
        Request::new(Order(order), gfp).on(self.cpu)
    }

    pub fn alloc(&mut self, order: u8, gfp: Gfp) -> Result<Pfn, AllocError> {
        let request = self.request(order, gfp);
        self.m.alloc(&request)
    }

    pub fn alloc_near(&mut self, node: u8, order: u8, gfp: Gfp) -> Result<Pfn, AllocError> {
        let request = self.request(order, gfp).near(NodeId(node));
        self.m.alloc(&request)
    }

    pub fn alloc_in_zone(
        &mut self,
        z: impl Number,
        order: u8,
        gfp: Gfp,
    ) -> Result<Pfn, AllocError> {
        let request = self.request(order, gfp);
        self.m.lab().alloc_in_zone(zone_id(z), &request)
    }

    pub fn alloc_bulk(&mut self, gfp: Gfp, out: &mut [Pfn]) -> Result<usize, AllocError> {
        let request = self.request(0, gfp);
        self.m.alloc_bulk(&request, out)
    }

    pub fn alloc_from_pcp(&mut self, node: u8, gfp: Gfp, out: &mut [Pfn]) -> usize {
        let request = self.request(0, gfp).near(NodeId(node));
        self.m.alloc_from_pcp(&request, out)
    }

    pub fn free(&mut self, pfn: Pfn, order: u8) -> Result<(), FreeError> {
        self.m.free(self.cpu, pfn, Order(order))
    }

    pub fn free_bulk(&mut self, pages: &[Pfn]) -> Result<(), FreeError> {
        self.m.free_bulk(self.cpu, pages)
    }

    pub fn split(&mut self, pfn: Pfn, order: u8, to: u8) -> Result<(), FreeError> {
        self.m.split(pfn, Order(order), Order(to))
    }

    pub fn drain(&mut self, cpu: impl Number, z: impl Number) {
        self.m.drain(cpu_id(cpu), zone_id(z));
    }

    pub fn vmstat_update(&mut self, cpu: impl Number) {
        self.m.vmstat_update(cpu_id(cpu));
    }

    /// A whole move: its owner copies the page at once.
    pub fn migrate(&mut self, from: Pfn, to: Pfn) -> Result<(), MoveError> {
        let cpu = self.cpu;
        Move::begin(&mut self.m, cpu, from, to)?.commit(&mut self.m, cpu);
        Ok(())
    }

    pub fn zone_view(&self, z: impl Number) -> ZoneView {
        self.m.inspect().zone(zone_id(z))
    }

    pub fn set_view(&self, z: impl Number, cpu: impl Number) -> SetView {
        self.m.inspect().set(zone_id(z), cpu_id(cpu))
    }

    pub fn free_list_len(&self, z: impl Number, order: u8, mt: MigrateType) -> u64 {
        let zone = zone_id(z);
        self.m.inspect().free_list_len(zone, Order(order), mt)
    }

    pub fn blocks_by_type(&self, z: impl Number) -> [u64; unfrag_eras::frame::NR_TYPES] {
        self.m.inspect().blocks_by_type(zone_id(z))
    }

    pub fn pcp_pages(&self, z: impl Number) -> u64 {
        self.m.inspect().pcp_pages(zone_id(z))
    }

    /// Every invariant holds.
    pub fn check(&self) {
        self.m.inspect().validate().expect("a sound state");
    }

    /// The free blocks of the order and type at the first zone, from the head of their list.
    pub fn list(&self, order: u8, mt: MigrateType) -> Vec<u64> {
        let list = self.m.inspect().free_list(ZoneId(0), Order(order), mt);
        list.map(|p| p.0).collect()
    }

    /// What the scene's CPU holds of the first zone on list `index`.
    pub fn pcp(&self, index: usize) -> Vec<u64> {
        let list = self.m.inspect().pcp_list(ZoneId(0), self.cpu, index);
        list.map(|p| p.0).collect()
    }

    pub fn type_of(&self, pfn: u64) -> MigrateType {
        self.m.inspect().block_type(Pfn(pfn)).expect("a frame")
    }

    /// A block that must exist; validates the manager afterwards.
    pub fn take(&mut self, order: u8, gfp: Gfp) -> u64 {
        let got = self.alloc(order, gfp).expect("a block").0;
        self.check();
        got
    }

    /// Clears the recorded events.
    pub fn forget(&mut self) {
        self.m.host_mut().events.clear();
        self.m.host_mut().wakes.clear();
    }

    // What makes a scene.

    pub fn retype(&mut self, pfn: u64, mt: MigrateType) -> &mut Scene {
        let mut lab = self.m.lab();
        lab.edit().block_type(Pfn(pfn), mt).expect("a block");
        self
    }

    pub fn block_is(&mut self, i: u64, mt: MigrateType) -> &mut Scene {
        self.retype(block(i), mt)
    }

    pub fn free_at(&mut self, pfn: u64, order: u8, mt: MigrateType) -> &mut Scene {
        let mut lab = self.m.lab();
        let free = lab.edit().free(Pfn(pfn), Order(order), mt);
        free.expect("a free block");
        self
    }

    pub fn used_at(&mut self, pfn: u64, order: u8, gfp: Gfp) -> &mut Scene {
        let mut lab = self.m.lab();
        let used = lab.edit().used(Pfn(pfn), Order(order), gfp);
        used.expect("a used block");
        self
    }

    pub fn marks(&mut self, z: impl Number, min: u64, low: u64, high: u64) -> &mut Scene {
        let marks = Marks {
            min,
            low,
            high,
            promo: high,
            boost: 0,
        };
        let z = z.number();
        let protection = self.zone_view(z).protection;
        self.set_marks(z, marks, protection)
    }

    pub fn set_marks(&mut self, z: impl Number, marks: Marks, protection: [u64; 5]) -> &mut Scene {
        let mut lab = self.m.lab();
        let marks = lab.edit().marks(zone_id(z), marks, protection);
        marks.expect("a zone");
        self
    }

    /// The high-atomic reserve of a zone, and its count of free pages.
    pub fn counters(&mut self, z: impl Number, highatomic: u64, free: i64) -> &mut Scene {
        let mut lab = self.m.lab();
        let counters = lab.edit().counters(zone_id(z), highatomic, free, 0);
        counters.expect("a zone");
        self
    }

    pub fn sized(&mut self, z: impl Number, cpu: impl Number, high: i32, batch: i32) -> &mut Scene {
        let sizes = SetSizes {
            high,
            batch,
            factor: 0,
        };
        let mut lab = self.m.lab();
        let set = lab.edit().set(zone_id(z), cpu_id(cpu), sizes);
        set.expect("a set");
        self
    }

    pub fn set_reclaim_active(&mut self, node: u8, kind: ZoneKind, active: bool) {
        self.m.lab().set_reclaim_active(NodeId(node), kind, active);
    }

    pub fn lower_boost(&mut self, node: u8, kind: ZoneKind, by: u64) {
        self.m.lab().lower_boost(NodeId(node), kind, by);
    }
}

pub const UNM: Gfp = Gfp::KERNEL;
pub const MOV: Gfp = Gfp::HIGHUSER_MOVABLE;
pub const REC: Gfp = Gfp::KERNEL.union(Gfp::RECLAIMABLE);

pub fn rules(era: &str) -> Rules {
    preset(era)
        .unwrap_or_else(|| panic!("no preset {era}"))
        .rules
}

pub fn zone(node: u8, kind: ZoneKind, start: u64, pages: u64) -> ZoneConfig {
    ZoneConfig::whole(NodeId(node), kind, Pfn(start), pages)
}

/// Settings under which neither marks nor boosts disturb a scene.
pub fn quiet() -> Sysctl {
    Sysctl::default().with(|s| {
        s.min_free_kbytes = 4;
        s.watermark_scale_factor = 0;
        s.watermark_boost_factor = 0;
    })
}

pub fn config(zones: &[ZoneConfig], cpus: usize, rules: Rules, sysctl: Sysctl) -> Config<'_> {
    Config {
        cpus,
        sysctl,
        ..Config::new(zones, rules)
    }
}

/// Metadata for a configuration, for the rest of the test.
pub fn memory(config: &Config) -> &'static mut [u64] {
    let words = layout(config).expect("a layout").words;
    Vec::leak(vec![!0; words])
}

/// A manager with all frames reserved, to be rebuilt.
pub fn reserved_frames(config: &Config) -> Restore<'static, Recorder> {
    Restore::new(config, Recorder::default(), memory(config)).expect("a manager")
}

/// A scene with all frames reserved.
pub fn fresh(zones: &[ZoneConfig], cpus: usize, rules: Rules, sysctl: Sysctl) -> M {
    Scene::new(reserved_frames(&config(zones, cpus, rules, sysctl)).finish())
}

/// A scene after a boot.
pub fn booted(zones: &[ZoneConfig], cpus: usize, rules: Rules, sysctl: Sysctl) -> M {
    booted_as(&config(zones, cpus, rules, sysctl))
}

/// A scene with other sizes of pages and blocks.
pub fn booted_with(zones: &[ZoneConfig], geometry: Geometry, rules: Rules, sysctl: Sysctl) -> M {
    booted_as(&Config {
        geometry,
        ..config(zones, 1, rules, sysctl)
    })
}

pub fn booted_as(config: &Config) -> M {
    let m = Manager::boot(config, Recorder::default(), memory(config));
    Scene::new(m.expect("a manager"))
}

/// Frame number of the scene's pageblock `i`.
pub const fn block(i: u64) -> u64 {
    BASE + i * 512
}

pub const BASE: u64 = 0x1_0000;

/// A free block of an order at pageblock `i`, whose other half is in use.
pub fn half(m: &mut M, i: u64, order: u8, mt: MigrateType) {
    m.block_is(i, mt).free_at(block(i), order, mt);
    m.used_at(block(i) + (1 << order), order, UNM);
}

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
