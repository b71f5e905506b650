//! A robust line through values at regular steps.

use super::grid::median;

/// A line, by its slope a step and a point of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub slope: f64,
    /// The middle of the steps, and the value there.
    pub x: f64,
    pub y: f64,
}

impl Line {
    /// The line of Theil and Sen: the median of the slopes between all pairs, through the median of what is left. Up to
    /// three values in ten may be wild.
    pub fn through(values: &[f64]) -> Line {
        let n = values.len();
        let mut slopes = Vec::with_capacity(n * n / 2);
        for (i, a) in values.iter().enumerate() {
            slopes.extend((i + 1..n).map(|j| (values[j] - a) / (j - i) as f64));
        }
        let slope = median(&mut slopes);
        let x = (n - 1) as f64 / 2.0;
        let left = |(i, v): (usize, &f64)| v - slope * (i as f64 - x);
        let mut left: Vec<f64> = values.iter().enumerate().map(left).collect();
        Line {
            slope,
            x,
            y: median(&mut left),
        }
    }

    /// Its value at a step.
    pub fn at(&self, x: f64) -> f64 {
        self.y + self.slope * (x - self.x)
    }

    /// What is beside it.
    pub fn beside(&self, values: &[f64]) -> Vec<f64> {
        let beside = |(i, v): (usize, &f64)| v - self.at(i as f64);
        values.iter().enumerate().map(beside).collect()
    }
}

/// The slope of values by least squares.
pub(super) fn slope(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let middle = (values.len() - 1) as f64 / 2.0;
    let (mut xy, mut xx) = (0.0, 0.0);
    for (i, v) in values.enumerate() {
        let x = i as f64 - middle;
        xy += x * v;
        xx += x * x;
    }
    xy / xx
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wild_values_do_not_turn_the_line() {
        let values: Vec<f64> = (0..50)
            .map(|i| {
                if i % 5 == 1 {
                    1e6
                } else {
                    100.0 - 2.0 * f64::from(i)
                }
            })
            .collect();
        let line = Line::through(&values);
        assert!((line.slope + 2.0).abs() < 1e-9, "{line:?}");
        assert!((line.at(49.0) - 2.0).abs() < 1.0, "{line:?}");
        assert!((slope((0..9).map(|i| 3.0 * f64::from(i))) - 3.0).abs() < 1e-12);
    }
}
