//! Numbers by chance, from a seed that is printed.

pub struct Chance(u64);

impl Chance {
    /// The numbers of a seed, which `UNFRAG_SEED` shifts.
    pub fn new(seed: u64) -> Chance {
        let shift = std::env::var("UNFRAG_SEED")
            .ok()
            .and_then(|s| s.parse().ok());
        let seed = seed + shift.unwrap_or(0);
        println!("seed {seed}");
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}
