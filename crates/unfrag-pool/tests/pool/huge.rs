//! How many huge pages a pool says that it can give is what it gives: in random states it is asked, and then they are taken.
//! `UNFRAG_SEED` and `UNFRAG_ROUNDS` choose other states.

use super::{Random, setting};
use std::sync::{Arc, Barrier, Mutex, OnceLock, Weak};
use std::time::Duration;
use unfrag_pool::{
    AllocError, Frame, HugePages, Movable, Order, Owned, Owner, Pinned, Place, Pool,
};

/// A block that is out.
#[derive(Debug)]
enum Out<'p> {
    Stays(#[expect(dead_code, reason = "it is held")] Frame<'p>),
    Moves(Movable<'p>),
}

impl<'p> Out<'p> {
    fn pin(&self) -> Option<Pinned<'_>> {
        match self {
            Out::Stays(_) => None,
            Out::Moves(m) => Some(m.pin()),
        }
    }

    fn take(pool: &'p Pool, order: Order, moves: bool) -> Result<Out<'p>, AllocError> {
        Ok(match moves {
            true => Out::Moves(pool.try_alloc_movable(order)?),
            false => Out::Stays(pool.try_alloc(order)?),
        })
    }
}

/// What a state is like: parts in a hundred, and orders.
struct Kind {
    filled: usize,
    kept: usize,
    unmovable: usize,
    orders: &'static [u8],
}

fn kind(random: &mut Random) -> Kind {
    let of = |random: &mut Random, all: &[usize]| all[random.below(all.len())];
    let orders: [&[u8]; 4] = [&[0], &[0, 0, 0, 1, 2, 3], &[0, 4, 8, 9], &[9]];
    Kind {
        filled: of(random, &[10, 50, 90, 100]),
        kept: of(random, &[0, 2, 20, 60]),
        unmovable: of(random, &[0, 1, 20, 100]),
        orders: orders[random.below(orders.len())],
    }
}

/// Fills a part of a pool with a thread's blocks and gives some of them back, so that the thread keeps frames for itself.
fn fill<'p>(pool: &'p Pool, random: &mut Random, kind: &Kind, frames: usize) -> Vec<Out<'p>> {
    let (mut all, mut taken) = (vec![], 0);
    while taken < frames * kind.filled / 100 {
        let order = Order(kind.orders[random.below(kind.orders.len())]);
        let Ok(block) = Out::take(pool, order, random.below(100) >= kind.unmovable) else {
            break;
        };
        taken += order.frames() as usize;
        all.push(block);
    }
    all.retain(|_| random.below(100) < kind.kept);
    all
}

/// Takes huge pages until there is none.
fn take_all<'p>(pool: &'p Pool, random: &mut Random) -> Vec<Out<'p>> {
    let huge = std::iter::from_fn(|| Out::take(pool, Order::HUGE, random.below(2) == 0).ok());
    huge.collect()
}

/// What was promised, what there was, and what was said to be the most, over all states; and where it was wrong.
#[derive(Default)]
struct Sums {
    now: u64,
    got: u64,
    most: u64,
    wrong: Vec<String>,
}

/// Takes what there is, and compares it with what was said.
fn tried(pool: &Pool, random: &mut Random, sums: &mut Sums, place: &str) {
    let said = pool.huge_pages();
    let got = take_all(pool, random).len() as u64;
    if !(said.now..=said.at_most).contains(&got) {
        sums.wrong.push(format!("{place}: {said:?}, and {got}"));
    }
    sums.now += said.now;
    sums.got += got;
    sums.most += said.at_most;
}

