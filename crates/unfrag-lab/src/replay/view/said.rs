//! The answer of a replay: the first sentences of every view, and the values that stand in them.
//!
//! Of the recorded kernel as it was the answer is how well the model follows the host; of any other what would be different,
//! over the whole time, or that nothing can be said and why.
//!
//! Invariant: every number of a sentence is one of the answer, of the trust, or of the report's what-ifs.

use super::changes;
use super::changes::Standing;
use super::course::{Course, Free};
use super::grade::Grade;
use super::trust::{Question, Trust};
use crate::replay::answer::Report;
use crate::replay::answer::report::KernelReport;
use crate::replay::answer::what_if::change::BEGIN_DIFFERENTLY;
use crate::replay::answer::what_if::class::Asked;
use crate::replay::answer::what_if::found::{Change, Verdict, WhatIf};
use crate::report::number::thousands;
use serde::Serialize;
use std::collections::BTreeSet;

/// Changes that the first sentences name; the table has all.
const NAMED: usize = 4;
/// Changes that are told first of those that differ.
const FIRST: [&str; 2] = ["free_huge_blocks_end", "free_huge_blocks_mean"];
/// What the recorded kernel's model is held against beside free memory, where there is any of it.
const HAPPENED: [&str; 4] = [
    "thp_fault_alloc",
    "thp_fault_fallback",
    "allocstall",
    "compact_stall",
];

/// What can be said under one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// The recorded kernel as it was: the model follows the host, closely or fairly.
    Follows,
    /// The recorded kernel as it was: the model follows the host badly, or not.
    DoesNotFollow,
    /// The recorded kernel as it was, of which nothing was measured.
    NotMeasured,
    /// A number differs by more than its bar.
    Differs,
    /// What can be said is that nothing differs.
    Same,
    /// Whether anything differs cannot be said.
    CannotSay,
    /// It begins with other memory than the host, so that it cannot be compared with it.
    NotComparable,
    /// The model broke down.
    NoAnswer,
}

/// The answer under one kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelAnswer {
    /// Preset name, such as `6.1`.
    pub kernel: String,
    /// What can be said.
    pub says: Says,
    /// In sentences; the first is the answer.
    pub sentences: Vec<String>,
    /// Free memory over the whole replay; `null` where there are no samples.
    pub free: Option<Free>,
    /// Allocations that found no page.
    pub failed: u64,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Free memory of the recorded host over the whole time; `null` if no snapshot shows it.
    pub recorded: Option<Free>,
    /// For each kernel; those asked for beside the recorded one come first.
    pub kernels: Vec<KernelAnswer>,
}

impl Answer {
    /// All sentences: a paragraph for each kernel.
    pub fn paragraphs(&self) -> impl Iterator<Item = String> {
        let all = self.kernels.iter().map(|k| k.sentences.join(" "));
        all.map(|text| changes::capitalised(&text))
    }
}

/// The answer of a report, by how far it can be trusted.
pub fn answer(report: &Report, trust: &Trust) -> Answer {
    let says = Sayer {
        report,
        recorded: Free::of(report, &report.recorded),
        trust,
    };
    let all = report.kernels.iter().map(|k| says.of(k));
    let (own, others): (Vec<_>, Vec<_>) = all.partition(|k| k.says.is_of_own());
    Answer {
        recorded: says.recorded,
        kernels: others.into_iter().chain(own).collect(),
    }
}

impl Says {
    /// Whether it is said of the recorded kernel as it was.
    pub fn is_of_own(self) -> bool {
        matches!(
            self,
            Says::Follows | Says::DoesNotFollow | Says::NotMeasured
        )
    }
}

struct Sayer<'a> {
    report: &'a Report,
    recorded: Option<Free>,
    trust: &'a Trust,
}

