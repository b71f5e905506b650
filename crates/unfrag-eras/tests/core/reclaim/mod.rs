//! Reclaim: LRU lists, direct reclaim, kswapd, the retry loop, in a world of these tests that owns the
//! pages. `spec: 4`

mod evictions;
mod generations;
mod kswapd;
mod lru;
mod node;
mod slow_path;
mod throttle;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use unfrag_eras::drive::{Operation, World, drive};
use unfrag_eras::inspect::{LruView, SetView, ZoneView};
use unfrag_eras::reclaim::{
    Answer, Ask, Class, Content, Context, Eviction, Kswapd, Lru, Need, PageFlags, ReclaimCounters,
    Step, Throttle, Verdict, Verdicts,
};
use unfrag_eras::{
    AllocError, Allocation, Begun, Config, CpuId, FreeError, Gfp, Host, Manager, NodeId, Order,
    Pfn, Request, Rules, ZoneConfig, ZoneId, ZoneKind, layout, preset,
};

const CPU: CpuId = CpuId(0);
const ZONE: ZoneId = ZoneId(0);

/// The calls of the allocator to its host.
#[derive(Default)]
struct Recorder {
    /// Order of each call for kswapd.
    woken: Vec<u8>,
    /// Pages announced by prefetch hints.
    announced: RefCell<BTreeSet<Pfn>>,
}

impl Host for Recorder {
    const PREFETCHES: bool = true;
    fn prefetch(&self, page: Pfn) {
        self.announced.borrow_mut().insert(page);
    }
    fn wake_kswapd(&mut self, _node: NodeId, order: Order) {
        self.woken.push(order.0);
    }
}

/// Owners whose pages can be taken, with a swap of some size and a device that may be congested.
#[derive(Default)]
struct Owners {
    swap: u64,
    in_swap: BTreeSet<Pfn>,
    congested: bool,
    /// Pages that were given a place when reclaim first met them, to be written when it meets them again.
    placed: Option<BTreeSet<Pfn>>,
    /// Pages whose writing has begun.
    writing: Vec<Pfn>,
    released: u64,
    /// Pages that were released.
    gone: BTreeSet<Pfn>,
    /// Pages of which reclaim asked that they be unmapped.
    asked: BTreeSet<Pfn>,
}

impl Owners {
    fn verdict(&mut self, ask: &Ask) -> Verdict {
        let page = ask.page;
        if ask.unmap {
            self.asked.insert(page);
            if !self.in_swap.contains(&page) {
                if self.swap == 0 {
                    return Verdict::NoSpace;
                }
                self.swap -= 1;
                self.in_swap.insert(page);
            }
        }
        match ask.content {
            Content::Clean => {
                self.in_swap.remove(&page);
                self.released += 1;
                self.gone.insert(page);
                Verdict::Released
            }
            Content::Dirty => Verdict::Dirty,
            Content::Write if self.congested => Verdict::Congested,
            Content::Write if self.placed.as_mut().is_some_and(|p| p.insert(page)) => {
                Verdict::Later
            }
            Content::Write => {
                self.writing.push(page);
                Verdict::Writing
            }
        }
    }
}

/// A manager with one zone, the owners of its pages, and what operations needed of them.
struct Machine<'m> {
    core: Manager<'m, Recorder>,
    owners: Owners,
    /// All needs but evictions.
    needs: Vec<Need>,
}

impl<'m> Deref for Machine<'m> {
    type Target = Manager<'m, Recorder>;
    fn deref(&self) -> &Self::Target {
        &self.core
    }
}

impl DerefMut for Machine<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.core
    }
}

/// A world in which writes end when they are waited for, shrinkers free nothing, and no process is killed.
impl World for Machine<'_> {
    type Host = Recorder;

    fn locked<T>(&mut self, f: impl FnOnce(&mut Manager<'_, Recorder>, CpuId) -> T) -> T {
        self.core.set_nr_swap_pages(self.owners.swap);
        f(&mut self.core, CPU)
    }

    fn meet(&mut self, need: Need) -> Answer {
        assert!(self.needs.len() < 1_000_000, "it does not end: {need:?}");
        self.needs.push(need);
        match need {
            Need::Shrink { .. } => Answer::Freed(0),
            Need::CongestionWait { .. } | Need::Throttle { .. } | Need::PageWriteback(_) => {
                self.end_writes();
                Answer::Left(0)
            }
            Need::Oom => Answer::Killed(false),
            _ => Answer::Go,
        }
    }

    fn evict(&mut self, eviction: &Eviction) -> Verdicts {
        eviction.ask(|ask| self.owners.verdict(ask))
    }
}

/// A world as above, in which owners, or some needs, are handled by closures.
struct OverriddenWorld<'a, 'm, E, F> {
    m: &'a mut Machine<'m>,
    evict: E,
    meet: F,
}

