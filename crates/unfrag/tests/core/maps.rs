//! The engine beside a naive one, and what its placement is for.

use super::chance::setting;
use std::collections::BTreeMap;
use unfrag::maps::{Engine, EngineLayout, Gigabyte, GiveError};
use unfrag::{MigrateType, Order, Pfn};

const TYPES: [MigrateType; 3] = [
    MigrateType::Unmovable,
    MigrateType::Movable,
    MigrateType::Reclaimable,
];

/// Numbers by chance. What is regained is held to bounds that this sequence is known to meet.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// Free frames as a list of what is free: what a larger block takes is looked for one by one.
struct Naive {
    free: Vec<bool>,
}

impl Naive {
    fn has(&self, order: u8) -> bool {
        self.free
            .chunks(1 << order)
            .any(|c| c.len() == 1 << order && c.iter().all(|&f| f))
    }
    fn set(&mut self, at: u64, order: u8, free: bool) {
        for f in &mut self.free[at as usize..(at + (1 << order)) as usize] {
            assert_ne!(*f, free, "frame {at:#x} of order {order}");
            *f = free;
        }
    }
}

/// An engine for so many frames, without memory, and words for its tables.
fn engine(frames: u64) -> (Engine<'static>, &'static mut [u64]) {
    let words = EngineLayout::of(Pfn(0), frames).words;
    let entries = (0..frames.div_ceil(1 << 18)).map(|_| Gigabyte::NONE);
    let engine = Engine::new(Pfn(0), Vec::leak(entries.collect())).expect("an engine");
    (engine, vec![!0; words].leak())
}

/// The same, all of them free.
fn full(frames: u64) -> Engine<'static> {
    let (mut engine, mut words) = engine(frames);
    engine.add(Pfn(0), frames, &mut words).expect("new");
    engine
}

/// A request fails exactly if no such block is free; what is handed out is free; what is freed twice is refused; every
/// invariant holds after every step. The seed is printed.
#[test]
fn it_hands_out_what_a_naive_allocator_would() {
    let mut failed = 0;
    let first = setting("UNFRAG_SEED", 1);
    for seed in first..first + 30 {
        println!("seed {seed}");
        let mut c = Chance(seed);
        let frames = 512 * 24 + c.below(512);
        let (mut e, mut words) = engine(frames);
        let mut naive = Naive {
            free: vec![false; frames as usize],
        };
        // Memory comes in three parts, two of them later.
        let parts = [0, c.below(4000), 4000 + c.below(5000), frames];
        let mut added = 0;
        let mut held: BTreeMap<u64, (u8, MigrateType)> = BTreeMap::new();
        for step in 0..1500 {
            if step % 100 == 0 && added < 3 {
                let (from, to) = (parts[added], parts[added + 1]);
                if from < to {
                    let added = e.add(Pfn(from), to - from, &mut words);
                    added.expect("it is new");
                }
                let again = e.add(Pfn(from), to - from, &mut words);
                assert!(again.is_err(), "only once");
                naive.free[from as usize..to as usize].fill(true);
                added += 1;
            }
            let mt = TYPES[c.below(3) as usize];
            let fills = step % 500 < 300;
            if c.below(100) < if fills { 70 } else { 30 } {
                let order = [0, 0, 0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11][c.below(13) as usize];
                let mut out = vec![0; 1 + c.below(40) as usize];
                let got = e.take(&mut out, Order(order), mt, true);
                for &at in &out[..got] {
                    assert_eq!(at % (1 << order), 0);
                    naive.set(at, order, false);
                    held.insert(at, (order, mt));
                }
                let fails = got < out.len();
                assert!(!fails || !naive.has(order), "order {order}");
                failed += u32::from(fails);
            } else {
                let mut batch = Vec::new();
                for _ in 0..1 + c.below(60) {
                    let from = c.below(frames);
                    let Some((&at, &(order, mt))) = held.range(from..).next() else {
                        break;
                    };
                    held.remove(&at);
                    naive.set(at, order, true);
                    batch.push((at, order, mt));
                }
                for (at, order, mt) in batch {
                    // A part of it first, sometimes; or by another type.
                    let mt = if c.below(20) == 0 {
                        TYPES[c.below(3) as usize]
                    } else {
                        mt
                    };
                    if order > 0 && c.below(3) == 0 {
                        let half = 1 << (order - 1);
                        e.give(&[at + half], Order(order - 1), mt).expect("a part");
                        assert!(e.give(&[at], Order(order), mt).is_err(), "not as a whole");
                        e.give(&[at], Order(order - 1), mt).expect("the rest");
                    } else {
                        e.give(&[at], Order(order), mt).expect("in use");
                    }
                    let twice = e.give(&[at], Order(order), mt);
                    assert_eq!(twice, Err(GiveError::NotTaken(Pfn(at))));
                }
            }
            let free = naive.free.iter().filter(|&&f| f).count();
            assert_eq!(e.free_frames(), free as u64);
            e.validate().expect("a sound state");
        }
    }
    assert!(failed > 100, "{failed} requests failed");
}