impl Sayer<'_> {
    fn of(&self, kernel: &KernelReport) -> KernelAnswer {
        let free = Free::of(self.report, &kernel.samples);
        let (says, mut sentences) = match (&kernel.broke_down, &kernel.what_if) {
            (Some(why), _) => (
                Says::NoAnswer,
                vec![format!("No answer under {}: {why}.", kernel.kernel)],
            ),
            (None, Some(w)) if w.class.asked != Asked::Own => {
                self.of_other(kernel, w, free.as_ref())
            }
            _ => self.of_own(kernel, free.as_ref()),
        };
        if kernel.broke_down.is_none() && kernel.failed() > 0 {
            sentences.push(format!(
                "In the model of {}, {} requests found no memory.",
                kernel.kernel,
                thousands(kernel.failed())
            ));
        }
        KernelAnswer {
            kernel: kernel.kernel.clone(),
            says,
            sentences,
            free,
            failed: kernel.failed(),
        }
    }

    /// A kernel with what was asked of it.
    fn name(&self, kernel: &KernelReport) -> String {
        match &self.report.asked_settings[..] {
            [] => kernel.kernel.clone(),
            set => format!("{} with {}", kernel.kernel, set.join(", ")),
        }
    }

    /// `huge pages (2 MiB blocks)`.
    fn huge_pages(&self) -> String {
        let sizes = &self.report.recording.sizes;
        let size = sizes.of_order(sizes.large_order());
        format!("free huge pages ({size} blocks)")
    }

    fn of_own(&self, kernel: &KernelReport, free: Option<&Free>) -> (Says, Vec<String>) {
        let trusted = self.trust.of(Question::FreeMemory);
        let grade = trusted.grade.filter(|_| kernel.accuracy.is_some());
        let (says, how) = match grade {
            Some(Grade::High) => (Says::Follows, "the model follows this host closely"),
            Some(Grade::Fair) => (Says::Follows, "the model follows this host fairly well"),
            Some(Grade::Low) => (Says::DoesNotFollow, "the model follows this host badly"),
            Some(Grade::None) => (
                Says::DoesNotFollow,
                "the model does not follow this host: see what decides under Trust",
            ),
            None => (
                Says::NotMeasured,
                "how well the model follows this host was not measured",
            ),
        };
        let name = match self.report.kernels.len() {
            1 => String::new(),
            _ => format!("{}, the recorded kernel: ", kernel.kernel),
        };
        let mut sentences = vec![match (free, &self.recorded) {
            (Some(model), Some(host)) => {
                let (m, h) = (&model.huge_pages, &host.huge_pages);
                format!(
                    "{name}{how}: {} {} at the end, the host had {} ({} at the beginning; in the model {}).",
                    thousands(m.end),
                    self.huge_pages(),
                    thousands(h.end),
                    thousands(h.begin),
                    thousands(m.begin)
                )
            }
            _ => format!("{name}{how}."),
        }];
        if let (Some(model), Some(host)) = (free, &self.recorded) {
            let mib = |pages| self.report.recording.sizes.mib(pages);
            sentences.push(format!(
                "Free memory at the end: {} MiB, the host had {} MiB.",
                mib(model.pages.end),
                mib(host.pages.end)
            ));
        }
        sentences.extend(self.happened(kernel));
        (says, sentences)
    }

    /// What happened in the model and on the host.
    fn happened(&self, kernel: &KernelReport) -> Option<String> {
        let changes = kernel.what_if.iter().flat_map(|w| &w.changes);
        let told = changes.filter(|c| HAPPENED.contains(&c.name));
        let told: Vec<(&Change, f64)> = told.filter_map(|c| Some((c, c.recorded?))).collect();
        let some = told.iter().filter(|(c, r)| *r > 0.0 || c.asked > 0.0);
        let some: Vec<String> = some
            .map(|(c, recorded)| {
                let [m, h] = [c.asked, *recorded].map(|n| thousands(n as u64));
                let what = changes::what(c, &self.report.recording.sizes);
                format!("{what} {m}, the host {h}")
            })
            .collect();
        match (told.is_empty(), some.is_empty()) {
            (true, _) => None,
            (_, true) => Some(
                "Nobody waited for memory or asked for a huge page, on the host or in the model."
                    .into(),
            ),
            _ => Some(format!(
                "Over the whole time: {}.",
                changes::capitalised(&some.join("; "))
            )),
        }
    }

    fn of_other(
        &self,
        kernel: &KernelReport,
        what_if: &WhatIf,
        free: Option<&Free>,
    ) -> (Says, Vec<String>) {
        let name = self.name(kernel);
        let sizes = &self.report.recording.sizes;
        let changes = || what_if.changes.iter().filter(|c| !changes::is_of_nothing(c));
        let named = |verdict: Option<Verdict>| -> Vec<String> {
            let those = changes().filter(|c| c.verdict == verdict);
            those.map(|c| changes::what(c, sizes)).collect()
        };
        let (same, unknown) = (named(Some(Verdict::Same)), named(None));
        let standing = changes::standing(kernel).unwrap_or(Standing::Unknown);
        let mut sentences = vec![];
        let says = match standing {
            Standing::Apart => {
                sentences.push(format!(
                    "{name}: not comparable as it stands, since it begins with other memory than the host."
                ));
                sentences.extend(self.apart(&kernel.kernel, free));
                return (Says::NotComparable, sentences);
            }
            Standing::Differs => {
                let mut differ: Vec<&Change> = changes().collect();
                differ.sort_by_key(|c| !FIRST.contains(&c.name));
                let differ = differ.into_iter().filter_map(|c| changes::said(c, sizes));
                let differ: Vec<String> = differ.collect();
                let rest = differ.len().saturating_sub(NAMED);
                let more = match rest {
                    0 => String::new(),
                    n => format!("; {n} more in the table"),
                };
                let told = differ[..differ.len() - rest].join("; ");
                sentences.push(format!("under {name} {told}{more}."));
                Says::Differs
            }
            Standing::Same => {
                sentences.push(format!("under {name} no difference that can be told."));
                Says::Same
            }
            Standing::Unknown => {
                sentences.push(format!(
                    "cannot say whether {name} would be better or worse: {}.",
                    reasons(what_if)
                ));
                Says::CannotSay
            }
        };
        sentences.extend(self.over_time(&kernel.kernel, what_if, free));
        if !same.is_empty() {
            sentences.push(format!("About the same: {}.", list(&same)));
        }
        if !unknown.is_empty() && standing != Standing::Unknown {
            let of = list(&unknown);
            sentences.push(format!(
                "Cannot say whether there is more or less of: {of}."
            ));
        }
        (says, sentences)
    }

    /// Free huge pages over the whole time, and the bar of the end.
    fn over_time(&self, kernel: &str, what_if: &WhatIf, free: Option<&Free>) -> Option<String> {
        let (host, model) = (&self.recorded.as_ref()?.huge_pages, &free?.huge_pages);
        let end = what_if.changes.iter();
        let end = end.filter(|c| c.name == "free_huge_blocks_end");
        let bar = end.filter(|c| c.verdict.is_none_or(|v| v == Verdict::Same));
        let bar = bar.filter_map(|c| changes::bar(c, " to ")).next();
        let bar = bar.map_or_else(String::new, |bar| {
            format!("; of five such hosts four should end with {bar}")
        });
        let words = changes::capitalised(&self.huge_pages());
        Some(format!(
            "{words}: recorded {}, the model of {kernel} {}{bar}.",
            course(host),
            course(model)
        ))
    }

    /// The courses of two that begin differently.
    fn apart(&self, kernel: &str, free: Option<&Free>) -> Option<String> {
        let (host, model) = (&self.recorded.as_ref()?.huge_pages, &free?.huge_pages);
        let (end, change) = (model.end.cmp(&host.end), model.change.cmp(&host.change));
        let speak = match end == change {
            true => "Since the beginnings differ, neither the end nor the change is evidence.",
            false => "The end speaks for one, the change for the other: neither is evidence.",
        };
        Some(format!(
            "{}: recorded {}, the model of {kernel} {}. {speak}",
            changes::capitalised(&self.huge_pages()),
            course(host),
            course(model)
        ))
    }
}

