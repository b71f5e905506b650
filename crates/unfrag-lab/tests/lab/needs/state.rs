//! A random state of a modelled host's memory: as the files that its kernel would show, and as its allocator.

use std::fmt::Write as _;
use std::io;
use unfrag_eras::compact::Compaction;
use unfrag_eras::drive::Operation;
use unfrag_eras::migrate::MoveVerdict;
use unfrag_eras::need::{Answer, Need, Step};
use unfrag_eras::restore::{Restore, SetSizes};
use unfrag_eras::zone::Marks;
use unfrag_eras::{
    Config, CpuId, Gfp, Host, Manager, MigrateType, NodeId, Order, Pfn, Request, Sysctl,
    ZoneConfig, ZoneId, ZoneKind, layout, preset,
};
use unfrag_lab::doctor::{Evidence, Examined, examine};
use unfrag_lab::host::files::Files;
use unfrag_linux::kpageflags::{ANON, BUDDY, COMPOUND_HEAD, COMPOUND_TAIL, LRU, NOPAGE, SLAB};

use crate::chance::Chance;

/// First frame, and frames of a pageblock.
const BASE: u64 = 0x2000;
const BLOCK: u64 = 512;
const CPU: CpuId = CpuId(0);

/// What a block of frames holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Nothing.
    Free,
    /// Memory of a process.
    Process,
    /// Page cache that is clean.
    Cache,
    /// A slab.
    Slab,
}

/// Memory: blocks of frames by what they hold, and pageblocks by type.
#[derive(Clone, Debug)]
pub struct State {
    pub era: &'static str,
    /// Pageblocks of each node.
    pub nodes: Vec<u64>,
    pub types: Vec<MigrateType>,
    /// First frame, order.
    pub held: Vec<(u64, u8, Held)>,
    pub min: u64,
}

/// A host without interests.
pub struct Quiet;
impl Host for Quiet {}

/// The allocator of a state, and what it holds that can be dropped.
pub struct Memory<'a> {
    pub m: Manager<'a, Quiet>,
    cache: Vec<(Pfn, Order)>,
    zones: usize,
}

impl State {
    pub fn random(c: &mut Chance) -> State {
        let era = c.of(&["2.6.36", "5.9", "6.1", "6.12", "6.18"]);
        let nodes: Vec<u64> = (0..1 + c.below(2)).map(|_| 8 + c.below(40)).collect();
        let all: u64 = nodes.iter().sum();
        let (mut held, mut types) = (vec![], vec![]);
        // Hosts differ in how full they are, and of what.
        let empty = 1 + c.below(6);
        let large = 1 + c.below(8);
        for b in 0..all {
            let first = BASE + b * BLOCK;
            let mut mt = MigrateType::Movable;
            match c.below(8) {
                n if n < empty => held.push((first, 9, Held::Free)),
                6 => {
                    mt = c.of(&[MigrateType::Unmovable, MigrateType::Reclaimable]);
                    fill(&mut held, c, first, &[Held::Slab, Held::Free], 3);
                }
                7 if era != "2.6.36" && c.one_in(3) => {
                    mt = MigrateType::HighAtomic;
                    fill(
                        &mut held,
                        c,
                        first,
                        &[Held::Free, Held::Free, Held::Process],
                        6,
                    );
                }
                _ => {
                    let what = c.of::<&[Held]>(&[
                        &[Held::Free, Held::Process],
                        &[Held::Free, Held::Free, Held::Free, Held::Process],
                        &[Held::Free, Held::Cache],
                        &[Held::Cache],
                        &[Held::Free, Held::Process, Held::Cache, Held::Process],
                    ]);
                    fill(&mut held, c, first, what, large);
                    // A slab in a movable block.
                    if c.one_in(6) {
                        let at = held.len() - 1;
                        held[at].2 = Held::Slab;
                    }
                }
            }
            types.push(mt);
        }
        // The eras' compaction splits no folio for which there is no target of its order; kernels do since 6.10.
        if matches!(era, "6.12" | "6.18") {
            let single = |&(pfn, order, what): &(u64, u8, Held)| {
                let is_moved = matches!(what, Held::Process | Held::Cache);
                let order_of = if is_moved { 0 } else { order };
                (pfn..pfn + (1 << order))
                    .step_by(1 << order_of)
                    .map(move |pfn| (pfn, order_of, what))
            };
            held = held.iter().flat_map(single).collect();
        }
        let min = c.of(&[0, 40, 300, 2000]);
        State {
            era,
            nodes,
            types,
            held,
            min,
        }
    }

    fn starts(&self) -> Vec<u64> {
        let mut at = BASE;
        let each = self.nodes.iter().map(|n| {
            at += n * BLOCK;
            at - n * BLOCK
        });
        each.collect()
    }

    fn zones(&self) -> Vec<ZoneConfig> {
        let each = self.starts().into_iter().zip(&self.nodes).enumerate();
        let zone = |(n, (start, blocks)): (usize, (u64, &u64))| {
            ZoneConfig::whole(
                NodeId(n as u8),
                ZoneKind::Normal,
                Pfn(start),
                blocks * BLOCK,
            )
        };
        each.map(zone).collect()
    }

