//! Owners that are removed: while they are called, with blocks that are out, and again and again.

use super::calls::{LONG, ends, until};
use super::{Random, check_all_free, is_stamped, setting, stamp};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use unfrag_pool::{AllocError, Order, Owned, Owner, OwnerId, Place, Pool, PoolError};

const MIB: usize = 1 << 20;

/// A cache that counts its calls, and those among them that come when it has gone.
#[derive(Default)]
struct Cache {
    blocks: Mutex<Vec<Option<Owned>>>,
    is_gone: AtomicBool,
    called_when_gone: AtomicU64,
    calls: AtomicU64,
}

impl Cache {
    fn called(&self) {
        self.calls.fetch_add(1, SeqCst);
        self.called_when_gone
            .fetch_add(self.is_gone.load(SeqCst).into(), SeqCst);
    }

    fn fill(&self, pool: &Pool, id: OwnerId, frames: u32) {
        for tag in 0..frames {
            let Ok(mut block) = pool.try_alloc_for(id, tag, Order(0)) else {
                return;
            };
            stamp(&mut block, tag.into());
            self.blocks.lock().expect("no panic").push(Some(block));
        }
    }
}

impl Owner for Cache {
    fn migrate(&self, tag: u32, place: Place<'_>) {
        self.called();
        let mut blocks = self.blocks.lock().expect("no panic");
        if let Some(Some(block)) = blocks.get_mut(tag as usize) {
            place.carry(block);
        }
        drop(blocks);
        self.called();
    }

    fn reclaim(&self, frames: usize) -> usize {
        self.called();
        let mut blocks = self.blocks.lock().expect("no panic");
        let some: Vec<_> = blocks
            .iter_mut()
            .filter_map(Option::take)
            .take(frames)
            .collect();
        drop(blocks);
        std::thread::yield_now();
        self.called();
        some.len()
    }
}

/// Ends the threads of a test, by whichever way it ends.
struct Ends<'t>(&'t AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

fn register(pool: &Pool, owner: Arc<dyn Owner>) -> OwnerId {
    pool.register(owner).ok().expect("room for an owner")
}

/// Owners come and go while kswapd, kcompactd and requests ask them: once an owner has been removed, it is not called, its
/// blocks stay as they are, and nothing is lost.
#[test]
fn an_owner_that_was_removed_is_not_called_again() {
    let seed = setting("UNFRAG_SEED", 1);
    println!("UNFRAG_SEED={seed}");
    let pool = Pool::builder()
        .arena(8 * MIB)
        .watermarks(0, 512, 1024)
        .keep_huge(2);
    let pool = pool.build().expect("a pool");
    let goes_on = AtomicBool::new(true);
    let calls = std::thread::scope(|threads| {
        let ends = Ends(&goes_on);
        // Memory is short all the time, and fragmented.
        let mut random = Random::new(seed);
        for _ in 0..2 {
            threads.spawn(|| {
                let mut held = vec![];
                while goes_on.load(SeqCst) {
                    held.extend(pool.alloc(Order(0)).ok());
                    if held.len() > 400 {
                        held.clear();
                    }
                    if held.len() % 64 == 0 {
                        drop(pool.alloc(Order::HUGE));
                    }
                }
            });
        }
        let mut calls = 0;
        for _ in 0..setting("UNFRAG_STEPS", 150) {
            let cache = Arc::new(Cache::default());
            let id = register(&pool, cache.clone());
            cache.fill(&pool, id, 200 + random.below(1000) as u32);
            std::thread::sleep(std::time::Duration::from_micros(random.below(3000) as u64));
            let was = pool.remove_owner(id).expect("it is there");
            cache.is_gone.store(true, SeqCst);
            // Nobody of the pool refers to it any more: it is this thread's, and that of its blocks.
            drop(was);
            assert_eq!(Arc::strong_count(&cache), 1);
            let blocks = cache.blocks.lock().expect("no panic");
            for (tag, block) in blocks.iter().enumerate() {
                let is_right = |b: &Owned| is_stamped(b, tag as u64);
                assert!(block.as_ref().is_none_or(is_right), "block {tag}");
            }
            drop(blocks);
            assert_eq!(cache.called_when_gone.load(SeqCst), 0);
            calls += cache.calls.load(SeqCst);
        }
        drop(ends);
        calls
    });
    assert!(calls > 0, "somebody was asked");
    check_all_free(&pool);
}

