//! Everything that a memory can do, at random, beside a naive one that knows each frame: nodes in three areas, memory that
//! comes and goes, evacuators and reports under way, and requests that name where.

use super::memory::one_thread;
use super::{Chance, setting};
use crate::support::started;
use std::cell::RefCell;
use std::collections::BTreeMap;
use unfrag::lock_api::{GuardNoSend, RawMutex};
use unfrag::maps::EngineLayout;
use unfrag::moves::{Claimed, Evacuator, Goal, Limits, Move, Place};
use unfrag::{AllocError, Area, Local, Memory, MemoryConfig, NodeId, Report, Request};
use unfrag::{MigrateType, Order, Pfn};

/// A lock before which somebody else comes at times: what he does lies between any two locks of a call.
struct Lock(spin::Mutex<()>);

// SAFETY: it is the inner one.
unsafe impl RawMutex for Lock {
    const INIT: Lock = Lock(<spin::Mutex<()> as RawMutex>::INIT);
    type GuardMarker = GuardNoSend;
    fn lock(&self) {
        OTHER.with(|other| {
            // Not again while he is at it.
            let own = other.try_borrow_mut().ok();
            own.into_iter().for_each(|mut other| other.comes());
        });
        RawMutex::lock(&self.0);
    }
    fn try_lock(&self) -> bool {
        RawMutex::try_lock(&self.0)
    }
    unsafe fn unlock(&self) {
        // SAFETY: as the caller says.
        unsafe { RawMutex::unlock(&self.0) };
    }
}

thread_local! {
    static OTHER: RefCell<Other> = const { RefCell::new(Other::NONE) };
}

/// What somebody else has, and what he did since the test looked.
struct Other {
    memory: Option<&'static Memory<'static, Lock>>,
    c: Chance,
    has: Vec<(u64, u8)>,
    /// Each block, and whether he took it.
    did: Vec<(u64, u8, bool)>,
}

impl Other {
    const NONE: Other = Other {
        memory: None,
        c: Chance(0),
        has: Vec::new(),
        did: Vec::new(),
    };

    fn comes(&mut self) {
        let c = &mut self.c;
        let Some(m) = self.memory.filter(|_| c.below(3) == 0) else {
            return;
        };
        let (mt, order) = (c.of(&TYPES), c.of(&[0, 0, 3, 8, 9, 10]));
        let full = self.has.len() > 60;
        if !full
            && c.below(2) == 0
            && let Ok(p) = m.alloc(&Request::new(Order(order), mt))
        {
            self.has.push((p.0, order));
            self.did.push((p.0, order, true));
        } else if !self.has.is_empty() {
            let (p, order) = self
                .has
                .swap_remove(c.below(self.has.len() as u64) as usize);
            // SAFETY: frames are only numbers here.
            unsafe { m.free(Pfn(p), Order(order), mt) }.expect("in use");
            self.did.push((p, order, false));
        }
    }
}

const TYPES: [MigrateType; 3] = [
    MigrateType::Unmovable,
    MigrateType::Movable,
    MigrateType::Reclaimable,
];
const GIB: u64 = 1 << 18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Free,
    /// Somebody's: of a test, or of a value that is under way.
    Used,
}

/// Frames that are memory.
#[derive(Default)]
struct Model {
    of: BTreeMap<u64, Frame>,
    owned: BTreeMap<u64, (u8, MigrateType)>,
}

impl Model {
    /// What somebody else did meanwhile.
    fn meanwhile(&mut self) {
        let did = OTHER.with_borrow_mut(|o| std::mem::take(&mut o.did));
        for (p, order, took) in did {
            match took {
                true => self.take(p, 1 << order),
                false => self.give(p, 1 << order),
            }
        }
    }

    fn take(&mut self, at: u64, n: u64) {
        for p in at..at + n {
            let was = self.of.insert(p, Frame::Used);
            assert_eq!(was, Some(Frame::Free), "frame {p:#x}");
        }
    }

    fn give(&mut self, at: u64, n: u64) {
        for p in at..at + n {
            let was = self.of.insert(p, Frame::Free);
            assert_eq!(was, Some(Frame::Used), "frame {p:#x}");
        }
    }

    fn own(&mut self, at: Pfn, order: u8, mt: MigrateType) {
        assert_eq!(at.0 % (1 << order), 0);
        self.take(at.0, 1 << order);
        self.owned.insert(at.0, (order, mt));
    }

    /// The block that holds a frame.
    fn holder(&self, p: u64) -> Option<(u64, u8)> {
        let (&at, &(order, _)) = self.owned.range(..=p).next_back()?;
        (p < at + (1 << order)).then_some((at, order))
    }

