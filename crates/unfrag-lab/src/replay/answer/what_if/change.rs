//! A number of a what-if: its bar, and what can be said of it.
//!
//! A bar joins two things that are not known: what differs between the replays of an ensemble, and how far predictions of
//! the class were from real kernels. They are independent, so that their squares add up.
//!
//! Invariant: a bar holds its prediction. Bars and values are rounded before they are compared, so that what is said
//! follows from the numbers that are shown.

use super::found::{Change, Verdict};
use super::measured::ClassError;
use super::quantity::{Quantity, Scale};

/// Why nothing is said of levels that begin differently.
pub const BEGIN_DIFFERENTLY: &str =
    "the replays begin differently, so that their ends cannot be compared";

/// Why nothing is said of a difference that its bar hides.
pub const BAR_IS_WIDER: &str = "the bar of the difference is wider than the difference";

/// Why nothing is said of a number that the recorded kernel's model does not follow.
pub const OWN_IS_OFF: &str =
    "the model of the recorded kernel is far off what the host had of this number";

/// Why nothing is said of free memory that the recorded kernel's model does not follow at all.
pub const OWN_IS_WORSE: &str =
    "under its own kernel the model follows free memory worse than counting pages would";

/// Why nothing is said where the model's own number, which stands in the tables, is not on that side of what was recorded.
pub const MODEL_IS_NOT_THERE: &str =
    "the model's own number is not on that side of what was recorded";

/// Shares of the larger one, and differences of indices, from which a model's number says nothing of the host's.
const FAR_OFF: f64 = 0.5;
const FAR_OFF_INDEX: f64 = 0.4;

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
    /// As many as there can be in this memory, where that is known.
    pub most: Option<f64>,
}

/// The middle of sorted values; the lower of two.
fn middle(sorted: &[f64]) -> f64 {
    sorted[(sorted.len() - 1) / 2]
}

/// The ends of four fifths of sorted values, a tenth left out at each; of few values, all.
fn four_fifths(sorted: &[f64]) -> [f64; 2] {
    let last = sorted.len() - 1;
    [sorted[last / 10], sorted[last - last / 10]]
}

