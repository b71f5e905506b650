//! Every rule of every era decides something: with any one of them changed, a run that meets many
//! situations goes another way. A rule that nothing depends on is found here.
//!
//! A run is a function of the rules and a seed. All that can be seen of it is written down; a second
//! run under changed rules is held against that, and ends where it first differs.

#[path = "support/rules.rs"]
mod flatten;
mod support;

use std::fmt::Debug;
use std::mem::discriminant;
use support::zone;
use unfrag::drive::Operation;
use unfrag::kernel::*;
use unfrag::reclaim::{
    Answer, Ask, Content, Context, Eviction, Kswapd, Lru, Need, PageFlags, Step, Verdict, Verdicts,
};
use unfrag::trace::Event;
use unfrag::{
    AllocError, Allocation, Begun, Config, CpuId, Gfp, Host, Manager, NodeId, Order, Pfn, Request,
    Rules, Sysctl, ZoneConfig, ZoneKind, layout, preset,
};

// What is seen of a run.

#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Event(Event),
    Woken(NodeId, Order),
    Got(Result<Pfn, AllocError>),
    Need(Need),
    Ask(Ask, bool),
    State(String),
}

/// Writes a run down, or holds it against one that was.
#[derive(Default)]
struct Record<'a> {
    own: Vec<Seen>,
    other: Option<&'a [Seen]>,
    at: usize,
    differs: bool,
}

impl Record<'_> {
    fn see(&mut self, seen: Seen) {
        match self.other {
            None => self.own.push(seen),
            Some(other) => {
                self.differs |= other.get(self.at) != Some(&seen);
                self.at += 1;
            }
        }
    }
}

/// Numbers by chance, the same ones for the same seed.
#[derive(Clone, Copy)]
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A host that owns pages, with a small swap and a device that is busy at times.
struct World<'a> {
    record: Record<'a>,
    chance: Chance,
    cpu: CpuId,
    swap: u64,
    writing: Vec<Pfn>,
    woken: bool,
}

impl Host for World<'_> {
    const TRACING: bool = true;
    fn trace(&mut self, event: &Event) {
        self.record.see(Seen::Event(*event));
    }
    fn wake_kswapd(&mut self, node: NodeId, order: Order) {
        self.woken = true;
        self.record.see(Seen::Woken(node, order));
    }
}

impl World<'_> {
    /// The owners' answer to one question, by chance.
    fn verdict(&mut self, ask: &Ask, sync: bool) -> Verdict {
        self.record.see(Seen::Ask(*ask, sync));
        if ask.unmap {
            match self.chance.below(12) {
                0 => return Verdict::Busy,
                _ if self.swap == 0 => return Verdict::NoSpace,
                _ => self.swap -= u64::from(self.chance.one_in(2)),
            }
        }
        match ask.content {
            Content::Clean if self.chance.one_in(16) => Verdict::Keep,
            Content::Clean => Verdict::Released,
            Content::Dirty => Verdict::Dirty,
            Content::Write => match self.chance.below(20) {
                0 => Verdict::Congested,
                1 => Verdict::Later,
                2 => Verdict::Failed,
                _ => {
                    self.writing.push(ask.page);
                    Verdict::Writing
                }
            },
        }
    }
}

/// Asks the owners of some pages.
fn evict(m: &mut M, eviction: &Eviction) -> Verdicts {
    let host = m.host_mut();
    let verdicts = eviction.ask(|ask| host.verdict(ask, eviction.sync));
    let swap = host.swap;
    m.set_nr_swap_pages(swap);
    verdicts
}

type M<'m, 'a> = Manager<'m, World<'a>>;

// The few calls that the scenes make.

fn with_manager<'a>(
    zones: &[ZoneConfig],
    rules: &Rules,
    sysctl: Sysctl,
    (seed, other): (u64, Option<&'a [Seen]>),
    scene: impl FnOnce(&mut M<'_, 'a>, &mut Chance),
) -> Record<'a> {
    let config = Config {
        cpus: 2,
        sysctl,
        ..Config::new(zones, *rules)
    };
    let mut memory = vec![0; layout(&config).expect("a layout").words];
    let host = World {
        record: Record {
            other,
            ..Record::default()
        },
        chance: Chance(seed ^ 0x5eed),
        cpu: CpuId(0),
        swap: 400,
        writing: Vec::new(),
        woken: false,
    };
    let mut m = Manager::boot(&config, host, &mut memory).expect("a manager");
    m.set_nr_swap_pages(400);
    look(&mut m);
    scene(&mut m, &mut Chance(seed));
    look(&mut m);
    if other.is_none() {
        m.inspect().validate().expect("a sound state");
    }
    std::mem::take(&mut m.host_mut().record)
}

fn see(m: &mut M, seen: Seen) {
    m.host_mut().record.see(seen);
}

fn over(m: &M) -> bool {
    m.host().record.differs
}

fn on_cpu(m: &mut M, c: &mut Chance) {
    m.host_mut().cpu = CpuId(c.below(2) as u32);
}

fn ask_for(m: &M, node: u8, order: u8, gfp: Gfp) -> Request {
    let request = Request::new(Order(order), gfp).near(NodeId(node));
    request.on(m.host().cpu)
}

