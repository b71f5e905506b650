//! A pool as its users see it.
//!
//! - `frames`: taking and giving. `huge`: how many huge pages it says that it can give, asked and then tried. `moving`: what may be moved, and compaction. `owners`: reclaim, and owners. `calls`: what
//!   owners do while they are called. `ends`: a pool that ends meanwhile. `removal`: owners that are
//!   removed. `detached`: blocks that borrow nothing. `pools`: what is of one pool, given to another.
//! - `slots`: threads that keep nothing for themselves. `idle`: what threads keep that do nothing.
//! - `soak`: all of it at once. `variance`: what the types with a lifetime may stand for, and where they may go.

mod calls;
mod detached;
mod ends;
mod frames;
mod huge;
mod idle;
mod moving;
mod owners;
mod pools;
mod removal;
mod slots;
mod soak;
#[path = "../../../../checks/types.rs"]
mod types;
mod variance;

use std::env;
use unfrag_pool::Pool;

/// A number from the environment, such as the seed of a randomised test.
fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |s| s.parse().expect("a number in the environment"))
}

/// Everything has been given back, nothing was refused, and every invariant holds.
fn check_all_free(pool: &Pool) {
    pool.flush();
    pool.validate().expect("every invariant");
    let stats = pool.stats();
    assert_eq!((stats.free, stats.refused), (stats.present, 0));
}

/// Random numbers (xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Fills a block with words that follow from a number.
fn stamp(bytes: &mut [u8], number: u64) {
    for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
        let w = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i as u64;
        word.copy_from_slice(&w.to_le_bytes());
    }
}

/// Whether it holds them still.
fn is_stamped(bytes: &[u8], number: u64) -> bool {
    bytes.chunks_exact(8).enumerate().all(|(i, word)| {
        let w = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i as u64;
        word == w.to_le_bytes()
    })
}
