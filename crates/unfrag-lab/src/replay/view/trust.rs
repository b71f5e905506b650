//! How far an answer can be trusted.
//!
//! Each measure of the accuracy has a grade of its own: by its skill, and by how large its error is. An answer is trusted
//! as far as its worst measure, which is named. Skill alone is not enough: where nothing changes, a forecaster who
//! only counts pages errs nowhere, and there is no skill, however far off the model is.
//!
//! Invariant: no answer has a better grade than any measure of it, and what was not measured has none.

use super::changes;
use super::wording::is_own_release;
use crate::replay::answer::Report;
use crate::replay::answer::report::{Accuracy, HugeFaults, KernelReport, Measure};
use crate::report::number::{percent, thousands};

/// Snapshots that have to be compared for the highest grade.
pub const ENOUGH_SNAPSHOTS: u64 = 10;
/// An error up to this one at every snapshot limits nothing but the highest grade: the files of a snapshot are read one
/// after the other, so that the recording itself is no more exact.
const NEGLIGIBLE: f64 = 0.02;
/// Faults of which fewer say nothing.
const ENOUGH_FAULTS: u64 = 10;

/// A grade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// How far the answer can be trusted.
#[derive(Clone, Debug)]
pub struct Trust {
    /// The grade; `None` if nothing was measured.
    pub grade: Option<Grade>,
    /// What decided it, such as `the amount of free memory`; `None` if nothing was measured.
    pub decided_by: Option<&'static str>,
    /// What the grade rests on, a sentence each.
    pub sentences: Vec<String>,
}

impl Trust {
    /// The grade as a word: `high`, `fair`, `low`, `none`, `not measured`.
    pub fn word(&self) -> &'static str {
        self.grade.map_or("not measured", Grade::name)
    }
}

/// What one measure says.
struct Verdict {
    grade: Grade,
    /// What is measured.
    of: &'static str,
    /// Why it has this grade: what the replay does.
    why: String,
}

/// Errors at nine of ten snapshots that the grades from high to low allow. The amount of free memory is what watermarks are
/// held against, so that a few percent of it change what fails.
const FREE_PAGES: [f64; 3] = [0.05, 0.1, 0.25];
const SHARES: [f64; 3] = [0.1, 0.2, 0.4];
/// Shares of faults that were served on one side alone.
const FAULTS: [f64; 3] = [0.1, 0.3, 0.5];

impl Verdict {
    fn of(of: &'static str, measure: &Measure, most: [f64; 3]) -> Verdict {
        let by_error = Grade::of_error(measure.p90, most);
        let by_skill = match measure.skill {
            _ if measure.max == 0.0 => Grade::High,
            // A forecaster without an error leaves nothing to be better at, so that a good answer shows nothing.
            None => Grade::Fair,
            Some(skill) if measure.max <= NEGLIGIBLE => Grade::of_skill(skill).max(Grade::Fair),
            Some(skill) => Grade::of_skill(skill),
        };
        let error = format!(
            "it is off by up to {} at nine of ten snapshots",
            percent(measure.p90)
        );
        let why = match measure.skill {
            _ if by_error < by_skill || measure.max == 0.0 => error,
            Some(skill) => format!("{error}, and {}", of_skill(skill)),
            None => {
                format!(
                    "{error}, and a forecaster who only counts pages makes no error to improve on"
                )
            }
        };
        Verdict {
            grade: by_error.min(by_skill),
            of,
            why,
        }
    }

    fn of_faults(h: &HugeFaults) -> Option<Verdict> {
        if h.faults < ENOUGH_FAULTS {
            return None;
        }
        // Where neither side served any, they agree.
        let most = h.predicted.max(h.recorded);
        let apart = most.checked_sub(h.both).filter(|_| most > 0)?;
        let apart = apart as f64 / most as f64;
        Some(Verdict {
            grade: Grade::of_error(apart, FAULTS),
            of: "which faults got a huge page",
            why: format!("{} of them did so on one side alone", percent(apart)),
        })
    }

    /// Of all measures.
    fn all(kernel: &KernelReport, a: &Accuracy) -> Vec<Verdict> {
        let mut all = vec![
            Verdict::of("the amount of free memory", &a.free_pages_error, FREE_PAGES),
            Verdict::of(
                "the sizes of free blocks",
                &a.order_distribution_error,
                SHARES,
            ),
        ];
        for (order, measure) in &a.unusable_index_error {
            let name = match order.as_str() {
                "3" => "the unusable index at order 3",
                "9" => "the unusable index at order 9",
                _ => "the unusable index at the order of large blocks",
            };
            all.push(Verdict::of(name, measure, SHARES));
        }
        let types = a.pageblock_type_error.as_ref();
        all.extend(types.map(|m| Verdict::of("the types of pageblocks", m, SHARES)));
        all.extend(a.huge_faults.as_ref().and_then(Verdict::of_faults));
        if let Some(name) = kernel.guessed_settings.first() {
            all.push(Verdict {
                grade: Grade::Fair,
                of: "a setting that nobody recorded",
                why: format!("{name} is guessed"),
            });
        }
        if a.snapshots < ENOUGH_SNAPSHOTS {
            all.push(Verdict {
                grade: Grade::Fair,
                of: "the number of snapshots",
                why: format!("fewer than {ENOUGH_SNAPSHOTS} say little"),
            });
        }
        all
    }
}