impl<E, F> World for OverriddenWorld<'_, '_, E, F>
where
    E: FnMut(&mut Machine<'_>, &Eviction) -> Verdicts,
    F: FnMut(&mut Machine<'_>, Need) -> Option<Answer>,
{
    type Host = Recorder;

    fn locked<T>(&mut self, f: impl FnOnce(&mut Manager<'_, Recorder>, CpuId) -> T) -> T {
        self.m.locked(f)
    }

    fn meet(&mut self, need: Need) -> Answer {
        let other = (self.meet)(self.m, need);
        other.unwrap_or_else(|| self.m.meet(need))
    }

    fn evict(&mut self, eviction: &Eviction) -> Verdicts {
        (self.evict)(self.m, eviction)
    }
}

/// Drives an allocation in a world that meets some needs in another way.
fn drive_otherwise(
    m: &mut Machine,
    a: Allocation,
    meet: impl FnMut(&mut Machine<'_>, Need) -> Option<Answer>,
) -> Result<Pfn, AllocError> {
    drive_asking(m, a, |m, eviction| m.evict(eviction), meet)
}

/// Drives an allocation in a world in which owners say what `evict` says.
fn drive_asking(
    m: &mut Machine,
    mut a: Allocation,
    evict: impl FnMut(&mut Machine<'_>, &Eviction) -> Verdicts,
    meet: impl FnMut(&mut Machine<'_>, Need) -> Option<Answer>,
) -> Result<Pfn, AllocError> {
    drive(&mut OverriddenWorld { m, evict, meet }, &mut a)
}

impl Machine<'_> {
    /// All writes that have begun end.
    fn end_writes(&mut self) {
        for p in std::mem::take(&mut self.owners.writing) {
            self.pages().end_writeback(p);
        }
    }

    /// A step, and as many more as owners alone are needed for.
    fn step<O: Operation>(&mut self, operation: &mut O, answer: Answer) -> Step<O::Output> {
        let mut answer = answer;
        loop {
            match self.locked(|m, cpu| operation.step(m, cpu, answer)) {
                Step::Need(Need::Evict) => {
                    answer = Answer::Evicted(self.evict(operation.eviction()));
                }
                step => return step,
            }
        }
    }

    /// Steps kswapd, which is never done, and as many more times as owners alone are needed for.
    fn run(&mut self, k: &mut Kswapd, answer: Answer) -> Need {
        match self.step(k, answer) {
            Step::Need(need) => need,
            Step::Done(never) => match never {},
        }
    }

    fn begin_alloc(&mut self, order: u8, gfp: Gfp, cx: Context) -> Result<Begun, AllocError> {
        let request = Request::new(Order(order), gfp).by(cx);
        self.locked(|m, cpu| m.begin(&request.on(cpu)))
    }

    /// A block without waiting for anything.
    fn alloc(&mut self, order: u8, gfp: Gfp) -> Result<Pfn, AllocError> {
        self.core.alloc(&Request::new(Order(order), gfp))
    }

    fn free(&mut self, pfn: Pfn, order: u8) -> Result<(), FreeError> {
        self.core.free(CPU, pfn, Order(order))
    }

    fn zone(&self) -> ZoneView {
        self.inspect().zone(ZONE)
    }

    fn set(&self) -> SetView {
        self.inspect().set(ZONE, CPU)
    }

    fn lru(&self) -> LruView {
        self.inspect().lru(ZONE)
    }

    fn lru_of(&self, p: Pfn) -> Option<Lru> {
        self.inspect().lru_of(p)
    }

    fn lru_add(&mut self, p: Pfn, lru: Lru) {
        self.pages().lru_add(p, lru, PageFlags::empty());
    }

    fn lru_add_new(&mut self, p: Pfn, file: bool) {
        self.pages().lru_add_new(p, file, PageFlags::empty());
    }

    fn page_flags(&self, p: Pfn) -> PageFlags {
        self.inspect().page_flags(p)
    }

    fn reclaim_counters(&self) -> &ReclaimCounters {
        self.inspect().reclaim_counters()
    }
}

const FRAMES: u64 = 16384;

fn with(sw: Rules, owners: Owners, f: impl FnOnce(&mut Machine)) {
    with_frames(FRAMES, sw, owners, f);
}

fn with_frames(n: u64, sw: Rules, owners: Owners, f: impl FnOnce(&mut Machine)) {
    let zones = [ZoneConfig::whole(
        NodeId(0),
        ZoneKind::Normal,
        Pfn(0x400),
        n,
    )];
    with_config(&Config::new(&zones, sw), owners, f);
}

fn with_config(config: &Config, owners: Owners, f: impl FnOnce(&mut Machine)) {
    let mut memory = vec![0; layout(config).unwrap().words];
    let core = Manager::boot(config, Recorder::default(), &mut memory).unwrap();
    let mut m = Machine {
        core,
        owners,
        needs: Vec::new(),
    };
    f(&mut m);
    m.inspect().validate().unwrap();
}

fn era(name: &str) -> Rules {
    preset(name).unwrap().rules
}

/// Fills memory down to the low mark with page cache, and returns its pages.
fn fill(m: &mut Machine, flags: PageFlags) -> Vec<Pfn> {
    fill_as(m, true, flags)
}

/// Fills memory down to the low mark with page cache (`file`) or anonymous pages, and returns its pages.
fn fill_as(m: &mut Machine, file: bool, flags: PageFlags) -> Vec<Pfn> {
    let mut pages = Vec::new();
    while let Ok(Begun::Got(p)) = m.begin_alloc(0, Gfp::HIGHUSER_MOVABLE, Context::default()) {
        m.lru_add_new(p, file);
        m.pages().set(p, flags);
        pages.push(p);
    }
    pages
}

/// Takes what is free, whatever the marks, and gives every other page back.
fn leave_single_pages(m: &mut Machine) {
    let mut rest = Vec::new();
    while let Ok(p) = m.alloc(0, Gfp::KERNEL | Gfp::MEMALLOC) {
        rest.push(p);
    }
    rest.sort();
    for p in rest.iter().step_by(2) {
        m.free(*p, 0).unwrap();
    }
    m.drain_all();
}

/// Drives an allocation to its end. Returns what it needed beside evictions.
fn finish(m: &mut Machine, mut a: Allocation) -> (Result<Pfn, AllocError>, Vec<Need>) {
    m.needs.clear();
    let got = drive(m, &mut a);
    (got, std::mem::take(&mut m.needs))
}

fn begin(m: &mut Machine, order: u8, gfp: Gfp, cx: Context) -> Allocation {
    match m.begin_alloc(order, gfp, cx).unwrap() {
        Begun::Allocation(a) => a,
        Begun::Got(p) => panic!("free memory served it: {p:?}"),
    }
}

/// A single page, however long it takes.
fn alloc(m: &mut Machine, gfp: Gfp) -> Pfn {
    match m.begin_alloc(0, gfp, Context::default()).unwrap() {
        Begun::Got(p) => p,
        Begun::Allocation(a) => finish(m, a).0.unwrap(),
    }
}

const ERAS: [&str; 9] = [
    "2.6.14",
    "v19",
    "2.6.30",
    "2.6.31",
    "2.6.32-rc6",
    "2.6.33",
    "5.9",
    "6.1",
    "6.18",
];

/// A rule of `name` changed.
fn changed(name: &str, change: impl FnOnce(&mut Rules)) -> Rules {
    let mut sw = era(name);
    change(&mut sw);
    sw
}

/// kswapd of node 0, asleep.
fn daemon(m: &mut Machine) -> Kswapd {
    let mut k = Kswapd::new(NodeId(0));
    assert_eq!(m.run(&mut k, Answer::Go), Need::Sleep(None));
    k
}

/// Asks kswapd for a block of `order`, by a request that cannot wait.
fn ask(m: &mut Machine, order: u8) {
    let gfp = Gfp::KERNEL - Gfp::DIRECT_RECLAIM;
    if let Begun::Allocation(a) = m.begin_alloc(order, gfp, Context::default()).unwrap() {
        finish(m, a).0.ok();
    }
}

/// Takes pages, whatever the marks, until at most `left` are free.
fn drain_to(m: &mut Machine, left: u64) {
    while m.zone().free_counter > left as i64 {
        m.alloc(0, Gfp::KERNEL | Gfp::MEMALLOC).unwrap();
    }
}

/// Runs kswapd while all that it frees is allocated, until `enough` says so or it sleeps. Returns how
/// many pages each pass looked at.
fn keep_busy(m: &mut Machine, enough: impl Fn(&Machine) -> bool) -> Vec<u64> {
    let mut k = Kswapd::new(NodeId(0));
    m.run(&mut k, Answer::Go);
    let a = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
    finish(m, a).0.unwrap();
    let (mut passes, mut answer) = (vec![], Answer::Go);
    for _ in 0..1_000_000 {
        let need = m.run(&mut k, answer);
        while m.zone().free_counter > m.zone().marks.low as i64 {
            m.alloc(0, Gfp::KERNEL | Gfp::MEMALLOC).unwrap();
        }
        match need {
            Need::Shrink { scanned, .. } => passes.push(scanned),
            Need::Sleep(_) => return passes,
            _ => {}
        }
        if enough(m) {
            return passes;
        }
        answer = m.meet(need);
    }
    panic!("kswapd neither sleeps nor gets on")
}