    fn free(&self) -> u64 {
        self.of.values().filter(|&&f| f == Frame::Free).count() as u64
    }

    /// Whether an aligned run is free that ends before a limit, and that begins at frames for which `may` says so.
    fn has_run(&self, order: u8, limit: u64, may: impl Fn(u64) -> bool) -> bool {
        let n = 1u64 << order;
        let (mut next, mut run) = (0, 0);
        for (&p, &f) in &self.of {
            if p != next || p % n == 0 {
                run = 0;
            }
            next = p + 1;
            let starts = p % n == 0 || run > 0;
            run = if f == Frame::Free && starts {
                run + 1
            } else {
                0
            };
            if run == n && next <= limit && may(p) {
                return true;
            }
        }
        false
    }
}

struct Under<'m> {
    evacuators: Vec<Evacuator<'m, 'static, Lock>>,
    reports: Vec<Report<'m, 'static, Lock>>,
    claims: Vec<Claimed<'m, 'static, Lock>>,
    places: Vec<Place<'m, 'static, Lock>>,
}

fn area(start: u64, node: u8, is_low: bool) -> Area {
    Area {
        start: Pfn(start * GIB),
        frames: GIB,
        node: NodeId(node),
        shards: 1,
        is_low,
    }
}

/// The parts of each area that come and go, in blocks of 512 frames.
const BLOCKS: u64 = 12;
const BASES: [u64; 3] = [2 * GIB, 3 * GIB, 9 * GIB];

#[test]
fn a_memory_answers_as_a_naive_one_whatever_is_under_way() {
    let first = setting("UNFRAG_SEED", 1);
    let (seeds, steps) = (setting("UNFRAG_SEEDS", 12), setting("UNFRAG_STEPS", 1500));
    for seed in first..first + seeds {
        println!("seed {seed}");
        run(&mut Chance(seed * 77), steps, seed);
    }
}