    /// Its allocator.
    pub fn with<T>(&self, then: impl FnOnce(Memory) -> T) -> T {
        let zones = self.zones();
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
        let mut r = Restore::new(&config, Quiet, &mut words).expect("a manager");
        let mut edit = r.edit();
        for (b, mt) in self.types.iter().enumerate() {
            let at = Pfn(BASE + b as u64 * BLOCK);
            edit.block_type(at, *mt).expect("a block");
        }
        let mut cache = vec![];
        for &(pfn, order, held) in &self.held {
            let (pfn, order) = (Pfn(pfn), Order(order));
            match held {
                Held::Free => edit.merged(pfn, order),
                Held::Slab => edit.used(pfn, order, Gfp::KERNEL),
                Held::Process | Held::Cache => edit.used(pfn, order, Gfp::HIGHUSER_MOVABLE),
            }
            .expect("frames");
            if held == Held::Cache {
                cache.push((pfn, order));
            }
        }
        for (z, _) in zones.iter().enumerate() {
            let zone = ZoneId(z as u8);
            let marks = Marks {
                min: self.min,
                low: self.min,
                high: self.min,
                promo: self.min,
                boost: 0,
            };
            edit.marks(zone, marks, [0; 5]).expect("a zone");
            let sizes = SetSizes {
                high: 0,
                batch: 1,
                factor: 0,
            };
            edit.set(zone, CPU, sizes).expect("a set");
            let (atomic, free) = (self.reserve(z), self.free(z));
            edit.counters(zone, atomic, free as i64, 0).expect("a zone");
        }
        let zones = zones.len();
        then(Memory {
            m: r.finish(),
            cache,
            zones,
        })
    }

    fn node_of(&self, pfn: u64) -> usize {
        self.starts()
            .iter()
            .rposition(|&s| s <= pfn)
            .expect("a node")
    }

    fn free(&self, node: usize) -> u64 {
        let of = self.held.iter().filter(|h| h.2 == Held::Free);
        of.filter(|h| self.node_of(h.0) == node)
            .map(|h| 1 << h.1)
            .sum()
    }

    /// Pages of the high-atomic reserve: its pageblocks, as kernels count them.
    fn reserve(&self, node: usize) -> u64 {
        let is = |(b, mt): &(usize, &MigrateType)| {
            **mt == MigrateType::HighAtomic && self.node_of(BASE + *b as u64 * BLOCK) == node
        };
        self.types.iter().enumerate().filter(is).count() as u64 * BLOCK
    }

    /// What its files say.
    pub fn examined(&self) -> (Evidence, Examined) {
        let files = self.with(|memory| Shown::of(self, &memory.m));
        let evidence = Evidence::read("here", files).expect("files");
        let examined = examine(&evidence).expect("a release");
        (evidence, examined)
    }
}

/// Fills a pageblock with blocks of these uses, up to some order.
fn fill(held: &mut Vec<(u64, u8, Held)>, c: &mut Chance, first: u64, of: &[Held], orders: u64) {
    let mut at = 0;
    while at < BLOCK {
        let order = c
            .below(orders.min(9))
            .min(u64::from((at | BLOCK).trailing_zeros())) as u8;
        held.push((first + at, order, c.of(of)));
        at += 1 << order;
    }
}

/// The files of a state.
struct Shown(Vec<(String, Vec<u8>)>);

