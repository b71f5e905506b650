//! When a falling number falls below a bound: many futures of a robust trend and of what is around it.
//!
//! Histories that could have been are made of both, and their trends tell how sure the trend is. Each of them has one
//! future, with a trend as far from the measured one on the other side.
//!
//! What falls may go on as it did, or ever slower: the fewer blocks are left, the fewer are there to break, and memory that is
//! nearly full is reclaimed. Looks of one time seldom tell which it is, so that each shape has half of the futures.
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

/// Where what is beside one shape has so many times the squares of what is beside the other, that one is out.
const OUT: f64 = 10.0;

/// How a number falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// As it did.
    Straight,
    /// Ever slower: its root falls straight.
    Slowing,
}

impl Shape {
    /// What falls straight.
    fn straight(self, value: f64) -> f64 {
        match self {
            Shape::Straight => value,
            Shape::Slowing => value.max(0.0).sqrt(),
        }
    }

    /// The squares of what is beside the shape, around their mean.
    fn misses(self, values: &[f64]) -> f64 {
        let straight: Vec<f64> = values.iter().map(|v| self.straight(*v)).collect();
        let line = Line::through(&straight);
        let at = |i: usize| match self {
            Shape::Straight => line.at(i as f64),
            Shape::Slowing => line.at(i as f64).max(0.0).powi(2),
        };
        let beside: Vec<f64> = values.iter().enumerate().map(|(i, v)| v - at(i)).collect();
        let mean = beside.iter().sum::<f64>() / beside.len() as f64;
        beside.iter().map(|v| (v - mean) * (v - mean)).sum()
    }

    /// Those that values leave open.
    fn open(values: &[f64]) -> Vec<Shape> {
        let all = [Shape::Straight, Shape::Slowing];
        let [straight, slowing] = all.map(|s| s.misses(values));
        if straight * OUT <= slowing {
            vec![Shape::Straight]
        } else if slowing * OUT <= straight {
            vec![Shape::Slowing]
        } else {
            all.to_vec()
        }
    }
}

/// What futures of one shape are made of.
struct Model {
    /// What comes and goes with the hours.
    day: Box<dyn Fn(usize) -> f64>,
    /// The smallest look of a step tells whether the need failed in it.
    dips: Vec<f64>,
    rest: Rest,
    bound: f64,
}

impl Model {
    fn of(looks: &[(f64, f64)], bound: f64, shape: Shape) -> Result<Model, Lacking> {
        let straight = looks.iter().map(|(t, v)| (*t, shape.straight(*v)));
        let mut grid = Grid::of(&straight.collect::<Vec<_>>())?;
        let rough = Line::through(&grid.values);
        let day = Box::new(grid.without_days(&|i| rough.at(i as f64)));
        Ok(Model {
            day,
            dips: std::mem::take(&mut grid.dips),
            rest: Rest::around(&grid.values),
            bound: shape.straight(bound),
        })
    }

    /// As [`Rest::future`].
    fn future(&self, n: usize, rng: &mut Rng) -> (f64, Option<usize>) {
        let above = |step: usize, rng: &mut Rng| {
            let dip = match self.dips.len() {
                0 => 0.0,
                n => self.dips[rng.below(n as u64) as usize],
            };
            (self.day)(step) - dip
        };
        self.rest.future(n, FAR * n, self.bound, &above, rng)
    }
}

/// When a number falls below a bound, in seconds after the last look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Falls {
    /// Too few looks, or gaps between them.
    Unknown(Lacking),
    /// The last look is below.
    Already,
    /// It has no trend that differs from none.
    NoTrend,
    /// It rises, and in nine of ten futures does not come below the bound either, as what comes and goes may.
    Never,
    /// It falls, and in nine of ten futures not below the bound within so many seconds.
    Later {
        beyond: f64,
        /// Change a day.
        per_day: f64,
    },
    /// It falls, or what comes and goes takes it below the bound: then; beyond [`FAR`] times of what was looked at, `None`.
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
    let grid = match Grid::of(looks) {
        Ok(grid) => grid,
        Err(lacking) => return Falls::Unknown(lacking),
    };
    let n = grid.values.len();
    let shapes = Shape::open(&grid.values);
    let models = shapes.iter().map(|s| Model::of(looks, bound, *s));
    let models = match models.collect::<Result<Vec<_>, _>>() {
        Ok(models) => models,
        Err(lacking) => return Falls::Unknown(lacking),
    };
    // A step of several looks is crossed at any of them.
    let of_step = (looks.len() / n).max(1) as u64;
    let mut rng = Rng::named(seed, "forecast");
    let mut crossings = Vec::with_capacity(FUTURES);
    let (mut down, mut up) = (0, 0);
    for model in models.iter().cycle().take(FUTURES) {
        let (slope, crossing) = model.future(n, &mut rng);
        down += usize::from(slope < 0.0);
        up += usize::from(slope > 0.0);
        let within = (1 + rng.below(of_step)) as f64 / of_step as f64;
        let steps = crossing.map_or(f64::INFINITY, |at| (at - n) as f64 + within);
        crossings.push(steps * grid.step);
    }
    let are_sure = |of: usize| of as f64 >= FUTURES as f64 * SURE;
    let rises = are_sure(up);
    if !rises && !are_sure(down) {
        return Falls::NoTrend;
    }
    crossings.sort_unstable_by(f64::total_cmp);
    let quantile = |q: f64| crossings[((FUTURES - 1) as f64 * q).round() as usize];
    let finite = |t: f64| t.is_finite().then_some(t);
    let per_day = Line::through(&grid.values).slope / grid.step * DAY;
    match finite(quantile(OUTSIDE)) {
        None if rises => Falls::Never,
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
