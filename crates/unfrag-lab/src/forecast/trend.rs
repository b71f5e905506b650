//! When a falling number falls below a bound: a robust trend, what is around it, and many futures made of both.
//!
//! What is around the trend remembers itself: a number of free blocks that was low is low for a while, and one that only
//! kernel memory eats at never comes back. So the rest is a chain in which each value is a part of the one before and
//! something new. How large that part is, is measured, and corrected for what a trend that was fitted takes away of it. A
//! part of 1 is a number that goes where it goes, and of which past and future are least sure.
//!
//! Histories that could have been are made of the trend and such a chain, and their trends tell how sure the trend is.
//! Each of them has one future, with a trend as far from the measured one on the other side.
//!
//! Invariant: the same looks and the same seed give the same answer. Where fewer than nineteen in twenty histories have a
//! trend one way, there is none.

use super::grid::{Grid, Lacking, median};
use unfrag_machine::Rng;

/// Futures that are made.
const FUTURES: usize = 400;
/// How far they go, in times of what was looked at.
const FAR: usize = 10;
/// Share of futures whose trend has to go one way.
const SURE: f64 = 0.95;
/// Share of the futures outside the interval, at each end.
const OUTSIDE: f64 = 0.1;
/// Of a chain that keeps all of each value nine in ten seem to lose less than this, over all steps, once a trend was taken out.
const WANDERS: f64 = 20.0;
/// Most steps of a trend.
const MOST_COARSE: usize = 50;
/// Steps at the end whose median is the number as it is.
const LATEST: usize = 3;

/// When a number falls below a bound, in seconds after the last look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Falls {
    /// Too few looks, or gaps between them.
    Unknown(Lacking),
    /// It is below already.
    Already,
    /// It has no trend that differs from none.
    NoTrend,
    /// It rises.
    Never,
    /// Then; beyond [`FAR`] times of what was looked at, `None`.
    In {
        from: f64,
        median: Option<f64>,
        to: Option<f64>,
        /// Change a day.
        per_day: f64,
    },
}

/// When what was looked at (seconds and value, in the order of time) falls below `bound`.
pub(super) fn falls(looks: &[(f64, f64)], bound: f64, seed: u64) -> Falls {
    let mut grid = match Grid::of(looks) {
        Ok(grid) => grid,
        Err(lacking) => return Falls::Unknown(lacking),
    };
    let latest = |values: &[f64]| median(&mut values[values.len() - LATEST..].to_vec());
    if latest(&grid.values) < bound {
        return Falls::Already;
    }
    let rough = Line::through(&grid.values);
    let course = grid.without_days(&|i| rough.at(i as f64));
    let coarse = Coarse::of(&grid.values);
    let line = Line::through(&coarse.values);
    let chain = Chain::around(&coarse.values, line);
    let n = coarse.values.len();
    let mut rng = Rng::named(seed, "forecast");
    let mut crossings = Vec::with_capacity(FUTURES);
    let (mut down, mut up) = (0, 0);
    for _ in 0..FUTURES {
        let slope = 2.0 * line.slope - line.slope_of_another(&chain, n, &mut rng);
        down += usize::from(slope < 0.0);
        up += usize::from(slope > 0.0);
        let future = Line { slope, ..line };
        let mut rest = coarse.values[n - 1] - future.at((n - 1) as f64);
        let crossing = (n..n + FAR * n).find_map(|i| {
            rest = chain.next(rest, &mut rng);
            let level = future.at(i as f64) + rest;
            let fine = coarse.any_fine(&mut rng);
            let of_step = |(j, f): (usize, &f64)| {
                let at = coarse.first + i * coarse.together + j;
                (level + f + course(at) < bound).then_some(at)
            };
            fine.iter().enumerate().find_map(of_step)
        });
        let last = grid.values.len() - 1;
        let steps = crossing.map_or(f64::INFINITY, |at| (at - last) as f64);
        crossings.push(steps * grid.step);
    }
    let are_sure = |n: usize| n as f64 >= FUTURES as f64 * SURE;
    if are_sure(up) {
        return Falls::Never;
    }
    if !are_sure(down) {
        return Falls::NoTrend;
    }
    crossings.sort_unstable_by(f64::total_cmp);
    let quantile = |q: f64| crossings[((FUTURES - 1) as f64 * q).round() as usize];
    let finite = |t: f64| t.is_finite().then_some(t);
    match finite(quantile(OUTSIDE)) {
        None => Falls::NoTrend,
        Some(from) => Falls::In {
            from,
            median: finite(quantile(0.5)),
            to: finite(quantile(1.0 - OUTSIDE)),
            per_day: line.slope / (grid.step * coarse.together as f64) * super::grid::DAY,
        },
    }
}