/// The blocks of an owner that was removed stand where they are, and no copy is begun on their account; its number is another
/// one's only after the last of them.
#[test]
fn blocks_of_an_owner_that_was_removed_stay_and_keep_its_number() {
    let pool = Pool::builder().arena(16 * MIB).build().expect("a pool");
    let cache = Arc::new(Cache::default());
    let id = register(&pool, cache.clone());
    // One frame of each block of 2 MiB.
    let all = std::iter::from_fn(|| pool.try_alloc_for(id, 0, Order(0)).ok());
    let (mut kept, gone): (Vec<_>, Vec<_>) = all.partition(|b| b.frame().is_multiple_of(512));
    drop(gone);
    kept.iter_mut().for_each(|b| b.fill(7));
    let places: Vec<u32> = kept.iter().map(Owned::frame).collect();
    pool.remove_owner(id).expect("it is there");
    let before = pool.stats();
    assert_eq!(pool.compact(8), 0);
    let after = pool.stats();
    for event in ["pgmigrate_success", "pgmigrate_fail"] {
        assert_eq!(after.event(event), before.event(event), "{event}");
    }
    assert!(kept.iter().all(|b| b.iter().all(|&x| x == 7)));
    assert!(places.iter().copied().eq(kept.iter().map(Owned::frame)));

    // What comes next has numbers of its own while blocks of the one that left are out.
    let next = register(&pool, cache.clone());
    assert_ne!(id, next);
    assert!(pool.try_alloc_for(id, 0, Order(0)).is_err());
    kept.clear();
    pool.flush();
    assert_eq!(pool.stats().whole_blocks, 8);
    pool.remove_owner(next).expect("it is there");
    // The old id is nobody's, whoever has the number.
    let again = register(&pool, cache);
    let said = [id, next].map(|id| pool.try_alloc_for(id, 0, Order(0)).map(drop));
    assert_eq!(said, [Err(AllocError::NoSuchOwner); 2]);
    assert!(pool.try_alloc_for(again, 0, Order(0)).is_ok());
    check_all_free(&pool);
}

/// More owners come and go than there are numbers.
#[test]
fn numbers_of_owners_come_back() {
    let pool = Pool::builder().arena(4 * MIB).build().expect("a pool");
    let cache = Arc::new(Cache::default());
    for round in 0..70_000 {
        let id = register(&pool, cache.clone());
        let block = pool.try_alloc_for(id, round, Order(0)).expect("a frame");
        pool.remove_owner(id).expect("it is there");
        drop(block);
    }
    let ids: Vec<_> = (0..u16::MAX)
        .map(|_| register(&pool, cache.clone()))
        .collect();
    assert!(pool.register(cache.clone()).is_err(), "the last number");
    let block = pool.try_alloc_for(ids[9], 0, Order(0)).expect("a frame");
    pool.remove_owner(ids[9]).expect("it is there");
    assert!(pool.register(cache.clone()).is_err(), "its block is out");
    drop(block);
    register(&pool, cache);
    check_all_free(&pool);
}

/// An owner that waits in a call until it is told to go on.
struct Slow {
    began: Sender<()>,
    go_on: Mutex<Receiver<()>>,
    pool: Mutex<Option<(Arc<Pool>, OwnerId)>>,
    ended: AtomicBool,
}

