//! What is around a trend, and how it goes on.
//!
//! It may be steady: programs come and go, and what they take they give back. Then pieces of what was seen, laid one
//! behind the other, are as good a past or future as any. Or it may wander: each step begins where the one before ended,
//! as what only kernel memory eats at. Then the past is one of many, and the future less sure. Which it is, is told by how
//! much of a value the next one has lost (Dickey and Fuller); where that cannot be told, it wanders.
//!
//! What is steady in the main may wander a little below all that comes and goes: that comes on top, as much as values far
//! apart differ more than near ones.
//!
//! Invariant: what comes and goes in a steady future was seen beside the trend.

use super::grid::median;
use super::line::{Line, slope};
use unfrag_machine::Rng;

/// Most steps by which it is told whether a number wanders.
const MOST_COARSE: usize = 50;
/// What wanders seems to lose less than this over all steps, nineteen times in twenty, once a trend was taken out.
const WANDERS: f64 = 20.0;
/// Parts of all steps by which values are near each other, and far apart.
const NEAR: usize = 10;
const FAR_APART: usize = 3;
/// Pieces of a steady past, at least.
const FEWEST_PIECES: usize = 5;

/// What is around a trend.
pub(super) enum Rest {
    /// It stays around it.
    Steady {
        line: Line,
        beside: Vec<f64>,
        /// Steps of a piece.
        piece: usize,
        /// What it wanders a step, below all that comes and goes.
        wander: f64,
    },
    /// It goes where it goes.
    Wanders {
        line: Line,
        coarse: Coarse,
        /// What each step brought.
        news: Vec<f64>,
    },
}

impl Rest {
    /// Of values at regular steps.
    pub fn around(values: &[f64]) -> Rest {
        let coarse = Coarse::of(values);
        let line = Line::through(&coarse.values);
        let beside = line.beside(&coarse.values);
        let n = beside.len() as f64;
        if n * (1.0 - kept(&beside)) < WANDERS && beside.iter().any(|v| *v != 0.0) {
            let news = news(&beside);
            return Rest::Wanders { line, coarse, news };
        }
        let line = Line::through(values);
        let beside = line.beside(values);
        let kept = kept(&beside).clamp(0.0, 0.95);
        // Three times as long as it remembers itself.
        let memory = 3.0 * (1.0 + kept) / (1.0 - kept);
        let piece = (memory.ceil() as usize).clamp(1, values.len() / FEWEST_PIECES);
        let wander = wander(&beside);
        Rest::Steady {
            line,
            beside,
            piece,
            wander,
        }
    }

    /// Change of the trend a step.
    pub fn slope(&self) -> f64 {
        match self {
            Rest::Steady { line, .. } => line.slope,
            Rest::Wanders { line, coarse, .. } => line.slope / coarse.together as f64,
        }
    }

    /// A slope that the trend could as well have, and the first of the next steps, up to `far` after the `n` that were seen,
    /// at which a future with it is below a bound; `above` comes on top at each step.
    pub fn future(
        &self,
        n: usize,
        far: usize,
        bound: f64,
        above: &dyn Fn(usize, &mut Rng) -> f64,
        rng: &mut Rng,
    ) -> (f64, Option<usize>) {
        match self {
            Rest::Steady {
                line,
                beside,
                piece,
                wander,
            } => {
                let step = |rng: &mut Rng| if rng.chance(1, 2) { *wander } else { -wander };
                let mut at = 0.0;
                let past: Vec<f64> = pieces(beside, *piece, n, rng)
                    .into_iter()
                    .map(|p| {
                        at += step(rng);
                        p + at
                    })
                    .collect();
                let slope = line.slope - slope(past.into_iter());
                let line = Line { slope, ..*line };
                at = 0.0;
                let next = pieces(beside, *piece, far, rng);
                let crossing = (n..).zip(next).find(|(i, rest)| {
                    at += step(rng);
                    line.at(*i as f64) + above(*i, rng) + rest + at < bound
                });
                (slope, crossing.map(|c| c.0))
            }
            Rest::Wanders { line, coarse, news } => {
                let any = |rng: &mut Rng| news[rng.below(news.len() as u64) as usize];
                let steps = coarse.values.len();
                let mut at = 0.0;
                let past: Vec<f64> = (0..steps)
                    .map(|_| {
                        at += any(rng);
                        at
                    })
                    .collect();
                let slope = line.slope - slope(past.into_iter());
                let line = Line { slope, ..*line };
                let mut rest = coarse.values[steps - 1] - line.at((steps - 1) as f64);
                let crossing = (steps..steps + far.div_ceil(coarse.together)).find_map(|i| {
                    rest += any(rng);
                    let level = line.at(i as f64) + rest;
                    let fine = &coarse.fine[rng.below(coarse.fine.len() as u64) as usize];
                    fine.iter().enumerate().find_map(|(j, f)| {
                        let step = coarse.first + i * coarse.together + j;
                        (level + f + above(step, rng) < bound).then_some(step)
                    })
                });
                (slope / coarse.together as f64, crossing)
            }
        }
    }
}

/// Pieces of what was seen, laid one behind the other to so many steps.
fn pieces(beside: &[f64], piece: usize, steps: usize, rng: &mut Rng) -> Vec<f64> {
    let mut all = Vec::with_capacity(steps + piece);
    while all.len() < steps {
        let begin = rng.below((beside.len() - piece + 1) as u64) as usize;
        all.extend(&beside[begin..begin + piece]);
    }
    all.truncate(steps);
    all
}

/// What a steady number wanders a step: by how much values far apart differ more than near ones.
fn wander(beside: &[f64]) -> f64 {
    let n = beside.len();
    let (near, far) = (n / NEAR, n / FAR_APART);
    let apart = |steps: usize| {
        let pairs = beside.iter().zip(&beside[steps..]);
        pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / (n - steps) as f64
    };
    let more = (apart(far) - apart(near)) / (far - near) as f64;
    more.max(0.0).sqrt()
}

/// The part of a value that the next one still has.
fn kept(beside: &[f64]) -> f64 {
    let before = &beside[..beside.len() - 1];
    let whole = product(before, before);
    match whole > 0.0 {
        true => product(before, &beside[1..]) / whole,
        false => 0.0,
    }
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// What each step of a wandering brought.
fn news(beside: &[f64]) -> Vec<f64> {
    let mut news: Vec<f64> = beside.windows(2).map(|w| w[1] - w[0]).collect();
    let mean = news.iter().sum::<f64>() / news.len() as f64;
    news.iter_mut().for_each(|v| *v -= mean);
    // Medians of several steps make a wandering look calmer than it is: one change goes on in the next (Working).
    let whole = product(&news, &news);
    if whole > 0.0 {
        let goes_on = product(&news[1..], &news[..news.len() - 1]) / whole;
        let more = (1.0 + 2.0 * goes_on).max(1.0).sqrt();
        news.iter_mut().for_each(|v| *v *= more);
    }
    news
}

/// Steps, several together, so that what passes within a few of them is not taken for what stays.
pub(super) struct Coarse {
    /// Steps at the beginning that are left out, and those that are one here.
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
}
