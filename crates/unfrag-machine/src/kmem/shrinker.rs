//! How much of a cache reclaim asks for. `spec: 4.1`

use unfrag_slab::shrink::{DEFAULT_SEEKS, SHRINK_BATCH, shrink_target};

/// The shrinker of one cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrinker {
    pending: u64,
}

impl Shrinker {
    /// Objects to scan now, in whole batches, after reclaim has scanned `scanned` of `lru_pages` pages while
    /// the cache has `objects`. The rest below a batch is carried over.
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
    // `spec: 4.1`
    fn shrinker_asks_in_batches() {
        let mut s = Shrinker::default();
        // 4 × 1000 / 2 × 10,000 / (100,000 + 1) = 199: a batch, and 71 for the next time.
        assert_eq!(s.ask(1000, 100_000, 10_000), 128);
        assert_eq!(s.pending, 71);
        assert_eq!(s.ask(1000, 100_000, 10_000), 256);
        assert_eq!(s.pending, 14);
    }

    #[test]
    // `spec: 4.1`
    fn shrinker_asks_at_most_twice_the_cache() {
        let mut s = Shrinker::default();
        assert_eq!(s.ask(1 << 40, 1, 640), 1280);
    }
}
