//! Wrong calls, and the answer that each must get, with and without debug assertions: an error that names the place, and
//! nothing has changed.
//!
//! - Tables: `engine` (one caller), `memory` (many CPUs), `owners` (who has a frame, and who is asked for some).
//! - `model`: right and wrong calls mixed at random, beside a naive allocator. `marks`: watermarks under contention.

mod engine;
mod marks;
mod memory;
mod model;
mod odd;
mod owners;
#[path = "../support/mod.rs"]
mod support;
mod waits;
mod whole;

/// Numbers by chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A number that a variable of the environment sets.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().expect("a number"))
}
