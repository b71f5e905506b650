//! Right and wrong calls at random, beside a naive allocator that knows each frame: every answer is its answer, and no
//! frame has two owners.

use super::memory::{Lock, free, free_without, one_thread};
use super::{Chance, setting};
use crate::support::{add, started};
use std::collections::BTreeMap;
use unfrag::maps::GiveError::{self, InUse, NoFrames, NoMemory, NotABlock, NotTaken, Present};
use unfrag::maps::{Engine, EngineLayout, Gigabyte};
use unfrag::moves::{Evacuator, Goal, Limits, Move};
use unfrag::{Local, Marks, Memory, MemoryConfig, Request};
use unfrag::{MigrateType, Order, Pfn};

const TYPES: [MigrateType; 3] = [
    MigrateType::Unmovable,
    MigrateType::Movable,
    MigrateType::Reclaimable,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Absent,
    Free,
    Used,
}

/// What each frame is.
struct Model(Vec<Frame>);

impl Model {
    fn count(&self, what: Frame) -> u64 {
        self.0.iter().filter(|&&f| f == what).count() as u64
    }

    fn set(&mut self, at: u64, n: u64, from: Frame, to: Frame) {
        for f in &mut self.0[at as usize..(at + n) as usize] {
            assert_eq!(std::mem::replace(f, to), from, "frame of {at:#x}");
        }
    }

    fn range(&self, start: u64, n: u64) -> Result<&[Frame], GiveError> {
        let len = self.0.len() as u64;
        if start >= len {
            return Err(NoMemory(Pfn(start)));
        }
        if n == 0 {
            return Err(NoFrames(Pfn(start)));
        }
        let end = start.checked_add(n).filter(|&end| end <= len);
        let end = end.ok_or(NoMemory(Pfn(len)))?;
        Ok(&self.0[start as usize..end as usize])
    }

    /// What giving a block back answers.
    fn give(&mut self, at: u64, order: u8) -> Result<(), GiveError> {
        let pfn = Pfn(at);
        if order > 18 || !at.is_multiple_of(1u64 << order) {
            return Err(NotABlock(pfn));
        }
        let own = self.range(at, 1 << order).map_err(|_| NoMemory(pfn))?;
        if own.contains(&Frame::Absent) {
            return Err(NoMemory(pfn));
        }
        if own.contains(&Frame::Free) {
            return Err(NotTaken(pfn));
        }
        self.set(at, 1 << order, Frame::Used, Frame::Free);
        Ok(())
    }

    /// What giving a range back answers: aligned parts, as large as they can be.
    fn give_range(&mut self, start: u64, n: u64) -> Result<(), GiveError> {
        self.range(start, n)?;
        let (mut at, end, mut result) = (start, start + n, Ok(()));
        while at < end {
            let fits = |o: &u8| at % (1 << o) == 0 && at + (1 << o) <= end;
            let order = (0..=18).rev().find(fits).expect("order 0 fits");
            result = result.and(self.give(at, order));
            at += 1 << order;
        }
        result
    }
}

/// Which kind of error, where the place depends on how a range is cut up.
fn kind(result: Result<(), GiveError>) -> Option<std::mem::Discriminant<GiveError>> {
    result.err().map(|why| std::mem::discriminant(&why))
}

/// A place, mostly within the memory and near what matters, sometimes anywhere.
fn place(c: &mut Chance, frames: u64) -> u64 {
    match c.below(12) {
        0 => c.of(&[0, frames - 1, frames, frames + 1, u64::MAX, u64::MAX - 511]),
        1..=4 => c.below(frames / 512 + 1) * 512,
        _ => c.below(frames),
    }
}

fn order(c: &mut Chance) -> u8 {
    match c.below(12) {
        0 => c.of(&[12, 18, 19, 31, 32, 33, 63, 64, 255]),
        _ => c.of(&[0, 0, 0, 1, 2, 3, 5, 8, 9, 9, 10]),
    }
}

