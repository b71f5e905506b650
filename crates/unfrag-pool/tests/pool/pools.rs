//! What is of one pool, given to another: each call that takes such a thing says no, and nothing has changed.

use super::check_all_free;
use std::sync::{Arc, Mutex};
use unfrag_pool::{AllocError, Order, Owned, Owner, OwnerId, Place, Pool};

const MIB: usize = 1 << 20;

fn pool() -> Pool {
    Pool::builder().arena(16 * MIB).build().expect("a pool")
}

/// An owner with blocks of two pools, whose frames have the same numbers.
#[derive(Default)]
struct OfTwo {
    asked: Mutex<Vec<Owned>>,
    other: Mutex<Vec<Owned>>,
    offered: Mutex<usize>,
    is_honest: bool,
}

impl Owner for OfTwo {
    fn migrate(&self, _tag: u32, place: Place<'_>) {
        let from = place.from();
        let mut other = self.other.lock().expect("no panic");
        let twin = other.iter_mut().find(|b| b.frame() == from);
        let twin = twin.expect("a block with the same number");
        assert!(!place.is_for(twin));
        if self.is_honest {
            let mut asked = self.asked.lock().expect("no panic");
            if let Some(block) = asked.iter_mut().find(|b| place.is_for(b)) {
                place.carry(block);
            }
            return;
        }
        *self.offered.lock().expect("no panic") += 1;
        let refused = if from.is_multiple_of(2) {
            !place.carry(twin)
        } else {
            !place.moved(twin)
        };
        assert!(refused, "a block of another pool");
        assert_eq!(twin.frame(), from);
    }
}

/// All frames of a pool, for an owner.
fn fill(pool: &Pool, id: OwnerId) -> Vec<Owned> {
    std::iter::from_fn(|| pool.try_alloc_for(id, 0, Order(0)).ok()).collect()
}

fn set_up(is_honest: bool) -> (Pool, Pool, Arc<OfTwo>) {
    let (a, b) = (pool(), pool());
    let owner = Arc::new(OfTwo {
        is_honest,
        ..OfTwo::default()
    });
    let ids = [&a, &b].map(|p| p.register(owner.clone()).ok().expect("the first owner"));
    let mut of_a = fill(&a, ids[0]);
    of_a.retain(|f| f.frame().is_multiple_of(7));
    for block in &mut of_a {
        block.fill(0x11);
    }
    a.flush();
    *owner.asked.lock().expect("no panic") = of_a;
    *owner.other.lock().expect("no panic") = fill(&b, ids[1]);
    (a, b, owner)
}

#[test]
fn a_block_of_another_pool_with_the_same_number_is_not_the_one_that_moved() {
    for is_honest in [false, true] {
        let (a, b, owner) = set_up(is_honest);
        let gained = a.compact(4);
        assert_eq!(gained > 0, is_honest);
        assert_eq!(*owner.offered.lock().expect("no panic") > 0, !is_honest);
        // All that pool A takes for free is nobody else's.
        let fresh = std::iter::from_fn(|| a.try_alloc(Order(0)).ok());
        let mut fresh: Vec<_> = fresh.collect();
        fresh.iter_mut().for_each(|f| f.fill(0xEE));
        let held = std::mem::take(&mut *owner.asked.lock().expect("no panic"));
        assert!(held.iter().all(|b| b.iter().all(|&x| x == 0x11)));
        assert_eq!(fresh.len() + held.len(), 16 << 8);
        drop((held, fresh));
        owner.other.lock().expect("no panic").clear();
        check_all_free(&a);
        check_all_free(&b);
    }
}

#[test]
fn an_owner_of_another_pool_gets_no_block() {
    struct Nothing;
    impl Owner for Nothing {
        fn migrate(&self, _tag: u32, _place: Place<'_>) {}
    }
    let (a, b) = (pool(), pool());
    let ids = [&a, &b].map(|p| p.register(Arc::new(Nothing)).ok().expect("the first owner"));
    assert_ne!(ids[0], ids[1]);
    for (pool, foreign) in [(&a, ids[1]), (&b, ids[0])] {
        let no = Some(AllocError::NoSuchOwner);
        assert_eq!(pool.alloc_for(foreign, 1, Order(0)).err(), no);
        assert_eq!(pool.try_alloc_for(foreign, 1, Order(3)).err(), no);
        check_all_free(pool);
    }
    // Of a pool that has ended, too.
    drop(a);
    let c = pool();
    assert!(c.register(Arc::new(Nothing)).is_ok());
    assert_eq!(
        c.alloc_for(ids[0], 1, Order(0)).err(),
        Some(AllocError::NoSuchOwner)
    );
}
