//! What threads keep that do nothing is everybody's when memory is short.

use super::{Random, check_all_free, is_stamped, setting, stamp};
use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use unfrag::maps::Gigabyte;
use unfrag::{Barrier, Memory, MemoryConfig, MemoryLayout, MigrateType, Pfn, Request};
use unfrag_pool::{AllocError, Order, Pool};

const MIB: usize = 1 << 20;

/// Calls `f` while threads keep blocks of these orders, which they have freed, and do nothing.
fn with_idle<T>(pool: &Pool, threads: usize, orders: &[Order], f: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let mut ends = Vec::new();
        for _ in 0..threads {
            let (end, wait) = mpsc::channel::<()>();
            let (ready, is_ready) = mpsc::channel::<()>();
            scope.spawn(move || {
                let all = orders.iter().map(|&o| pool.try_alloc(o).expect("memory"));
                drop(all.collect::<Vec<_>>());
                ready.send(()).expect("a test");
                // Until the other end is dropped.
                let _ = wait.recv();
            });
            is_ready.recv().expect("a thread");
            ends.push(end);
        }
        let got = f();
        drop(ends);
        got
    })
}

/// As many huge pages as eight threads keep together.
fn small_pool(patience: Duration) -> Pool {
    let pool = Pool::builder().arena(64 * MIB).watermarks(0, 0, 0);
    pool.patience(patience).build().expect("a pool")
}

/// Without any patience: nobody is waited for. How long it took is printed.
#[test]
fn idle_threads_that_keep_all_leave_it_to_who_asks() {
    let mut times = Vec::new();
    for order in [Order(0), Order(3), Order::HUGE] {
        for _ in 0..10 {
            let pool = small_pool(Duration::ZERO);
            with_idle(&pool, 8, &[Order::HUGE; 4], || {
                assert_eq!(pool.stats().whole_blocks, 0, "they keep all");
                let begin = Instant::now();
                let got = pool.try_alloc(order);
                times.push(begin.elapsed());
                assert!(got.is_ok(), "{order:?}: {got:?}");
                assert_eq!(
                    pool.stats().free,
                    pool.stats().present - u64::from(order.frames())
                );
            });
            check_all_free(&pool);
        }
    }
    times.sort_unstable();
    println!("served in {:?} to {:?}", times[0], times[times.len() - 1]);
}

/// Every last frame can be had, whoever kept it.
#[test]
fn an_allocation_fails_when_nothing_is_left() {
    let pool = small_pool(Duration::ZERO);
    let orders = [
        Order(0),
        Order(0),
        Order(1),
        Order(2),
        Order(3),
        Order::HUGE,
    ];
    with_idle(&pool, 8, &orders, || {
        let all: Vec<_> = std::iter::from_fn(|| pool.try_alloc(Order(0)).ok()).collect();
        assert_eq!(all.len() as u64, pool.stats().present);
        assert_eq!(pool.try_alloc(Order(0)).err(), Some(AllocError::Short));
    });
    check_all_free(&pool);
}

/// A huge page of which an idle thread keeps one frame is whole for who asks for it.
#[test]
fn a_kept_frame_pins_no_huge_page() {
    let pool = small_pool(Duration::ZERO);
    with_idle(&pool, 4, &[Order(0); 8], || {
        let all: Vec<_> = std::iter::from_fn(|| pool.try_alloc(Order::HUGE).ok()).collect();
        assert_eq!(all.len(), 32);
    });
    check_all_free(&pool);
}

/// The same for compaction, of release, and of what is shown.
#[test]
fn what_is_whole_is_counted_and_released_whoever_keeps_it() {
    let pool = small_pool(Duration::ZERO);
    with_idle(&pool, 8, &[Order::HUGE; 4], || {
        assert_eq!(pool.release(100).expect("a system"), 32);
    });
    with_idle(&pool, 8, &[Order(0); 8], || {
        let [(_, buddyinfo), ..] = pool.procfs();
        let free = 4 * pool.stats().present;
        assert_eq!(pool.stats().whole_blocks, 32, "{buddyinfo} {free}");
    });
    check_all_free(&pool);
}

/// Threads that take all there is drain those that take and give all the while: each frame is one thread's at a time. The
/// seed is printed.
#[test]
fn busy_threads_are_drained_and_no_frame_is_two_threads() {
    let seed = setting("UNFRAG_SEED", 1);
    println!("seed {seed}");
    let pool = &small_pool(Duration::ZERO);
    let fails = &AtomicU32::new(0);
    let until = Instant::now() + Duration::from_millis(if cfg!(sanitized) { 3000 } else { 1000 });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let mut random = Random::new(seed * 100 + thread);
                let mut held = Vec::new();
                let mut number = thread << 32;
                while Instant::now() < until {
                    // More than the fourth part of all.
                    let most = if random.below(8) == 0 { 6000 } else { 3000 };
                    for _ in 0..2000 {
                        if random.below(100) < 55 && held.len() < most {
                            let order = [0, 0, 0, 0, 1, 2, 3, 9][random.below(8)];
                            let order = if random.below(8) > 0 { 0 } else { order };
                            let Ok(mut got) = pool.try_alloc(Order(order)) else {
                                fails.fetch_add(1, Relaxed);
                                continue;
                            };
                            number += 1;
                            stamp(&mut got[..64], number);
                            held.push((got, number));
                        } else if !held.is_empty() {
                            let (got, number) = held.swap_remove(random.below(held.len()));
                            assert!(is_stamped(&got[..64], number), "somebody else has it, too");
                        }
                    }
                }
            });
        }
    });
    println!("{} requests failed", fails.load(Relaxed));
    assert!(fails.load(Relaxed) > 0, "memory was short");
    pool.validate().expect("every invariant");
    check_all_free(pool);
}

