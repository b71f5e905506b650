//! How far an answer can be trusted: for each question by itself, since a model that is right about free memory may be
//! wrong about what fragments it.
//!
//! Each measure of the accuracy has a grade of its own. A question is trusted as far as the worst of its measures, which is
//! named.
//!
//! Invariant: no question has a better grade than any measure of it, and what was not measured has none.

use super::changes;
use super::grade::{FREE_PAGES, Grade, SHARES, Verdict};
use super::wording::is_own_release;
use crate::geometry::Sizes;
use crate::replay::answer::Report;
use crate::replay::answer::report::{Accuracy, KernelReport};
use crate::replay::answer::what_if::quantity::{QUANTITIES, Scale};
use crate::report::number::{duration, percent, thousands};
use serde::Serialize;

/// Snapshots that have to be compared for the highest grade.
pub const ENOUGH_SNAPSHOTS: u64 = 10;
/// Seconds of a day: what lasts shorter shows nothing of weeks.
const DAY: f64 = 86_400.0;
/// Numbers of a what-if that say whose memory is taken over, and those of waits.
const TAKEN_OVER: [&str; 1] = ["fallbacks"];
const WAITS: [&str; 7] = [
    "allocstall",
    "compact_stall",
    "compact_success",
    "compact_fail",
    "pgmigrate_success",
    "pgsteal_kswapd",
    "pgsteal_direct",
];

/// A kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Free memory, the sizes of free blocks, huge pages.
    FreeMemory,
    /// Types of pageblocks and fallbacks, which fragment memory for good.
    Fragmentation,
    /// Who waits, what is reclaimed and moved.
    Waits,
}

impl Question {
    /// All, in the order in which they are shown.
    pub const ALL: [Question; 3] = [
        Question::FreeMemory,
        Question::Fragmentation,
        Question::Waits,
    ];

    /// What it is about.
    pub fn words(self) -> &'static str {
        match self {
            Question::FreeMemory => "free memory and huge pages",
            Question::Fragmentation => {
                "types of pageblocks and blocks taken over (what fragments memory over weeks)"
            }
            Question::Waits => "waits, reclaim and compaction",
        }
    }
}

/// How far a kind of question can be trusted.
#[derive(Clone, Debug, Serialize)]
pub struct Trusted {
    /// Which.
    pub question: Question,
    /// The grade; `null` if nothing was measured.
    pub grade: Option<Grade>,
    /// What decided it, such as `the amount of free memory`; `null` if nothing was measured.
    pub decided_by: Option<String>,
    /// The error that decided it, a share; `null` if that is no error.
    pub error: Option<f64>,
    /// How much of the error of a forecaster who only counts pages the model avoids, where that is known.
    pub skill: Option<f64>,
    /// Why it has this grade, or none.
    pub because: String,
}

impl Trusted {
    /// The grade as a word: `high`, `fair`, `low`, `none`, `not measured`.
    pub fn word(&self) -> &'static str {
        self.grade.map_or("not measured", Grade::name)
    }

    /// In one sentence.
    pub fn sentence(&self) -> String {
        let of = self.question.words();
        let (word, because) = (self.word(), &self.because);
        format!("{word} for {of}. {because}")
    }
}

/// How far the answer can be trusted.
#[derive(Clone, Debug, Serialize)]
pub struct Trust {
    /// How well the recorded kernel's model follows the host in free memory and huge pages, whatever else was asked; `null` if
    /// that was not measured.
    pub model: Option<Grade>,
    /// For each kind of question.
    pub questions: Vec<Trusted>,
    /// What holds for all, a sentence each.
    pub sentences: Vec<String>,
}

impl Trust {
    /// A paragraph for each kind of question, and one for all; where no question has an answer, and all for one reason, that
    /// alone.
    pub fn paragraphs(&self) -> Vec<String> {
        let unmeasured = |t: &&Trusted| t.grade.is_none();
        let first = self.questions.first().filter(unmeasured);
        let same = |t: &Trusted| first.is_some_and(|f| f.because == t.because);
        let mut all: Vec<String> = match first {
            Some(first) if self.questions.iter().all(same) => {
                vec![format!("{}. {}", first.word(), first.because)]
            }
            _ => self.questions.iter().map(Trusted::sentence).collect(),
        };
        if !self.sentences.is_empty() {
            all.push(self.sentences.join(" "));
        }
        all
    }