#[test]
fn a_batch_with_a_bad_block_frees_the_others_and_names_it() {
    let mut e = full(1024);
    let mut out = [0; 8];
    assert_eq!(e.take(&mut out, Order(0), MigrateType::Movable, true), 8);
    let twice = [out[0], out[1], out[0], 5000, out[2]];
    let refused = e.give(&twice, Order(0), MigrateType::Movable);
    assert_eq!(refused, Err(GiveError::NotTaken(Pfn(out[0]))));
    assert_eq!(e.free_frames(), 1024 - 5);
    for (frame, order) in [(1, 1), (1023, 1), (0, 19), (512, 10)] {
        let refused = e.give(&[frame], Order(order), MigrateType::Movable);
        assert_eq!(refused, Err(GiveError::NotABlock(Pfn(frame))));
    }
    e.validate().expect("a sound state");
}

/// Tables are made where memory is, and only there; too few words for them change nothing.
#[test]
fn tables_come_and_go_with_the_memory_of_a_gigabyte() {
    let frames = 1024 << 18;
    const {
        assert!(
            EngineLayout::GIGABYTE * 8 < (1 << 18) / 5,
            "a fifth of a byte a frame"
        )
    };
    let (mut e, mut words) = engine(frames);
    let all = words.len();
    let start = Pfn((500 << 18) + 100);
    assert_eq!(e.can_add(start, 1 << 18), Ok(2));
    let least = EngineLayout::of(start, 1 << 18).words - 7;
    let mut few = &mut vec![0; least - 1].leak()[..];
    let refused = e.add(start, 1 << 18, &mut few);
    assert_eq!(refused, Err(GiveError::NoTables(start)));
    assert_eq!((e.present(), few.len()), (0, least - 1));
    e.add(start, 1 << 18, &mut words).expect("new");
    assert!((least..least + 8).contains(&(all - words.len())));
    assert_eq!(
        e.can_add(Pfn(start.0 + (1 << 18)), 1),
        Ok(0),
        "it has tables"
    );
    let mut one = [0];
    assert_eq!(e.take(&mut one, Order(0), MigrateType::Unmovable, true), 1);
    assert!(e.take_tables(start).is_none(), "there is memory");
    // What is in use goes; what is free has to be taken first.
    let second = Pfn(501 << 18);
    assert_eq!(e.remove(second, 100), Err(GiveError::NotTaken(second)));
    let free = if one[0] >= second.0 { 99 } else { 100 };
    let first = Pfn(second.0 + 100 - free);
    e.take_range(first, free, MigrateType::Movable)
        .expect("free");
    e.remove(second, 100).expect("in use");
    e.validate().expect("a sound state");
    assert_eq!(e.present(), (1 << 18) - 100);
    let given = e.give(&[second.0], Order(0), MigrateType::Movable);
    assert_eq!(given, Err(GiveError::NoMemory(second)));
    assert_eq!(
        e.take_range(second, 1, MigrateType::Movable),
        Err(GiveError::NoMemory(second))
    );
    let back = e.take_tables(second).expect("nothing is left");
    assert_eq!(back.len() * 2, least);
    assert!(e.take_tables(second).is_none());
    assert!(e.take_tables(start).is_none(), "there is memory");
    e.validate().expect("a sound state");
}

