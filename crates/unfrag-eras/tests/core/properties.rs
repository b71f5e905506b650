//! Every preset against the naive model, through millions of random operations.
//!
//! Both get the same operations; each result must be the same frame, and every few hundred steps
//! everything that can be seen of them must be equal: lists in their order, per-CPU lists, types of
//! pageblocks, counters. So no frame is handed out twice, none is lost, every free block is on the
//! list that the era's rules say, and an allocation fails only where the rules say so.
//!
//! The seed is printed. `UNFRAG_SEED=n` sets another one, `UNFRAG_CASES=n` the number of cases.

use super::model::{Frame, Model};
use super::support::*;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use unfrag_eras::{Gfp, MoveError, Pfn, Sysctl, ZoneConfig, ZoneKind};

const STEPS: usize = 6000;
const COMPARE_EVERY: usize = 300;

/// Machines: one zone; two that share a pageblock; two nodes with a hole between them and odd sizes
/// everywhere; one too small to group.
fn machine(n: u64) -> (Vec<ZoneConfig>, usize) {
    use ZoneKind::{Dma, Dma32, Movable, Normal};
    match n % 5 {
        0 => (vec![zone(0, Normal, 0x8000, 6144)], 1),
        1 => (
            vec![
                zone(0, Dma32, 0x8000, 3001),
                zone(0, Normal, 0x8000 + 3001, 4095),
            ],
            2,
        ),
        2 => (
            vec![
                zone(0, Dma, 0x10, 1111),
                zone(0, Dma32, 0x10 + 1111, 2222),
                zone(0, Normal, 0x3000 + 77, 2600),
                zone(1, Normal, 0x6000 + 1, 2345),
                zone(1, Movable, 0x6000 + 1 + 2345, 1500),
            ],
            4,
        ),
        3 => (vec![zone(0, Normal, 0x8000 + 300, 2000)], 3),
        _ => (
            vec![
                zone(0, Normal, 0x4000, 3333),
                zone(1, Normal, 0x4000 + 3333, 3333),
            ],
            2,
        ),
    }
}

fn settings(n: u64) -> Sysctl {
    let sysctl = Sysctl::default().with(|s| {
        s.min_free_kbytes = [0, 4, 256][(n % 3) as usize];
        s.watermark_boost_factor = [15000, 0][(n / 3 % 2) as usize];
        s.defrag_mode = n / 6 % 4 == 3;
    });
    sysctl.with(|s| {
        s.transparent_hugepage = (n / 24).is_multiple_of(2);
    })
}

const ASKED: [Gfp; 16] = [
    UNM,
    MOV,
    MOV,
    MOV,
    REC,
    REC,
    Gfp::ATOMIC_MASK,
    Gfp::HIGH.union(Gfp::KSWAPD_RECLAIM),
    Gfp::KSWAPD_RECLAIM.union(Gfp::MOVABLE),
    Gfp::KERNEL.union(Gfp::NORETRY),
    Gfp::KERNEL.union(Gfp::DMA32),
    Gfp::HIGHUSER_MOVABLE.union(Gfp::THISNODE),
    Gfp::KERNEL.union(Gfp::MEMALLOC),
    Gfp::KERNEL.union(Gfp::RETRY_MAYFAIL),
    Gfp::HIGHUSER,
    Gfp::DIRECT_RECLAIM,
];

/// Bits of one operation.
struct Bits(u64);

impl Bits {
    fn next(&mut self, n: u64) -> usize {
        let got = self.0 % n;
        self.0 /= n;
        got as usize
    }
}

struct Pair {
    real: M,
    model: Model,
    held: Vec<(Pfn, u8)>,
    cpus: usize,
    zones: usize,
}

impl Pair {
    fn new(era: &'static str, choice: u64) -> Pair {
        let (zones, cpus) = machine(choice);
        let mut real = booted(&zones, cpus, rules(era), settings(choice / 5));
        let (batch, high) = [(1, 0), (4, 20), (8, 70)][(choice / 240 % 3) as usize];
        for z in 0..zones.len() {
            for cpu in 0..cpus {
                if high > 0 {
                    real.sized(z, cpu, high, batch);
                }
            }
        }
        let model = Model::after_boot(era, &real, &zones, cpus);
        model.compare(&real);
        Pair {
            real,
            model,
            held: Vec::new(),
            cpus,
            zones: zones.len(),
        }
    }

    fn on_cpu(&mut self, cpu: usize) {
        self.real.on(cpu);
        self.model.cpu = cpu;
    }