    /// Of a kind of question.
    pub fn of(&self, question: Question) -> &Trusted {
        &self.questions[question as usize]
    }
}

/// The model that was held against the recording.
struct Judged<'a> {
    report: &'a Report,
    kernel: &'a KernelReport,
    accuracy: &'a Accuracy,
}

impl<'a> Judged<'a> {
    fn of(report: &'a Report) -> Option<Judged<'a>> {
        let mut kernels = report.kernels.iter().chain(&report.own);
        kernels.find_map(|kernel| {
            Some(Judged {
                report,
                kernel,
                accuracy: kernel.accuracy.as_ref()?,
            })
        })
    }

    fn sizes(&self) -> &Sizes {
        &self.report.recording.sizes
    }

    /// What was measured of a question.
    fn measured(&self, question: Question) -> Vec<Verdict> {
        let a = self.accuracy;
        match question {
            Question::FreeMemory => {
                let of = |of, m, most| Verdict::of(of, m, most);
                let mut all = vec![
                    of("the amount of free memory", &a.free_pages_error, FREE_PAGES),
                    of(
                        "the sizes of free blocks",
                        &a.order_distribution_error,
                        SHARES,
                    ),
                ];
                for (order, measure) in &a.unusable_index_error {
                    let size = order.parse().map(|o| self.sizes().of_order(o));
                    let size = size.unwrap_or_else(|_| format!("order {order}"));
                    let of = format!("the share of free memory in pieces below {size}");
                    all.push(Verdict::of(of, measure, SHARES));
                }
                all.extend(a.huge_faults.as_ref().and_then(Verdict::of_faults));
                all
            }
            Question::Fragmentation => {
                let types = a.pageblock_type_error.as_ref();
                let types = types.map(|m| Verdict::of("the types of pageblocks", m, SHARES));
                types.into_iter().chain(self.counts(&TAKEN_OVER)).collect()
            }
            Question::Waits => self.counts(&WAITS).collect(),
        }
    }

    /// Counts of the model held against the recorded ones, where there are enough of them, and where the recorded kernel's
    /// were not taken as given.
    fn counts(&self, names: &'static [&'static str]) -> impl Iterator<Item = Verdict> {
        let changes = self.kernel.what_if.iter().flat_map(|w| &w.changes);
        let changes = changes.filter(|c| names.contains(&c.name) && !self.is_given(c.name));
        changes.filter_map(|c| {
            let quantity = QUANTITIES.iter().find(|q| q.name == c.name)?;
            let enough = match quantity.scale {
                Scale::Ratio(floor) => floor,
                Scale::Index => return None,
            };
            let of = quantity.words(self.sizes());
            Verdict::of_counts(of, c.asked, c.recorded?, enough)
        })
    }

    /// Whether this count of the model is what the recorded kernel did.
    fn is_given(&self, name: &str) -> bool {
        let given = |name: &str| {
            let n = self.kernel.totals.get(name).copied().flatten();
            n.is_some_and(|n| n > 0)
        };
        match name {
            "pgsteal_kswapd" | "pgsteal_direct" | "allocstall" => given("reclaimed_pages_as_given"),
            _ if name.starts_with("compact_") || name.starts_with("pgmigrate_") => {
                given("migrated_pages_as_given")
            }
            _ => false,
        }
    }

    /// How well the model follows the host in free memory.
    fn model(&self) -> Option<Grade> {
        let measured = self.measured(Question::FreeMemory).into_iter();
        let all = measured.chain(self.limits_of_model(Question::FreeMemory));
        all.map(|v| v.grade).min()
    }

