//! Taking frames, and giving them back.

use super::{Random, check_all_free, is_stamped, setting, stamp};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use unfrag_pool::{AllocError, Order, Pool, PoolError};

const MIB: usize = 1 << 20;

/// Blocks of all orders are aligned, do not overlap, and are free again when they have been dropped.
#[test]
fn blocks_are_aligned_and_come_back() {
    let pool = Pool::builder().arena(64 * MIB).build().expect("a pool");
    let all = pool.stats().free;
    assert_eq!(all, 64 << 8);
    let mut held = Vec::new();
    for order in [0, 1, 2, 3, 5, 8, 9, 10] {
        let mut block = pool.alloc(Order(order)).expect("memory");
        assert_eq!(block.len(), 4096 << order);
        assert!(block.as_ptr().addr().is_multiple_of(block.len()));
        stamp(&mut block, order.into());
        held.push(block);
    }
    for block in &held {
        assert!(is_stamped(block, block.order().0.into()));
    }
    let used: u64 = held.iter().map(|b| 1 << b.order().0).sum();
    assert_eq!(pool.stats().free, all - used);
    assert_eq!(pool.stats().pgalloc - pool.stats().pgfree, used);
    drop(held);
    check_all_free(&pool);
    let stats = pool.stats();
    assert_eq!(stats.free, all);
    assert_eq!(stats.pgalloc, stats.pgfree);
}

/// Threads that allocate, write, check and free, some what others allocated. The seed is printed.
#[test]
fn threads_never_share_a_frame() {
    let seed = setting("UNFRAG_SEED", 1);
    println!("seed {seed}");
    // What waits for a thread that does not run is in use, too.
    let pool = Pool::builder().arena(1024 * MIB).build().expect("a pool");
    std::thread::scope(|s| {
        let (to, from): (Vec<_>, Vec<_>) = (0..4).map(|_| channel()).unzip();
        let mut threads = Vec::new();
        for (t, from) in from.into_iter().enumerate() {
            let (to, pool) = (to[(t + 1) % 4].clone(), &pool);
            threads.push(s.spawn(move || {
                let mut random = Random::new(seed + t as u64);
                let mut held = Vec::new();
                for step in 0..20_000 {
                    match random.below(5) {
                        0 | 1 if held.len() < 2000 => {
                            let order = Order([0, 0, 0, 1, 2, 3, 4][random.below(7)]);
                            let mut block = pool.alloc(order).expect("memory");
                            let number = (t as u64) << 32 | step;
                            stamp(&mut block[..64], number);
                            held.push((block, number));
                        }
                        2 if !held.is_empty() => {
                            let of = held.swap_remove(random.below(held.len()));
                            // The neighbour may have ended.
                            let _ = to.send(of);
                        }
                        3 => {
                            for (block, number) in from.try_iter() {
                                assert!(is_stamped(&block[..64], number));
                            }
                        }
                        _ if !held.is_empty() => {
                            let (block, number) = held.swap_remove(random.below(held.len()));
                            assert!(is_stamped(&block[..64], number));
                        }
                        _ => {}
                    }
                }
            }));
        }
        // Joined, a thread has given back what it kept; a scope alone does not wait for that.
        for t in threads {
            t.join().expect("no panic");
        }
    });
    check_all_free(&pool);
    let stats = pool.stats();
    assert_eq!(stats.pgalloc, stats.pgfree);
}

/// Huge pages come first, and what no huge page was there for is reported.
#[test]
fn an_extent_says_what_is_not_huge() {
    let pool = Pool::builder()
        .arena(16 * MIB)
        .patience(Duration::ZERO)
        .build()
        .expect("a pool");
    let extent = pool.alloc_bytes(5 * MIB + 1).expect("memory");
    assert_eq!(
        (extent.len(), extent.huge_bytes()),
        (5 * MIB + 4096, 4 * MIB)
    );
    assert_eq!(extent.fallback_bytes(), MIB + 4096);
    drop(extent);
    // A frame in every block of 2 MiB: no huge page is left.
    let singles: Vec<_> = std::iter::from_fn(|| pool.try_alloc(Order(0)).ok()).collect();
    let some: Vec<_> = singles
        .into_iter()
        .filter(|f| f.number() % 512 == 7)
        .collect();
    assert_eq!(some.len(), 8);
    let mut extent = pool.alloc_bytes(4 * MIB).expect("smaller blocks");
    assert_eq!((extent.huge_bytes(), extent.fallback_bytes()), (0, 4 * MIB));
    assert!(extent.pieces().len() < 64, "as few as there were");
    extent.pieces_mut()[0].fill(1);
    assert!(pool.stats().event("thp_fault_fallback") >= 2);
    // More than there is: nothing is taken.
    let free = pool.stats().free;
    assert!(pool.alloc_bytes(16 * MIB).is_err());
    assert_eq!(pool.stats().free, free);
}

/// `try_` fails at once; the other form waits for what another thread gives back.
#[test]
fn an_allocation_waits_for_others() {
    let pool = Pool::builder()
        .arena(4 * MIB)
        .patience(Duration::from_secs(60))
        .build()
        .expect("a pool");
    let mut all: Vec<_> = std::iter::from_fn(|| pool.try_alloc(Order(0)).ok()).collect();
    assert_eq!(all.len(), 1024);
    assert_eq!(pool.try_alloc(Order(0)).err(), Some(AllocError::Short));
    let begin = Instant::now();
    std::thread::scope(|s| {
        let waits = s.spawn(|| pool.alloc(Order(3)).map(|f| f.number()));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waits.is_finished());
        all.truncate(512);
        let got = waits.join().expect("no panic");
        assert!(got.is_ok(), "{got:?}");
    });
    assert!(begin.elapsed() < Duration::from_secs(50), "it was woken");
    assert!(pool.stats().event("allocstall") > 0);
}