/// The seed is printed.
#[test]
fn an_engine_answers_as_a_naive_one_to_right_and_wrong_calls() {
    let first = setting("UNFRAG_SEED", 1);
    let (seeds, steps) = if cfg!(miri) { (1, 60) } else { (8, 2000) };
    let mut wrong = 0;
    for seed in first..first + seeds {
        println!("seed {seed}");
        let mut c = Chance(seed);
        let frames = 512 * 12 + c.below(512);
        let mut memory = vec![!0; EngineLayout::GIGABYTE];
        let mut words = &mut memory[..];
        let mut e = Engine::new(Pfn(0), [Gigabyte::NONE]).expect("an engine");
        // The rest of the gigabyte is never memory.
        let mut model = Model(vec![Frame::Absent; 1 << 18]);
        for _ in 0..steps {
            let (at, mt) = (place(&mut c, frames), TYPES[c.below(3) as usize]);
            let n = c.of(&[0, 1, 2, 7, 64, 511, 512, 513, 1024, 3000]);
            let answer = match c.below(9) {
                0 => {
                    let n = if c.below(20) == 0 { u64::MAX } else { n };
                    let own = model.range(at, n).map(<[Frame]>::to_vec);
                    let right = match own {
                        Err(why) => Err(why),
                        Ok(_) if at + n > frames => continue,
                        Ok(own) if own.iter().all(|&f| f == Frame::Absent) => {
                            model.set(at, n, Frame::Absent, Frame::Free);
                            Ok(())
                        }
                        Ok(_) => Err(Present(Pfn(0))),
                    };
                    let got = e.add(Pfn(at), n, &mut words);
                    assert_eq!(kind(got), kind(right), "add {at:#x} {n}: {got:?}");
                    got
                }
                1 => {
                    let own = model.range(at, n).map(<[Frame]>::to_vec);
                    let got = e.take_range(Pfn(at), n, mt);
                    match own {
                        Err(why) => assert_eq!(got, Err(why), "take_range {at:#x} {n}"),
                        Ok(own) if own.iter().all(|&f| f == Frame::Free) => {
                            assert_eq!(got, Ok(()), "take_range {at:#x} {n}");
                            model.set(at, n, Frame::Free, Frame::Used);
                        }
                        Ok(own) => match got {
                            Err(NoMemory(_)) => assert!(own.contains(&Frame::Absent)),
                            Err(InUse(_)) => assert!(own.contains(&Frame::Used)),
                            _ => panic!("take_range {at:#x} {n}: {got:?}"),
                        },
                    }
                    got
                }
                2 => {
                    let right = model.give_range(at, n);
                    let got = e.give_range(Pfn(at), n, mt);
                    assert_eq!(got, right, "give_range {at:#x} {n}");
                    got
                }
                3 => {
                    let align = order(&mut c);
                    if let Some(at) = e.take_run(n as u32, Order(align), mt, true) {
                        assert_eq!(at.0 % (1 << align), 0);
                        model.set(at.0, n, Frame::Free, Frame::Used);
                    }
                    Ok(())
                }
                4 | 5 => {
                    let order = order(&mut c);
                    let mut out = vec![0; 1 + c.below(20) as usize];
                    let got = e.take(&mut out, Order(order), mt, true);
                    for &at in &out[..got] {
                        model.set(at, 1 << order, Frame::Free, Frame::Used);
                    }
                    Ok(())
                }
                _ => {
                    let order = order(&mut c);
                    let right = model.give(at, order);
                    let got = e.give(&[at], Order(order), mt);
                    assert_eq!(got, right, "give {at:#x} {order}");
                    got
                }
            };
            wrong += u32::from(answer.is_err());
            // Miri takes too long to look at every block each time.
            if cfg!(miri) && c.below(20) > 0 {
                continue;
            }
            e.validate().expect("a sound state");
            let counts = e.counts();
            assert_eq!(counts.free, model.count(Frame::Free));
            assert_eq!(counts.present, (1 << 18) - model.count(Frame::Absent));
        }
    }
    assert!(cfg!(miri) || wrong > 1600, "{wrong} were wrong");
}

/// Owners of blocks, by their first frame.
type Owned = BTreeMap<u64, u8>;

fn own(owned: &mut Owned, p: Pfn, order: u8) {
    let end = p.0 + (1 << order);
    let before = owned.range(..end).next_back();
    let overlaps = before.is_some_and(|(&at, &o)| at + (1 << o) > p.0);
    assert!(!overlaps, "{p:?} of order {order} has two owners");
    assert_eq!(p.0 % (1 << order), 0);
    owned.insert(p.0, order);
}