fn alloc(m: &mut M, node: u8, order: u8, gfp: Gfp) -> Option<Pfn> {
    let got = m.alloc(&ask_for(m, node, order, gfp));
    see(m, Seen::Got(got));
    got.ok()
}

fn free(m: &mut M, (pfn, order): (Pfn, u8)) {
    let cpu = m.host().cpu;
    m.free(cpu, pfn, Order(order)).expect("it is in use");
}

/// Writes down what the zones hold.
fn look(m: &mut M) {
    let mut text = String::new();
    let i = m.inspect();
    for z in i.zones() {
        let v = i.zone(z);
        text += &format!(
            "{:?} {:?} {} {} {:?} {:?} {:?}",
            v.marks,
            v.protection,
            v.free_counter,
            v.highatomic,
            v.nr_free,
            i.blocks_by_type(z),
            i.lru(z)
        );
        for cpu in i.cpus() {
            text += &format!("{:?}", i.set(z, cpu));
        }
    }
    text += &format!("{:?} {:?}", i.counters(), i.reclaim_counters());
    see(m, Seen::State(text));
}

// The scenes.

const UNM: Gfp = Gfp::KERNEL;
const REC: Gfp = Gfp::KERNEL.union(Gfp::RECLAIMABLE);
const MOV: Gfp = Gfp::HIGHUSER_MOVABLE;
const ATOMIC: Gfp = Gfp::HIGH.union(Gfp::KSWAPD_RECLAIM);
const NOWAIT: Gfp = Gfp::KSWAPD_RECLAIM;

/// A request of a mobility and urgency by chance.
fn request(c: &mut Chance) -> (u8, Gfp) {
    let order = match c.below(100) {
        0..60 => 0,
        60..84 => 1 + c.below(3) as u8,
        84..95 => 4 + c.below(5) as u8,
        _ => 9 + c.below(2) as u8,
    };
    let mut gfp = c.of(&[
        UNM,
        UNM,
        REC,
        REC,
        MOV,
        MOV,
        MOV,
        Gfp::USER | Gfp::MOVABLE,
        UNM | Gfp::DMA,
        UNM | Gfp::DMA32,
        ATOMIC,
        ATOMIC,
        Gfp::ATOMIC_MASK,
        Gfp::ATOMIC_MASK - Gfp::HIGH,
        NOWAIT,
        Gfp::empty(),
        Gfp::HIGH,
        ATOMIC | Gfp::RECLAIMABLE,
    ]);
    for (flag, times) in [
        (Gfp::NORETRY, 8),
        (Gfp::RETRY_MAYFAIL, 8),
        (Gfp::NOFAIL, 16),
        (Gfp::NOMEMALLOC, 6),
        (Gfp::MEMALLOC, 64),
    ] {
        if c.one_in(times) {
            gfp |= flag;
        }
    }
    (order, gfp)
}

/// A machine of 160 MiB in two nodes, with reserved pages, holes, a pageblock that two zones share, and
/// a zone for movable pages.
fn machine() -> Vec<ZoneConfig> {
    let part = |node, kind, start, spanned, present, managed| ZoneConfig {
        present,
        managed,
        ..zone(node, kind, start, spanned)
    };
    vec![
        part(0, ZoneKind::Dma, 0, 4096, 4000, 3900),
        part(0, ZoneKind::Dma32, 4096, 12_544, 12_544, 12_000),
        part(0, ZoneKind::Normal, 16_640, 12_288, 12_000, 11_300),
        part(0, ZoneKind::Movable, 28_928, 6144, 6144, 6144),
        part(1, ZoneKind::Normal, 35_840, 5120, 5120, 5000),
    ]
}

/// Requests of all sorts come and go, at times more than there is.
fn churn(m: &mut M, c: &mut Chance) {
    let mut held: Vec<(Pfn, u8)> = Vec::new();
    for turn in 0..6000u32 {
        if over(m) {
            return;
        }
        on_cpu(m, c);
        // Memory fills, and is emptied by half, in turns.
        let filling = turn / 700 % 3 != 2;
        match c.below(if filling { 12 } else { 24 }) {
            0..8 => {
                let (order, gfp) = request(c);
                let got = alloc(m, u8::from(c.one_in(5)), order, gfp);
                held.extend(got.map(|p| (p, order)));
            }
            8 => {
                // Many of a kind fill up what is left in pageblocks of theirs.
                let (order, gfp) = request(c);
                for _ in 0..if order < 4 { 100 } else { 4 } {
                    let got = alloc(m, 0, order, gfp);
                    held.extend(got.map(|p| (p, order)));
                }
            }
            9 => {
                let mut out = [Pfn(0); 12];
                let request = ask_for(m, 0, 0, c.of(&[UNM, MOV, ATOMIC]));
                let got = m.alloc_bulk(&request, &mut out);
                for &p in &out[..got.unwrap_or(0)] {
                    see(m, Seen::Got(Ok(p)));
                    held.push((p, 0));
                }
            }
            10 => {
                let node = NodeId(c.below(2) as u8);
                let kind = c.of(&[ZoneKind::Dma32, ZoneKind::Normal, ZoneKind::Movable]);
                match c.below(3) {
                    0 => m.lab().set_reclaim_active(node, kind, true),
                    1 => m.lab().set_reclaim_active(node, kind, false),
                    _ => m.lab().lower_boost(node, kind, 512),
                }
            }
            11 => match c.below(8) {
                0 => m.drain_all(),
                1..4 => m.vmstat_update(CpuId(c.below(2) as u32)),
                _ => {}
            },
            12..22 if !held.is_empty() => {
                for _ in 0..1 + c.below(40) {
                    if !held.is_empty() {
                        let i = c.below(held.len() as u64) as usize;
                        free(m, held.swap_remove(i));
                    }
                }
            }
            _ => {
                for _ in 0..c.below(30) {
                    held.pop().into_iter().for_each(|b| free(m, b));
                }
            }
        }
        if turn % 500 == 0 {
            look(m);
        }
    }
}

