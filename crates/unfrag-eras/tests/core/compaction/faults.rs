//! Faults injected into migration. After each one every invariant holds, no frame is lost, and every page has its
//! content. `spec: 5, 5.1`
//!
//! The seed is printed. `UNFRAG_SEED=n` sets another one, `UNFRAG_FAULTS=n` the number of faults.

use super::super::flips::world::Chance;
use super::super::support::*;
use std::collections::BTreeMap;
use unfrag_eras::compact::{Compaction, Mode, Outcome};
use unfrag_eras::drive::Operation;
use unfrag_eras::frame::{FrameKind, OwnerId};
use unfrag_eras::lab::RunRequest;
use unfrag_eras::migrate::{Migration, MoveAsk, MoveVerdict};
use unfrag_eras::reclaim::{
    Answer, Content, Eviction, Lru, Need, PageFlags, Step, Verdict, Verdicts,
};
use unfrag_eras::trace::Event;
use unfrag_eras::{
    Claim, ClaimError, CpuId, Gfp, MigrateType, NodeId, Offline, Order, Pfn, ZoneId, ZoneKind,
};

const ERAS: [&str; 5] = ["2.6.36", "5.6", "5.9", "6.1", "6.18"];
const PAGES: u64 = 2500;

/// A page as its owner knows it.
#[derive(Clone, Copy)]
struct Page {
    at: u64,
    order: u8,
    on_lru: bool,
}

/// Something that moves pages.
enum Run {
    Compaction(Compaction),
    Claim(Claim),
    Offline(Offline),
}

impl Run {
    fn migration(&self) -> Migration {
        *match self {
            Run::Compaction(run) => run.migration(),
            Run::Claim(run) => run.migration(),
            Run::Offline(run) => run.migration(),
        }
    }

    fn eviction(&self) -> Eviction {
        *match self {
            Run::Compaction(run) => run.eviction(),
            Run::Claim(run) => run.eviction(),
            Run::Offline(run) => run.eviction(),
        }
    }

    fn abort(self, m: &mut M, cpu: CpuId, answer: Answer) {
        match self {
            Run::Compaction(run) => run.abort(m, cpu, answer),
            Run::Claim(run) => run.abort(m, cpu, answer),
            Run::Offline(run) => run.abort(m, cpu, answer),
        }
    }
}

/// What was seen of runs: by the owners, and in events.
#[derive(Default)]
struct Seen {
    moved: u64,
    isolated: u64,
    migrate_scanned: u64,
    free_scanned: u64,
}

struct Sim {
    m: M,
    c: Chance,
    /// Pages by their keys; a page is gone once its owner has freed it.
    pages: BTreeMap<u32, Page>,
    /// Blocks of other owners, which cannot be moved.
    fixed: Vec<(Pfn, u8)>,
    /// What is stored in each frame: the key of a page.
    memory: BTreeMap<u64, u32>,
    next_key: u32,
    /// Frames of pages that were freed while a run may have held them: they are free once the runs are over.
    may_linger: u64,
    runs: Vec<(Run, Answer)>,
    /// Ranges that were claimed, and how long they are.
    claimed: Vec<(Pfn, u64)>,
    /// Pageblocks that are offline.
    offline: Vec<Pfn>,
    claims: u64,
    seen: Seen,
    faults: u64,
}

impl Sim {
    fn new(era: &str, seed: u64) -> Sim {
        let zones = [zone(0, ZoneKind::Normal, BASE, PAGES)];
        let m = booted(&zones, 2, rules(era), quiet());
        let mut sim = Sim {
            m,
            c: Chance(seed),
            pages: BTreeMap::new(),
            fixed: Vec::new(),
            memory: BTreeMap::new(),
            next_key: 1,
            may_linger: 0,
            runs: Vec::new(),
            claimed: Vec::new(),
            offline: Vec::new(),
            claims: 0,
            seen: Seen::default(),
            faults: 0,
        };
        while sim.grow() {}
        sim
    }

