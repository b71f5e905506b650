//! Grades of single measures: by how much better than counting a replay is, and by how large its error is.
//!
//! Better than counting is not enough: where nothing changes, a forecaster who only counts pages errs nowhere, so that
//! nobody can be better, however far off the model is.
//!
//! Invariant: no measure has a better grade than its error allows, and none than what it is better than.

use crate::replay::answer::report::{HugeFaults, Measure, NEGLIGIBLE, NO_BETTER};
use crate::report::number::{percent, thousands};
use serde::Serialize;

/// Faults of which fewer say nothing.
const ENOUGH_FAULTS: u64 = 10;

/// A grade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Worse than, or no better than, counting pages; or far off.
    None,
    /// Little better than counting pages; or off by much.
    Low,
    /// Better than counting pages.
    Fair,
    /// Much better than counting pages, and close.
    High,
}

impl Grade {
    /// One word for a heading.
    pub fn name(self) -> &'static str {
        match self {
            Grade::None => "none",
            Grade::Low => "low",
            Grade::Fair => "fair",
            Grade::High => "high",
        }
    }

    /// By a skill, of which 1 is no error at all, and 0 no better than counting.
    fn of_skill(skill: f64) -> Grade {
        match skill {
            s if s >= 0.8 => Grade::High,
            s if s >= 0.5 => Grade::Fair,
            s if s > 0.05 => Grade::Low,
            _ => Grade::None,
        }
    }

    /// By an error and the largest ones that the grades from high to low allow.
    fn of_error(error: f64, most: [f64; 3]) -> Grade {
        match most.iter().position(|most| error <= *most) {
            Some(0) => Grade::High,
            Some(1) => Grade::Fair,
            Some(_) => Grade::Low,
            None => Grade::None,
        }
    }
}

/// Errors at nine of ten snapshots that the grades from high to low allow. The amount of free memory is what watermarks are
/// held against, so that a few percent of it change what fails.
pub(super) const FREE_PAGES: [f64; 3] = [0.05, 0.1, 0.25];
pub(super) const SHARES: [f64; 3] = [0.1, 0.2, 0.4];
/// Shares of what happened on one side alone.
const ONE_SIDED: [f64; 3] = [0.1, 0.3, 0.5];

/// What one measure says.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub grade: Grade,
    /// What is measured.
    pub of: String,
    /// Why it has this grade: what the replay does.
    pub why: String,
    /// The error that is named, a share; `None` of what is no error.
    pub error: Option<f64>,
    /// How much of the error of a forecaster who only counts is avoided.
    pub skill: Option<f64>,
}

impl Verdict {
    pub fn of(of: impl Into<String>, measure: &Measure, most: [f64; 3]) -> Verdict {
        let by_error = Grade::of_error(measure.p90, most);
        let by_skill = match measure.skill {
            _ if measure.max == 0.0 => Grade::High,
            // A forecaster without an error leaves nothing to be better at, so that a good answer shows nothing.
            None => Grade::Fair,
            Some(skill) if measure.max <= NEGLIGIBLE => {
                // Worse than counting is not fair, however small the error is.
                let least = if skill < NO_BETTER {
                    Grade::Low
                } else {
                    Grade::Fair
                };
                Grade::of_skill(skill).max(least)
            }
            Some(skill) => Grade::of_skill(skill),
        };
        let error = format!(
            "it is off by up to {} at nine of ten snapshots",
            percent(measure.p90)
        );
        let why = match measure.skill {
            _ if by_error < by_skill || measure.max == 0.0 => error,
            Some(skill) => format!("{error}; {}", of_skill(skill)),
            None => format!("{error}; only counting pages makes no error to improve on"),
        };
        Verdict {
            grade: by_error.min(by_skill),
            of: of.into(),
            why,
            error: Some(measure.p90),
            skill: measure.skill,
        }
    }

    /// A limit that is no measure.
    pub fn limit(grade: Grade, of: &str, why: String) -> Verdict {
        Verdict {
            grade,
            of: of.into(),
            why,
            error: None,
            skill: None,
        }
    }

    /// Of a count, in the model and on the host; `None` where both are too few to say anything.
    pub fn of_counts(of: String, model: f64, recorded: f64, enough: f64) -> Option<Verdict> {
        let most = model.max(recorded);
        if most < enough || most <= 0.0 {
            return None;
        }
        let apart = (model - recorded).abs() / most;
        let [m, r] = [model, recorded].map(|n| thousands(n as u64));
        Some(Verdict {
            grade: Grade::of_error(apart, ONE_SIDED),
            of,
            why: format!("{m} in the model, {r} recorded"),
            error: Some(apart),
            skill: None,
        })
    }

    pub fn of_faults(h: &HugeFaults) -> Option<Verdict> {
        if h.faults < ENOUGH_FAULTS {
            return None;
        }
        // Where neither side served any, they agree.
        let most = h.predicted.max(h.recorded);
        let apart = most.checked_sub(h.both).filter(|_| most > 0)?;
        let apart = apart as f64 / most as f64;
        Some(Verdict {
            grade: Grade::of_error(apart, ONE_SIDED),
            of: "which faults got a huge page".into(),
            why: format!("{} of them did so on one side alone", percent(apart)),
            error: Some(apart),
            skill: None,
        })
    }
}

/// A skill in words.
fn of_skill(skill: f64) -> String {
    let error = match skill {
        s if s > 0.05 => format!("{} smaller than", percent(s)),
        s if s >= NO_BETTER => "no smaller than".into(),
        s => format!("{:.2} times", 1.0 - s),
    };
    format!("over all snapshots its error is {error} that of only counting pages")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_errs_more_than_counting_is_not_fair() {
        for (skill, grade) in [
            (-1.24, Grade::Low),
            (0.0, Grade::Fair),
            (0.6, Grade::Fair),
            (0.9, Grade::High),
        ] {
            let measure = Measure {
                median: 0.004,
                p90: 0.009,
                max: 0.015,
                skill: Some(skill),
            };
            let verdict = Verdict::of("types", &measure, SHARES);
            assert_eq!(verdict.grade, grade, "{}", verdict.why);
        }
    }
}
