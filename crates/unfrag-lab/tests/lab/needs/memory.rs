//! The allocator of a state: what a means does to it, and how much can then really be taken.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use unfrag_eras::compact::{Compaction, Outcome};
use unfrag_eras::drive::Operation;
use unfrag_eras::frame::FrameKind;
use unfrag_eras::inspect::FrameView;
use unfrag_eras::migrate::MoveVerdict;
use unfrag_eras::need::{Answer, Need, Step};
use unfrag_eras::pcp::list_index;
use unfrag_eras::restore::{Restore, SetSizes};
use unfrag_eras::trace::Event;
use unfrag_eras::zone::Marks;
use unfrag_eras::{
    Config, CpuId, Gfp, Host, Manager, MigrateType, NodeId, Order, Pfn, Request, Sysctl, ZoneId,
    ZoneKind, layout, preset,
};

use super::state::{BASE, BLOCK, Held, State};

const CPU: CpuId = CpuId(0);

/// A host that remembers where the last run of compaction ended.
#[derive(Default)]
pub struct Watched {
    ended_at: u64,
}

impl Host for Watched {
    const TRACING: bool = true;

    fn trace(&mut self, event: &Event) {
        if let Event::CompactionEnd { migrate, .. } = event {
            self.ended_at = migrate.0;
        }
    }
}

/// The allocator of a state, and what it holds that can be dropped, that cannot move, and that cannot be split.
pub struct Memory<'a> {
    pub m: Manager<'a, Watched>,
    cache: Vec<(Pfn, Order)>,
    pinned: BTreeSet<u64>,
    whole: BTreeSet<u64>,
    state: &'a State,
    /// Blocks of each zone's contiguous areas that were lent to processes.
    lent: Vec<u64>,
}

impl State {
    /// Its allocator.
    pub fn with<T>(&self, then: impl FnOnce(Memory) -> T) -> T {
        let zones = self.configs();
        let sysctl = Sysctl::default().with(|s| {
            s.min_free_kbytes = 4;
            s.watermark_scale_factor = 0;
            s.watermark_boost_factor = 0;
        });
        let config = Config {
            cpus: 1,
            sysctl,
            ..Config::new(&zones, preset(self.era).expect("an era").rules)
        };
        let mut words = vec![!0; layout(&config).expect("a layout").words];
        let mut r = Restore::new(&config, Watched::default(), &mut words).expect("a manager");
        let mut edit = r.edit();
        for (b, mt) in self.types.iter().enumerate() {
            let at = Pfn(BASE + b as u64 * BLOCK);
            edit.block_type(at, *mt).expect("a block");
        }
        let (mut cache, mut pinned, mut whole) = (vec![], BTreeSet::new(), BTreeSet::new());
        for &(pfn, order, held) in &self.held {
            let (at, order) = (Pfn(pfn), Order(order));
            match held {
                Held::Free => edit.merged(at, order),
                Held::PerCpu => {
                    let mt = self.types[((pfn - BASE) / BLOCK) as usize];
                    // Lists have no type for areas: their pages are with the movable ones.
                    let of = match mt {
                        MigrateType::Cma => MigrateType::Movable,
                        other => other,
                    };
                    edit.pcp(CPU, list_index(order, of), at, order, mt)
                }
                _ if held.is_movable() => edit.used(at, order, Gfp::HIGHUSER_MOVABLE),
                _ => edit.used(at, order, Gfp::KERNEL),
            }
            .expect("frames");
            match held {
                Held::Cache => cache.push((at, order)),
                Held::Dirty => _ = whole.insert(pfn),
                _ if held.is_pinned() => _ = pinned.insert(pfn),
                _ => {}
            }
        }
        for z in 0..zones.len() {
            let zone = ZoneId(z as u8);
            let marks = Marks {
                min: self.min,
                low: self.min,
                high: self.min,
                promo: self.min,
                boost: 0,
            };
            let keeps = ZoneKind::ALL.map(|kind| self.keeps(z, kind));
            edit.marks(zone, marks, keeps).expect("a zone");
            let sizes = SetSizes {
                high: 0,
                batch: 1,
                factor: 0,
            };
            edit.set(zone, CPU, sizes).expect("a set");
            let (atomic, free) = (self.reserve(z), self.free(z));
            edit.counters(zone, atomic, free as i64, 0).expect("a zone");
        }
        then(Memory {
            m: r.finish(),
            cache,
            pinned,
            whole,
            state: self,
            lent: vec![0; self.zones.len()],
        })
    }
}