/// A machine whose memory is cache, with tasks that want more, and kswapd.
struct Busy {
    kswapd: Kswapd,
    answer: Option<Answer>,
    tasks: Vec<(Allocation, Answer)>,
    cache: Vec<Pfn>,
    held: Vec<(Pfn, u8)>,
    /// Most of what is asked for cannot be reclaimed.
    starved: bool,
    /// Nothing comes from elsewhere, be it caches or a process that ends.
    hopeless: bool,
}

impl Busy {
    fn new(starved: bool) -> Busy {
        Busy {
            starved,
            hopeless: false,
            kswapd: Kswapd::new(NodeId(0)),
            answer: Some(Answer::Go),
            tasks: Vec::new(),
            cache: Vec::new(),
            held: Vec::new(),
        }
    }

    /// What was allocated becomes cache, or is held.
    fn got(&mut self, m: &mut M, c: &mut Chance, pfn: Pfn, order: u8, gfp: Gfp) {
        if order > 0 || !gfp.contains(Gfp::MOVABLE) {
            self.held.push((pfn, order));
            return;
        }
        let mut flags = PageFlags::empty();
        for (flag, times) in [
            (PageFlags::MAPPED, 2),
            (PageFlags::YOUNG, 3),
            (PageFlags::REFERENCED, 3),
            (PageFlags::DIRTY, 3),
            (PageFlags::EXEC, 3),
            (PageFlags::LOCKED, 50),
        ] {
            if c.one_in(times) {
                flags |= flag;
            }
        }
        m.pages().lru_add_new(pfn, !c.one_in(3), flags);
        self.cache.push(pfn);
    }

    /// Meets a need.
    fn meet(&mut self, m: &mut M, c: &mut Chance, need: Need) -> Answer {
        see(m, Seen::Need(need));
        let written = |m: &mut M, n: usize| {
            for _ in 0..n {
                let page = m.host_mut().writing.pop();
                page.into_iter().for_each(|p| m.pages().end_writeback(p));
            }
        };
        match need {
            Need::Turn { .. } | Need::WakeFlushers(_) => Answer::Go,
            Need::CongestionWait { ms, .. } | Need::Throttle { ms, .. } => {
                let n = c.below(20) as usize;
                written(m, n);
                Answer::Left(c.of(&[0, 0, ms / 2]))
            }
            Need::PageWriteback(_) => {
                let all = m.host().writing.len();
                written(m, all);
                Answer::Go
            }
            Need::Shrink { .. } if self.hopeless => Answer::Freed(0),
            Need::Shrink { .. } => Answer::Freed(c.of(&[0, 0, 0, 5, 40])),
            Need::Oom => {
                let kills = !c.one_in(4);
                // What it held may be long in coming.
                if kills && !self.hopeless && !c.one_in(3) {
                    for _ in 0..300 {
                        self.held.pop().into_iter().for_each(|b| free(m, b));
                    }
                }
                Answer::Killed(kills)
            }
            Need::Sleep(_) => Answer::Left(0),
            other => panic!("nobody knows how to meet {other:?}"),
        }
    }

    fn begin(&mut self, m: &mut M, c: &mut Chance) {
        let (mut order, mut gfp) = match c.below(10) {
            0..4 if self.starved => (0, UNM),
            0..6 => (0, MOV),
            6 => (0, UNM),
            _ => request(c),
        };
        if c.one_in(if self.starved { 6 } else { 24 }) {
            (order, gfp) = (4 + c.below(5) as u8, UNM);
        }
        if order > 3 && gfp.contains(Gfp::NOFAIL) {
            gfp -= Gfp::NOFAIL;
        }
        let context = Context {
            memalloc: c.one_in(80),
            realtime: c.one_in(5),
            in_interrupt: c.one_in(5),
            oom_victim: c.one_in(80),
        };
        self.begin_as(m, c, order, gfp, context);
    }

    fn begin_as(&mut self, m: &mut M, c: &mut Chance, order: u8, gfp: Gfp, context: Context) {
        match m.begin(&ask_for(m, 0, order, gfp).by(context)) {
            Ok(Begun::Got(p)) => {
                see(m, Seen::Got(Ok(p)));
                self.got(m, c, p, order, gfp);
            }
            Ok(Begun::Allocation(a)) => self.tasks.push((a, Answer::Go)),
            Err(e) => see(m, Seen::Got(Err(e))),
        }
    }

