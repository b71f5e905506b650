//! What is around a trend, and how it goes on.
//!
//! It may be steady: programs come and go, and what they take they give back. Then pieces of what was seen, laid one
//! behind the other, are as good a past or future as any, if each begins near where the one before ended: what a program holds
//! at the last look it holds for a while yet. Or it may wander: each step begins where the one before ended,
//! as what only kernel memory eats at. Then the past is one of many, and the future less sure. Which it is, is told by how
//! much of a value the next one has lost (Dickey and Fuller); where that cannot be told, it wanders.
//!
//! Invariant: what comes and goes in a steady future was seen beside the trend.

use super::grid::median;
use super::line::{Line, slope};
use unfrag_machine::Rng;

/// Most steps by which it is told whether a number wanders.
const MOST_COARSE: usize = 50;
/// What wanders seems to lose less than this over all steps, nineteen times in twenty, once a trend was taken out.
const WANDERS: f64 = 20.0;
/// Pieces of a steady past, at least.
const FEWEST_PIECES: usize = 5;
/// A value is near another if it is of the part of all values that are nearest to it.
const NEAREST: usize = 10;

/// What is around a trend.
pub(super) enum Rest {
    /// It stays around it.
    Steady {
        line: Line,
        beside: Vec<f64>,
        /// Steps of a piece.
        piece: usize,
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
        Rest::Steady {
            line,
            beside,
            piece,
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
            } => {
                let past = pieces(beside, *piece, None, n, rng);
                let slope = line.slope - slope(past.into_iter());
                let line = Line { slope, ..*line };
                let next = pieces(beside, *piece, beside.last().copied(), far, rng);
                let is_below = |(i, rest): &(usize, f64), rng: &mut Rng| {
                    line.at(*i as f64) + above(*i, rng) + rest < bound
                };
                let crossing = (n..).zip(next).find(|at| is_below(at, rng));
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

/// Pieces of what was seen, laid one behind the other to so many steps. After a value goes on what came after one of those
/// that were nearest to it, so that what is high stays so as long as it did. `after`: the value that the first goes on from; any,
/// if there is none.
fn pieces(
    beside: &[f64],
    piece: usize,
    after: Option<f64>,
    steps: usize,
    rng: &mut Rng,
) -> Vec<f64> {
    let begins = beside.len() - piece;
    let joints = Joints::of(beside[..begins].to_vec());
    let mut all = Vec::with_capacity(steps + piece);
    let mut last = after;
    while all.len() < steps {
        let begin = match last {
            None => rng.below(begins as u64 + 1) as usize,
            Some(value) => joints.like(value, rng) + 1,
        };
        all.extend(&beside[begin..begin + piece]);
        last = all.last().copied();
    }
    all.truncate(steps);
    all
}

/// Places at which something else can go on, by the value there.
struct Joints {
    /// Value and place, in the order of values.
    values: Vec<(f64, usize)>,
}

impl Joints {
    fn of(values: Vec<f64>) -> Joints {
        let mut values: Vec<(f64, usize)> = values.into_iter().zip(0..).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        Joints { values }
    }

    /// One of the places whose value is nearest to this.
    fn like(&self, value: f64, rng: &mut Rng) -> usize {
        let near = (self.values.len() / NEAREST).max(1);
        let at = self.values.partition_point(|v| v.0 < value);
        let first = at
            .saturating_sub(near / 2)
            .min(self.values.len().saturating_sub(near));
        self.values[first + rng.below(near as u64) as usize].1
    }
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
