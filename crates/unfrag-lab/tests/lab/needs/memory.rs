//! The allocator of a state: what a means does to it, and how much can then really be taken.

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

    /// Takes blocks until one is refused, or so many are there.
    pub fn take(&mut self, order: u8, is_huge: bool, node: Option<u32>, most: u64) -> u64 {
        let gfp = match is_huge {
            true => Gfp::HIGHUSER_MOVABLE,
            false => Gfp::KERNEL,
        };
        let node_of = |n: u32| NodeId(n as u8);
        let taken = (0..most)
            .take_while(|_| {
                let request = match node {
                    Some(n) => {
                        Request::new(Order(order), gfp.union(Gfp::THISNODE)).near(node_of(n))
                    }
                    None => Request::new(Order(order), gfp),
                };
                self.m.alloc(&request.on(CPU)).is_ok()
            })
            .count() as u64;
        match is_huge {
            true => taken + self.lend(order, node, most - taken),
            false => taken,
        }
    }

    /// What processes get where there are contiguous areas: the eras neither lend them nor count them, as kernels do for memory
    /// that can be moved. Requests of the kernel see nothing of what is lent, as areas do not count for them.
    fn lend(&mut self, order: u8, node: Option<u32>, most: u64) -> u64 {
        let mut sum = 0;
        for id in self.ids() {
            let z = usize::from(id.0);
            let node_of = u32::from(self.state.zones[z].node);
            let count = |o| {
                self.m
                    .inspect()
                    .free_list_len(id, Order(o), MigrateType::Cma)
            };
            let areas: u64 = (order..11).map(|o| count(o) << (o - order)).sum();
            // What is free of areas in small blocks counts for the watermark as well.
            let has_areas = (0..11).any(|o| count(o) > 0);
            if !has_areas || node.is_some_and(|n| n != node_of) {
                continue;
            }
            let kept = self.state.min + self.state.keeps(z, ZoneKind::Movable);
            let kept = kept + self.state.reserve(z) + (1 << order) - 1;
            let request = Request::new(Order(order), Gfp::HIGHUSER_MOVABLE).on(CPU);
            while sum < most {
                let free = self.m.inspect().zone(id).free_counter.max(0) as u64;
                if free - (self.lent[z] << order) <= kept {
                    break;
                }
                let is_other = self.m.lab().alloc_in_zone(id, &request).is_ok();
                if !is_other && self.lent[z] == areas {
                    break;
                }
                self.lent[z] += u64::from(!is_other);
                sum += 1;
            }
        }
        sum
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
