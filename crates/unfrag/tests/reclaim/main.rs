//! Reclaim: LRU lists, direct reclaim, kswapd, the retry loop, with a host of these tests that owns the
//! pages. `spec: linux-mm 4`

mod kswapd;
mod lru;
mod slow_path;
mod throttle;

use std::cell::RefCell;
use std::collections::BTreeSet;
use unfrag::page_alloc::{Attempt, Begun};
use unfrag::reclaim::{
    Answer, Class, Context, Kswapd, Lru, Need, PageFlags, Step, Throttle, Unmap, Written,
};
use unfrag::{
    AllocError, Config, Gfp, Host, Manager, MoveError, Pfn, Rules, Sysctl, ZoneConfig, ZoneKind,
    layout, preset,
};

/// A host whose pages can be taken, with a swap of some size and a device that may be congested.
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
    woken: Vec<u8>,
    /// Pages that were announced, and pages of which reclaim asked that they be unmapped.
    announced: RefCell<BTreeSet<Pfn>>,
    asked: BTreeSet<Pfn>,
}

impl Host for Owners {
    const PREFETCHES: bool = true;
    fn prefetch(&self, page: Pfn) {
        self.announced.borrow_mut().insert(page);
    }
    fn wake_kswapd(&mut self, _node: u8, order: u8) {
        self.woken.push(order);
    }
    fn try_to_unmap(&mut self, page: Pfn) -> Unmap {
        self.asked.insert(page);
        if self.in_swap.contains(&page) {
            return Unmap::Gone;
        }
        if self.swap == 0 {
            return Unmap::NoSpace;
        }
        self.swap -= 1;
        self.in_swap.insert(page);
        Unmap::Gone
    }
    fn writepage(&mut self, page: Pfn, _sync: bool) -> Written {
        if self.congested {
            return Written::Congested;
        }
        if self.placed.as_mut().is_some_and(|p| p.insert(page)) {
            return Written::Later;
        }
        self.writing.push(page);
        Written::Started
    }
    fn release_page(&mut self, page: Pfn) -> bool {
        self.in_swap.remove(&page);
        self.released += 1;
        true
    }
    fn nr_swap_pages(&self) -> u64 {
        self.swap
    }
}

const FRAMES: u64 = 16384;

fn with(sw: Rules, host: Owners, f: impl FnOnce(&mut Manager<Owners>)) {
    with_frames(FRAMES, sw, host, f);
}

fn with_frames(n: u64, sw: Rules, host: Owners, f: impl FnOnce(&mut Manager<Owners>)) {
    let zones = [ZoneConfig {
        node: 0,
        kind: ZoneKind::Normal,
        start: Pfn(0x400),
        spanned: n,
        present: n,
        managed: n,
    }];
    let config = Config {
        zones: &zones,
        cpus: 1,
        rules: sw,
        sysctl: Sysctl::default(),
    };
    let mut memory = vec![0; layout(&config).unwrap().words];
    let mut m = Manager::boot(&config, host, &mut memory).unwrap();
    f(&mut m);
    m.validate().unwrap();
}

fn era(name: &str) -> Rules {
    preset(name).unwrap().rules
}

/// Fills memory down to the low mark with page cache, and returns its pages.
fn fill(m: &mut Manager<Owners>, flags: PageFlags) -> Vec<Pfn> {
    fill_as(m, true, flags)
}

/// The same with page cache (`file`) or anonymous pages.
fn fill_as(m: &mut Manager<Owners>, file: bool, flags: PageFlags) -> Vec<Pfn> {
    let mut pages = Vec::new();
    while let Ok(Begun::Got(p)) = m.begin_alloc(0, 0, Gfp::HIGHUSER_MOVABLE, Context::default()) {
        m.lru_add_new(p, file);
        m.set_page_flags(p, flags);
        pages.push(p);
    }
    pages
}

/// Takes what is free, whatever the marks, and gives every other page back.
fn leave_single_pages(m: &mut Manager<Owners>) {
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

/// Steps an attempt as a patient host does; writes end when somebody waits. Returns what it needed.
fn finish(m: &mut Manager<Owners>, mut a: Attempt) -> (Result<Pfn, AllocError>, Vec<Need>) {
    let mut needs = Vec::new();
    let mut answer = Answer::Go;
    for _ in 0..1_000_000 {
        match a.step(m, answer) {
            Step::Done(got) => return (got, needs),
            Step::Need(need) => {
                answer = meet(m, need);
                needs.push(need);
            }
        }
    }
    panic!("the attempt does not end: {:?}", needs.last());
}

fn meet(m: &mut Manager<Owners>, need: Need) -> Answer {
    match need {
        Need::Shrink { .. } => Answer::Freed(0),
        Need::CongestionWait { .. } | Need::Throttle { .. } | Need::PageWriteback(_) => {
            for p in std::mem::take(&mut m.host_mut().writing) {
                m.end_page_writeback(p);
            }
            Answer::Left(0)
        }
        Need::Oom => Answer::Killed(false),
        _ => Answer::Go,
    }
}

fn begin(m: &mut Manager<Owners>, order: u8, gfp: Gfp, cx: Context) -> Attempt {
    match m.begin_alloc(0, order, gfp, cx).unwrap() {
        Begun::Attempt(a) => a,
        Begun::Got(p) => panic!("free memory served it: {p:?}"),
    }
}

/// A single page, however long it takes.
fn alloc(m: &mut Manager<Owners>, gfp: Gfp) -> Pfn {
    match m.begin_alloc(0, 0, gfp, Context::default()).unwrap() {
        Begun::Got(p) => p,
        Begun::Attempt(a) => finish(m, a).0.unwrap(),
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
fn daemon(m: &mut Manager<Owners>) -> Kswapd {
    let mut k = Kswapd::new(0);
    assert_eq!(k.step(m, Answer::Go), Need::Sleep(None));
    k
}

/// Asks kswapd for a block of `order`, by a request that cannot wait.
fn ask(m: &mut Manager<Owners>, order: u8) {
    let gfp = Gfp::KERNEL - Gfp::DIRECT_RECLAIM;
    if let Begun::Attempt(a) = m.begin_alloc(0, order, gfp, Context::default()).unwrap() {
        finish(m, a).0.ok();
    }
}

/// Takes pages, whatever the marks, until at most `left` are free.
fn drain_to(m: &mut Manager<Owners>, left: u64) {
    while m.zone_view(0).free_counter > left as i64 {
        m.alloc(0, Gfp::KERNEL | Gfp::MEMALLOC).unwrap();
    }
}

/// Runs kswapd while somebody takes all that it frees, until `enough` says so or it sleeps. Returns how
/// many pages each pass looked at.
fn keep_busy(m: &mut Manager<Owners>, enough: impl Fn(&Manager<Owners>) -> bool) -> Vec<u64> {
    let mut k = Kswapd::new(0);
    k.step(m, Answer::Go);
    let a = begin(m, 0, Gfp::HIGHUSER_MOVABLE, Context::default());
    finish(m, a).0.unwrap();
    let (mut passes, mut answer) = (vec![], Answer::Go);
    for _ in 0..1_000_000 {
        let need = k.step(m, answer);
        while m.zone_view(0).free_counter > m.zone_view(0).marks.low as i64 {
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
        answer = meet(m, need);
    }
    panic!("kswapd neither sleeps nor gets on")
}