    /// One more block in use; false if there is none.
    fn grow(&mut self) -> bool {
        let (order, movable) = match self.c.below(60) {
            0 => (0, false),
            1 => (self.c.below(3) as u8, true),
            _ => (0, true),
        };
        let gfp = if movable { MOV } else { UNM } | Gfp::NORETRY;
        let Ok(p) = self.m.alloc(order, gfp) else {
            return false;
        };
        if !movable {
            self.fixed.push((p, order));
            return true;
        }
        let (key, on_lru) = (self.next_key, !self.c.one_in(8));
        self.next_key += 1;
        let owner = OwnerId::new(3).expect("an owner");
        assert!(self.m.pages().adopt(p, owner, key));
        if on_lru {
            let lru = self.c.of(&[
                Lru::InactiveAnon,
                Lru::ActiveAnon,
                Lru::InactiveFile,
                Lru::ActiveFile,
                Lru::Unevictable,
            ]);
            self.m.pages().lru_add(p, lru, PageFlags::empty());
        }
        let (at, page) = (p.0, p.0..p.0 + (1 << order));
        page.for_each(|f| assert_eq!(self.memory.insert(f, key), None, "{f:#x} is in use"));
        self.pages.insert(key, Page { at, order, on_lru });
        true
    }

    fn any_page(&mut self) -> Option<u32> {
        if self.pages.is_empty() {
            return None;
        }
        let n = self.c.below(self.pages.len() as u64) as usize;
        self.pages.keys().nth(n).copied()
    }

    /// The owner of a page frees it, by the frame where it is.
    fn drop_page(&mut self, key: u32) {
        let Some(page) = self.pages.remove(&key) else {
            return;
        };
        self.forget_content(key, page.at, page.order);
        self.m.free(Pfn(page.at), page.order).expect("it is in use");
        assert!(self.m.free(Pfn(page.at), page.order).is_err(), "only once");
        if !self.runs.is_empty() {
            self.may_linger += 1 << page.order;
        }
    }

    fn forget_content(&mut self, key: u32, at: u64, order: u8) {
        for f in at..at + (1 << order) {
            assert_eq!(self.memory.remove(&f), Some(key), "content of {f:#x}");
        }
    }

    fn copy(&mut self, ask: &MoveAsk) {
        let (from, to) = (ask.from.0, ask.to.0);
        self.forget_content(ask.key, from, ask.order.0);
        for f in to..to + (1 << ask.order.0) {
            assert_eq!(self.memory.insert(f, ask.key), None, "{f:#x} is in use");
        }
        self.pages.get_mut(&ask.key).expect("a page").at = to;
    }

    /// What the owner says of one page, and does with it.
    fn answer(&mut self, ask: &MoveAsk) -> MoveVerdict {
        match self.pages.get(&ask.key) {
            None => {
                // It was freed after it was isolated.
                return if self.c.one_in(2) {
                    MoveVerdict::Moved
                } else {
                    MoveVerdict::Busy
                };
            }
            Some(page) => assert_eq!((page.at, page.order), (ask.from.0, ask.order.0)),
        }
        match self.c.below(10) {
            0 | 1 => {
                self.faults += 1;
                MoveVerdict::Busy
            }
            2 => {
                // Freed while it is asked about.
                self.faults += 1;
                self.drop_page(ask.key);
                self.c.of(&[MoveVerdict::Moved, MoveVerdict::Busy])
            }
            3 => {
                // Freed at its new place, before the run knows that it is there.
                self.faults += 1;
                self.copy(ask);
                self.drop_page(ask.key);
                MoveVerdict::Moved
            }
            4 => {
                // Freed at its new place after others were asked.
                self.faults += 1;
                self.copy(ask);
                self.check_between();
                MoveVerdict::Moved
            }
            _ => {
                self.copy(ask);
                MoveVerdict::Moved
            }
        }
    }

    fn begin(&mut self) {
        match self.c.below(4) {
            0 => return self.begin_claim(),
            1 => return self.begin_offline(),
            _ => {}
        }
        let run = RunRequest {
            zone: ZoneId(0),
            order: self
                .c
                .of(&[None, Some(Order(9)), Some(Order(5)), Some(Order(3))]),
            migratetype: self.c.of(&[MigrateType::Movable, MigrateType::Unmovable]),
            mode: self.c.of(&[Mode::Async, Mode::SyncLight, Mode::Sync]),
            direct: self.c.one_in(2),
            whole: self.c.one_in(2),
        };
        let compaction = self.m.lab().compaction(&run);
        self.runs.push((Run::Compaction(compaction), Answer::Go));
    }