impl Owner for Slow {
    fn migrate(&self, _tag: u32, _place: Place<'_>) {}

    fn reclaim(&self, _frames: usize) -> usize {
        if let Some((pool, id)) = self.pool.lock().expect("no panic").take() {
            // In its own call it does not wait for itself; the second time it is gone.
            assert!(pool.remove_owner(id).is_ok());
            assert!(matches!(pool.remove_owner(id), Err(PoolError::NoSuchOwner)));
        }
        self.began.send(()).expect("heard");
        let told = self.go_on.lock().expect("no panic").recv_timeout(LONG);
        told.expect("told to go on");
        self.ended.store(true, SeqCst);
        0
    }
}

fn slow() -> (Arc<Slow>, Receiver<()>, Sender<()>) {
    let (began, begins) = channel();
    let (go, go_on) = channel();
    let slow = Slow {
        began,
        go_on: Mutex::new(go_on),
        pool: Mutex::new(None),
        ended: AtomicBool::new(false),
    };
    (Arc::new(slow), begins, go)
}

#[test]
fn who_removes_an_owner_waits_for_its_calls_but_not_in_one() {
    ends("a removal", || {
        let pool = Pool::builder().arena(4 * MIB).watermarks(0, 900, 1000);
        let pool = Arc::new(pool.build().expect("a pool"));
        let (owner, begins, go) = slow();
        let id = register(&pool, owner.clone());
        let held: Vec<_> = (0..600)
            .filter_map(|_| pool.try_alloc(Order(0)).ok())
            .collect();
        begins.recv_timeout(LONG).expect("kswapd calls");
        std::thread::scope(|threads| {
            let waits = threads.spawn(|| {
                pool.remove_owner(id).expect("it is there");
                assert!(owner.ended.load(SeqCst), "the call has ended");
            });
            // It has gone at once for all others, while its call runs.
            until("it has gone", || {
                pool.try_alloc_for(id, 0, Order(0)).is_err()
            });
            assert!(!waits.is_finished());
            go.send(()).expect("heard");
            waits.join().expect("it ends");
        });
        // An owner that removes itself.
        let (owner, begins, go) = slow();
        let id = register(&pool, owner.clone());
        *owner.pool.lock().expect("no panic") = Some((pool.clone(), id));
        drop(held);
        let held: Vec<_> = (0..600)
            .filter_map(|_| pool.try_alloc(Order(0)).ok())
            .collect();
        begins.recv_timeout(LONG).expect("kswapd calls");
        go.send(()).expect("heard");
        until("the call ends", || owner.ended.load(SeqCst));
        until("the pool lets go of it", || Arc::strong_count(&owner) == 1);
        drop(held);
    });
}

/// Wrong removals, and what else is wrong once an owner has gone.
#[test]
fn wrong_removals_get_an_error_and_change_nothing() {
    let [a, b] = [0; 2].map(|_| Pool::builder().arena(4 * MIB).build().expect("a pool"));
    let cache = Arc::new(Cache::default());
    let [of_a, of_b] = [&a, &b].map(|p| register(p, cache.clone()));
    let gone = register(&a, cache.clone());
    drop(a.remove_owner(gone).expect("it is there"));
    for (what, pool, id) in [
        ("another pool's", &a, of_b),
        ("another pool's", &b, of_a),
        ("twice", &a, gone),
        ("elsewhere", &b, gone),
    ] {
        let said = pool.remove_owner(id).map(drop).expect_err(what);
        assert!(
            said.to_string().contains("not registered with this pool"),
            "{what}"
        );
        let asked = [
            pool.alloc_for(id, 0, Order(0)),
            pool.try_alloc_for(id, 0, Order(0)),
        ];
        assert!(
            asked
                .iter()
                .all(|r| matches!(r, Err(AllocError::NoSuchOwner))),
            "{what}"
        );
    }
    assert_eq!(Arc::strong_count(&cache), 3, "of two pools still");
    drop((
        a.alloc_for(of_a, 1, Order(3)),
        b.alloc_for(of_b, 1, Order(3)),
    ));
    check_all_free(&a);
    check_all_free(&b);
}
