//! A machine that is busy: tasks in the slow path, kswapd and kcompactd in turns.

use super::scenes::{MOV, UNM, request};
use super::world::*;
use unfrag_eras::compact::Kcompactd;
use unfrag_eras::drive::Operation;
use unfrag_eras::migrate::{Migration, MoveVerdict};
use unfrag_eras::reclaim::{Answer, Context, Kswapd, Lru, Need, PageFlags, Step};
use unfrag_eras::{Allocation, Begun, Gfp, NodeId, Pfn};

/// A machine whose memory is cache, with tasks that want more, and kswapd.
pub(crate) struct Busy {
    pub(crate) kswapd: Kswapd,
    pub(crate) answer: Option<Answer>,
    pub(crate) kcompactd: Kcompactd,
    pub(crate) kcompactd_answer: Option<Answer>,
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
            kcompactd: Kcompactd::new(NodeId(0)),
            kcompactd_answer: Some(Answer::Go),
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
            Step::Need(Need::Migrate) => {
                let migration = *self.tasks[i].0.migration();
                self.tasks[i].1 = self.migrate(m, &migration);
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

    /// kcompactd works, or sleeps; a sleep with a limit ends.
    pub(crate) fn step_kcompactd(&mut self, m: &mut M) {
        let woken = std::mem::take(&mut m.host_mut().compaction_woken);
        let answer = match self.kcompactd_answer.take() {
            Some(answer) => answer,
            None if woken => Answer::Left(1),
            None => return,
        };
        let cpu = m.host().cpu;
        let need = self.kcompactd.run(m, cpu, answer);
        self.kcompactd_answer = match need {
            Need::Migrate => {
                let migration = *self.kcompactd.migration();
                Some(self.migrate(m, &migration))
            }
            need => {
                see(m, Observation::Need(need));
                match need {
                    Need::Sleep(None) => None,
                    Need::Sleep(Some(_)) => Some(Answer::Left(0)),
                    _ => Some(Answer::Go),
                }
            }
        };
    }

    /// Asks the owners of some pages to move them; most do.
    fn migrate(&mut self, m: &mut M, migration: &Migration) -> Answer {
        let verdicts = migration.ask(|ask| {
            see(
                m,
                Observation::Move(*ask, migration.may_wait, migration.may_write),
            );
            if m.host_mut().chance.one_in(12) {
                return MoveVerdict::Busy;
            }
            // Cache that was reclaimed may still be listed, also at a frame that is now held.
            let mut places = self.held.iter_mut().map(|(p, _)| p);
            match places.find(|p| **p == ask.from) {
                Some(place) => *place = ask.to,
                None => {
                    let cached = self.cache.iter_mut().filter(|p| **p == ask.from);
                    cached.for_each(|p| *p = ask.to);
                }
            }
            MoveVerdict::Moved
        });
        Answer::Migrated(verdicts)
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