/// Patience ends.
#[test]
fn a_full_pool_says_so() {
    let pool = Pool::builder()
        .arena(4 * MIB)
        .patience(Duration::from_millis(20))
        .build()
        .expect("a pool");
    let _all: Vec<_> = std::iter::from_fn(|| pool.try_alloc(Order(0)).ok()).collect();
    assert_eq!(pool.alloc(Order(0)).err(), Some(AllocError::Short));
    assert_eq!(pool.alloc(Order(19)).err(), Some(AllocError::OrderTooLarge));
}

/// Memory may be added later, up to the limit.
#[test]
fn a_pool_grows_up_to_its_limit() {
    let pool = Pool::builder()
        .arena(4 * MIB)
        .limit(16 * MIB)
        .build()
        .expect("a pool");
    let first: Vec<_> = std::iter::from_fn(|| pool.try_alloc(Order::HUGE).ok()).collect();
    assert_eq!(first.len(), 2);
    pool.add_arena(8 * MIB, None).expect("room");
    let second: Vec<_> = std::iter::from_fn(|| pool.try_alloc(Order::HUGE).ok()).collect();
    assert_eq!(second.len(), 4);
    let error = pool.add_arena(8 * MIB, None).expect_err("no room");
    assert!(
        matches!(error, PoolError::TooLarge { frames: 2048 }),
        "{error}"
    );
    assert!(matches!(pool.add_arena(4096, None), Err(PoolError::Empty)));
    assert!(matches!(Pool::builder().build(), Err(PoolError::Empty)));
    let marks = Pool::builder().arena(4 * MIB).watermarks(9, 3, 4).build();
    assert!(matches!(marks, Err(PoolError::Watermarks)));
}

/// What is released is the pool's still, and reads as zeros.
#[test]
fn released_memory_reads_as_zeros() {
    let pool = Pool::builder()
        .arena(8 * MIB)
        .populate(true)
        .build()
        .expect("a pool");
    for mut block in std::iter::from_fn(|| pool.try_alloc(Order::HUGE).ok()).collect::<Vec<_>>() {
        block.fill(0xAA);
    }
    assert_eq!(pool.release(3).expect("the system agrees"), 3);
    let all: Vec<_> = std::iter::from_fn(|| pool.try_alloc(Order::HUGE).ok()).collect();
    let zeros = all.iter().filter(|b| b.iter().all(|&x| x == 0)).count();
    assert_eq!((all.len(), zeros), (4, 3));
}

/// A pool ends while threads that used it go on, and another one begins.
#[test]
fn pools_come_and_go() {
    for _ in 0..20 {
        let a = Pool::builder().arena(4 * MIB).build().expect("a pool");
        let b = Pool::builder().arena(4 * MIB).build().expect("a pool");
        let (x, y) = (a.alloc(Order(0)), b.alloc(Order(0)));
        let (x, y) = (x.expect("memory"), y.expect("memory"));
        assert_ne!(x.as_ptr(), y.as_ptr());
    }
}

#[test]
fn a_block_by_address_goes_back_once_at_its_order() {
    let pool = Pool::builder().arena(64 << 20).build().expect("a pool");
    let block = pool.alloc_raw(Order(3)).expect("a block");
    assert!(block.addr().get().is_multiple_of(8 * 4096));
    // SAFETY: the block is ours, and given back once.
    unsafe {
        block.write_bytes(1, 8 * 4096);
        pool.free_raw(block, Order(3));
    }
    let stats = pool.stats();
    assert_eq!(stats.free, stats.present);
}

/// What a misuse of blocks by address says.
#[cfg(debug_assertions)]
fn misuse(f: impl FnOnce(&Pool) + Send + 'static) -> String {
    let run = std::thread::spawn(move || {
        let pool = Pool::builder().arena(64 << 20).build().expect("a pool");
        f(&pool);
    });
    let payload = run.join().expect_err("a misuse");
    let said = payload.downcast_ref::<String>();
    said.expect("a message").clone()
}

#[cfg(debug_assertions)]
#[test]
fn a_misuse_of_a_block_by_address_has_a_name_in_debug_builds() {
    // SAFETY: each call is a misuse, which ends before anything is given back.
    let twice = misuse(|pool| unsafe {
        let block = pool.alloc_raw(Order(1)).expect("a block");
        pool.free_raw(block, Order(1));
        pool.free_raw(block, Order(1));
    });
    assert!(
        twice.contains("is freed twice, or was never allocated"),
        "{twice}"
    );
    // SAFETY: as above.
    let order = misuse(|pool| unsafe {
        let block = pool.alloc_raw(Order(2)).expect("a block");
        pool.free_raw(block, Order(3));
    });
    assert!(
        order.contains("was allocated at order 2 and is freed at order 3"),
        "{order}"
    );
    // SAFETY: as above.
    let inside = misuse(|pool| unsafe {
        let block = pool.alloc_raw(Order(4)).expect("a block");
        pool.free_raw(block.add(5 * 4096), Order(0));
    });
    assert!(
        inside.contains("is inside of the block of order 4"),
        "{inside}"
    );
    // SAFETY: as above.
    let foreign = misuse(|pool| unsafe {
        let mut other = [0_u8; 4096];
        pool.free_raw(std::ptr::NonNull::from(&mut other).cast(), Order(0));
    });
    assert!(
        foreign.contains("no frame of this pool begins at"),
        "{foreign}"
    );
}
