//! Blocks that may be moved, and compaction.

use super::calls::until;
use super::{Random, check_all_free, is_stamped, setting, stamp};
use std::time::{Duration, Instant};
use unfrag_pool::{Movable, Order, Pool};

const MIB: usize = 1 << 20;

/// A pool of so many MiB with a random part of it in movable blocks; each has its number as a stamp.
fn scattered<'p>(pool: &'p Pool, random: &mut Random, part: usize) -> Vec<(u64, Movable<'p>)> {
    let mut all = Vec::new();
    while let Ok(mut m) = pool.try_alloc_movable(Order([0, 0, 0, 1, 2, 3][random.below(6)])) {
        let number = all.len() as u64;
        stamp(&mut m.pin_mut(), number);
        all.push((number, m));
    }
    while let Ok(mut m) = pool.try_alloc_movable(Order(0)) {
        stamp(&mut m.pin_mut(), all.len() as u64);
        all.push((all.len() as u64, m));
    }
    all.retain(|_| random.below(100) < part);
    pool.flush();
    all
}

/// Compaction makes huge pages, and nothing is lost; what is pinned stays where it is. The seed is printed.
#[test]
fn compaction_makes_huge_pages_and_loses_nothing() {
    let first = setting("UNFRAG_SEED", 1);
    for seed in first..first + 4 {
        println!("seed {seed}");
        let pool = Pool::builder().arena(64 * MIB).build().expect("a pool");
        let mut random = Random::new(seed);
        let held = scattered(&pool, &mut random, 30);
        let before = pool.stats().whole_blocks;
        assert!(before < 4, "{before} of 32 blocks");
        let pinned: Vec<_> = held
            .iter()
            .step_by(3000)
            .map(|(n, m)| (*n, m.pin()))
            .collect();
        let at: Vec<_> = pinned.iter().map(|(_, p)| p.as_ptr()).collect();
        let gained = pool.compact(u32::MAX);
        let stats = pool.stats();
        // kcompactd may have made some as well.
        assert!(stats.whole_blocks >= before + gained);
        // 70 % is free; at most one block is lost to each pinned one, and a little to orders.
        let possible = stats.free as u32 / 512 - pinned.len() as u32 - 2;
        assert!(
            stats.whole_blocks >= possible,
            "{} of {possible}",
            stats.whole_blocks
        );
        assert!(stats.event("pgmigrate_success") > 1000);
        assert!(pinned.iter().zip(at).all(|((_, p), at)| p.as_ptr() == at));
        assert!(pinned.iter().all(|(n, p)| is_stamped(p, *n)));
        drop(pinned);
        assert!(held.iter().all(|(n, m)| is_stamped(&m.pin(), *n)));
        drop(held);
        check_all_free(&pool);
    }
}

/// A huge page is made for whoever waits for one, and kcompactd keeps some ready.
#[test]
fn a_huge_page_is_made_on_demand_and_ahead_of_it() {
    let pool = Pool::builder()
        .arena(64 * MIB)
        .patience(Duration::from_secs(30))
        .build()
        .expect("a pool");
    let held = scattered(&pool, &mut Random::new(5), 50);
    let huge: Vec<_> = (0..8)
        .map(|_| pool.alloc(Order::HUGE).expect("made"))
        .collect();
    assert!(huge.iter().all(|h| h.len() == 2 * MIB));
    assert!(held.iter().all(|(n, m)| is_stamped(&m.pin(), *n)));
    drop((huge, held));

    let pool = Pool::builder()
        .arena(64 * MIB)
        .keep_huge(6)
        .build()
        .expect("a pool");
    let held = scattered(&pool, &mut Random::new(6), 40);
    // A block is whole a moment before the daemon counts that it made it.
    until("kcompactd makes huge pages ahead of demand", || {
        let stats = pool.stats();
        stats.whole_blocks >= 6 && stats.event("compact_daemon_success") > 0
    });
    assert!(held.iter().all(|(n, m)| is_stamped(&m.pin(), *n)));
}

/// Readers and writers never see a block half moved.
#[test]
fn blocks_move_under_load() {
    let pool = Pool::builder().arena(64 * MIB).build().expect("a pool");
    let mut held = scattered(&pool, &mut Random::new(7), 40);
    let end = Instant::now() + Duration::from_millis(1500);
    std::thread::scope(|s| {
        s.spawn(|| {
            while Instant::now() < end {
                pool.compact(4);
                // Holes for the next round.
                let holes: Vec<_> = (0..3)
                    .filter_map(|_| pool.try_alloc(Order::HUGE).ok())
                    .collect();
                drop(holes);
            }
        });
        let chunks = held.len().div_ceil(3);
        for (t, part) in held.chunks_mut(chunks).enumerate() {
            let pool = &pool;
            s.spawn(move || {
                let mut random = Random::new(t as u64 + 100);
                while Instant::now() < end {
                    let i = random.below(part.len());
                    let (number, m) = &mut part[i];
                    assert!(is_stamped(&m.pin(), *number));
                    if random.below(4) == 0 {
                        *number = random.next();
                        stamp(&mut m.pin_mut(), *number);
                    }
                    if random.below(8) == 0
                        && let Ok(mut new) = pool.try_alloc_movable(Order(0))
                    {
                        let number = random.next();
                        stamp(&mut new.pin_mut(), number);
                        part[i] = (number, new);
                    }
                }
            });
        }
    });
    assert!(pool.stats().event("pgmigrate_success") > 0);
    assert!(held.iter().all(|(n, m)| is_stamped(&m.pin(), *n)));
    drop(held);
    check_all_free(&pool);
}