fn round(seed: u64, round: u64, sums: &mut [Sums; 2]) {
    let mut random = Random::new(seed.wrapping_mul(1 << 32).wrapping_add(round));
    let blocks = 2 + random.below(10);
    let frames = blocks * 512;
    let min = [0, 0, 40, 700][random.below(4)];
    let pool = Pool::builder()
        .arena(blocks << 21)
        .watermarks(min, min + 10, min + 20)
        .threads([0, 1, 256][random.below(3)])
        .patience(Duration::ZERO)
        .build()
        .expect("a pool");
    let threads = 1 + random.below(3);
    let (filled, done) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let mut random = Random::new(random.next());
            let (pool, filled, done) = (&pool, &filled, &done);
            scope.spawn(move || {
                let kind = kind(&mut random);
                let held = fill(pool, &mut random, &kind, frames / threads);
                let few = held.iter().filter(|_| random.below(50) == 0);
                let pinned: Vec<_> = few.filter_map(Out::pin).collect();
                // It sleeps while the pool is asked, with what it keeps for itself.
                filled.wait();
                done.wait();
                drop(pinned);
            });
        }
        filled.wait();
        let place = format!("seed {seed}, round {round}, {blocks} blocks, min {min}");
        tried(&pool, &mut random, &mut sums[0], &place);
        pool.compact(u32::MAX);
        let place = format!("{place}, compacted");
        tried(&pool, &mut random, &mut sums[1], &place);
        done.wait();
    });
    super::check_all_free(&pool);
}

#[test]
fn as_many_huge_pages_as_it_says_are_there() {
    let seed = setting("UNFRAG_SEED", 58);
    println!("UNFRAG_SEED={seed}");
    let mut sums = <[Sums; 2]>::default();
    for n in 0..setting("UNFRAG_ROUNDS", 200) {
        round(seed, n, &mut sums);
    }
    for (when, s) in ["at once", "after compaction"].iter().zip(&sums) {
        let Sums { now, got, most, .. } = s;
        println!("{when}: {now} promised, {got} taken, {most} at most");
    }
    let wrong: Vec<_> = sums.iter().flat_map(|s| &s.wrong).collect();
    assert!(wrong.is_empty(), "{} are wrong: {wrong:#?}", wrong.len());
    assert!(
        sums.iter().all(|s| s.now * 2 > s.got),
        "hardly anything is promised"
    );
}

/// An owner that asks how many huge pages there are whenever a block of its is moved.
#[derive(Default)]
struct Asks {
    pool: OnceLock<Weak<Pool>>,
    blocks: Mutex<Vec<Option<Owned>>>,
    said: Mutex<Vec<HugePages>>,
}

impl Owner for Asks {
    fn migrate(&self, tag: u32, place: Place<'_>) {
        let pool = self.pool.get().and_then(Weak::upgrade).expect("a pool");
        self.said.lock().expect("no panic").push(pool.huge_pages());
        let mut blocks = self.blocks.lock().expect("no panic");
        if let Some(Some(block)) = blocks.get_mut(tag as usize) {
            place.carry(block);
        }
    }
}

#[test]
fn a_block_that_is_being_emptied_is_in_the_bound_and_not_promised() {
    let pool = Arc::new(Pool::builder().arena(2 << 21).build().expect("a pool"));
    let owner = Arc::new(Asks::default());
    owner
        .pool
        .set(Arc::downgrade(&pool))
        .expect("it is not set");
    let id = pool.register(owner.clone()).ok().expect("an owner");
    let all = (0..1024).map(|tag| pool.try_alloc_for(id, tag, Order(0)).ok());
    *owner.blocks.lock().expect("no panic") = all.collect();
    // Some of each block stay, and are all that is in the way of one huge page.
    let some = |tag: usize| tag % 512 < 10;
    let mut held = owner.blocks.lock().expect("no panic");
    let free = held.iter_mut().enumerate().filter(|(tag, _)| !some(*tag));
    free.for_each(|(_, block)| drop(block.take()));
    drop(held);
    assert_eq!(pool.huge_pages().now, 0);
    assert_eq!(pool.compact(1), 1);
    let said = owner.said.lock().expect("no panic").clone();
    assert!(!said.is_empty(), "nothing was moved");
    assert!(
        said.iter().all(|s| s.now == 0 && s.at_most >= 1),
        "{said:?}"
    );
    assert_eq!(pool.huge_pages().now, 1);
    owner.blocks.lock().expect("no panic").clear();
}
