//! Looks at a number over time, at regular moments.
//!
//! Looks come as they come: every minute, with gaps, with dense bursts. What is made of them here has one step, and of
//! several looks in a step their median. A day's own course is told apart from the trend where there are days enough.
//!
//! Invariant: a step without a look is filled from its neighbours, and where most are without one there is no grid.

use std::collections::BTreeMap;

/// Most steps of a grid.
const MOST_STEPS: usize = 200;
/// Fewest steps, and fewest looks.
pub(super) const FEWEST: usize = 20;
/// Seconds of a day.
pub(super) const DAY: f64 = 86_400.0;
/// Days from which on a day's course is told apart.
const DAYS: f64 = 3.0;
/// Parts of a day that have a course of their own, at most.
const PARTS: usize = 24;
/// Share of the squares around the trend that the course of the other days may leave of a day.
const TOLD: f64 = 0.7;
/// Fewest of them with which a course shows.
const FEWEST_PARTS: usize = 4;

/// Values at regular moments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    /// When the first step begins, and seconds of a step.
    pub begin: f64,
    pub step: f64,
    pub values: Vec<f64>,
    /// By how much the smallest look of a step is below its value, of each step that has a look; none where no step has
    /// several.
    pub dips: Vec<f64>,
}

/// Why looks make no grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lacking {
    /// There are too few.
    Looks,
    /// They are not spread over the time.
    Gaps,
}

impl Grid {
    /// Of looks (seconds and value) in the order of time.
    pub fn of(looks: &[(f64, f64)]) -> Result<Grid, Lacking> {
        let (Some(first), Some(last)) = (looks.first(), looks.last()) else {
            return Err(Lacking::Looks);
        };
        let steps = looks.len().min(MOST_STEPS);
        let span = last.0 - first.0;
        if steps < FEWEST || span <= 0.0 {
            return Err(Lacking::Looks);
        }
        // The last look is in the last step.
        let step = span / (steps - 1) as f64;
        let begin = first.0 - step / 2.0;
        let mut of_step: Vec<Vec<f64>> = vec![vec![]; steps];
        for (time, value) in looks {
            let at = ((time - begin) / step) as usize;
            of_step[at.min(steps - 1)].push(*value);
        }
        let medians: Vec<Option<f64>> = of_step
            .iter_mut()
            .map(|v| (!v.is_empty()).then(|| median(v)))
            .collect();
        if medians.iter().flatten().count() * 2 < steps {
            return Err(Lacking::Gaps);
        }
        let smallest = |v: &Vec<f64>| v.iter().copied().min_by(f64::total_cmp);
        let beside = medians.iter().zip(&of_step);
        let dips: Vec<f64> = beside
            .filter_map(|(median, v)| Some((*median)? - smallest(v)?))
            .collect();
        Ok(Grid {
            begin,
            step,
            values: filled(&medians),
            dips: match dips.iter().any(|d| *d > 0.0) {
                true => dips,
                false => vec![],
            },
        })
    }

    /// Seconds from the first look to the last.
    pub fn span(&self) -> f64 {
        (self.values.len() - 1) as f64 * self.step
    }

    /// The part of the day in which a step is, counted on beyond the end; `None` if there are too few days to tell.
    fn part(&self, step: usize) -> Option<usize> {
        let parts = PARTS.min((DAY / self.step) as usize);
        (self.span() >= DAYS * DAY && parts >= FEWEST_PARTS).then(|| {
            let time = self.begin + (step as f64 + 0.5) * self.step;
            ((time.rem_euclid(DAY) / DAY * parts as f64) as usize).min(parts - 1)
        })
    }

    /// Takes the course of a day out of the values, around a line; gives what it is at a step. There is none where what the
    /// other days do at an hour says little of a day: chance, too, has a course.
    pub fn without_days(&mut self, line: &dyn Fn(usize) -> f64) -> impl Fn(usize) -> f64 + use<> {
        let day = |i: usize| ((self.begin + (i as f64 + 0.5) * self.step) / DAY).floor() as i64;
        let beside = |(i, v): (usize, &f64)| Some((day(i), self.part(i)?, v - line(i)));
        let seen: Vec<Seen> = self.values.iter().enumerate().filter_map(beside).collect();
        let mut course = course(&seen, None);
        let square = |left: f64| left * left;
        let without: f64 = seen.iter().map(|s| square(s.2)).sum();
        let mut of_others: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (day, ..) in &seen {
            of_others
                .entry(*day)
                .or_insert_with_key(|d| self::course(&seen, Some(*d)));
        }
        let with: f64 = seen
            .iter()
            .map(|(d, p, v)| square(v - of_others[d][*p]))
            .sum();
        if with > TOLD * without {
            course.fill(0.0);
        }
        let places = self.clone();
        let at = move |step: usize| places.part(step).map_or(0.0, |p| course[p]);
        for (i, value) in self.values.iter_mut().enumerate() {
            *value -= at(i);
        }
        at
    }
}

