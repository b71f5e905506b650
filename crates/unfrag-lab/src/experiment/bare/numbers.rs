//! Percentiles of latencies, percents and seconds.

use super::super::metric::Metrics;
use crate::report::number::rank;

/// The percentiles that the source gives, and one more.
pub(super) const PERCENTILES: [u32; 12] = [5, 10, 25, 30, 40, 50, 60, 75, 80, 90, 95, 99];

/// Adds `p5_us` and so on, of latencies in nanoseconds: the least one that so many percent are no longer than.
pub(super) fn add_percentiles(metrics: &mut Metrics, latencies: &mut [u64]) {
    latencies.sort_unstable();
    for p in PERCENTILES {
        if let Some(ns) = latencies.get(rank(latencies.len(), p as usize)) {
            metrics.insert(format!("p{p}_us"), *ns as f64 / 1e3);
        }
    }
}

/// Nanoseconds in seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// `part` in percent of `whole`; 0 of nothing.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_least_that_so_many_are_no_longer_than() {
        let mut m = Metrics::new();
        let mut latencies: Vec<u64> = (1..=200).rev().map(|i| i * 1000).collect();
        add_percentiles(&mut m, &mut latencies);
        assert_eq!((m["p5_us"], m["p50_us"], m["p99_us"]), (10.0, 100.0, 198.0));
        let mut m = Metrics::new();
        add_percentiles(&mut m, &mut [7000]);
        assert!(PERCENTILES.iter().all(|p| m[&format!("p{p}_us")] == 7.0));
        add_percentiles(&mut Metrics::new(), &mut []);
    }
}
