//! How much of a cache reclaim asks for. `spec: linux-mm 4.1 shrink_slab`

use unfrag_slab::shrink::{DEFAULT_SEEKS, SHRINK_BATCH, shrink_target};

/// The account of one cache that can be shrunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrinker {
    pending: u64,
}

impl Shrinker {
    /// Objects to look at now, in whole batches, after reclaim has looked at `scanned` of `lru_pages`
    /// pages while the cache has `objects`. What is less than a batch is kept for the next time.
    pub fn ask(&mut self, scanned: u64, lru_pages: u64, objects: u64) -> u64 {
        let target = shrink_target(self.pending, scanned, lru_pages, objects, DEFAULT_SEEKS);
        self.pending = target % SHRINK_BATCH;
        target - self.pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_asked_for_follows_the_formula_in_batches_of_128_spec_4_1() {
        let mut s = Shrinker::default();
        // 4 × 1000 / 2 × 10,000 / (100,000 + 1) = 199: a batch, and 71 for the next time.
        assert_eq!(s.ask(1000, 100_000, 10_000), 128);
        assert_eq!(s.pending, 71);
        assert_eq!(s.ask(1000, 100_000, 10_000), 256);
        assert_eq!(s.pending, 14);
    }

    #[test]
    fn never_more_than_twice_the_cache_spec_4_1() {
        let mut s = Shrinker::default();
        assert_eq!(s.ask(1 << 40, 1, 640), 1280);
    }
}