/// On a number's scale, sorted.
fn on_scale(quantity: &Quantity, values: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = values.iter().map(|v| quantity.scale.up(*v)).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// One number, with its bar and what can be said of it.
pub(super) fn change_of(quantity: &Quantity, v: &Values<'_>, error: ClassError) -> Change {
    let scale = quantity.scale;
    let asked = on_scale(quantity, v.asked);
    let own = on_scale(quantity, v.own);
    let median = |sorted: &[f64]| (!sorted.is_empty()).then(|| middle(sorted));
    let asked_median = middle(&asked);
    // The recorded kernel's model errs, too; what it errs by is taken off. Its own replay predicts itself.
    let correction = match (v.recorded, median(&own)) {
        (Some(recorded), Some(own)) if !v.is_own => scale.up(recorded) - own,
        _ => 0.0,
    };
    let predicted = asked_median + correction;
    let show = |value: f64| {
        let value = scale.rounded(scale.down(value));
        v.most.map_or(value, |most| value.min(most))
    };
    let bar = error.error.map(|error| {
        let [low, high] = four_fifths(&asked).map(|end| end - asked_median);
        let width = |ensemble: f64| (ensemble * ensemble + error * error).sqrt();
        [predicted - width(low), predicted + width(high)].map(show)
    });
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
    match judge(&change, quantity, v) {
        Ok(verdict) => change.verdict = Some(verdict),
        Err(reason) => change.reason = Some(reason.into()),
    }
    change
}

/// What can be said of a change, or why nothing can.
fn judge(change: &Change, quantity: &Quantity, v: &Values<'_>) -> Result<Verdict, &'static str> {
    if v.is_own {
        return Err("it is the recorded kernel itself: what differs is the error of its model");
    }
    let from = change
        .instead_of
        .ok_or("there is nothing to compare it with")?;
    let [low, high] = change
        .bar
        .ok_or("no prediction of this number was ever held against a real kernel")?;
    let most = quantity.scale.negligible(from);
    if let Some([own, asked]) = v.begin
        && (own - asked).abs() > most
    {
        return Err(BEGIN_DIFFERENTLY);
    }
    if is_off(change, quantity.scale) {
        return Err(OWN_IS_OFF);
    }
    let verdict = match (low, high) {
        _ if low >= from - most && high <= from + most => Verdict::Same,
        _ if low > from => Verdict::More,
        _ if high < from => Verdict::Less,
        _ => return Err(BAR_IS_WIDER),
    };
    // A prediction is the recorded number, changed as the models differ: where the model alone has none of that change,
    // what makes it is the error of the recorded kernel's model.
    let is_there = match verdict {
        Verdict::More => change.asked > from + most,
        Verdict::Less => change.asked < from - most,
        Verdict::Same => true,
    };
    if is_there {
        Ok(verdict)
    } else {
        Err(MODEL_IS_NOT_THERE)
    }
}

/// Whether the recorded kernel's model is far off the host in this number.
fn is_off(change: &Change, scale: Scale) -> bool {
    let (Some(own), Some(recorded)) = (change.own, change.recorded) else {
        return false;
    };
    let apart = (own - recorded).abs();
    let most = own.max(recorded);
    match scale {
        Scale::Ratio(few) => most >= few && apart > most * FAR_OFF,
        Scale::Index => apart > FAR_OFF_INDEX,
    }
}

#[cfg(test)]
mod tests {
    use super::super::quantity::QUANTITIES;
    use super::*;

    fn named(name: &str) -> &'static Quantity {
        QUANTITIES.iter().find(|q| q.name == name).unwrap()
    }

    fn change(
        name: &str,
        recorded: Option<f64>,
        own: &[f64],
        asked: &[f64],
        error: Option<f64>,
    ) -> Change {
        let v = Values {
            recorded,
            own,
            asked,
            begin: None,
            is_own: false,
            most: None,
        };
        let comparisons = 5;
        change_of(named(name), &v, ClassError { error, comparisons })
    }

    /// What the recorded one had, what both models make of it, the error of the class, and what can be said.
    #[test]
    fn a_direction_is_named_only_where_the_bar_holds_no_change() {
        use Verdict::{Less, More, Same};
        let one = |n: f64| vec![n];
        let cases = [
            (
                "allocstall",
                Some(178.0),
                one(178.0),
                one(35.0),
                Some(0.4),
                Some(Less),
            ),
            (
                "allocstall",
                Some(178.0),
                one(178.0),
                one(35.0),
                Some(2.0),
                None,
            ),
            (
                "allocstall",
                Some(178.0),
                one(178.0),
                one(900.0),
                Some(0.4),
                Some(More),
            ),
            (
                "allocstall",
                Some(178.0),
                one(178.0),
                one(178.0),
                Some(0.01),
                Some(Same),
            ),
            ("allocstall", Some(178.0), one(178.0), one(35.0), None, None),
            // The model of the recorded kernel makes twice too many of them.
            (
                "allocstall",
                Some(178.0),
                one(356.0),
                one(356.0),
                Some(0.01),
                Some(Same),
            ),
            // Nobody recorded any, so that models are compared.
            (
                "allocstall",
                None,
                one(178.0),
                one(35.0),
                Some(0.4),
                Some(Less),
            ),
            ("allocstall", None, vec![], one(35.0), Some(0.4), None),
            // Replays differ more than the kernels.
            (
                "allocstall",
                Some(178.0),
                one(178.0),
                vec![5.0, 40.0, 50.0, 60.0, 900.0],
                Some(0.1),
                None,
            ),
            (
                "unusable_huge_end",
                Some(0.8),
                one(0.8),
                one(0.3),
                Some(0.1),
                Some(Less),
            ),
            (
                "unusable_huge_end",
                Some(0.8),
                one(0.8),
                one(0.75),
                Some(0.1),
                None,
            ),
            (
                "unusable_huge_end",
                Some(0.8),
                one(0.8),
                one(0.81),
                Some(0.005),
                Some(Same),
            ),
        ];
        for (i, (name, recorded, own, asked, error, verdict)) in cases.into_iter().enumerate() {
            let c = change(name, recorded, &own, &asked, error);
            assert_eq!(c.verdict, verdict, "case {i}: {c:?}");
            assert_eq!(c.reason.is_none(), verdict.is_some(), "case {i}: {c:?}");
            if let Some([low, high]) = c.bar {
                assert!(low <= c.predicted && c.predicted <= high, "case {i}: {c:?}");
            }
        }
    }

    /// What the recorded one had, what its model makes of it, what the model that is asked for makes, and why nothing is said.
    #[test]
    fn a_model_that_is_off_or_contradicts_the_bar_says_nothing() {
        let cases = [
            // The bar lies above, the model below what was recorded.
            ("fallbacks", 31_224.0, 4_159.0, 7_444.0, OWN_IS_OFF),
            ("fallbacks", 31_224.0, 4_159.0, 2_041.0, OWN_IS_OFF),
            ("thp_fault_alloc", 0.0, 81.0, 219.0, OWN_IS_OFF),
            ("thp_fault_alloc", 0.0, 81.0, 81.0, OWN_IS_OFF),
            ("unusable_huge_end", 0.9, 0.4, 0.1, OWN_IS_OFF),
            (
                "pgmigrate_success",
                10_124.0,
                18_721.0,
                9_781.0,
                MODEL_IS_NOT_THERE,
            ),
            ("allocstall", 100.0, 190.0, 110.0, MODEL_IS_NOT_THERE),
            ("allocstall", 190.0, 100.0, 180.0, MODEL_IS_NOT_THERE),
        ];
        for (name, recorded, own, asked, reason) in cases {
            let c = change(name, Some(recorded), &[own], &[asked], Some(0.1));
            assert_eq!(
                (c.verdict, c.reason.as_deref()),
                (None, Some(reason)),
                "{c:?}"
            );
        }
        // Few of few are no error.
        let c = change("allocstall", Some(0.0), &[9.0], &[400.0], Some(0.1));
        assert_eq!(c.verdict, Some(Verdict::More), "{c:?}");
    }

    #[test]
    fn no_bar_is_beyond_all_memory() {
        let v = Values {
            recorded: Some(300_000.0),
            own: &[300_000.0],
            asked: &[350_000.0],
            begin: None,
            is_own: false,
            most: Some(372_000.0),
        };
        let error = ClassError {
            error: Some(1.0),
            comparisons: 5,
        };
        let c = change_of(named("free_pages_end"), &v, error);
        assert_eq!(c.bar.unwrap()[1], 372_000.0);
    }

    #[test]
    fn of_the_recorded_kernel_as_it_was_nothing_is_said() {
        let v = Values {
            recorded: Some(178.0),
            own: &[500.0],
            asked: &[500.0],
            begin: None,
            is_own: true,
            most: None,
        };
        let c = change_of(
            named("allocstall"),
            &v,
            ClassError {
                error: None,
                comparisons: 0,
            },
        );
        assert_eq!((c.verdict, c.predicted), (None, 500.0));
        assert!(c.reason.is_some());
    }

    #[test]
    fn ends_of_different_beginnings_are_not_compared() {
        let v = Values {
            recorded: Some(2_000.0),
            own: &[2_000.0],
            asked: &[9_000.0],
            begin: Some([10_000.0, 20_000.0]),
            is_own: false,
            most: None,
        };
        let c = change_of(
            named("free_huge_blocks_end"),
            &v,
            ClassError {
                error: Some(0.01),
                comparisons: 9,
            },
        );
        assert_eq!(c.verdict, None);
        assert!(c.reason.is_some_and(|r| r.contains("begin differently")));
    }

    #[test]
    fn a_larger_error_makes_a_wider_bar() {
        let widths = [0.0, 0.1, 0.5, 2.0].map(|error| {
            let c = change(
                "allocstall",
                Some(178.0),
                &[170.0],
                &[35.0, 40.0, 45.0],
                Some(error),
            );
            let [low, high] = c.bar.unwrap();
            high - low
        });
        assert!(widths.is_sorted(), "{widths:?}");
    }
}