    fn begin_claim(&mut self) {
        let claim = if self.c.one_in(3) {
            let frames = 1 + self.c.below(1200) as u32;
            Claim::run(NodeId(0), frames, Order(self.c.below(12) as u8))
        } else {
            let at = self.c.below(PAGES);
            let frames = self.c.of(&[1, 64, 512, 700]);
            Claim::range(Pfn(BASE + at), frames.min(PAGES - at))
        };
        self.runs.push((Run::Claim(claim), Answer::Go));
    }

    fn begin_offline(&mut self) {
        let block = Pfn(BASE + 512 * self.c.below(PAGES / 512));
        self.runs
            .push((Run::Offline(Offline::new(block, 512)), Answer::Go));
    }

    /// Steps one of the runs; it may be killed instead.
    fn step(&mut self) {
        if self.runs.is_empty() {
            return self.begin();
        }
        let i = self.c.below(self.runs.len() as u64) as usize;
        let cpu = cpu_id(self.c.below(2));
        if self.c.one_in(60) {
            self.faults += 1;
            let (run, answer) = self.runs.swap_remove(i);
            run.abort(&mut self.m, cpu, answer);
            return;
        }
        let answer = std::mem::replace(&mut self.runs[i].1, Answer::Go);
        let need = match &mut self.runs[i].0 {
            Run::Compaction(run) => match run.step(&mut *self.m, cpu, answer) {
                Step::Need(need) => Some(need),
                Step::Done(outcome) => {
                    assert_ne!(outcome, Outcome::Continue);
                    // A block that came together for it goes back.
                    let done = std::mem::replace(run, Compaction::whole_zone(ZoneId(0)));
                    done.abort(&mut self.m, cpu, Answer::Go);
                    None
                }
            },
            Run::Claim(run) => match run.step(&mut *self.m, cpu, answer) {
                Step::Need(need) => Some(need),
                Step::Done(Ok(pfn)) => {
                    self.claims += 1;
                    let frames = run.frames();
                    self.claimed.push((pfn, frames));
                    for f in pfn.0..pfn.0 + frames {
                        assert_eq!(self.memory.get(&f), None, "{f:#x} has no content");
                    }
                    None
                }
                Step::Done(Err(why)) => {
                    assert_ne!(why, ClaimError::NotInOneZone(Pfn(BASE)));
                    None
                }
            },
            Run::Offline(run) => match run.step(&mut *self.m, cpu, answer) {
                Step::Need(need) => Some(need),
                Step::Done(done) => {
                    if done.is_ok() {
                        self.offline.push(run.start());
                    }
                    None
                }
            },
        };
        match need {
            None => {
                self.runs.swap_remove(i);
            }
            Some(Need::Evict) => {
                self.faults += 1;
                self.runs[i].1 = Answer::Evicted(self.evict(i));
            }
            Some(Need::Migrate) => {
                let asked = self.runs[i].0.migration();
                assert!((1..=32).contains(&asked.asks().len()));
                for ask in asked.asks() {
                    // The owner, or anybody else, frees what it has not: refused.
                    let taken = self.m.free(ask.to, ask.order.0 + 1);
                    assert!(taken.is_err(), "a target is nobody's");
                    if self.c.one_in(12) {
                        self.faults += 1;
                        self.drop_page(ask.key);
                    }
                }
                self.check_between();
                let verdicts = asked.ask(|ask| {
                    let verdict = self.answer(ask);
                    if verdict == MoveVerdict::Moved {
                        self.seen.moved += u64::from(ask.order.frames());
                    }
                    verdict
                });
                self.runs[i].1 = Answer::Migrated(verdicts);
            }
            Some(Need::Shrink { .. }) => self.runs[i].1 = Answer::Freed(0),
            Some(Need::CongestionWait { .. } | Need::Throttle { .. }) => {
                self.runs[i].1 = Answer::Left(0);
            }
            Some(Need::Turn { .. } | Need::WakeFlushers(_) | Need::PageWriteback(_)) => {}
            Some(need) => panic!("a run needs {need:?}"),
        }
    }