    fn step(&mut self, at: usize, op: u64) {
        let mut b = Bits(op);
        let cpu = b.next(self.cpus as u64);
        self.on_cpu(cpu);
        // Memory fills up and empties again.
        let filling = (at / 1500).is_multiple_of(2);
        match b.next(69) {
            0..=51 if filling => self.alloc(&mut b),
            0..=9 => self.alloc(&mut b),
            10..=55 => self.free(&mut b),
            56 => self.alloc_bulk(&mut b),
            57 | 58 => self.free_bulk(&mut b),
            59 => self.split(&mut b),
            60 => {
                let (cpu, z) = (b.next(self.cpus as u64), b.next(self.zones as u64));
                self.real.drain(cpu, z);
                let all = self.model.held(cpu, z);
                self.model.release(cpu, z, all, 0);
            }
            61 => {
                let cpu = b.next(self.cpus as u64);
                self.real.vmstat_update(cpu);
                self.model.vmstat(cpu);
            }
            62 => {
                let z = b.next(self.zones as u64);
                let (c, on) = (self.model.zones[z].config, b.next(2) == 0);
                self.real.set_reclaim_active(c.node.0, c.kind, on);
                self.model.zones[z].reclaim = on;
            }
            63..=65 => self.migrate(&mut b),
            66 | 67 => self.alloc_from_pcp(&mut b),
            _ => {
                let z = b.next(self.zones as u64);
                let c = self.model.zones[z].config;
                let by = 128 * b.next(10) as u64;
                self.real.lower_boost(c.node.0, c.kind, by);
                let boost = &mut self.model.zones[z].boost;
                *boost = boost.saturating_sub(by);
            }
        }
        let real = std::mem::take(&mut self.real.host_mut().wakes);
        let model = std::mem::take(&mut self.model.wakes);
        assert_eq!(real, model, "calls for kswapd");
        self.real.host_mut().events.clear();
    }

    fn alloc(&mut self, b: &mut Bits) {
        let (node, gfp) = (b.next(2) as u8, ASKED[b.next(16)]);
        // Each order gets about as many pages as any other.
        let order = (b.next(1024) as u32 | 1024).trailing_zeros() as u8;
        let (real, model) = (
            self.real.alloc_near(node, order, gfp),
            self.model.alloc(node, order, gfp),
        );
        assert_eq!(
            real.map(|p| p.0),
            model,
            "order {order} {gfp:?} near {node}"
        );
        if let Ok(pfn) = real {
            self.held.push((pfn, order));
        }
    }

    fn free(&mut self, b: &mut Bits) {
        if self.held.is_empty() {
            return;
        }
        let (pfn, order) = self.held.swap_remove(b.next(self.held.len() as u64));
        self.real.free(pfn, order).expect("a block in use");
        self.model.free(pfn.0, order);
    }

    fn alloc_bulk(&mut self, b: &mut Bits) {
        let (gfp, n) = (ASKED[b.next(16)], 1 + b.next(32));
        let mut pages = vec![Pfn(0); n];
        let real = self.real.alloc_bulk(gfp, &mut pages);
        let model = self.model.alloc_bulk(gfp, n);
        pages.truncate(real.unwrap_or(0));
        let real = real.map(|_| pages.iter().map(|p| p.0).collect());
        assert_eq!(real, model, "{n} pages of {gfp:?}");
        self.held.extend(pages.into_iter().map(|p| (p, 0)));
    }

    /// What the CPU's list has is what single requests would have got.
    fn alloc_from_pcp(&mut self, b: &mut Bits) {
        let (node, gfp) = (b.next(2) as u8, ASKED[b.next(16)]);
        let mut pages = vec![Pfn(0); 1 + b.next(32)];
        let n = self.real.alloc_from_pcp(node, gfp, &mut pages);
        for &pfn in &pages[..n] {
            assert_eq!(
                self.model.alloc(node, 0, gfp),
                Ok(pfn.0),
                "{gfp:?} near {node}"
            );
            self.held.push((pfn, 0));
        }
    }

    fn free_bulk(&mut self, b: &mut Bits) {
        let n = 1 + b.next(32);
        let mut pages = Vec::new();
        self.held.retain(|&(pfn, order)| {
            let go = order == 0 && pages.len() < n;
            if go {
                pages.push(pfn);
            }
            !go
        });
        self.real.free_bulk(&pages).expect("pages in use");
        for p in pages {
            self.model.free(p.0, 0);
        }
    }

    fn split(&mut self, b: &mut Bits) {
        if self.held.is_empty() {
            return;
        }
        let at = b.next(self.held.len() as u64);
        let (pfn, order) = self.held[at];
        let to = b.next(u64::from(order) + 1) as u8;
        self.held.swap_remove(at);
        self.real.split(pfn, order, to).expect("a block in use");
        self.model.split_used(pfn.0, order, to);
        for i in 0..1 << (order - to) {
            self.held.push((Pfn(pfn.0 + (i << to)), to));
        }
    }