/// Runs above a huge page are made as well, for whoever waits for one: the cheapest one.
#[test]
fn a_run_of_huge_pages_is_made_on_demand() {
    let pool = Pool::builder()
        .arena(128 * MIB)
        .patience(Duration::from_secs(30))
        .build()
        .expect("a pool");
    let held = scattered(&pool, &mut Random::new(8), 30);
    for order in [10, 11, 12, 13] {
        assert!(pool.try_alloc(Order(order)).is_err(), "not without moving");
        let run = pool.alloc(Order(order)).expect("made");
        assert_eq!(run.len(), 4096 << order);
    }
    assert!(held.iter().all(|(n, m)| is_stamped(&m.pin(), *n)));
    drop(held);
    check_all_free(&pool);
}

/// Blocks of 2 MiB with `pinned` movable frames in the first ones, of which one is pinned, and 250 in each of the others.
fn some_stay(pool: &Pool, blocks: usize, pinned: usize) -> Vec<Movable<'_>> {
    let mut of_block = vec![0; blocks];
    let mut all: Vec<Movable<'_>> = Vec::new();
    while let Ok(m) = pool.try_alloc_movable(Order(0)) {
        all.push(m);
    }
    let first = all.iter().map(|m| m.pin().as_ptr() as usize).min();
    let first = first.expect("some") & !(2 * MIB - 1);
    all.retain(|m| {
        let block = (m.pin().as_ptr() as usize - first) / (2 * MIB);
        of_block[block] += 1;
        of_block[block] <= if block < pinned { 9 } else { 250 }
    });
    pool.flush();
    all
}

/// 160 blocks of which a frame is pinned, and which would cost the least, do not hide 60 others.
#[test]
fn what_is_pinned_hides_no_other_blocks() {
    const PINNED: usize = 160;
    let pool = Pool::builder().arena(512 * MIB).build().expect("a pool");
    let all = some_stay(&pool, 257, PINNED);
    let mut has_pin = vec![false; 257];
    let first = all.iter().map(|m| m.pin().as_ptr() as usize).min();
    let first = first.expect("some") & !(2 * MIB - 1);
    let pins: Vec<_> = all
        .iter()
        .filter_map(|m| {
            let pin = m.pin();
            let block = (pin.as_ptr() as usize - first) / (2 * MIB);
            let is_first = block < PINNED && !std::mem::replace(&mut has_pin[block], true);
            is_first.then_some(pin)
        })
        .collect();
    let before = pool.stats().whole_blocks;
    for _ in 0..3 {
        assert_eq!(pool.compact(15), 15);
    }
    let stats = pool.stats();
    assert!(stats.whole_blocks >= before + 45);
    // Who says no is asked once, and then again after 2 rounds.
    let noes = stats.event("pgmigrate_fail");
    assert!(noes <= 2 * PINNED as u64 + 10, "{noes} times in vain");
    drop(pins);
    drop(all);
    check_all_free(&pool);
}

/// Where nothing can be gained, kcompactd is not woken by each request that fails.
#[test]
fn kcompactd_rests_where_nothing_can_be_gained() {
    let pool = Pool::builder()
        .arena(64 * MIB)
        .keep_huge(20)
        .build()
        .expect("a pool");
    let all = some_stay(&pool, 33, 0);
    let pins: Vec<_> = all.iter().map(|m| m.pin()).collect();
    let huge: Vec<_> = std::iter::from_fn(|| pool.try_alloc(Order::HUGE).ok()).collect();
    let mut fails = 0;
    let end = Instant::now() + Duration::from_millis(700);
    while Instant::now() < end {
        fails += u32::from(pool.try_alloc(Order::HUGE).is_err());
        std::thread::yield_now();
    }
    let wakes = pool.stats().event("compact_daemon_wake");
    println!("{fails} requests failed, kcompactd woke {wakes} times");
    assert!(wakes <= 8 + u64::from(fails) / 32, "{wakes} of {fails}");
    drop((pins, huge));
    drop(all);
    check_all_free(&pool);
}