/// A step's day, its part of the day, and its value beside the trend.
type Seen = (i64, usize, f64);

/// The median of each part of a day, around their mean; of all days but one.
fn course(seen: &[Seen], but: Option<i64>) -> Vec<f64> {
    let mut of_part: Vec<Vec<f64>> = vec![vec![]; PARTS];
    for (_, part, value) in seen.iter().filter(|s| Some(s.0) != but) {
        of_part[*part].push(*value);
    }
    let are_seen = of_part.iter().filter(|v| !v.is_empty()).count().max(1);
    let mut course: Vec<f64> = of_part.iter_mut().map(|v| median(v)).collect();
    let mean = course.iter().sum::<f64>() / are_seen as f64;
    for (c, values) in course.iter_mut().zip(&of_part) {
        *c = if values.is_empty() { 0.0 } else { *c - mean };
    }
    course
}

/// Steps without a look lie on the line between their neighbours.
fn filled(medians: &[Option<f64>]) -> Vec<f64> {
    let known: Vec<(usize, f64)> = medians
        .iter()
        .enumerate()
        .filter_map(|(i, m)| Some((i, (*m)?)))
        .collect();
    let between = |i: usize| {
        let after = known.partition_point(|k| k.0 < i);
        match (after.checked_sub(1).map(|b| known[b]), known.get(after)) {
            (Some((a, from)), Some(&(b, to))) => {
                from + (to - from) * (i - a) as f64 / (b - a) as f64
            }
            (Some((_, value)), None) | (None, Some(&(_, value))) => value,
            (None, None) => 0.0,
        }
    };
    (0..medians.len()).map(between).collect()
}

/// The median; of an even number the mean of the two in the middle. It is 0 of none.
pub(super) fn median(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n == 0 {
        return 0.0;
    }
    values.sort_unstable_by(f64::total_cmp);
    (values[n / 2] + values[(n - 1) / 2]) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_of_any_spacing_have_one_step_and_gaps_are_bridged() {
        let looks: Vec<(f64, f64)> = (0..100)
            .filter(|i| !(40..60).contains(i))
            .map(|i| (f64::from(i), f64::from(2 * i)))
            .collect();
        let g = Grid::of(&looks).unwrap();
        assert_eq!(g.values.len(), 80);
        assert!((g.span() - 99.0).abs() < 1e-9);
        let at = |time: f64| g.values[((time - g.begin) / g.step) as usize];
        assert!((at(50.0) - 100.0).abs() < 4.0, "{}", at(50.0));
        // One wild look in a step is none.
        let many: Vec<(f64, f64)> = (0..2000)
            .map(|i| (f64::from(i), if i == 997 { 1e9 } else { 5.0 }))
            .collect();
        assert_eq!(Grid::of(&many).unwrap().values, vec![5.0; MOST_STEPS]);
    }

    #[test]
    fn few_looks_and_looks_at_both_ends_alone_are_no_series() {
        let some: Vec<(f64, f64)> = (0..19).map(|i| (f64::from(i), 1.0)).collect();
        assert_eq!(Grid::of(&some), Err(Lacking::Looks));
        assert_eq!(Grid::of(&[]), Err(Lacking::Looks));
        assert_eq!(Grid::of(&[(5.0, 1.0); 50]), Err(Lacking::Looks));
        let ends: Vec<(f64, f64)> = (0..40)
            .map(|i| (f64::from(if i < 20 { i } else { 100_000 + i }), 1.0))
            .collect();
        assert_eq!(Grid::of(&ends), Err(Lacking::Gaps));
    }

    #[test]
    fn a_days_course_is_told_apart_from_three_days_on() {
        let wave = |t: f64| 50.0 * (t / DAY * std::f64::consts::TAU).sin();
        let looks = |days: u32| -> Vec<(f64, f64)> {
            let hours = (0..days * 24).map(|h| f64::from(h) * 3600.0);
            hours.map(|t| (t, 1000.0 + wave(t))).collect()
        };
        let mut g = Grid::of(&looks(5)).unwrap();
        let course = g.without_days(&|_| 1000.0);
        let worst = g
            .values
            .iter()
            .map(|v| (v - 1000.0).abs())
            .fold(0.0, f64::max);
        assert!(worst < 8.0, "{worst}");
        assert!(
            (course(6 + 24 * 9) - 50.0).abs() < 8.0,
            "it goes on: {}",
            course(6 + 24 * 9)
        );
        let mut short = Grid::of(&looks(2)).unwrap();
        let before = short.clone();
        let none = short.without_days(&|_| 1000.0);
        assert_eq!((short, none(6)), (before, 0.0));
    }
}