    fn step_task(&mut self, m: &mut M, c: &mut Chance) {
        if self.tasks.is_empty() {
            return;
        }
        let i = c.below(self.tasks.len() as u64) as usize;
        let (task, answer) = &mut self.tasks[i];
        let cpu = m.host().cpu;
        match task.step(m, cpu, *answer) {
            Step::Need(Need::Evict) => {
                let (task, answer) = &mut self.tasks[i];
                *answer = Answer::Evicted(evict(m, task.eviction()));
            }
            Step::Need(need) => {
                let answer = self.meet(m, c, need);
                self.tasks[i].1 = answer;
            }
            Step::Done(got) => {
                see(m, Seen::Got(got));
                let (task, _) = self.tasks.swap_remove(i);
                if let Ok(p) = got {
                    self.got(m, c, p, task.order().0, task.gfp());
                }
            }
        }
    }

    fn step_kswapd(&mut self, m: &mut M, c: &mut Chance) {
        let woken = std::mem::take(&mut m.host_mut().woken);
        let answer = match self.answer.take() {
            Some(answer) => answer,
            None if woken => Answer::Left(0),
            None => return,
        };
        let cpu = m.host().cpu;
        let need = self.kswapd.run(m, cpu, answer);
        self.answer = match need {
            Need::Evict => Some(Answer::Evicted(evict(m, self.kswapd.eviction()))),
            Need::Sleep(None) => {
                see(m, Seen::Need(need));
                None
            }
            Need::Sleep(Some(ms)) => {
                see(m, Seen::Need(need));
                Some(Answer::Left(c.of(&[0, 0, ms / 3])))
            }
            need => Some(self.meet(m, c, need)),
        };
    }

    /// Those that may use all there is take what is left for those that reclaim.
    fn use_up(&mut self, m: &mut M) {
        for _ in 0..20_000 {
            let (mut free, mut min) = (0, 0);
            for z in m.inspect().zones() {
                let v = m.inspect().zone(z);
                (free, min) = (free + v.free_counter, min + v.marks.min as i64);
            }
            if free < min / 3 {
                return;
            }
            let got = alloc(m, 0, 0, UNM | Gfp::MEMALLOC);
            self.held.extend(got.map(|p| (p, 0)));
        }
    }

    /// Some page is used, or dropped by its owner.
    fn touch(&mut self, m: &mut M, c: &mut Chance) {
        if self.cache.is_empty() {
            return;
        }
        let i = c.below(self.cache.len() as u64) as usize;
        let page = self.cache[i];
        let Some(lru) = m.inspect().lru_of(page) else {
            self.cache.swap_remove(i);
            return;
        };
        match c.below(12) {
            0..4 => m.pages().mark_accessed(page),
            4..8 => m.pages().set(page, PageFlags::YOUNG | PageFlags::MAPPED),
            8 => m.pages().set(page, PageFlags::DIRTY),
            9 if lru == Lru::InactiveFile => m.pages().lru_del(page),
            10 => m.pages().clear(page, PageFlags::LOCKED),
            _ => {}
        }
    }
}

fn reclaim(m: &mut M, c: &mut Chance, starved: bool) {
    let mut b = Busy::new(starved);
    if starved {
        m.host_mut().swap = 0;
        m.set_nr_swap_pages(0);
    }
    for turn in 0..60_000u32 {
        if over(m) {
            return;
        }
        on_cpu(m, c);
        // Quiet times, in which kswapd may rest, and others.
        let busy = turn / 4000 % 3 != 2;
        match c.below(if busy { 20 } else { 60 }) {
            0..8 if b.tasks.len() < 5 => b.begin(m, c),
            0..11 => b.step_task(m, c),
            11..15 => b.step_kswapd(m, c),
            15..18 => b.touch(m, c),
            18 if c.one_in(3) && !b.held.is_empty() => {
                let i = c.below(b.held.len() as u64) as usize;
                free(m, b.held.swap_remove(i));
            }
            19 if c.one_in(if starved { 150 } else { 600 }) => b.use_up(m),
            19 if c.one_in(200) => {
                for _ in 0..c.below(400) {
                    b.held.pop().into_iter().for_each(|h| free(m, h));
                }
            }
            20..40 => b.step_kswapd(m, c),
            40..50 => b.step_task(m, c),
            50 => {
                let page = m.host_mut().writing.pop();
                page.into_iter().for_each(|p| m.pages().end_writeback(p));
            }
            _ => {}
        }
        if turn % 4000 == 0 {
            m.vmstat_update(CpuId(0));
            look(m);
        }
    }
}

/// Next to nothing can be reclaimed, and tasks want more than there is: reclaim gives up.
fn hopeless(m: &mut M, c: &mut Chance) {
    let mut b = Busy::new(true);
    b.hopeless = true;
    m.host_mut().swap = 0;
    m.set_nr_swap_pages(0);
    for _ in 0..40 {
        let got = alloc(m, 0, 0, MOV);
        got.into_iter().for_each(|p| b.got(m, c, p, 0, MOV));
    }
    b.use_up(m);
    for _ in 0..20_000 {
        if over(m) {
            return;
        }
        match c.below(8) {
            0 if b.tasks.len() < 3 => {
                let order = c.of(&[0, 0, 1, 3, 4, 4, 5, 8]);
                b.begin_as(m, c, order, UNM, Context::default());
            }
            0..6 => b.step_task(m, c),
            _ => b.step_kswapd(m, c),
        }
    }
}

