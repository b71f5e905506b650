//! Statistics of a metric over several seeds.

use serde::Serialize;

/// Statistics of a metric over the runs of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// The middle run, or the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Standard error of the mean: the sample's deviation over the square root of its size; `null` for a single run,
    /// which tells nothing of it.
    pub stderr: Option<f64>,
}

impl Statistics {
    /// Of at least one value; `None` of none.
    pub fn of(values: &[f64]) -> Option<Statistics> {
        let mut v = values.to_vec();
        v.sort_by(f64::total_cmp);
        let (&min, &max) = (v.first()?, v.last()?);
        let n = v.len();
        let median = (v[(n - 1) / 2] + v[n / 2]) / 2.0;
        let mean = v.iter().sum::<f64>() / n as f64;
        let square = v.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        let stderr = (n > 1).then(|| (square / (n - 1) as f64 / n as f64).sqrt());
        Some(Statistics {
            median,
            min,
            max,
            stderr,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Statistics;

    #[test]
    fn statistics_of_some_values() {
        let s = Statistics::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((s.median, s.min, s.max), (2.5, 1.0, 4.0));
        // Deviation sqrt(5/3), over the square root of four.
        assert!((s.stderr.unwrap() - (5.0f64 / 3.0).sqrt() / 2.0).abs() < 1e-12);
        assert_eq!(Statistics::of(&[7.0]).unwrap().stderr, None);
        assert_eq!(Statistics::of(&[]), None);
    }
}
