//! When a falling number falls below a bound: many futures of a robust trend and of what is around it.
//!
//! Histories that could have been are made of both, and their trends tell how sure the trend is. Each of them has one
//! future, with a trend as far from the measured one on the other side.
//!
//! Invariant: the same looks and the same seed give the same answer. Where fewer than nineteen in twenty histories have a
//! trend one way, there is none.

use super::grid::{DAY, Grid, Lacking};
use super::line::Line;
use super::rest::Rest;
use unfrag_machine::Rng;

/// Futures that are made.
const FUTURES: usize = 400;
/// How far they go, in times of what was looked at.
const FAR: usize = 10;
/// Share of futures whose trend has to go one way.
const SURE: f64 = 0.95;
/// Share of the futures outside the interval, at each end.
const OUTSIDE: f64 = 0.1;

/// When a number falls below a bound, in seconds after the last look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Falls {
    /// Too few looks, or gaps between them.
    Unknown(Lacking),
    /// The last look is below.
    Already,
    /// It has no trend that differs from none.
    NoTrend,
    /// It rises.
    Never,
    /// It falls, and in nine of ten futures not below the bound within so many seconds.
    Later {
        beyond: f64,
        /// Change a day.
        per_day: f64,
    },
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
    if looks.last().is_some_and(|last| last.1 < bound) {
        return Falls::Already;
    }
    let mut grid = match Grid::of(looks) {
        Ok(grid) => grid,
        Err(lacking) => return Falls::Unknown(lacking),
    };
    let n = grid.values.len();
    let rough = Line::through(&grid.values);
    let course = grid.without_days(&|i| rough.at(i as f64));
    let rest = Rest::around(&grid.values);
    // The smallest look of a step tells whether the need failed in it.
    let dips = std::mem::take(&mut grid.dips);
    let above = |step: usize, rng: &mut Rng| {
        let dip = match dips.len() {
            0 => 0.0,
            n => dips[rng.below(n as u64) as usize],
        };
        course(step) - dip
    };
    let mut rng = Rng::named(seed, "forecast");
    let mut crossings = Vec::with_capacity(FUTURES);
    let (mut down, mut up) = (0, 0);
    for _ in 0..FUTURES {
        let (slope, crossing) = rest.future(n, FAR * n, bound, &above, &mut rng);
        down += usize::from(slope < 0.0);
        up += usize::from(slope > 0.0);
        let steps = crossing.map_or(f64::INFINITY, |at| (at + 1 - n) as f64);
        crossings.push(steps * grid.step);
    }
    let are_sure = |of: usize| of as f64 >= FUTURES as f64 * SURE;
    if are_sure(up) {
        return Falls::Never;
    }
    if !are_sure(down) {
        return Falls::NoTrend;
    }
    crossings.sort_unstable_by(f64::total_cmp);
    let quantile = |q: f64| crossings[((FUTURES - 1) as f64 * q).round() as usize];
    let finite = |t: f64| t.is_finite().then_some(t);
    let per_day = rest.slope() / grid.step * DAY;
    match finite(quantile(OUTSIDE)) {
        None => Falls::Later {
            beyond: (FAR * n) as f64 * grid.step,
            per_day,
        },
        Some(from) => Falls::In {
            from,
            median: finite(quantile(0.5)),
            to: finite(quantile(1.0 - OUTSIDE)),
            per_day,
        },
    }
}
