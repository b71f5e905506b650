//! Quantiles of a number that many processes, files or pages have.
//!
//! Invariant: by nearest rank, so that each is a number that was seen; `p10 <= median <= p90 <= max`.

use crate::report::number::rank;
use serde::{Deserialize, Serialize};

/// Quantiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The tenth percentile.
    pub p10: u64,
    /// The fiftieth percentile.
    pub median: u64,
    /// The ninetieth percentile.
    pub p90: u64,
    /// The largest.
    pub max: u64,
}

impl Spread {
    /// Of these numbers; all zero if there is none.
    pub fn of(mut all: Vec<u64>) -> Spread {
        all.sort_unstable();
        let Some(&max) = all.last() else {
            return Spread::default();
        };
        let at = |percent: usize| all[rank(all.len(), percent)];
        Spread {
            p10: at(10),
            median: at(50),
            p90: at(90),
            max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let s = Spread::of((1..=20).rev().collect());
        assert_eq!((s.p10, s.median, s.p90, s.max), (2, 10, 18, 20));
        let one = Spread::of(vec![7]);
        assert_eq!((one.p10, one.median, one.p90, one.max), (7, 7, 7, 7));
        assert_eq!(Spread::of(vec![]), Spread::default());
    }
}
