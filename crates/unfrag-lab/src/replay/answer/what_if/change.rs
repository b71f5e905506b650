//! A number of a what-if: its bar, and what can be said of it.
//!
//! A bar joins two things that are not known: what differs between the replays of an ensemble, and how far predictions of
//! the class were from real kernels. They are independent, so that their squares add up.
//!
//! Invariant: a bar holds its prediction. Bars and values are rounded before they are compared, so that what is said
//! follows from the numbers that are shown.

use super::class::Class;
use super::measured::ClassError;
use super::quantity::Quantity;
use serde::Serialize;

/// What another kernel or setting would change.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIf {
    /// Which questions this one is like.
    pub class: Class,
    /// Comparisons of that class with real kernels; 0: not measured, and the bars are those of wider classes.
    pub comparisons: u64,
    /// Loads of these comparisons.
    pub loads: Vec<String>,
    /// Number by number.
    pub changes: Vec<Change>,
}

/// What can be said of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole bar is above.
    More,
    /// The whole bar is below.
    Less,
    /// The whole bar is close to it.
    Same,
}

/// A number of a what-if.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Its name, such as `allocstall` or `free_pages_end`.
    pub name: &'static str,
    /// What the recorded host had; `null` if it does not show it.
    pub recorded: Option<f64>,
    /// What the recorded kernel's model makes of it; `null` where that has no answer.
    pub own: Option<f64>,
    /// What the model of the kernel that is asked for makes of it.
    pub asked: f64,
    /// The prediction for a real host: what the recorded one had, changed as the model changes.
    pub predicted: f64,
    /// In four of five cases the real number lies between these; `null` where nothing was measured.
    pub bar: Option<[f64; 2]>,
    /// What it is compared with: what the recorded host had, else what its model makes of it; `null` without either.
    pub instead_of: Option<f64>,
    /// What can be said; `null` where nothing can.
    pub verdict: Option<Verdict>,
    /// Why nothing can be said.
    pub reason: Option<String>,
}

/// Values of a number, one for each replay.
pub(super) struct Values<'v> {
    /// On the recorded host.
    pub recorded: Option<f64>,
    /// Of the recorded kernel's model; empty where it has no answer.
    pub own: &'v [f64],
    /// Of the model that is asked for; not empty.
    pub asked: &'v [f64],
    /// At the beginning, in the recorded kernel's model and in this one.
    pub begin: Option<[f64; 2]>,
    /// Whether both are the same replays.
    pub is_own: bool,
}

/// The value that so many percent do not exceed, of sorted ones; the lower of two.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// On a number's scale, sorted.
fn on_scale(quantity: &Quantity, values: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = values.iter().map(|v| quantity.scale.up(*v)).collect();
    all.sort_by(f64::total_cmp);
    all
}

impl Change {
    /// Of one number.
    pub(super) fn of(quantity: &Quantity, v: &Values<'_>, error: ClassError) -> Change {
        let scale = quantity.scale;
        let asked = on_scale(quantity, v.asked);
        let own = on_scale(quantity, v.own);
        let median = |sorted: &[f64]| (!sorted.is_empty()).then(|| percentile(sorted, 50));
        let asked_median = percentile(&asked, 50);
        // The recorded kernel's model errs, too; what it errs by is taken off. Its own replay predicts itself.
        let correction = match (v.recorded, median(&own)) {
            (Some(recorded), Some(own)) if !v.is_own => scale.up(recorded) - own,
            _ => 0.0,
        };
        let predicted = asked_median + correction;
        let bar = error.error.map(|error| {
            let [low, high] = [10, 90].map(|p| percentile(&asked, p) - asked_median);
            let width = |ensemble: f64| (ensemble * ensemble + error * error).sqrt();
            [predicted - width(low), predicted + width(high)].map(|b| scale.rounded(scale.down(b)))
        });
        let show = |value: f64| scale.rounded(scale.down(value));
        let own = median(&own).map(show);
        let recorded = v.recorded.map(|r| scale.rounded(r));
        let mut change = Change {
            name: quantity.name,
            recorded,
            own,
            asked: show(asked_median),
            predicted: show(predicted),
            bar,
            instead_of: recorded.or(own),
            verdict: None,
            reason: None,
        };
        match change.judge(quantity, v) {
            Ok(verdict) => change.verdict = Some(verdict),
            Err(reason) => change.reason = Some(reason.into()),
        }
        change
    }

    fn judge(&self, quantity: &Quantity, v: &Values<'_>) -> Result<Verdict, &'static str> {
        if v.is_own {
            return Ok(Verdict::Same);
        }
        let from = self
            .instead_of
            .ok_or("there is nothing to compare it with")?;
        let [low, high] = self
            .bar
            .ok_or("no prediction of this number was ever held against a real kernel")?;
        let most = quantity.scale.negligible(from);
        if let Some([own, asked]) = v.begin
            && (own - asked).abs() > most
        {
            return Err("the replays begin differently, so that their ends cannot be compared");
        }
        match (low, high) {
            _ if low >= from - most && high <= from + most => Ok(Verdict::Same),
            _ if low > from => Ok(Verdict::More),
            _ if high < from => Ok(Verdict::Less),
            _ => Err("the bar of the difference is wider than the difference"),
        }
    }
}