/// `290 at the beginning, 130 at the end (-160)`.
fn course(c: &Course) -> String {
    format!(
        "{} at the beginning, {} at the end ({})",
        thousands(c.begin),
        thousands(c.end),
        signed(c.change)
    )
}

/// With its sign, if it is not 0.
pub(super) fn signed(n: i64) -> String {
    let text = thousands(n.unsigned_abs());
    match n {
        1.. => format!("+{text}"),
        0 => text,
        _ => format!("-{text}"),
    }
}

/// Why nothing can be said, each reason once.
fn reasons(what_if: &WhatIf) -> String {
    let unknown = what_if.changes.iter().filter(|c| c.verdict.is_none());
    let all: BTreeSet<&str> = unknown
        .filter(|c| !changes::is_of_nothing(c))
        .filter_map(|c| c.reason.as_deref())
        .filter(|r| *r != BEGIN_DIFFERENTLY)
        .collect();
    let all: Vec<&str> = all.into_iter().collect();
    match all.is_empty() {
        true => "nothing was measured".into(),
        false => all.join("; "),
    }
}

/// `a`, `a and b`, `a, b and c`, and how many more there are than are named.
fn list(names: &[String]) -> String {
    let rest = names.len().saturating_sub(NAMED);
    let (last, others) = match names {
        [] => return String::new(),
        _ if rest > 0 => (format!("{rest} more"), &names[..NAMED]),
        [others @ .., last] => (last.clone(), others),
    };
    match others {
        [] => last,
        _ => format!("{} and {last}", others.join(", ")),
    }
}

/// A report and what its views say of it: the format of `--json`.
#[derive(Debug, Serialize)]
pub struct Told<'a> {
    /// The answer.
    pub answer: Answer,
    /// How far it can be trusted.
    pub trust: Trust,
    /// All numbers.
    #[serde(flatten)]
    pub report: &'a Report,
}

impl<'a> Told<'a> {
    /// Of this report.
    pub fn of(report: &'a Report) -> Told<'a> {
        let trust = super::trust::trust(report);
        let answer = answer(report, &trust);
        Told {
            answer,
            trust,
            report,
        }
    }
}