const SCENES: [&str; 7] = [
    "hopeless",
    "churn",
    "churn, low marks",
    "reclaim",
    "reclaim, one zone",
    "starved",
    "large",
];
const SEEDS: u64 = 6;

/// One run of a scene, written down or held against another.
fn run<'a>(scene: &str, rules: &Rules, by: (u64, Option<&'a [Seen]>)) -> Record<'a> {
    let small = [
        zone(0, ZoneKind::Dma, 0, 2048),
        zone(0, ZoneKind::Normal, 2048, 6144),
    ];
    let cached = Sysctl::default().with(|s| {
        s.transparent_hugepage = false;
    });
    match scene {
        "churn" => with_manager(&machine(), rules, Sysctl::default(), by, churn),
        "churn, low marks" => {
            let sysctl = Sysctl::default().with(|s| {
                s.min_free_kbytes = 600;
                s.lowmem_reserve_ratio = [0, 256, 32, 32, 0];
                s.defrag_mode = by.0 % 2 == 1;
            });
            with_manager(&machine(), rules, sysctl, by, churn)
        }
        "reclaim" => with_manager(&small, rules, cached, by, |m, c| {
            reclaim(m, c, false);
        }),
        "hopeless" => with_manager(&small, rules, cached, by, hopeless),
        "starved" => with_manager(&small, rules, cached, by, |m, c| reclaim(m, c, true)),
        "reclaim, one zone" => {
            let one = [zone(0, ZoneKind::Normal, 0x400, 6144)];
            with_manager(&one, rules, cached, by, |m, c| reclaim(m, c, false))
        }
        _ => with_manager(
            &[zone(0, ZoneKind::Normal, 0, 200_000)],
            rules,
            // Above two pageblocks.
            Sysctl::default().with(|s| {
                s.min_free_kbytes = 8192;
            }),
            by,
            |m, c| {
                for _ in 0..400 {
                    let (order, gfp) = request(c);
                    alloc(m, 0, order, gfp);
                }
                // All of it, and what is reserved at the end.
                while alloc(m, 0, 9, MOV).is_some() {}
                for _ in 0..200 {
                    let order = c.below(4) as u8;
                    alloc(m, 0, order, c.of(&[ATOMIC, UNM, REC]));
                }
            },
        ),
    }
}

// The flips.

struct Flip {
    path: &'static str,
    to: String,
    rules: Rules,
}

struct Flips<'a> {
    rules: &'a Rules,
    all: Vec<Flip>,
}

impl Flips<'_> {
    /// A rule, if these have it, with each of the values that it has not.
    fn rule<T: Copy + PartialEq + Debug>(
        &mut self,
        path: &'static str,
        values: &[T],
        at: impl Fn(&mut Rules) -> Option<&mut T>,
    ) {
        for value in values {
            let mut rules = *self.rules;
            let Some(slot) = at(&mut rules) else { return };
            if slot == value || discriminant(slot) == discriminant(value) && braced(value) {
                continue;
            }
            *slot = *value;
            let to = kind(value);
            self.all.push(Flip { path, to, rules });
        }
    }
}

/// Whether a value holds rules of their own names.
fn braced<T: Debug>(value: &T) -> bool {
    format!("{value:?}").contains('{')
}

/// The first line of a value's text: its variant, without what that holds.
fn kind<T: Debug>(value: &T) -> String {
    let text = format!("{value:?}");
    let deep = text.matches(['{', '(']).count() > 1;
    match text.find(['{', '(']) {
        Some(i) if deep => format!("{} {{..}}", text[..i].trim()),
        _ => text,
    }
}

fn pages(r: &mut Rules) -> Option<&mut PageblockRules> {
    r.pageblocks_mut()
}

fn scan(r: &mut Rules) -> Option<&mut ScanDown> {
    match &mut pages(r)?.fallback {
        Fallback::ScanDown(s) => Some(s),
        Fallback::ClaimThenSteal { .. } => None,
    }
}

fn boosts(r: &mut Rules) -> Option<&mut Option<Boost>> {
    match &mut pages(r)?.fallback {
        Fallback::ScanDown(s) => Some(&mut s.boost),
        Fallback::ClaimThenSteal { boost } => Some(boost),
    }
}

fn boost(r: &mut Rules) -> Option<&mut Boost> {
    boosts(r)?.as_mut()
}

fn of(era: &str) -> Rules {
    preset(era).expect("an era").rules
}