    /// Owners let go of some of the pages that reclaim asks for.
    fn evict(&mut self, run: usize) -> Verdicts {
        let asked = self.runs[run].0.eviction();
        asked.ask(|ask| {
            if ask.content != Content::Clean || self.c.one_in(3) {
                return Verdict::Keep;
            }
            if let Some(page) = self.pages.remove(&ask.key) {
                self.forget_content(ask.key, page.at, page.order);
                self.may_linger += 1 << page.order;
            }
            Verdict::Released
        })
    }

    /// A range that was claimed is given back, or memory comes online again.
    fn undo_claim(&mut self) {
        if let Some((pfn, frames)) = self.claimed.pop() {
            let cpu = cpu_id(self.c.below(2));
            let m: &mut M = &mut self.m;
            let beyond = m.free_contig_range(cpu, pfn, frames + PAGES);
            assert!(beyond.is_err(), "not more than was claimed");
            m.free_contig_range(cpu, pfn, frames).expect("it is in use");
        } else if let Some(pfn) = self.offline.pop() {
            self.m.online(pfn, 512).expect("it is offline");
            assert!(self.m.online(pfn, 512).is_err(), "only once");
        }
    }

    /// Another CPU does something between two steps.
    fn interfere(&mut self) {
        self.faults += 1;
        let cpu = self.c.below(2);
        self.m.on(cpu);
        match self.c.below(12) {
            0..4 => {
                for _ in 0..self.c.below(12) {
                    self.grow();
                }
            }
            4..8 => {
                for _ in 0..self.c.below(12) {
                    if let Some(key) = self.any_page() {
                        self.drop_page(key);
                    }
                }
            }
            8 if self.c.one_in(2) => self.undo_claim(),
            8 => {
                let n = self.c.below(self.fixed.len().max(1) as u64) as usize;
                if n < self.fixed.len() {
                    let (p, order) = self.fixed.swap_remove(n);
                    self.m.free(p, order).expect("it is in use");
                }
            }
            9 => self.m.drain(cpu, 0),
            10 => {
                // A page is pinned for a while, or being written.
                let flag = self.c.of(&[PageFlags::LOCKED, PageFlags::WRITEBACK]);
                if let Some(key) = self.any_page() {
                    let p = Pfn(self.pages[&key].at);
                    if self.m.inspect().page_flags(p).contains(flag) {
                        self.m.pages().clear(p, flag);
                    } else if self.c.one_in(2) {
                        self.m.pages().set(p, flag);
                    }
                }
            }
            _ if self.runs.len() < 2 => self.begin(),
            _ => self.m.vmstat_update(cpu),
        }
    }

    /// What holds at any time.
    fn check_between(&mut self) {
        let m = &self.m;
        m.check();
        let view = m.zone_view(0);
        let (mut used, mut at) = (0, BASE);
        while at < BASE + PAGES {
            let f = m.inspect().frame(Pfn(at)).expect("a frame");
            used += u64::from(f.kind == FrameKind::Used) << f.order.0;
            at += 1 << f.order.0;
        }
        let offline = 512 * self.offline.len() as u64;
        assert_eq!(view.config.managed, PAGES - offline);
        let online = view.free_pages + m.pcp_pages(0) + used;
        assert_eq!(online, PAGES - offline, "all frames");
        let owned = self.owned();
        assert!(used >= owned, "{used} frames in use, {owned} have owners");
        let lru = m.inspect().lru(ZoneId(0));
        let listed = self.pages.values().filter(|p| p.on_lru);
        let listed: u64 = listed.map(|p| 1 << p.order).sum();
        // Isolated pages count apart; those locked in memory do not.
        let counted: u64 = lru.pages.iter().chain(&lru.isolated).sum();
        if self.runs.is_empty() {
            assert_eq!(used, owned, "runs have let go of all");
            assert_eq!(lru.isolated, [0; 2]);
            assert_eq!(counted, listed);
            self.may_linger = 0;
        } else {
            assert!(counted <= listed + self.may_linger);
        }
    }