impl Shown {
    fn of(state: &State, m: &Manager<Quiet>) -> Shown {
        let types = [
            ("Unmovable", MigrateType::Unmovable),
            ("Movable", MigrateType::Movable),
            ("Reclaimable", MigrateType::Reclaimable),
            ("HighAtomic", MigrateType::HighAtomic),
            ("Isolate", MigrateType::Isolate),
        ];
        let of_era = |name: &str| state.era != "2.6.36" || name != "HighAtomic";
        let types: Vec<_> = types.into_iter().filter(|t| of_era(t.0)).collect();
        let (mut buddy, mut zoneinfo) = (String::new(), String::new());
        let mut typed = "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \n".to_owned();
        let mut table = "\nNumber of blocks type ".to_owned();
        types.iter().for_each(|t| _ = write!(table, "{:>13}", t.0));
        table += " \n";
        for (z, start) in state.starts().into_iter().enumerate() {
            let zone = ZoneId(z as u8);
            let count = |order, mt| m.inspect().free_list_len(zone, Order(order), mt);
            let _ = write!(buddy, "Node {z}, zone {:>8} ", "Normal");
            for order in 0..11 {
                let n: u64 = types.iter().map(|t| count(order, t.1)).sum();
                let _ = write!(buddy, "{n:>6} ");
            }
            buddy += "\n";
            let _ = write!(table, "Node {z}, zone {:>8} ", "Normal");
            let blocks = m.inspect().blocks_by_type(zone);
            for t in &types {
                let _ = write!(
                    typed,
                    "Node {z:>4}, zone {:>8}, type {:>12} ",
                    "Normal", t.0
                );
                (0..11).for_each(|o| _ = write!(typed, "{:>6} ", count(o, t.1)));
                typed += "\n";
                let _ = write!(table, "{:>13}", blocks[t.1 as usize]);
            }
            table += " \n";
            let (free, pages, min) = (state.free(z), state.nodes[z] * BLOCK, state.min);
            let _ = write!(
                zoneinfo,
                "Node {z}, zone   Normal\n  pages free     {free}\n        min      {min}\n        low      {min}\n        high     {min}\n        spanned  {pages}\n        present  {pages}\n        managed  {pages}\n        protection: (0, 0, 0)\n      nr_free_pages {free}\n      nr_zone_inactive_file {pages}\n      nr_zone_active_file 0\n      nr_slab_reclaimable 0\n      nr_free_cma  0\n  pagesets\n    cpu: 0\n              count:    0\n              high:     0\n              batch:    1\n  vm stats threshold: 4\n  node_unreclaimable:  0\n  start_pfn:           {start}\n"
            );
        }
        let release = match state.era {
            "6.18" => "6.18.0",
            era => era,
        };
        Shown(vec![
            ("buddyinfo".into(), buddy.into()),
            ("zoneinfo".into(), zoneinfo.into()),
            ("pagetypeinfo".into(), (typed + &table).into()),
            (
                "version".into(),
                format!("Linux version {release} (x) #1\n").into(),
            ),
            ("kpageflags".into(), flags(state)),
        ])
    }
}

fn flags(state: &State) -> Vec<u8> {
    let end = BASE + state.nodes.iter().sum::<u64>() * BLOCK;
    let mut words = vec![NOPAGE; end as usize];
    const SWAPBACKED: u64 = 1 << 14;
    for &(pfn, order, held) in &state.held {
        let all = &mut words[pfn as usize..(pfn + (1 << order)) as usize];
        let (head, tail) = match held {
            Held::Free => (BUDDY, BUDDY),
            Held::Process => (LRU | ANON | SWAPBACKED, COMPOUND_TAIL),
            Held::Cache => (LRU, COMPOUND_TAIL),
            Held::Slab => (SLAB, COMPOUND_TAIL),
        };
        all.fill(tail);
        all[0] = head;
        if held != Held::Free && order > 0 {
            all[0] |= COMPOUND_HEAD;
        }
    }
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

impl Files for Shown {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let found = self.0.iter().find(|(n, _)| n == name);
        found
            .map(|(_, text)| text.clone())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Memory<'_> {
    /// Drops what can be dropped.
    pub fn drop_caches(&mut self) {
        for (pfn, order) in std::mem::take(&mut self.cache) {
            self.m.free(CPU, pfn, order).expect("it is in use");
        }
        self.settle();
    }

    /// Empties per-CPU lists, and adds up what CPUs counted by themselves, as kernels do within a second.
    fn settle(&mut self) {
        (0..self.zones).for_each(|z| self.m.drain(CPU, ZoneId(z as u8)));
        self.m.vmstat_update(CPU);
    }

    /// Compacts each zone as the doctor's command does, ten times; per-CPU lists are emptied meanwhile, and afterwards.
    pub fn compact(&mut self) {
        for _ in 0..10 {
            for z in 0..self.zones {
                self.m.drain(CPU, ZoneId(z as u8));
                let mut run = Compaction::whole_zone(ZoneId(z as u8));
                let mut answer = Answer::Go;
                while let Step::Need(need) = run.step(&mut self.m, CPU, answer) {
                    answer = match need {
                        Need::Migrate => {
                            Answer::Migrated(run.migration().ask(|_| MoveVerdict::Moved))
                        }
                        _ => Answer::Go,
                    };
                }
            }
            self.settle();
        }
    }

    /// Takes blocks until one is refused, or so many are there.
    pub fn take(&mut self, order: u8, is_huge: bool, node: Option<u32>, most: u64) -> u64 {
        let gfp = match is_huge {
            true => Gfp::HIGHUSER_MOVABLE,
            false => Gfp::KERNEL,
        };
        let node_of = |n: u32| NodeId(n as u8);
        (0..most)
            .take_while(|_| {
                let request = match node {
                    Some(n) => {
                        Request::new(Order(order), gfp.union(Gfp::THISNODE)).near(node_of(n))
                    }
                    None => Request::new(Order(order), gfp),
                };
                self.m.alloc(&request.on(CPU)).is_ok()
            })
            .count() as u64
    }

    /// Aligned runs of an order above that of the largest block, whose blocks are all free.
    pub fn runs(&self, order: u8, node: Option<u32>) -> u64 {
        let zones = (0..self.zones).filter(|&z| node.is_none_or(|n| n as usize == z));
        zones.map(|z| self.runs_of(ZoneId(z as u8), order)).sum()
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