impl Memory<'_> {
    fn ids(&self) -> impl Iterator<Item = ZoneId> + use<> {
        (0..self.state.zones.len()).map(|z| ZoneId(z as u8))
    }

    /// Drops what can be dropped.
    pub fn drop_caches(&mut self) {
        for (pfn, order) in std::mem::take(&mut self.cache) {
            self.m.free(CPU, pfn, order).expect("it is in use");
        }
        self.settle();
    }

    /// Empties per-CPU lists, and adds up what CPUs counted by themselves, as kernels do within a second.
    fn settle(&mut self) {
        self.ids().for_each(|z| self.m.drain(CPU, z));
        self.m.vmstat_update(CPU);
    }

    /// Compacts each zone as the doctor's command does, ten times; per-CPU lists are emptied meanwhile, and afterwards.
    pub fn compact(&mut self) {
        for _ in 0..10 {
            for zone in self.ids() {
                self.m.drain(CPU, zone);
                // The eras end a run at a folio for which there is no target of its order. Kernels split it and go on, unless
                // it cannot be split.
                while self.run(zone) == Outcome::Contended && self.split() {}
            }
            self.settle();
        }
    }

    fn run(&mut self, zone: ZoneId) -> Outcome {
        let mut run = Compaction::whole_zone(zone);
        let mut answer = Answer::Go;
        loop {
            let need = match run.step(&mut self.m, CPU, answer) {
                Step::Done(outcome) => return outcome,
                Step::Need(need) => need,
            };
            answer = match need {
                Need::Migrate => Answer::Migrated(run.migration().ask(|ask| {
                    if self.pinned.contains(&ask.from.0) {
                        return MoveVerdict::Busy;
                    }
                    if self.whole.remove(&ask.from.0) {
                        self.whole.insert(ask.to.0);
                    }
                    MoveVerdict::Moved
                })),
                _ => Answer::Go,
            };
        }
    }

    /// Splits the folios of the pageblock at which the last run ended. False if it has none, or one that cannot be split.
    fn split(&mut self) -> bool {
        let block = (self.m.host().ended_at - 1) / BLOCK * BLOCK;
        let mut found = vec![];
        // Frames within a block of several begin none.
        for at in block..block + BLOCK {
            let frame = self.m.inspect().frame(Pfn(at));
            let is_used = |f: &FrameView| f.kind == FrameKind::Used;
            let Some(f) = frame.filter(is_used) else {
                continue;
            };
            let order = f.order;
            if self.whole.contains(&at) && order > Order::ZERO {
                return false;
            }
            let moves = f.migratetype == MigrateType::Movable && !self.pinned.contains(&at);
            if moves && (1..9).contains(&order.0) {
                found.push((at, order));
            }
        }
        for &(pfn, order) in &found {
            for i in 0..u64::from(order.frames()) {
                let single = self.m.lab().reshape(Pfn(pfn + i), Order::ZERO);
                single.expect("a part of a folio");
            }
        }
        !found.is_empty()
    }

    /// Takes blocks until one is refused, or so many are there; where any node will do, programs on these nodes ask.
    pub fn take(
        &mut self,
        order: u8,
        is_huge: bool,
        node: Option<u32>,
        most: u64,
        mut by: impl FnMut() -> u8,
    ) -> u64 {
        let gfp = match (is_huge, node) {
            (true, None) => Gfp::HIGHUSER_MOVABLE,
            (true, Some(_)) => Gfp::HIGHUSER_MOVABLE.union(Gfp::THISNODE),
            (false, None) => Gfp::KERNEL,
            (false, Some(_)) => Gfp::KERNEL.union(Gfp::THISNODE),
        };
        let has_one = |_: &u64| {
            let near = node.map_or_else(&mut by, |n| n as u8);
            let request = Request::new(Order(order), gfp).near(NodeId(near)).on(CPU);
            let lends = is_huge && self.state.traits.areas;
            lends && self.lend(&request, near, node.is_some()) || self.m.alloc(&request).is_ok()
        };
        (0..most).take_while(has_one).count() as u64
    }

    /// Takes a block for a process where there are contiguous areas: the eras neither lend them nor count them, as kernels do
    /// for memory that can be moved. Requests of the kernel see nothing of what is lent, as areas do not count for them.
    fn lend(&mut self, request: &Request, near: u8, is_strict: bool) -> bool {
        let order = request.order.0;
        let zones = &self.state.zones;
        let mut ids: Vec<ZoneId> = self.ids().collect();
        ids.retain(|id| !is_strict || zones[usize::from(id.0)].node == near);
        // That node's zones, and of each node the highest first.
        ids.sort_by_key(|id| {
            let zone = &zones[usize::from(id.0)];
            (zone.node != near, zone.node, Reverse(zone.kind))
        });
        ids.into_iter().any(|id| {
            let z = usize::from(id.0);
            let count = |o| {
                let inspect = self.m.inspect();
                inspect.free_list_len(id, Order(o), MigrateType::Cma)
            };
            let areas: u64 = (order..11).map(|o| count(o) << (o - order)).sum();
            let kept = self.state.min + self.state.keeps(z, ZoneKind::Movable);
            let kept = kept + self.state.reserve(z) + (1 << order) - 1;
            let free = self.m.inspect().zone(id).free_counter.max(0) as u64;
            if free.saturating_sub(self.lent[z] << order) <= kept {
                return false;
            }
            if self.m.lab().alloc_in_zone(id, request).is_ok() {
                return true;
            }
            let has_area = self.lent[z] < areas;
            self.lent[z] += u64::from(has_area);
            has_area
        })
    }

    /// Aligned runs of an order above that of the largest block, whose blocks are all free, and open to the kernel.
    pub fn runs(&self, order: u8, node: Option<u32>) -> u64 {
        let zones = self.ids().filter(|z| {
            let zone = self.state.zones[usize::from(z.0)];
            zone.kind != ZoneKind::Movable && node.is_none_or(|n| n == u32::from(zone.node))
        });
        zones.map(|z| self.runs_of(z, order)).sum()
    }

    fn runs_of(&self, zone: ZoneId, order: u8) -> u64 {
        let types = [
            MigrateType::Unmovable,
            MigrateType::Movable,
            MigrateType::Reclaimable,
        ];
        let lists = types.map(|mt| self.m.inspect().free_list(zone, Order(10), mt));
        let mut free: Vec<u64> = lists.into_iter().flatten().map(|p| p.0).collect();
        free.sort_unstable();
        let size = 1u64 << order;
        let whole = |&first: &u64| {
            let mut all = (first..first + size).step_by(1 << 10);
            first.is_multiple_of(size) && all.all(|p| free.binary_search(&p).is_ok())
        };
        free.iter().filter(|f| whole(f)).count() as u64
    }
}