    /// What limits a question whatever was measured of it.
    fn limits(&self, question: Question) -> Vec<Verdict> {
        let mut all = self.limits_of_model(question);
        all.extend(changes::unmeasured(self.report).into_iter().map(|kind| {
            let why =
                format!("predictions of this kind ({kind}) were never held against a real kernel");
            Verdict::limit(Grade::Low, "the kind of question", why)
        }));
        all
    }

    /// What limits what is known of the recorded kernel's model.
    fn limits_of_model(&self, question: Question) -> Vec<Verdict> {
        let mut all = vec![];
        if let Some(name) = self.kernel.guessed_settings.first() {
            all.push(Verdict::limit(
                Grade::Fair,
                "a setting that nobody recorded",
                format!("{name} is guessed"),
            ));
        }
        if self.accuracy.snapshots < ENOUGH_SNAPSHOTS && question != Question::Waits {
            all.push(Verdict::limit(
                Grade::Fair,
                "the number of snapshots",
                format!("fewer than {ENOUGH_SNAPSHOTS} say little"),
            ));
        }
        all
    }

    fn trusted(&self, question: Question) -> Trusted {
        let measured = self.measured(question);
        if measured.is_empty() {
            return Trusted::unmeasured(question, unseen(question));
        }
        let all = measured.into_iter().chain(self.limits(question));
        let Some(worst) = all.min_by_key(|v| v.grade) else {
            return Trusted::unmeasured(question, unseen(question));
        };
        Trusted {
            question,
            grade: Some(worst.grade),
            because: format!("What decides is {}: {}.", worst.of, worst.why),
            decided_by: Some(worst.of),
            error: worst.error,
            skill: worst.skill,
        }
    }

    /// Against what the model was held.
    fn sentence(&self) -> String {
        let n = self.accuracy.snapshots;
        let snapshots = if n == 1 { "snapshot" } else { "snapshots" };
        let recorded = &self.report.recording.kernel_release;
        let name = &self.kernel.kernel;
        let of = match is_own_release(name, recorded) {
            true => format!("the recorded kernel ({name})"),
            false => format!("{recorded}, for which the nearest kernel, {name}, was replayed"),
        };
        let only = match self.report.own.is_some() {
            true => ", which was replayed only for that",
            false => "",
        };
        format!("Held against {} {snapshots} of {of}{only}.", thousands(n))
    }
}

impl Trusted {
    fn unmeasured(question: Question, because: &str) -> Trusted {
        Trusted {
            question,
            grade: None,
            decided_by: None,
            error: None,
            skill: None,
            because: because.into(),
        }
    }
}

/// Why nothing was measured of a question, where the model was held against a recording.
fn unseen(question: Question) -> &'static str {
    match question {
        Question::FreeMemory => "No snapshot shows it.",
        Question::Fragmentation => {
            "The recording shows no types of pageblocks, and too few blocks were taken over."
        }
        Question::Waits => {
            "Next to nothing waited, was reclaimed or moved, on the host or in the model; or it was taken as recorded."
        }
    }
}

/// How far the answer can be trusted, and why.
pub fn trust(report: &Report) -> Trust {
    let judged = Judged::of(report);
    let of = |question| match &judged {
        Some(judged) => judged.trusted(question),
        None => Trusted::unmeasured(question, unmeasured(report)),
    };
    let mut sentences = vec![];
    sentences.extend(judged.as_ref().map(Judged::sentence));
    sentences.extend(changes::sources(report));
    if report.recording.seconds < DAY {
        let time = duration(report.recording.seconds);
        sentences.push(format!("Of weeks, a replay of {time} shows nothing."));
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
        model: judged.as_ref().and_then(Judged::model),
        questions: Question::ALL.map(of).into(),
        sentences,
    }
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
    if report.mode == "observe" {
        return "Nothing was predicted: every frame is where the trace put it.";
    }
    match report.recorded.is_empty() {
        true => {
            "No snapshot of the recording shows what the host had, so nothing here has been held against fact."
        }
        false => {
            "The recorded kernel as it was has no answer here, so nothing has been held against fact."
        }
    }
}
