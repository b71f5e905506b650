//! Blocks that borrow nothing: a struct has them beside its pool, and they may be the last of it.

use super::{check_all_free, is_stamped, stamp};
use std::sync::Arc;
use unfrag_pool::{Block, Extent, MovableBlock, Order, Owned, Owner, Place, Pool};

const MIB: usize = 1 << 20;

/// One of each kind, with the pool that they are of.
struct Buffers {
    pool: Arc<Pool>,
    block: Block,
    extent: Extent<Block>,
    movable: Vec<MovableBlock>,
    owned: Owned,
}

struct Nothing;

impl Owner for Nothing {
    fn migrate(&self, _tag: u32, _place: Place<'_>) {}
}

fn buffers() -> Buffers {
    let pool = Arc::new(Pool::builder().arena(16 * MIB).build().expect("a pool"));
    let mut all: Vec<_> = std::iter::from_fn(|| pool.try_alloc_movable(Order(0)).ok()).collect();
    for (i, b) in all.iter_mut().enumerate() {
        stamp(&mut b.pin_mut(), i as u64);
    }
    // One of 64 stays.
    let mut i = 0;
    all.retain(|_| {
        i += 1;
        (i - 1) % 64 == 0
    });
    let movable = all.into_iter().map(|b| b.detach()).collect();
    pool.flush();
    let id = pool.register(Arc::new(Nothing)).ok().expect("an owner");
    pool.compact(6);
    Buffers {
        block: pool.alloc(Order(4)).expect("a block").zero().detach(),
        extent: pool.alloc_bytes(5 * MIB).expect("memory").detach(),
        movable,
        owned: pool.alloc_for(id, 1, Order(1)).expect("a block"),
        pool,
    }
}

fn are_right(movable: &[MovableBlock]) -> bool {
    let mut all = movable.iter().enumerate();
    all.all(|(i, b)| is_stamped(&b.pin(), 64 * i as u64))
}

#[test]
fn a_detached_block_is_what_it_was() {
    let mut b = buffers();
    assert_eq!((b.block.len(), b.block.order()), (16 * 4096, Order(4)));
    assert!(b.block.iter().all(|&x| x == 0) && b.block.node() < 1024);
    assert_eq!(b.block.number() % 16, 0);
    assert_eq!((b.extent.len(), b.extent.huge_bytes()), (5 * MIB, 4 * MIB));
    assert_eq!(
        (b.extent.fallback_bytes(), b.extent.is_empty()),
        (MIB, false)
    );
    for piece in b.extent.pieces_mut() {
        piece.fill(9);
    }
    assert!(b.extent.pieces().iter().all(|p| p.iter().all(|&x| x == 9)));
    assert!(are_right(&b.movable) && b.movable[0].order() == Order(0));
    let said = format!("{:?} {:?} {:?}", b.block, b.movable[0], b.movable[0].pin());
    for name in ["Block(frame ", "MovableBlock(number ", "Pinned(frame "] {
        assert!(said.contains(name), "{said}");
    }
}

/// What was moved before it was detached moves after it as well, and what is held does not.
#[test]
fn a_detached_block_moves_while_nobody_holds_it() {
    let b = buffers();
    drop((b.block, b.extent, b.owned));
    let moved = || b.pool.stats().event("pgmigrate_success");
    let before = moved();
    assert!(before > 0);
    let held: Vec<_> = b.movable.iter().map(MovableBlock::pin).collect();
    b.pool.compact(8);
    assert_eq!(moved(), before, "all are held");
    drop(held);
    // Those that stayed are left alone for a while.
    let more = (0..100).any(|_| b.pool.compact(8) > 0 || moved() > before);
    assert!(more || b.pool.stats().whole_blocks >= 7);
    assert!(are_right(&b.movable));
    drop(b.movable);
    check_all_free(&b.pool);
}

/// Each is usable after its pool, and whichever is the last gives the memory back, on any thread.
#[test]
fn a_detached_block_outlives_its_pool() {
    for last in 0..4 {
        let Buffers {
            pool,
            mut block,
            mut extent,
            mut movable,
            mut owned,
        } = buffers();
        drop(pool);
        block.fill(1);
        extent.pieces_mut()[0].fill(2);
        assert!(are_right(&movable));
        movable[0].pin_mut().fill(3);
        owned.fill(4);
        assert!(movable[0].pin().iter().all(|&x| x == 3) && owned[4095] == 4);
        let mut left: Vec<Box<dyn Send>> = vec![
            Box::new(block),
            Box::new(extent),
            Box::new(movable),
            Box::new(owned),
        ];
        let kept = left.swap_remove(last);
        drop(left);
        let thread = std::thread::spawn(move || drop(kept));
        thread.join().expect("no panic");
    }
}

/// Detaching and dropping loses nothing, in any order.
#[test]
fn what_was_detached_is_given_back_once() {
    let pool = Pool::builder().arena(8 * MIB).build().expect("a pool");
    let mut kept: Vec<Box<dyn Send>> = vec![];
    for round in 0..200_u8 {
        let order = Order(round % 4);
        match round % 3 {
            0 => kept.extend(pool.try_alloc(order).map(|b| Box::new(b.detach()) as _)),
            1 => kept.extend(
                pool.try_alloc_movable(order)
                    .map(|b| Box::new(b.detach()) as _),
            ),
            _ => drop(pool.alloc_bytes(70_000).map(Extent::detach)),
        }
        if kept.len() > 50 {
            kept.swap_remove(usize::from(round) * 7 % 50);
        }
    }
    drop(kept);
    check_all_free(&pool);
}
