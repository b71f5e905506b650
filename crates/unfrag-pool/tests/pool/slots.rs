//! Threads that keep nothing for themselves, since all slots are taken: they get what others get, and the same errors.

use super::{Random, check_all_free, stamp};
use std::time::{Duration, Instant};
use unfrag_pool::{AllocError, Movable, Order, Pool};

const MIB: usize = 1 << 20;

/// More than any of these tests may take, and far less than the patience of their pools.
const SOON: Duration = Duration::from_secs(20);

/// Pools in which this thread has a slot, and in which it has none.
fn pools(mib: usize) -> [Pool; 2] {
    [4, 0].map(|threads| {
        let pool = Pool::builder().arena(mib * MIB).threads(threads);
        let pool = pool.patience(Duration::from_secs(600)).build();
        pool.expect("a pool")
    })
}

/// A quarter of all frames, in blocks that can be moved, from everywhere.
fn fragment(pool: &Pool) -> Vec<Movable<'_>> {
    let mut random = Random::new(3);
    let mut all = Vec::new();
    while let Ok(mut m) = pool.try_alloc_movable(Order(0)) {
        stamp(&mut m.pin_mut(), 1);
        all.push(m);
    }
    all.retain(|_| random.below(4) == 0);
    pool.flush();
    all
}

#[test]
fn a_request_gets_the_error_that_is_true() {
    for pool in pools(16) {
        let begin = Instant::now();
        for order in [13, 19, 30, 31, 32, 63, 64, 255] {
            let order = Order(order);
            let too_large = Some(AllocError::OrderTooLarge);
            assert_eq!(pool.try_alloc(order).err(), too_large, "{order:?}");
            assert_eq!(pool.alloc(order).err(), too_large, "{order:?}");
            assert_eq!(pool.alloc_movable(order).err(), too_large, "{order:?}");
            assert_eq!(pool.alloc_raw(order).err(), too_large, "{order:?}");
        }
        let held = fragment(&pool);
        let fragmented = Some(AllocError::Fragmented);
        assert_eq!(pool.try_alloc(Order::HUGE).err(), fragmented);
        let mut rest = vec![];
        loop {
            rest.extend(std::iter::from_fn(|| pool.try_alloc(Order(0)).ok()));
            match pool.try_alloc(Order::HUGE).err() {
                Some(AllocError::Short) => break,
                // kcompactd has a block apart: its frames are free, but nobody's to take until it is done.
                other => assert_eq!(other, fragmented),
            }
            assert!(begin.elapsed() < SOON, "it has done with the block");
        }
        assert!(begin.elapsed() < SOON, "nobody waited");
        drop((held, rest));
        check_all_free(&pool);
    }
}

#[test]
fn a_request_for_a_huge_page_compacts() {
    for pool in pools(16) {
        let held = fragment(&pool);
        let begin = Instant::now();
        let huge = pool.alloc(Order::HUGE).expect("made");
        assert!(begin.elapsed() < SOON, "it compacted at once");
        let stats = pool.stats();
        assert!(stats.event("compact_stall") + stats.event("compact_daemon_wake") > 0);
        drop((huge, held));
        check_all_free(&pool);
    }
}

/// What does not fit into the arenas comes of no free, however long one waits.
#[test]
fn nobody_waits_for_what_cannot_come() {
    for threads in [4, 0] {
        let pool = Pool::builder().arena(4 * MIB).limit(1 << 30);
        let pool = pool.threads(threads).patience(Duration::MAX).build();
        let pool = pool.expect("a pool");
        assert_eq!(pool.alloc(Order(11)).err(), Some(AllocError::Short));
        let bytes = pool.alloc_bytes(4 * MIB + 1).err();
        assert_eq!(bytes, Some(AllocError::Short));
        assert_eq!(pool.alloc_bytes(usize::MAX).err(), bytes);
        check_all_free(&pool);
    }
}

/// What threads without a slot take and give is counted as that of others.
#[test]
fn what_they_take_is_counted() {
    for pool in pools(16) {
        let block = pool.alloc(Order(3)).expect("memory");
        assert_eq!((pool.stats().pgalloc, pool.stats().pgfree), (8, 0));
        assert_eq!(pool.stats().free, pool.stats().present - 8);
        drop(block);
        assert_eq!((pool.stats().pgalloc, pool.stats().pgfree), (8, 8));
    }
}