/// There is just enough for all, so whoever waits a while gets what he asks for, whoever else takes, gives and drains. The
/// seed is printed.
#[test]
fn where_there_is_enough_for_all_nobody_goes_without() {
    let seed = setting("UNFRAG_SEED", 1);
    println!("seed {seed}");
    let pool = Pool::builder().arena(2 * MIB).watermarks(0, 0, 0);
    let pool = &pool
        .patience(Duration::from_secs(60))
        .build()
        .expect("a pool");
    let (asked, waited) = (&AtomicU32::new(0), &AtomicU32::new(0));
    let until = Instant::now() + Duration::from_secs(1);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                let mut random = Random::new(seed * 100 + thread);
                let mut held = Vec::new();
                while Instant::now() < until {
                    for _ in 0..100 {
                        if held.len() < 64 && random.below(5) < 3 {
                            asked.fetch_add(1, Relaxed);
                            held.push(pool.try_alloc(Order(0)).unwrap_or_else(|_| {
                                waited.fetch_add(1, Relaxed);
                                pool.alloc(Order(0)).expect("enough for all")
                            }));
                        } else if !held.is_empty() {
                            held.swap_remove(random.below(held.len()));
                        }
                    }
                }
            });
        }
    });
    println!("{asked:?} asked, {waited:?} waited");
    check_all_free(pool);
}

/// Says that a test ends, by a panic too.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// One takes and gives as fast as it can, another one drains it all the while and takes what came: no frame is both one's.
/// The barrier is the system's own, between threads on two CPUs.
#[test]
fn an_owner_and_who_drains_it_never_have_the_same_frame() {
    const FRAMES: u64 = 1024;
    let config = MemoryConfig {
        locals: 1,
        barrier: membarrier(MembarrierCommand::RegisterPrivateExpedited)
            .is_ok()
            // SAFETY: the system has each CPU execute one, and executes one where it goes on with another thread.
            .then(|| unsafe {
                Barrier::new(|| membarrier(MembarrierCommand::PrivateExpedited).is_ok())
            }),
        ..MemoryConfig::new(Pfn(0), FRAMES)
    };
    let mut directory = [Gigabyte::NONE];
    let mut words = vec![0; MemoryLayout::of(&config).words];
    let mut words = &mut words[..];
    let memory = Memory::<parking_lot::RawMutex>::new(config);
    let started = memory.start(&mut directory, &mut words);
    started.expect("a memory");
    memory.add(Pfn(0), FRAMES, &mut words).expect("new");
    let owner: Vec<AtomicU32> = (0..FRAMES).map(|_| AtomicU32::new(0)).collect();
    let set = |p: Pfn, from, to| assert_eq!(owner[p.0 as usize].swap(to, Relaxed), from, "{p:?}");
    let ends = AtomicBool::new(false);
    let (mut pairs, mut drains) = (0_u64, 0_u64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut own = memory.local().expect("one");
            while !ends.load(Relaxed) {
                for _ in 0..1000 {
                    let p = own.alloc(Order(0), MigrateType::Movable).expect("memory");
                    set(p, 0, 1);
                    set(p, 1, 0);
                    // SAFETY: nothing is at a frame, so nobody can use one.
                    unsafe { own.free(p, Order(0), MigrateType::Movable) }.expect("in use");
                    pairs += 1;
                }
            }
        });
        let until = Instant::now() + Duration::from_millis(500);
        let _end = End(&ends);
        while Instant::now() < until {
            memory.drain_locals();
            let some: Vec<Pfn> = (0..8)
                .map_while(|_| {
                    memory
                        .alloc(&Request::new(Order(0), MigrateType::Movable))
                        .ok()
                })
                .collect();
            some.iter().for_each(|&p| set(p, 0, 2));
            for &p in &some {
                set(p, 2, 0);
                // SAFETY: as above.
                unsafe { memory.free(p, Order(0), MigrateType::Movable) }.expect("in use");
            }
            drains += 1;
        }
    });
    println!("{pairs} pairs, {drains} drains");
    memory.validate().expect("every invariant");
    assert_eq!((memory.counts().free, memory.refused()), (FRAMES, 0));
}