fn run(c: &mut Chance, steps: u64, seed: u64) {
    // Nodes in any order, of several pieces, or with low addresses alone.
    let mut piece = |start| area(start, c.of(&[0, 1, 2, 15]), c.below(3) == 0);
    let config = MemoryConfig::of(piece(2)).and(piece(3)).and(piece(9));
    let m: Memory<Lock> = started(MemoryConfig {
        locals: 2,
        keeps: c.of(&[1, 8, 128]),
        barrier: (!seed.is_multiple_of(3)).then(one_thread),
        ..config
    });
    let m: &'static Memory<'static, Lock> = Box::leak(Box::new(m));
    let mut spare: Vec<&'static mut [u64]> = Vec::new();
    let mut model = Model::default();
    let mut locals: [Option<Local<'_, '_, Lock>>; 2] = [None, None];
    let mut u = Under {
        evacuators: Vec::new(),
        reports: Vec::new(),
        claims: Vec::new(),
        places: Vec::new(),
    };
    // Where nobody else comes, and what CPUs keep can be had, a request fails only if there is nothing.
    let is_alone = seed % 4 != 3;
    let is_exact = is_alone && !seed.is_multiple_of(3);
    OTHER.with_borrow_mut(|other| {
        *other = Other::NONE;
        other.c = Chance(seed);
    });
    for step in 0..steps {
        model.meanwhile();
        OTHER.with_borrow_mut(|other| other.memory = (!is_alone).then_some(m));
        let mt = c.of(&TYPES);
        let order = c.of(&[0, 0, 0, 1, 2, 3, 5, 7, 8, 9, 9, 10, 11]);
        let place = c.of(&BASES) + c.below(BLOCKS * 512);
        let n = c.of(&[1, 2, 40, 64, 300, 511, 512, 513, 1024, 3000]);
        let i = c.below(2) as usize;
        let what = c.below(22);
        match what {
            // Memory comes.
            0 => {
                let place = if c.below(2) == 0 { place & !511 } else { place };
                let base = place & !(GIB - 1);
                let n = n.min(base + BLOCKS * 512 - place);
                let is_new = model.of.range(place..place + n).next().is_none();
                let mut words = spare
                    .pop()
                    .unwrap_or_else(|| vec![!0; EngineLayout::of(Pfn(place), n).words].leak());
                let got = m.add(Pfn(place), n, &mut words);
                if words.len() >= EngineLayout::GIGABYTE - 7 {
                    spare.push(words);
                }
                assert!(got.is_err() || is_new, "{place:#x} {n}");
                if got.is_ok() {
                    (place..place + n).for_each(|p| _ = model.of.insert(p, Frame::Free));
                } else {
                    let is_apart = matches!(got, Err(unfrag::maps::GiveError::InUse(_)));
                    assert!(!is_new || is_apart && !u.evacuators.is_empty(), "{got:?}");
                }
            }
            // Some that is somebody's goes.
            1 => {
                let Some((&at, &(order, _))) = model.owned.range(place..).next() else {
                    continue;
                };
                // SAFETY: frames are only numbers here, and these are the test's.
                let got = unsafe { m.remove(Pfn(at), 1 << order) };
                got.expect("in use");
                model.owned.remove(&at);
                (at..at + (1 << order)).for_each(|p| _ = model.of.remove(&p));
                if let Some(words) = m.take_tables(Pfn(at)) {
                    assert!(
                        model
                            .of
                            .range(at & !(GIB - 1)..(at | (GIB - 1)) + 1)
                            .next()
                            .is_none()
                    );
                    spare.push(words);
                }
            }
            2..=4 => {
                let mut r = Request::new(Order(order), mt);
                let node = NodeId(c.of(&[0, 1, 2, 15, 16, 255]));
                let limit = place.min(c.of(&[place, u64::MAX]));
                r = match c.below(5) {
                    0 => r.near(node),
                    1 => r.only(node),
                    2 => r.only(node).below(Pfn(limit)),
                    3 => r.below(Pfn(limit)),
                    _ => r,
                };
                let all = r.below.map_or(u64::MAX, |p| p.0);
                let may = |p: u64| !r.is_only || m.node_of(Pfn(p)) == r.node;
                let got = m.alloc(&r);
                model.meanwhile();
                if got == Err(AllocError::Nowhere) {
                    let is_there = |p: &u64| may(*p) && *p < all;
                    assert!(!model.of.keys().any(is_there), "{r:?}");
                    continue;
                }
                match got {
                    Ok(p) => {
                        assert!(may(p.0) && p.0 + (1 << order) <= all, "{r:?} {p:?}");
                        model.own(p, order, mt);
                    }
                    // What is set apart is free for nobody, and what CPUs keep may be elsewhere.
                    Err(why) if u.evacuators.is_empty() && u.reports.is_empty() && is_exact => {
                        let has = model.has_run(order, all, may);
                        assert!(!has, "step {step}: {r:?} {why:?}");
                    }
                    Err(_) => {}
                }
            }
            5..=7 => {
                let Some(l) = &mut locals[i] else {
                    locals[i] = m.local_on(NodeId(c.of(&[0, 1, 2, 15, 16, 255])));
                    continue;
                };
                let got = l.alloc(Order(order), mt);
                model.meanwhile();
                match got {
                    Ok(p) => model.own(p, order, mt),
                    Err(why) if u.evacuators.is_empty() && u.reports.is_empty() && is_exact => {
                        let has = model.has_run(order, u64::MAX, |_| true);
                        assert!(!has, "step {step}: {order} {mt:?} {why:?}");
                    }
                    Err(_) => {}
                }
            }
            8..=11 => {
                let Some((&at, &(order, mt))) = model.owned.range(place..).next() else {
                    continue;
                };
                model.owned.remove(&at);
                let (parts, order) = if order > 0 && c.below(3) == 0 {
                    (2, order - 1)
                } else {
                    (1, order)
                };
                for part in 0..parts {
                    let p = Pfn(at + (part << order));
                    let mt = if c.below(6) == 0 { c.of(&TYPES) } else { mt };
                    model.give(p.0, 1 << order);
                    // SAFETY: as above.
                    let freed = unsafe {
                        match &mut locals[i] {
                            Some(l) if c.below(2) == 0 => l.free(p, Order(order), mt),
                            _ if c.below(2) == 0 => m.free_range(p, 1 << order, mt),
                            _ => m.free(p, Order(order), mt),
                        }
                    };
                    freed.expect("in use");
                }
            }
            12 => {
                locals[i] = None;
            }
            13 => {
                let got = m.alloc_at(Pfn(place), n, mt);
                model.meanwhile();
                if got.is_ok() {
                    model.take(place, n);
                    for p in place..place + n {
                        model.owned.insert(p, (0, mt));
                    }
                } else if is_alone
                    && u.evacuators.is_empty()
                    && u.reports.is_empty()
                    && locals.iter().all(Option::is_none)
                {
                    let all = |p| model.of.get(&p) == Some(&Frame::Free);
                    assert!(!(place..place + n).all(all), "{place:#x} {n}");
                }
            }
            14 => {
                let goal = match c.below(6) {
                    0 => Goal::Run(Order(c.of(&[9, 10, 11, 12]))),
                    1 | 2 => Goal::Range {
                        start: Pfn(place),
                        frames: n,
                    },
                    3 => Goal::Ahead {
                        blocks: c.below(20) as u32,
                    },
                    _ => Goal::Blocks(c.below(3) as u32),
                };
                let limits = Limits::NONE
                    .copies(c.of(&[40, 3000, u64::MAX]))
                    .huge(Order(c.of(&[9, 9, 10])))
                    .mt(mt);
                if u.evacuators.len() < 3 {
                    u.evacuators.push(Evacuator::new(m, goal, limits));
                }
            }
            15..=17 => {
                let Some(at) =
                    (!u.evacuators.is_empty()).then(|| c.below(u.evacuators.len() as u64))
                else {
                    continue;
                };
                let e = &mut u.evacuators[at as usize];
                for _ in 0..c.below(200) {
                    let step = if seed.is_multiple_of(2) {
                        e.step()
                    } else {
                        e.step_if(|p| model.holder(p.0).map(|(_, o)| Order(o)))
                    };
                    let Move::Frame(from) = step else {
                        break;
                    };
                    let Some((at, order)) = model.holder(from.0) else {
                        break;
                    };
                    if c.below(50) == 0 {
                        break;
                    }
                    let Some(to) = e.place(Order(order)) else {
                        break;
                    };
                    model.meanwhile();
                    model.take(to.pfn().0, 1 << order);
                    if c.below(10) == 0 {
                        u.places.push(to);
                        break;
                    }
                    let mt = model.owned.remove(&at).expect("it is owned").1;
                    model.owned.insert(to.into_pfn().0, (order, mt));
                    model.give(at, 1 << order);
                    // SAFETY: as above.
                    unsafe { e.moved(Pfn(at), Order(order)) }.expect("in use");
                }
                let at = at as usize;
                if u.evacuators[at].outcome() != unfrag::moves::Outcome::Open {
                    let e = u.evacuators.remove(at);
                    let claimed = e.into_claimed();
                    model.meanwhile();
                    if let Ok(claimed) = claimed {
                        model.take(claimed.pfn().0, claimed.frames());
                        u.claims.push(claimed);
                    }
                }
            }
            18 => {
                // Something under way ends.
                match c.below(4) {
                    0 if !u.evacuators.is_empty() => drop(u.evacuators.remove(0)),
                    1 if !u.places.is_empty() => {
                        let p = u.places.remove(0);
                        model.give(p.pfn().0, 1 << p.order().0);
                        if c.below(2) == 0 {
                            let order = p.order().0;
                            model.own(p.into_pfn(), order, mt);
                        }
                    }
                    2 if !u.claims.is_empty() => {
                        let p = u.claims.remove(0);
                        model.give(p.pfn().0, p.frames());
                    }
                    _ => {}
                }
            }
            19 => {
                if let Some(r) = m.report(Order(c.of(&[9, 10, 11]))) {
                    u.reports.push(r);
                } else if !u.reports.is_empty() {
                    u.reports
                        .remove(0)
                        .acknowledge(c.below(2) == 0)
                        .expect("in use");
                }
                if u.reports.len() > 2 || c.below(2) == 0 {
                    u.reports.clear();
                }
            }
            20 => {
                m.drain_locals();
            }
            _ => {
                m.wants_blocks(c.below(30) as u32, Order(c.of(&[9, 10])));
            }
        }
        model.meanwhile();
        if c.below(5) == 0 {
            OTHER.with_borrow_mut(|other| other.memory = None);
            m.validate()
                .unwrap_or_else(|b| panic!("step {step} after {what}: {b}"));
            assert_eq!(m.present(), model.of.len() as u64);
            assert_eq!(m.refused(), 0);
            if u.evacuators.is_empty() && u.reports.is_empty() {
                assert_eq!(m.free_frames(), model.free(), "step {step} after {what}");
            }
        }
    }
    OTHER.with_borrow_mut(|other| other.memory = None);
    model.meanwhile();
    for (p, order) in OTHER.with_borrow_mut(|other| std::mem::take(&mut other.has)) {
        model.give(p, 1 << order);
        // SAFETY: as above.
        unsafe { m.free(Pfn(p), Order(order), MigrateType::Movable) }.expect("in use");
    }
    drop(u.evacuators);
    drop(u.reports);
    for p in u.places {
        model.give(p.pfn().0, 1 << p.order().0);
    }
    for p in u.claims {
        model.give(p.pfn().0, p.frames());
    }
    drop(locals);
    m.validate().expect("sound");
    assert_eq!(m.free_frames(), model.free());
    assert_eq!(m.counts().free, model.free());
    while let Ok(p) = m.alloc(&Request::new(Order(0), MigrateType::Movable)) {
        model.take(p.0, 1);
    }
    assert_eq!((model.free(), m.free_frames(), m.refused()), (0, 0, 0));
}
