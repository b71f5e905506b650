//! The situations that a run meets.

use super::support::zone;
use super::world::*;
use unfrag::drive::Operation;
use unfrag::reclaim::{Answer, Context, Kswapd, Lru, Need, PageFlags, Step};
use unfrag::{Allocation, Begun, CpuId, Gfp, NodeId, Pfn, Rules, Sysctl, ZoneConfig, ZoneKind};

pub(crate) const UNM: Gfp = Gfp::KERNEL;
pub(crate) const REC: Gfp = Gfp::KERNEL.union(Gfp::RECLAIMABLE);
pub(crate) const MOV: Gfp = Gfp::HIGHUSER_MOVABLE;
pub(crate) const ATOMIC: Gfp = Gfp::HIGH.union(Gfp::KSWAPD_RECLAIM);
pub(crate) const NOWAIT: Gfp = Gfp::KSWAPD_RECLAIM;

/// A request of a mobility and urgency by chance.
pub(crate) fn request(c: &mut Chance) -> (u8, Gfp) {
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
pub(crate) fn machine() -> Vec<ZoneConfig> {
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
pub(crate) fn churn(m: &mut M, c: &mut Chance) {
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
                    see(m, Observation::Got(Ok(p)));
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
pub(crate) struct Busy {
    pub(crate) kswapd: Kswapd,
    pub(crate) answer: Option<Answer>,
    pub(crate) tasks: Vec<(Allocation, Answer)>,
    pub(crate) cache: Vec<Pfn>,
    pub(crate) held: Vec<(Pfn, u8)>,
    /// Most of what is asked for cannot be reclaimed.
    pub(crate) starved: bool,
    /// Nothing comes from elsewhere, be it caches or a process that ends.
    pub(crate) hopeless: bool,
}

impl Busy {
    pub(crate) fn new(starved: bool) -> Busy {
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
    pub(crate) fn got(&mut self, m: &mut M, c: &mut Chance, pfn: Pfn, order: u8, gfp: Gfp) {
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
    pub(crate) fn meet(&mut self, m: &mut M, c: &mut Chance, need: Need) -> Answer {
        see(m, Observation::Need(need));
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

    pub(crate) fn begin(&mut self, m: &mut M, c: &mut Chance) {
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

    pub(crate) fn begin_as(
        &mut self,
        m: &mut M,
        c: &mut Chance,
        order: u8,
        gfp: Gfp,
        context: Context,
    ) {
        match m.begin(&ask_for(m, 0, order, gfp).by(context)) {
            Ok(Begun::Got(p)) => {
                see(m, Observation::Got(Ok(p)));
                self.got(m, c, p, order, gfp);
            }
            Ok(Begun::Allocation(a)) => self.tasks.push((a, Answer::Go)),
            Err(e) => see(m, Observation::Got(Err(e))),
        }
    }

    pub(crate) fn step_task(&mut self, m: &mut M, c: &mut Chance) {
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
                see(m, Observation::Got(got));
                let (task, _) = self.tasks.swap_remove(i);
                if let Ok(p) = got {
                    self.got(m, c, p, task.order().0, task.gfp());
                }
            }
        }
    }

    pub(crate) fn step_kswapd(&mut self, m: &mut M, c: &mut Chance) {
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
                see(m, Observation::Need(need));
                None
            }
            Need::Sleep(Some(ms)) => {
                see(m, Observation::Need(need));
                Some(Answer::Left(c.of(&[0, 0, ms / 3])))
            }
            need => Some(self.meet(m, c, need)),
        };
    }

    /// Those that may use all there is take what is left for those that reclaim.
    pub(crate) fn use_up(&mut self, m: &mut M) {
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
    pub(crate) fn touch(&mut self, m: &mut M, c: &mut Chance) {
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

pub(crate) fn reclaim(m: &mut M, c: &mut Chance, starved: bool) {
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
pub(crate) fn hopeless(m: &mut M, c: &mut Chance) {
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

pub(crate) const SCENES: [&str; 7] = [
    "hopeless",
    "churn",
    "churn, low marks",
    "reclaim",
    "reclaim, one zone",
    "starved",
    "large",
];
pub(crate) const SEEDS: u64 = 6;

/// One run of a scene, written down or held against another.
pub(crate) fn run<'a>(
    scene: &str,
    rules: &Rules,
    by: (u64, Option<&'a [Observation]>),
) -> Record<'a> {
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