/// Blocks get empty by themselves, since the fullest ones serve.
#[test]
fn churn_gives_whole_blocks_back() {
    let blocks = 512;
    let frames = blocks * 512;
    let mut e = full(frames);
    let mut c = Chance(3);
    let mut held = vec![0; frames as usize];
    assert_eq!(
        e.take(&mut held, Order(0), MigrateType::Movable, true),
        held.len()
    );
    let drop_some = |e: &mut Engine, held: &mut Vec<u64>, c: &mut Chance, n: usize| {
        for _ in 0..n {
            let i = c.below(held.len() as u64) as usize;
            let f = held.swap_remove(i);
            e.give(&[f], Order(0), MigrateType::Movable)
                .expect("in use");
        }
    };
    drop_some(&mut e, &mut held, &mut c, frames as usize / 2);
    assert_eq!(e.whole_blocks(), 0);
    for round in 1..=100 {
        let n = held.len() / 10;
        drop_some(&mut e, &mut held, &mut c, n);
        for _ in 0..n {
            let mut one = [0];
            assert_eq!(e.take(&mut one, Order(0), MigrateType::Movable, true), 1);
            held.push(one[0]);
        }
        if round == 50 {
            assert!(e.whole_blocks() > 256 * 29 / 100, "{}", e.whole_blocks());
        }
    }
    assert!(e.whole_blocks() > 256 * 99 / 100, "{}", e.whole_blocks());
    e.validate().expect("a sound state");
}

/// Where the oldest goes as the new comes, free memory does not end in the holes between what cannot be moved, where no run
/// can come free: what can be moved takes all but a reserve of these.
#[test]
fn what_is_free_under_steady_reclaim_has_runs() {
    let blocks = 64;
    let mut e = full(blocks * 512);
    for at in (0..blocks / 2 * 512).step_by(4) {
        e.take_range(Pfn(at), 1, MigrateType::Unmovable)
            .expect("free");
    }
    let mut oldest = std::collections::VecDeque::new();
    let take = |e: &mut Engine, oldest: &mut std::collections::VecDeque<u64>| {
        let mut batch = [0; 32];
        let got = e.take(&mut batch, Order(0), MigrateType::Movable, true);
        oldest.extend(&batch[..got]);
        got
    };
    while take(&mut e, &mut oldest) > 0 {}
    for step in 0..4000 {
        // A fifteenth of memory is free.
        while e.free_frames() < blocks * 512 / 15 {
            let frame = oldest.pop_front().expect("there are some");
            e.give(&[frame], Order(0), MigrateType::Movable)
                .expect("in use");
        }
        assert_eq!(take(&mut e, &mut oldest), 32);
        let of = e.free_blocks().of;
        let frames = |of: &[u64], from: usize| -> u64 {
            (from..of.len()).map(|order| of[order] << order).sum()
        };
        let kept = frames(&of[0], 0) + frames(&of[2], 0);
        let runs: u64 = of.iter().map(|of| frames(of, 3)).sum();
        if step > 1000 {
            assert!(kept <= 1024 + 32, "{kept} of {}", e.free_frames());
            assert!(runs * 2 > e.free_frames(), "{runs} of {}", e.free_frames());
        }
    }
    e.validate().expect("a sound state");
}

/// What cannot be moved stands in few blocks, and in few gigabytes.
#[test]
fn what_cannot_be_moved_stays_together() {
    let frames = 8 << 18;
    let mut e = full(frames);
    let mut c = Chance(5);
    let mut held: Vec<(u64, MigrateType)> = Vec::new();
    let grow = |e: &mut Engine, held: &mut Vec<(u64, MigrateType)>, c: &mut Chance| {
        while held.len() < frames as usize * 95 / 100 {
            let mt = TYPES[usize::from(c.below(20) > 0)];
            let mut one = [0];
            assert_eq!(e.take(&mut one, Order(0), mt, true), 1);
            held.push((one[0], mt));
        }
    };
    grow(&mut e, &mut held, &mut c);
    for _ in 0..10 {
        for _ in 0..frames / 4 {
            let i = c.below(held.len() as u64) as usize;
            let (f, mt) = held.swap_remove(i);
            e.give(&[f], Order(0), mt).expect("in use");
        }
        grow(&mut e, &mut held, &mut c);
        let n = held
            .iter()
            .filter(|(_, mt)| *mt == MigrateType::Unmovable)
            .count();
        let (fewest, counts) = (n.div_ceil(512) as u32, e.counts());
        assert!(
            counts.holding[0] <= fewest * 102 / 100 + 1,
            "{} {fewest}",
            counts.holding[0]
        );
        assert!(
            counts.tainted_gigabytes <= 2,
            "{}",
            counts.tainted_gigabytes
        );
    }
    e.validate().expect("a sound state");
}

