//! Named seeded generators. Each user of chance has its own, so that a draw more in one place changes
//! nothing elsewhere.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng as _, SeedableRng};

/// A generator of random numbers; a function of seed and name.
#[derive(Clone, Debug)]
pub struct Rng(Pcg64Mcg);

impl Rng {
    /// The generator of `name` in the run with this seed.
    pub fn named(seed: u64, name: &str) -> Rng {
        // FNV-1a over the name, so that similar names and seeds give unrelated generators once
        // `seed_from_u64` has mixed them.
        let mut h = 0xcbf2_9ce4_8422_2325u64;
        for b in name.bytes().chain(seed.to_le_bytes()) {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Rng(Pcg64Mcg::seed_from_u64(h))
    }

    /// Any number.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to `n - 1`, each as likely (to 2^-64 · n).
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no number is below 0");
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A number of the range, its end excluded.
    ///
    /// # Panics
    /// If the range is empty.
    pub fn range(&mut self, range: std::ops::Range<u64>) -> u64 {
        assert!(range.start < range.end, "no number in an empty range");
        range.start + self.below(range.end - range.start)
    }

    /// True with a probability of `num / den`.
    pub fn chance(&mut self, num: u64, den: u64) -> bool {
        self.below(den) < num
    }
}
