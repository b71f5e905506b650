//! The metrics that experiments and their sources share, by name.
//!
//! A metric whose name ends in `_1` to `_10` counts iterations, or tenths of the run's time.

use std::collections::BTreeMap;

/// What was measured of one run, by name.
pub type Metrics = BTreeMap<String, f64>;

/// Seconds that each iteration takes, 1 to 10.
pub const MARGINAL: [&str; 10] = [
    "marginal_seconds_1",
    "marginal_seconds_2",
    "marginal_seconds_3",
    "marginal_seconds_4",
    "marginal_seconds_5",
    "marginal_seconds_6",
    "marginal_seconds_7",
    "marginal_seconds_8",
    "marginal_seconds_9",
    "marginal_seconds_10",
];

/// Seconds of the first build in each iteration.
pub const BUILD1: [&str; 10] = [
    "build1_seconds_1",
    "build1_seconds_2",
    "build1_seconds_3",
    "build1_seconds_4",
    "build1_seconds_5",
    "build1_seconds_6",
    "build1_seconds_7",
    "build1_seconds_8",
    "build1_seconds_9",
    "build1_seconds_10",
];

/// Seconds of the second build in each iteration.
pub const BUILD2: [&str; 10] = [
    "build2_seconds_1",
    "build2_seconds_2",
    "build2_seconds_3",
    "build2_seconds_4",
    "build2_seconds_5",
    "build2_seconds_6",
    "build2_seconds_7",
    "build2_seconds_8",
    "build2_seconds_9",
    "build2_seconds_10",
];

/// Mean time of two first builds that run side by side.
pub const PARALLEL_BUILD1: &str = "build1_seconds_parallel";

/// How much longer later iterations take than the first: the fourth, and the mean of the seventh and all after it.
pub(super) fn over_first(marginal: &[f64]) -> Vec<(&'static str, f64)> {
    let mut found = vec![];
    if let [first, _, _, fourth, ..] = marginal {
        found.push(("marginal_4th_over_1st", fourth / first));
    }
    if let (Some(first), Some(late)) = (marginal.first(), marginal.get(6..))
        && !late.is_empty()
    {
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        found.push(("marginal_7th_to_10th_over_1st", mean / first));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::over_first;

    #[test]
    fn ratios_need_enough_iterations() {
        assert_eq!(
            over_first(&[10.0, 1.0, 1.0, 30.0]),
            [("marginal_4th_over_1st", 3.0)]
        );
        let ten = [10.0, 0.0, 0.0, 20.0, 0.0, 0.0, 40.0, 50.0, 60.0, 50.0];
        let both = [
            ("marginal_4th_over_1st", 2.0),
            ("marginal_7th_to_10th_over_1st", 5.0),
        ];
        assert_eq!(over_first(&ten), both);
        assert!(over_first(&[]).is_empty());
    }
}