/// Frames by their place: exactly those that were asked for, if all of them are free. The seed is printed.
#[test]
fn frames_are_taken_by_their_place() {
    let first = setting("UNFRAG_SEED", 1);
    for seed in first..first + 20 {
        println!("seed {seed}");
        let mut c = Chance(seed);
        let frames = 512 * 12 + c.below(512);
        let mut engine = full(frames);
        let mut free = vec![true; frames as usize];
        let mut ranges = Vec::new();
        for _ in 0..400 {
            let mt = TYPES[c.below(3) as usize];
            if c.below(3) == 0 && !ranges.is_empty() {
                let (at, n, mt) = ranges.swap_remove(c.below(ranges.len() as u64) as usize);
                engine.give_range(Pfn(at), n, mt).expect("in use");
                free[at as usize..(at + n) as usize].fill(true);
            } else {
                let at = c.below(frames);
                let n = 1 << c.below(11);
                let end = (at + n) as usize;
                let is_free = end <= free.len() && free[at as usize..end].iter().all(|&f| f);
                assert_eq!(engine.take_range(Pfn(at), n, mt).is_ok(), is_free);
                if is_free {
                    free[at as usize..end].fill(false);
                    ranges.push((at, n, mt));
                }
            }
            let left = free.iter().filter(|&&f| f).count() as u64;
            assert_eq!(engine.free_frames(), left);
            engine.validate().expect("every invariant");
        }
        for (at, n, mt) in ranges {
            engine.give_range(Pfn(at), n, mt).expect("in use");
        }
        assert_eq!(engine.free_frames(), frames);
        assert_eq!(engine.whole_blocks(), 12);
    }
}

/// Each free block is reported once as long as it stays free, and again when it has been in use. The seed is printed.
#[test]
fn free_blocks_are_reported_once() {
    let first = setting("UNFRAG_SEED", 1);
    for seed in first..first + 20 {
        println!("seed {seed}");
        let mut c = Chance(seed);
        let frames = 512 * 600;
        let mut engine = full(frames);
        let mut known = vec![false; 600];
        let mut held: Vec<u64> = Vec::new();
        for _ in 0..200 {
            match c.below(4) {
                0 => {
                    let mut out = [0; 8];
                    let n = engine.take(&mut out, Order(9), MigrateType::Movable, true);
                    out[..n]
                        .iter()
                        .for_each(|f| known[(f / 512) as usize] = false);
                    held.extend(&out[..n]);
                }
                1 if !held.is_empty() => {
                    let f = held.swap_remove(c.below(held.len() as u64) as usize);
                    engine
                        .give(&[f], Order(9), MigrateType::Movable)
                        .expect("in use");
                }
                _ => {
                    let order = Order(9 + c.below(4) as u8);
                    let Some(run) = engine.take_unreported(order) else {
                        continue;
                    };
                    let stretches: Vec<(Pfn, u64)> = run.stretches().collect();
                    assert!(!stretches.is_empty());
                    let done = c.below(4) > 0;
                    for block in stretches
                        .iter()
                        .flat_map(|(f, n)| f.0 / 512..(f.0 + n) / 512)
                    {
                        assert!(!known[block as usize], "block {block} twice");
                        assert!(!held.contains(&(block * 512)));
                        known[block as usize] = done;
                    }
                    engine.give_reported(run, done).expect("in use");
                }
            }
            engine.validate().expect("every invariant");
        }
        while let Some(run) = engine.take_unreported(Order(9)) {
            for (f, n) in run.stretches() {
                (f.0 / 512..(f.0 + n) / 512).for_each(|b| known[b as usize] = true);
            }
            engine.give_reported(run, true).expect("in use");
        }
        let unknown = known.iter().filter(|&&k| !k).count();
        assert_eq!(unknown, held.len(), "all that is free is known");
        assert!(engine.take_unreported(Order(8)).is_none());
    }
}

/// What a search in vain has learned is right: nothing is found until a run comes free, and that is found then. How long the
/// searches took is printed.
#[test]
fn a_search_in_vain_hides_nothing_that_comes_later() {
    let frames = 8 << 18;
    let mut e = full(frames);
    let mut held = vec![0; frames as usize];
    let mt = MigrateType::Movable;
    assert_eq!(e.take(&mut held, Order(0), mt, true), held.len());
    // Every other frame is free: no two side by side.
    let odd: Vec<u64> = held.iter().copied().filter(|f| f % 2 == 1).collect();
    e.give(&odd, Order(0), mt).expect("in use");
    let mut one = [0];
    let mut time = |e: &mut Engine, order| {
        let begin = std::time::Instant::now();
        let got = e.take(&mut one, Order(order), mt, true);
        (begin.elapsed(), (got == 1).then_some(one[0]))
    };
    let first = time(&mut e, 1);
    assert_eq!(first.1, None);
    let mut again = std::time::Duration::MAX;
    for round in 0..100 {
        let pair = round * 20_000;
        e.give(&[pair], Order(0), mt).expect("in use");
        assert_eq!(time(&mut e, 3).1, None);
        assert_eq!(time(&mut e, 1).1, Some(pair), "at once");
        let vain = time(&mut e, 1);
        assert_eq!(vain.1, None);
        again = again.min(vain.0);
    }
    println!("first {:?}, then {again:?}", first.0);
    e.validate().expect("a sound state");
}