fn flips(rules: &Rules) -> Vec<Flip> {
    let eras = ["2.6.14", "v19", "2.6.31", "6.1", "6.18"].map(of);
    let fallbacks = ["2.6.31", "6.1", "6.18"].map(|e| of(e).pageblocks().unwrap().fallback);
    let some = of("6.1").boost();
    let bools = [false, true];
    let mut f = Flips {
        rules,
        all: Vec::new(),
    };
    f.rule("placement", &eras.map(|e| e.placement), |r| {
        Some(&mut r.placement)
    });
    f.rule("placement.fallback", &fallbacks, |r| {
        Some(&mut pages(r)?.fallback)
    });
    f.rule(
        "placement.fallback.merge",
        &[Merge::All, Merge::Ordinary],
        |r| Some(&mut scan(r)?.merge),
    );
    f.rule("placement.fallback.movable_ascends", &bools, |r| {
        Some(&mut scan(r)?.movable_ascends)
    });
    f.rule(
        "placement.fallback.remainder",
        &[Remainder::Victims, Remainder::Requests],
        |r| Some(&mut scan(r)?.remainder),
    );
    f.rule("placement.fallback.boost", &[None, some], boosts);
    f.rule(
        "placement.fallback.boost.recheck",
        &[BoostRecheck::AtomicBit, BoostRecheck::High],
        |r| Some(&mut boost(r)?.recheck),
    );
    f.rule(
        "placement.fallback.boost.wakes",
        &[BoostWakes::AnyRequest, BoostWakes::IfItMay],
        |r| Some(&mut boost(r)?.wakes),
    );
    f.rule("placement.unmovable_may_claim", &bools, |r| {
        Some(&mut pages(r)?.unmovable_may_claim)
    });
    f.rule(
        "placement.claim_test",
        &[ClaimTest::HalfFree, ClaimTest::HalfFreeOrAlike],
        |r| Some(&mut pages(r)?.claim_test),
    );
    f.rule("placement.move_to_tail", &bools, |r| {
        Some(&mut pages(r)?.move_to_tail)
    });
    f.rule(
        "placement.reserve",
        &[
            Reserve::None,
            Reserve::Blocks { capped: true },
            Reserve::HighAtomic(HighAtomicLimit::PercentPlusBlock),
            Reserve::HighAtomic(HighAtomicLimit::PercentRoundedUp),
        ],
        |r| Some(&mut pages(r)?.reserve),
    );
    f.rule("placement.reserve.capped", &bools, |r| {
        match &mut pages(r)?.reserve {
            Reserve::Blocks { capped } => Some(capped),
            _ => None,
        }
    });
    f.rule("placement.nofragment", &bools, |r| {
        Some(&mut pages(r)?.nofragment)
    });
    f.rule("placement.defrag_mode", &bools, |r| {
        Some(&mut pages(r)?.defrag_mode)
    });
    f.rule("placement.reclaimable_is_type_1", &bools, |r| {
        Some(&mut pages(r)?.reclaimable_is_type_1)
    });
    f.rule("block_order", &[8, 9, 10], |r| Some(&mut r.block_order));
    f.rule("tail_if_merge_likely", &bools, |r| {
        Some(&mut r.tail_if_merge_likely)
    });
    f.rule(
        "marks.check",
        &[MarkCheck::PerOrder, MarkCheck::BlockExists],
        |r| Some(&mut r.marks.check),
    );
    f.rule("marks.gap", &[MarkGap::Quarter, MarkGap::Scaled], |r| {
        Some(&mut r.marks.gap)
    });
    f.rule(
        "marks.pages",
        &[ZonePages::Present, ZonePages::Managed],
        |r| Some(&mut r.marks.pages),
    );
    f.rule("marks.min_free_kbytes_cap", &[65_536, 262_144], |r| {
        Some(&mut r.marks.min_free_kbytes_cap)
    });
    f.rule("marks.zero_ratio_is_none", &bools, |r| {
        Some(&mut r.marks.zero_ratio_is_none)
    });
    f.rule("marks.movable_is_lowmem", &bools, |r| {
        Some(&mut r.marks.movable_is_lowmem)
    });
    f.rule("marks.khugepaged", &bools, |r| {
        Some(&mut r.marks.khugepaged)
    });
    f.rule("marks.late_free_count", &bools, |r| {
        Some(&mut r.marks.late_free_count)
    });
    let turns = |drain, keep_type| Pcp::PerType { drain, keep_type };
    f.rule(
        "pcp",
        &[
            Pcp::HotCold { searched: false },
            Pcp::Kinds,
            Pcp::Searched,
            turns(Drain::BatchFree, true),
            Pcp::Orders { tuned: false },
        ],
        |r| Some(&mut r.pcp),
    );
    f.rule("pcp.searched", &bools, |r| match &mut r.pcp {
        Pcp::HotCold { searched } => Some(searched),
        _ => None,
    });
    f.rule(
        "pcp.drain",
        &[Drain::RoundRobin, Drain::BatchFree],
        |r| match &mut r.pcp {
            Pcp::PerType { drain, .. } => Some(drain),
            _ => None,
        },
    );
    f.rule("pcp.keep_type", &bools, |r| match &mut r.pcp {
        Pcp::PerType { keep_type, .. } => Some(keep_type),
        _ => None,
    });
    f.rule("pcp.tuned", &bools, |r| match &mut r.pcp {
        Pcp::Orders { tuned } => Some(tuned),
        _ => None,
    });
    f.rule("pcp_batch_cap_kbytes", &[512, 1024], |r| {
        Some(&mut r.pcp_batch_cap_kbytes)
    });
    f.rule("rights.nomemalloc_forbids", &bools, |r| {
        Some(&mut r.rights.nomemalloc_forbids)
    });
    f.rule(
        "rights.leaves_cpuset",
        &[
            LeavesCpuset::AllThatCannotWait,
            LeavesCpuset::HighThatCannotWait,
        ],
        |r| Some(&mut r.rights.leaves_cpuset),
    );
    f.rule(
        "rights.realtime",
        &[RealtimeRight::NonBlock, RealtimeRight::MinReserve],
        |r| Some(&mut r.rights.realtime),
    );
    f.rule("rights.realtime_in_interrupt", &bools, |r| {
        Some(&mut r.rights.realtime_in_interrupt)
    });
    let pauses = |repeats_from, oom| RetryForm::Pauses { repeats_from, oom };
    f.rule(
        "retry.form",
        &[pauses(None, OomOrders::Cheap), RetryForm::Bounded],
        |r| Some(&mut r.retry.form),
    );
    f.rule(
        "retry.form.repeats_from",
        &[None, Some(5)],
        |r| match &mut r.retry.form {
            RetryForm::Pauses { repeats_from, .. } => Some(repeats_from),
            RetryForm::Bounded => None,
        },
    );
    f.rule(
        "retry.form.oom",
        &[OomOrders::Any, OomOrders::BelowHalf, OomOrders::Cheap],
        |r| match &mut r.retry.form {
            RetryForm::Pauses { oom, .. } => Some(oom),
            RetryForm::Bounded => None,
        },
    );
    f.rule(
        "retry.drain",
        &[RetryDrain::EachBlock, RetryDrain::OnceInVain],
        |r| Some(&mut r.retry.drain),
    );
    f.rule("retry.wake_on_restart", &bools, |r| {
        Some(&mut r.retry.wake_on_restart)
    });
    f.rule(
        "kswapd.form",
        &[
            KswapdForm::PerZone { drops_order: true },
            KswapdForm::PerNode,
        ],
        |r| Some(&mut r.kswapd.form),
    );
    f.rule("kswapd.form.drops_order", &bools, |r| {
        match &mut r.kswapd.form {
            KswapdForm::PerZone { drops_order } => Some(drops_order),
            KswapdForm::PerNode => None,
        }
    });
    f.rule(
        "kswapd.sleep",
        &[KswapdSleep::Direct, KswapdSleep::Staged],
        |r| Some(&mut r.kswapd.sleep),
    );
    f.rule(
        "kswapd.nap",
        &[
            KswapdNap::Trouble,
            KswapdNap::TroubleLater,
            KswapdNap::NotBelowMin,
            KswapdNap::No,
        ],
        |r| Some(&mut r.kswapd.nap),
    );
    f.rule("kswapd.notices_order_at_once", &bools, |r| {
        Some(&mut r.kswapd.notices_order_at_once)
    });
    let lru = of("2.6.28").reclaim.lru;
    let split = *lru.split().unwrap();
    f.rule(
        "reclaim.lru",
        &[LruRules::Joined, lru, LruRules::PerNode(split)],
        |r| Some(&mut r.reclaim.lru),
    );
    f.rule(
        "reclaim.lru.balance",
        &[ScanBalance::Rotated, ScanBalance::Cost],
        |r| Some(&mut r.reclaim.lru.split_mut()?.balance),
    );
    f.rule("reclaim.lru.keeps_exec", &bools, |r| {
        Some(&mut r.reclaim.lru.split_mut()?.keeps_exec)
    });
    f.rule(
        "reclaim.lru.active_files",
        &[
            ActiveFiles::EachScan,
            ActiveFiles::WhenLonger,
            ActiveFiles::ByRatio,
        ],
        |r| Some(&mut r.reclaim.lru.split_mut()?.active_files),
    );
    f.rule("reclaim.new_anon_active", &bools, |r| {
        Some(&mut r.reclaim.new_anon_active)
    });
    f.rule("reclaim.used_once_stays", &bools, |r| {
        Some(&mut r.reclaim.used_once_stays)
    });
    f.rule(
        "reclaim.congestion",
        &[
            CongestionWait::Sync,
            CongestionWait::Async,
            CongestionWait::Both,
            CongestionWait::BothEverywhere,
            CongestionWait::Throttle,
        ],
        |r| Some(&mut r.reclaim.congestion),
    );
    let lumpy = |cheap_orders_wait| HighOrder::Lumpy { cheap_orders_wait };
    f.rule(
        "reclaim.high_order",
        &[HighOrder::Nothing, lumpy(false), HighOrder::Compaction],
        |r| Some(&mut r.reclaim.high_order),
    );
    f.rule(
        "reclaim.high_order.cheap_orders_wait",
        &bools,
        |r| match &mut r.reclaim.high_order {
            HighOrder::Lumpy { cheap_orders_wait } => Some(cheap_orders_wait),
            _ => None,
        },
    );
    f.rule("reclaim.hope_is_progress", &bools, |r| {
        Some(&mut r.reclaim.hope_is_progress)
    });
    f.rule("reclaim.isolated_throttle", &bools, |r| {
        Some(&mut r.reclaim.isolated_throttle)
    });
    f.rule("reclaim.reserves_throttle", &bools, |r| {
        Some(&mut r.reclaim.reserves_throttle)
    });
    f.rule("reclaim.direct_writes_files", &bools, |r| {
        Some(&mut r.reclaim.direct_writes_files)
    });
    f.all
}