/// A skill in words.
fn of_skill(skill: f64) -> String {
    match skill {
        s if s > 0.05 => format!(
            "the replay avoids {} of the error of a forecaster who only counts pages",
            percent(s)
        ),
        s if s > -0.05 => format!("the replay is no better than counting pages (skill {s:.2})"),
        s => format!("the replay is worse than counting pages (skill {s:.2})"),
    }
}

/// How far the answer can be trusted, and why.
pub fn trust(report: &Report) -> Trust {
    let mut kernels = report.kernels.iter();
    let judged =
        kernels.find_map(|k| Some((k, k.accuracy.as_ref().filter(|_| k.broke_down.is_none())?)));
    let worst = judged.and_then(|(kernel, accuracy)| {
        let asked = changes::unmeasured(report).into_iter().map(|kind| Verdict {
            grade: Grade::Low,
            of: "the kind of question",
            why: format!("predictions of this kind ({kind}) were never held against a real kernel"),
        });
        let all = Verdict::all(kernel, accuracy).into_iter().chain(asked);
        let worst = all.min_by_key(|v| v.grade)?;
        Some((kernel, accuracy, worst))
    });
    let mut sentences = vec![];
    if report.mode == "observe" {
        sentences.push(
            "Frames were put where the trace says, so this checks the recording and predicts \
             nothing."
                .into(),
        );
    }
    let Some((kernel, accuracy, worst)) = worst else {
        sentences.push(unmeasured(report).into());
        push_breakdowns(report, &mut sentences);
        sentences.extend(share(report));
        return Trust {
            grade: None,
            decided_by: None,
            sentences,
        };
    };
    sentences.push(format!(
        "Held against {} {} of {}. What decides is {}: {}.",
        thousands(accuracy.snapshots),
        match accuracy.snapshots {
            1 => "snapshot",
            _ => "snapshots",
        },
        recorded_kernel(report, kernel),
        worst.of,
        worst.why
    ));
    push_breakdowns(report, &mut sentences);
    if report.kernels.iter().any(|k| !k.recorded_era) {
        sentences.push(
            "For the other kernels there is no recording to compare with: they run the same \
             code under their own rules, so take this as the error to expect at the least; the bars say how large \
             it was where real kernels were asked."
                .into(),
        );
    }
    sentences.extend(share(report));
    let lost = report.recording.lost_events;
    if lost > 0 {
        let all = lost.saturating_add(report.recording.events);
        sentences.push(format!(
            "The recorder lost {} events ({} of all); what they did is missing here.",
            thousands(lost),
            percent(lost as f64 / all as f64)
        ));
    }
    Trust {
        grade: Some(worst.grade),
        decided_by: Some(worst.of),
        sentences,
    }
}

/// Which kernels have no answer.
fn push_breakdowns(report: &Report, sentences: &mut Vec<String>) {
    sentences.extend(changes::without_answer(report));
}

/// How much of what the host allocated was recorded, where that is known.
fn share(report: &Report) -> Option<String> {
    let share = report.recording.share_of_allocations?;
    Some(format!(
        "The trace has {} of the pages that the host allocated.",
        percent(share)
    ))
}

/// Why nothing was measured.
pub(super) fn unmeasured(report: &Report) -> &'static str {
    match report.kernels.iter().any(|k| k.recorded_era) {
        true => {
            "The recorded kernel was asked for under other settings, memory or another beginning than it had, and no \
             snapshot shows what it would have done, so nothing here has been held against fact. Ask for it as it was to \
             see the error of the method."
        }
        false => {
            "None of the kernels asked for is the one that was recorded, so nothing here has \
             been held against fact. Add the recorded era to see the error of the method."
        }
    }
}

/// The recorded kernel, and the era that stands for it.
fn recorded_kernel(report: &Report, kernel: &KernelReport) -> String {
    let recorded = &report.recording.kernel_release;
    match is_own_release(&kernel.kernel, recorded) {
        true => format!("the recorded kernel ({})", kernel.kernel),
        false => format!(
            "{recorded}, of which the nearest era, {}, was replayed",
            kernel.kernel
        ),
    }
}