/// Steps of a grid, several together, so that what passes within a few of them is not taken for what stays.
struct Coarse {
    /// Steps of the grid at its beginning that are left out, and those that are one here.
    first: usize,
    together: usize,
    /// The median of each.
    values: Vec<f64>,
    /// What the steps are beside it.
    fine: Vec<Vec<f64>>,
}

impl Coarse {
    fn of(values: &[f64]) -> Coarse {
        let together = values.len().div_ceil(MOST_COARSE);
        let first = values.len() % together;
        let cells = values[first..].chunks(together);
        let medians: Vec<f64> = cells.clone().map(|c| median(&mut c.to_vec())).collect();
        let fine = cells
            .zip(&medians)
            .map(|(c, m)| c.iter().map(|v| v - m).collect());
        Coarse {
            first,
            together,
            fine: fine.collect(),
            values: medians,
        }
    }

    fn any_fine(&self, rng: &mut Rng) -> &[f64] {
        &self.fine[rng.below(self.fine.len() as u64) as usize]
    }
}

/// A line, by its slope a step and a point of it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    slope: f64,
    x: f64,
    y: f64,
}

impl Line {
    /// The line of Theil and Sen: the median of the slopes between all pairs, through the median of what is left. Up to
    /// three values in ten may be wild.
    fn through(values: &[f64]) -> Line {
        let n = values.len();
        let mut slopes = Vec::with_capacity(n * n / 2);
        for (i, a) in values.iter().enumerate() {
            slopes.extend((i + 1..n).map(|j| (values[j] - a) / (j - i) as f64));
        }
        let slope = median(&mut slopes);
        let x = (n - 1) as f64 / 2.0;
        let mut rest: Vec<f64> = values
            .iter()
            .enumerate()
            .map(|(i, v)| v - slope * (i as f64 - x))
            .collect();
        Line {
            slope,
            x,
            y: median(&mut rest),
        }
    }

    fn at(&self, x: f64) -> f64 {
        self.y + self.slope * (x - self.x)
    }

    /// The slope that a history of `n` steps has which could as well have been.
    fn slope_of_another(&self, chain: &Chain, n: usize, rng: &mut Rng) -> f64 {
        let mut rest = chain.any(rng);
        let (mut xy, mut xx) = (0.0, 0.0);
        for i in 0..n {
            let x = i as f64 - self.x;
            xy += x * rest;
            xx += x * x;
            rest = chain.next(rest, rng);
        }
        self.slope + xy / xx
    }
}

/// What is around the trend: each value is a part of the one before, and something new.
#[derive(Clone, Debug)]
struct Chain {
    values: Vec<f64>,
    part: f64,
    news: Vec<f64>,
}

impl Chain {
    fn around(values: &[f64], line: Line) -> Chain {
        let rest: Vec<f64> = values
            .iter()
            .enumerate()
            .map(|(i, v)| v - line.at(i as f64))
            .collect();
        let n = rest.len();
        let of = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(x, y)| x * y).sum() };
        let whole = of(&rest[..n - 1], &rest[..n - 1]);
        let measured = match whole {
            w if w > 0.0 => of(&rest[..n - 1], &rest[1..]) / w,
            _ => 0.0,
        };
        // A fitted trend takes so much of it away (Marriott and Pope, Kendall); and where it cannot be told from all of it
        // (Dickey and Fuller), it is all.
        let part = match n as f64 * (1.0 - measured) < WANDERS {
            true => 1.0,
            false => (measured + (2.0 + 4.0 * measured) / n as f64).clamp(0.0, 1.0),
        };
        let mut news: Vec<f64> = rest.windows(2).map(|w| w[1] - part * w[0]).collect();
        let mean = news.iter().sum::<f64>() / news.len() as f64;
        news.iter_mut().for_each(|v| *v -= mean);
        if part >= 1.0 {
            // Medians of several steps make a wandering look calmer than it is: one change goes on in the next (Working).
            let (again, all) = (of(&news[1..], &news[..n - 2]), of(&news, &news));
            let more = if all > 0.0 {
                (1.0 + 2.0 * again / all).max(1.0).sqrt()
            } else {
                1.0
            };
            news.iter_mut().for_each(|v| *v *= more);
        }
        Chain {
            values: rest,
            part,
            news,
        }
    }

    fn any(&self, rng: &mut Rng) -> f64 {
        self.values[rng.below(self.values.len() as u64) as usize]
    }

    fn next(&self, value: f64, rng: &mut Rng) -> f64 {
        self.part * value + self.news[rng.below(self.news.len() as u64) as usize]
    }
}