/// Flips that change nothing here: the rule, the value that it gets (`*`: any), what must be so of the era,
/// and why.
type Excuse = (&'static str, &'static str, fn(&Rules) -> bool, &'static str);

const EXCUSES: &[Excuse] = &[
    (
        "marks.min_free_kbytes_cap",
        "*",
        |_| true,
        "takes 256 GiB to be seen; the formula has a test of its own",
    ),
    (
        "rights.leaves_cpuset",
        "*",
        |_| true,
        "there are no cpusets yet: the right is worked out, and nothing asks for it",
    ),
    (
        "placement.reclaimable_is_type_1",
        "*",
        |r| !matches!(r.pcp, Pcp::PerType { .. }),
        "numbers of types say in which turn lists by type are drained; else reports alone print them",
    ),
    (
        "pcp",
        "Searched",
        |r| matches!(r.pcp, Pcp::HotCold { .. }),
        "nobody asks for cold pages: the hot list is the one list",
    ),
    (
        "pcp",
        "HotCold { searched: false }",
        |r| r.placement == Placement::Ungrouped,
        "with one type there is nothing to search for",
    ),
    (
        "pcp",
        "PerType { drain: BatchFree, keep_type: true }",
        |r| r.placement == Placement::Ungrouped,
        "one type has one list",
    ),
    (
        "pcp.searched",
        "*",
        |r| r.placement == Placement::Ungrouped,
        "with one type there is nothing to search for",
    ),
    (
        "reclaim.lru.active_files",
        "ByRatio",
        |r| {
            r.reclaim
                .lru
                .split()
                .is_some_and(|s| s.active_files == ActiveFiles::WhenLonger)
        },
        "the ratio is 1 below a GiB",
    ),
    (
        "reclaim.lru.active_files",
        "WhenLonger",
        |r| {
            r.reclaim
                .lru
                .split()
                .is_some_and(|s| s.active_files == ActiveFiles::ByRatio)
        },
        "the ratio is 1 below a GiB",
    ),
    (
        "reclaim.high_order",
        "Compaction",
        |r| r.reclaim.high_order == HighOrder::Nothing,
        "what is left to compaction, reclaim does nothing for; those that compact ask which it is",
    ),
    (
        "reclaim.high_order",
        "Nothing",
        |r| r.reclaim.high_order == HighOrder::Compaction,
        "what is left to compaction, reclaim does nothing for; those that compact ask which it is",
    ),
];

/// What is wrong with the rules of one era.
fn check(era: &Preset) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut known: Vec<Option<Vec<Seen>>> = vec![None; SCENES.len() * SEEDS as usize];
    let flips = flips(&era.rules);
    for (path, _) in flatten::flat(&era.rules) {
        if !flips.iter().any(|f| f.path == path) {
            wrong.push(format!("{}: nobody flips {path}", era.name));
        }
    }
    for flip in &flips {
        let what = format!("{}: {} = {}", era.name, flip.path, flip.to);
        let mut excuses = EXCUSES.iter();
        let excuse = excuses.find(|(path, to, of, _)| {
            *path == flip.path && (*to == "*" || *to == flip.to) && of(&era.rules)
        });
        let seeds = if excuse.is_some() { 1 } else { SEEDS };
        let runs = (0..seeds).flat_map(|seed| SCENES.iter().enumerate().map(move |s| (seed, s)));
        let mut runs = runs.filter(|(seed, (_, scene))| *seed == 0 || **scene != "large");
        let seen = runs.find_map(|(seed, (i, scene))| {
            let log = known[seed as usize * SCENES.len() + i]
                .get_or_insert_with(|| run(scene, &era.rules, (seed, None)).own);
            let record = run(scene, &flip.rules, (seed, Some(log)));
            (record.differs || record.at != log.len()).then(|| format!("{scene}, seed {seed}"))
        });
        match (seen, excuse) {
            (None, None) => wrong.push(format!("{what} changes nothing")),
            (Some(seen), Some(e)) => wrong.push(format!("{what} ({}) shows in {seen}", e.3)),
            _ => {}
        }
    }
    wrong
}

#[test]
fn each_rule_of_each_era_changes_what_is_seen() {
    let (some, others) = PRESETS.split_at(PRESETS.len() / 2);
    let all = |eras: &[Preset]| eras.iter().flat_map(check).collect::<Vec<_>>();
    let wrong = std::thread::scope(|s| {
        let beside = s.spawn(|| all(others));
        let mut wrong = all(some);
        wrong.extend(beside.join().expect("the other half"));
        wrong
    });
    assert!(
        wrong.is_empty(),
        "{}\n{} in all",
        wrong.join("\n"),
        wrong.len()
    );
}
