//! Ranges of any size, and memory that goes and comes at run time. `spec: 1.2, 5`
//!
//! - `claims`: a given range: what it takes, what it leaves alone, and why it is refused.
//! - `runs`: any run of a length: the cheapest one, by brute force.
//! - `hotplug`: memory offline and online.
//!
//! What gets in the way of a claim at each step is with the faults of compaction.

mod claims;
mod hotplug;
mod runs;

use super::flips::world::Chance;
use super::support::*;
use std::collections::{BTreeMap, BTreeSet};
use unfrag_eras::contig::Obstacle;
use unfrag_eras::drive::{Operation, World, drive};
use unfrag_eras::frame::{FrameKind, OwnerId};
use unfrag_eras::migrate::{Migration, MoveVerdict, MoveVerdicts};
use unfrag_eras::reclaim::{Answer, Eviction, Lru, Need, PageFlags, Step, Verdict, Verdicts};
use unfrag_eras::{Claim, ClaimError, CpuId, Manager, MigrateType, NodeId, Offline, OnlineError};
use unfrag_eras::{Order, Pfn, ZoneConfig, ZoneId, ZoneKind};

/// Every kind of placement, per-CPU lists and watermarks.
const ERAS: [&str; 7] = ["2.6.14", "V19", "2.6.24", "2.6.32", "5.9", "6.1", "6.18"];

/// A manager, and the owner of all its movable pages.
struct Owned {
    m: M,
    /// First frame and order of each page, by its key.
    pages: BTreeMap<u32, (Pfn, u8)>,
    /// Pages that their owner does not let go.
    busy: BTreeSet<u32>,
    /// It lets go of its pages, as a cache does.
    is_cache: bool,
    moved: u64,
}

impl Owned {
    fn new(m: M) -> Owned {
        Owned {
            m,
            pages: BTreeMap::new(),
            busy: BTreeSet::new(),
            is_cache: false,
            moved: 0,
        }
    }

    /// The next page, if there is one.
    fn grow(&mut self, order: u8) -> Option<u32> {
        let page = self.m.alloc(order, MOV).ok()?;
        let key = self.pages.last_key_value().map_or(1, |(k, _)| k + 1);
        self.own(page, order, key);
        Some(key)
    }

    fn own(&mut self, page: Pfn, order: u8, key: u32) {
        let owner = OwnerId::new(2).expect("an owner");
        assert!(self.m.pages().adopt(page, owner, key));
        self.m
            .pages()
            .lru_add(page, Lru::InactiveFile, PageFlags::empty());
        self.pages.insert(key, (page, order));
    }

    fn drop_page(&mut self, key: u32) {
        let (page, order) = self.pages.remove(&key).expect("a page");
        self.m.free(page, order).expect("it is in use");
    }

    fn claim(&mut self, mut claim: Claim) -> Result<Pfn, ClaimError> {
        let got = drive(self, &mut claim);
        self.check();
        got
    }

    /// Every page is where its owner believes it is, and nothing is set apart.
    fn check(&self) {
        self.m.check();
        for (key, (page, order)) in &self.pages {
            let f = self.m.inspect().frame(*page).expect("a frame");
            let is = (f.kind, f.order.0, f.key);
            assert_eq!(is, (FrameKind::Used, *order, *key), "{page:?}");
        }
        let apart = MigrateType::Isolate as usize;
        let zones = self.m.inspect().zones();
        zones.for_each(|z| assert_eq!(self.m.inspect().blocks_by_type(z)[apart], 0));
    }

    /// Frames from `start` on that are in use.
    fn used(&self, start: u64, frames: u64) -> u64 {
        let of = |p: u64| self.m.inspect().frame(Pfn(p)).expect("a frame").kind;
        let (mut used, mut last) = (0, of(start));
        for p in start..start + frames {
            match of(p) {
                FrameKind::Tail => {}
                kind => last = kind,
            }
            used += u64::from(last == FrameKind::Used);
        }
        used
    }
}

impl World for Owned {
    type Host = Recorder;

    fn locked<T>(&mut self, f: impl FnOnce(&mut Manager<'_, Recorder>, CpuId) -> T) -> T {
        let cpu = self.m.cpu;
        f(&mut self.m, cpu)
    }

    fn meet(&mut self, need: Need) -> Answer {
        match need {
            Need::Shrink { .. } => Answer::Freed(0),
            Need::CongestionWait { .. } | Need::Throttle { .. } => Answer::Left(0),
            Need::PageWriteback(p) => {
                self.m.pages().end_writeback(p);
                Answer::Go
            }
            Need::Turn { .. } | Need::WakeFlushers(_) => Answer::Go,
            other => panic!("a claim needs {other:?}"),
        }
    }

    fn evict(&mut self, eviction: &Eviction) -> Verdicts {
        let Owned {
            pages, is_cache, ..
        } = self;
        eviction.ask(|ask| {
            if *is_cache && pages.remove(&ask.key).is_some() {
                Verdict::Released
            } else {
                Verdict::Busy
            }
        })
    }

    fn migrate(&mut self, migration: &Migration) -> MoveVerdicts {
        migration.ask(|ask| {
            if self.busy.contains(&ask.key) {
                return MoveVerdict::Busy;
            }
            let page = self.pages.get_mut(&ask.key).expect("a page");
            assert_eq!(*page, (ask.from, ask.order.0));
            page.0 = ask.to;
            self.moved += u64::from(ask.order.frames());
            MoveVerdict::Moved
        })
    }
}

/// Memory in which some pages of one owner stand, here and there.
fn half_full(era: &str, zones: &[ZoneConfig], seed: u64) -> Owned {
    let mut o = Owned::new(booted(zones, 2, rules(era), quiet()));
    while o.grow(0).is_some() {}
    let mut c = Chance(seed);
    let keys: Vec<u32> = o.pages.keys().copied().collect();
    for key in keys {
        if !c.one_in(3) {
            o.drop_page(key);
        }
    }
    o
}