/// Memory is the same whether it is added in one piece or in several, of whole gigabytes or of parts of them.
#[test]
fn memory_may_be_added_in_any_pieces() {
    const END: u64 = (3 << 18) + 777;
    let all: Vec<_> = [
        vec![5, END],
        vec![5, 1 << 18, 2 << 18, END],
        vec![5, 1 << 17, 3 << 17, 5 << 17, END],
    ]
    .iter()
    .map(|ends| {
        let (mut e, mut words) = engine(4 << 18);
        for piece in ends.windows(2) {
            assert_eq!(
                e.add(Pfn(piece[0]), piece[1] - piece[0], &mut words),
                Ok(())
            );
            e.validate().expect("a sound state");
        }
        for at in [5, (1 << 18) - 1, 1 << 18, 2 << 18, END - 1] {
            let again = e.add(Pfn(at), 1 << 17, &mut words);
            assert_eq!(again, Err(GiveError::Present(Pfn(at))));
        }
        let around = e.add(Pfn(0), 4 << 18, &mut words);
        assert!(matches!(around, Err(GiveError::Present(_))));
        assert_eq!((e.present(), e.free_frames()), (END - 5, END - 5));
        let mut out = [0; 3];
        assert_eq!(e.take(&mut out, Order(18), MigrateType::Movable, false), 2);
        out.sort_unstable();
        assert_eq!(out, [0, 1 << 18, 2 << 18]);
        (e.counts(), e.free_blocks())
    })
    .collect();
    assert!(all.iter().all(|one| *one == all[0]));
}

/// However frames come, in a row, by chance, or both, and whatever else is among them: a batch ends as if each came alone.
#[test]
fn a_batch_does_what_its_frames_would_one_by_one() {
    const FRAMES: u64 = if cfg!(miri) { 3 << 9 } else { 40 << 9 };
    let mut chance = Chance(11);
    for mt in TYPES {
        let (mut batches, mut singles) = (full(FRAMES), full(FRAMES));
        let mut taken = vec![0; FRAMES as usize / 8 * 7];
        for e in [&mut batches, &mut singles] {
            assert_eq!(e.take(&mut taken, Order(0), mt, true), taken.len());
        }
        let mut rest = &taken[..];
        while !rest.is_empty() {
            let n = (1 + chance.below(130) as usize).min(rest.len());
            let (own, others) = rest.split_at(n);
            rest = others;
            let mut batch = own.to_vec();
            // In a row, turned around, by chance from somewhere on, or every other one.
            match chance.below(4) {
                0 => batch.reverse(),
                1 => {
                    for i in (n / 2..n).rev() {
                        batch.swap(i, chance.below(i as u64 + 1) as usize);
                    }
                }
                2 => batch.sort_by_key(|frame| frame % 2),
                _ => {}
            }
            if chance.below(2) == 0 {
                let wrong = [batch[n / 2], 0, FRAMES, 1 << 40, u64::MAX];
                let at = chance.below(n as u64 + 1) as usize;
                batch.insert(at, wrong[chance.below(5) as usize]);
            }
            let alone = batch
                .iter()
                .map(|&frame| singles.give(&[frame], Order(0), mt));
            // All of them are given back, whatever came of the ones before.
            let alone = alone.fold(Ok(()), Result::and);
            assert_eq!(batches.give(&batch, Order(0), mt), alone, "{batch:?}");
            // Miri takes too long to look at everything after each.
            if !cfg!(miri) {
                assert_eq!(batches.counts(), singles.counts(), "{batch:?}");
            }
        }
        for e in [&mut batches, &mut singles] {
            e.validate().expect("a sound state");
        }
        assert_eq!(batches.free_blocks(), singles.free_blocks());
        let mut out = [vec![0; 999], vec![0; 999]];
        batches.take(&mut out[0], Order(0), mt, true);
        singles.take(&mut out[1], Order(0), mt, true);
        assert_eq!(out[0], out[1]);
    }
}