/// Everything but what breaks the promise of an `unsafe` call: no frame has two owners, and all of them are free in the
/// end. The seed is printed.
#[test]
fn shared_memory_gives_no_frame_to_two_whatever_is_asked() {
    let first = setting("UNFRAG_SEED", 1);
    let (seeds, steps) = if cfg!(miri) { (1, 60) } else { (15, 2000) };
    for seed in first..first + seeds {
        println!("seed {seed}");
        let mut c = Chance(seed);
        let frames = 512 * 16 + c.below(512);
        let marks = Marks {
            min: c.below(600),
            ..Marks::NONE
        };
        let s = started(MemoryConfig {
            locals: 2,
            marks,
            barrier: (seed % 3 > 0).then(one_thread),
            ..MemoryConfig::new(Pfn(1 << 18), frames)
        });
        let base = 1 << 18;
        let start = c.below(600);
        add(&s, Pfn(base + start), frames - start).expect("new");
        let mut locals: [Option<Local<'_, '_, Lock>>; 2] = [s.local(), s.local()];
        let mut owned = Owned::new();
        for _ in 0..steps {
            let i = c.below(2) as usize;
            let l = locals[i].as_mut().expect("two of them");
            let mt = TYPES[c.below(3) as usize];
            match c.below(11) {
                10 => {
                    s.drain_locals();
                }
                0..=3 => {
                    let order = order(&mut c);
                    let got = match c.below(3) {
                        0 => l.alloc_atomic(Order(order), mt),
                        1 => s.alloc(&Request::new(Order(order), mt)),
                        _ => l.alloc(Order(order), mt),
                    };
                    if let Ok(p) = got {
                        own(&mut owned, p, order);
                    }
                    assert!(order <= 18 || got.is_err());
                }
                4..=6 => {
                    let Some((&p, &order)) = owned.range(base + c.below(frames)..).next() else {
                        continue;
                    };
                    owned.remove(&p);
                    let halves = order > 0 && c.below(4) == 0;
                    let (order, n) = if halves { (order - 1, 2) } else { (order, 1) };
                    for part in 0..n {
                        let p = p + (part << order);
                        let freed = match c.below(3) {
                            0 => free_without(&s, p, order),
                            _ => free(l, p, order),
                        };
                        freed.expect("in use");
                    }
                }
                7 => {
                    // No block begins there, or it is not in use.
                    let (p, order) = (c.below(frames) | 1, c.of(&[1, 3, 9, 10, 19, 64]));
                    assert!(free(l, base + p, order).is_err());
                    assert!(free_without(&s, base + p, order).is_err());
                    assert!(free(l, p, 0).is_err(), "it is below the memory");
                    assert!(add(&s, Pfn(base + start + c.below(frames - start)), 1000).is_err());
                    if start > 0 {
                        let absent = base + c.below(start);
                        assert_eq!(free_without(&s, absent, 0), Err(NoMemory(Pfn(absent))));
                    }
                }
                8 => {
                    l.flush().expect("in use");
                    let goal = match c.below(6) {
                        0 => Goal::Run(c.of(&[Order(9), Order(10), Order(18), Order(3)])),
                        1..3 => Goal::Range {
                            start: Pfn(base + c.below(frames)),
                            frames: 1 + c.below(1500),
                        },
                        3 => Goal::Ahead { blocks: 3 },
                        _ => Goal::Blocks(1),
                    };
                    let limits = Limits::NONE.copies(2000).most(500).mt(MigrateType::Movable);
                    let mut e = Evacuator::new(&s, goal, limits);
                    while let Move::Frame(from) = e.step() {
                        let Some(&order) = owned.get(&from.0).filter(|_| c.below(60) > 0) else {
                            continue;
                        };
                        let Some(to) = e.place(Order(order)) else {
                            continue;
                        };
                        if c.below(20) == 0 {
                            continue;
                        }
                        owned.remove(&from.0);
                        own(&mut owned, to.into_pfn(), order);
                        // SAFETY: nothing is at a frame, so nobody can use one.
                        unsafe { e.moved(from, Order(order)) }.expect("in use");
                        if c.below(200) == 0 {
                            break;
                        }
                    }
                    // Some are kept, frame by frame.
                    if let Ok(claimed) = e.into_claimed()
                        && c.below(2) == 0
                    {
                        let n = claimed.frames();
                        let first = claimed.into_pfn().0;
                        (first..first + n).for_each(|p| own(&mut owned, Pfn(p), 0));
                    }
                }
                _ => {
                    let report = s.report(Order(9 + c.below(3) as u8));
                    if let Some(report) = report
                        && c.below(2) == 0
                    {
                        report.acknowledge(c.below(2) == 0).expect("in use");
                    }
                }
            }
            // As above.
            if !cfg!(miri) || c.below(20) == 0 {
                check(&s, &owned, frames - start);
            }
        }
        for (p, order) in std::mem::take(&mut owned) {
            free_without(&s, p, order).expect("in use");
        }
        drop(locals);
        assert_eq!(s.free_frames(), frames - start);
        assert_eq!(s.counts().free, frames - start);
        assert_eq!(s.counts().holding, [0; 3]);
        assert_eq!(s.refused(), 0);
    }
}

/// What is not somebody's is free, or kept.
fn check(s: &Memory<'_, Lock>, owned: &Owned, present: u64) {
    s.validate().expect("a sound state");
    let used: u64 = owned.values().map(|o| 1u64 << o).sum();
    assert!(s.counts().free + used <= present);
}