    fn owned(&self) -> u64 {
        let claimed: u64 = self.claimed.iter().map(|(_, n)| n).sum();
        let fixed = self.fixed.iter().map(|(_, o)| 1u64 << o);
        let pages = self.pages.values().map(|p| 1u64 << p.order);
        fixed.chain(pages).sum::<u64>() + claimed
    }

    /// What holds while no run is under way.
    fn check_at_rest(&mut self) {
        self.check_between();
        for (key, page) in &self.pages {
            let f = self.m.inspect().frame(Pfn(page.at)).expect("a frame");
            let owner = OwnerId::new(3).expect("an owner");
            let is = (f.kind, f.order.0, f.owner, f.key);
            assert_eq!(is, (FrameKind::Used, page.order, owner, *key));
            assert_eq!(self.memory[&page.at], *key, "its content is with it");
            let on_lru = self.m.inspect().lru_of(Pfn(page.at)).is_some();
            assert_eq!(on_lru, page.on_lru);
        }
        for event in self.m.host_mut().events.drain(..) {
            match event {
                Event::CompactionIsolateMigratepages {
                    nr_scanned,
                    nr_taken,
                    ..
                } => {
                    self.seen.migrate_scanned += u64::from(nr_scanned);
                    self.seen.isolated += u64::from(nr_taken);
                }
                Event::CompactionIsolateFreepages { nr_scanned, .. } => {
                    self.seen.free_scanned += u64::from(nr_scanned);
                }
                _ => {}
            }
        }
        let n = *self.m.inspect().compact_counters();
        assert_eq!(n.pgmigrate_success, self.seen.moved, "pages moved");
        assert_eq!(
            n.pgmigrate_success + n.pgmigrate_fail,
            self.seen.isolated,
            "each isolated page has moved or has not"
        );
        assert_eq!(n.compact_migrate_scanned, self.seen.migrate_scanned);
        assert_eq!(n.compact_free_scanned, self.seen.free_scanned);
        assert!(n.compact_isolated >= self.seen.isolated);
        (0..2).for_each(|cpu| self.m.vmstat_update(cpu));
        let view = self.m.zone_view(0);
        assert_eq!(view.free_counter, view.free_pages as i64);
        let apart = MigrateType::Isolate as usize;
        assert_eq!(self.m.blocks_by_type(0)[apart], 0, "nothing is set apart");
    }
}

#[test]
fn a_hundred_thousand_faults_lose_no_frame_and_no_content() {
    let (first, wanted) = (setting("UNFRAG_SEED", 1), setting("UNFRAG_FAULTS", 100_000));
    let (mut faults, mut moved, mut claims) = (0, 0, 0);
    for seed in first.. {
        let era = ERAS[seed as usize % ERAS.len()];
        println!("seed {seed}, {era}");
        let mut sim = Sim::new(era, seed);
        // Runs find something to do in memory that is full to about two thirds.
        for _ in 0..PAGES / 3 {
            if let Some(key) = sim.any_page() {
                sim.drop_page(key);
            }
        }
        sim.check_at_rest();
        for _ in 0..400 {
            if sim.c.one_in(3) {
                sim.interfere();
            } else {
                sim.step();
            }
            sim.check_between();
            if sim.runs.is_empty() {
                sim.check_at_rest();
            }
        }
        while !sim.runs.is_empty() {
            sim.step();
        }
        sim.check_at_rest();
        while !sim.claimed.is_empty() || !sim.offline.is_empty() {
            sim.undo_claim();
        }
        sim.check_at_rest();
        (faults, moved) = (faults + sim.faults, moved + sim.seen.moved);
        claims += sim.claims;
        if faults >= wanted {
            break;
        }
    }
    assert!(moved > wanted / 10, "only {moved} pages were moved");
    assert!(claims > wanted / 1000, "only {claims} ranges were claimed");
    println!("{faults} faults, {moved} pages moved, {claims} ranges claimed");
}
