//! Percentiles of latencies.

use super::super::metric::Metrics;

/// The percentiles that the source gives, and one more.
pub(super) const PERCENTILES: [u32; 12] = [5, 10, 25, 30, 40, 50, 60, 75, 80, 90, 95, 99];

/// Adds `p5_us` and so on, of latencies in nanoseconds: the least one that so many percent are no longer than.
pub(super) fn add(metrics: &mut Metrics, latencies: &mut [u64]) {
    latencies.sort_unstable();
    for p in PERCENTILES {
        let rank = (latencies.len() * p as usize).div_ceil(100);
        if let Some(ns) = latencies.get(rank.saturating_sub(1)) {
            metrics.insert(format!("p{p}_us"), *ns as f64 / 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_least_that_so_many_are_no_longer_than() {
        let mut m = Metrics::new();
        let mut latencies: Vec<u64> = (1..=200).rev().map(|i| i * 1000).collect();
        add(&mut m, &mut latencies);
        assert_eq!((m["p5_us"], m["p50_us"], m["p99_us"]), (10.0, 100.0, 198.0));
        let mut m = Metrics::new();
        add(&mut m, &mut [7000]);
        assert!(PERCENTILES.iter().all(|p| m[&format!("p{p}_us")] == 7.0));
        add(&mut Metrics::new(), &mut []);
    }
}