    /// A page moves to a frame somewhere above or below it, if both are as a move wants them.
    fn migrate(&mut self, b: &mut Bits) {
        if self.held.is_empty() {
            return;
        }
        let at = b.next(self.held.len() as u64);
        let (from, order) = self.held[at];
        let zone = &self.model.zones[self.model.zone_of(from.0)];
        let (start, spanned) = (zone.start(), zone.config.spanned);
        let first = b.next(spanned) as u64;
        let free = |p: u64| matches!(self.model.frame(p), Frame::Free { .. });
        let mut near = (0..64).map(|i| start + (first + i) % spanned);
        let to = near.find(|&p| free(p)).unwrap_or(start + first);
        let Frame::Used { movable, .. } = self.model.frame(from.0) else {
            panic!("{from:?} is held")
        };
        let want = if order > 0 || !movable {
            Err(MoveError::NotMovable(from))
        } else if !free(to) {
            Err(MoveError::NotFree(Pfn(to)))
        } else {
            Ok(())
        };
        assert_eq!(
            self.real.migrate(from, Pfn(to)),
            want,
            "{from:?} to {to:#x}"
        );
        if want.is_ok() {
            self.model.migrate(from.0, to);
            self.held[at].0 = Pfn(to);
        }
    }

    /// Everything goes back, and all of it merges as far as the rules let it.
    fn empty(&mut self) {
        for (pfn, order) in std::mem::take(&mut self.held) {
            self.real.free(pfn, order).expect("a block in use");
            self.model.free(pfn.0, order);
        }
        self.real.drain_all();
        for cpu in 0..self.cpus {
            for z in 0..self.zones {
                let all = self.model.held(cpu, z);
                self.model.release(cpu, z, all, 0);
            }
        }
        self.model.compare(&self.real);
        for z in 0..self.zones {
            let v = self.real.zone_view(z);
            assert_eq!(v.free_pages, v.config.managed, "none lost in zone {z}");
        }
    }
}

/// A machine and what is done to it.
struct Case {
    choice: u32,
    ops: Vec<u64>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Case { choice, ops } = self;
        let shown = &ops[..ops.len().min(40)];
        write!(f, "machine {choice}, {} operations: {shown:?}", ops.len())
    }
}

fn run(era: &'static str, default_cases: u32) {
    let env = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let seed = env("UNFRAG_SEED").unwrap_or(20_261_121);
    let cases = env("UNFRAG_CASES").map_or(default_cases, |n| n as u32);
    println!("{era}: UNFRAG_SEED={seed}, {cases} cases of up to {STEPS} operations");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let input = (any::<u32>(), vec(any::<u64>(), STEPS / 2..STEPS));
    let input = input.prop_map(|(choice, ops)| Case { choice, ops });
    let outcome = TestRunner::new_with_rng(config, rng).run(&input, |Case { choice, ops }| {
        let mut pair = Pair::new(era, choice.into());
        for (at, op) in ops.iter().enumerate() {
            pair.step(at, *op);
            if at % COMPARE_EVERY == 0 {
                pair.model.compare(&pair.real);
            }
        }
        pair.model.compare(&pair.real);
        pair.empty();
        Ok(())
    });
    if let Err(e) = outcome {
        panic!("{era}, UNFRAG_SEED={seed}: {e}");
    }
}

macro_rules! eras {
    ($($test:ident $era:literal $cases:literal,)*) => {
        $(#[test] fn $test() { run($era, $cases); })*

        #[test]
        fn no_preset_is_left_out() {
            let tested = [$($era),*];
            for p in unfrag_eras::kernel::PRESETS {
                assert!(tested.contains(&p.name), "{}", p.name);
            }
        }
    };
}

eras! {
    era_2_6_14 "2.6.14" 200,
    era_v19 "v19" 200,
    era_2_6_24 "2.6.24" 200,
    era_2_6_28 "2.6.28" 200,
    era_2_6_30 "2.6.30" 200,
    era_2_6_31 "2.6.31" 200,
    era_2_6_32_rc6 "2.6.32-rc6" 200,
    era_2_6_32 "2.6.32" 200,
    era_2_6_33 "2.6.33" 200,
    era_2_6_36 "2.6.36" 200,
    era_5_6 "5.6" 200,
    era_5_9 "5.9" 200,
    era_6_1 "6.1" 200,
    era_6_12 "6.12" 200,
    era_6_18 "6.18" 200,
    era_7_2 "7.2" 100,
}
