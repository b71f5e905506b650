//! The answer of a replay: the first sentences of every view, and the values that stand in them.
//!
//! Of the recorded kernel as it was the answer is how well the model follows the host; of any other what would be different,
//! over the whole time, or that nothing can be said and why.
//!
//! Invariant: every number of a sentence is one of the answer, of the trust, or of the report's what-ifs.

use super::between;
use super::cannot_say;
use super::changes;
use super::changes::Standing;
use super::course::{Course, Free};
use super::grade::Grade;
use super::trust::Trust;
use crate::replay::answer::Report;
use crate::replay::answer::report::KernelReport;
use crate::replay::answer::what_if::class::Asked;
use crate::replay::answer::what_if::found::{Change, Verdict, WhatIf};
use crate::report::number::thousands;
use serde::Serialize;

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
    /// What else is about the same, and of what nothing can be said.
    pub rest: Vec<String>,
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
    /// Why this recording cannot say what another kernel or setting would do to free memory; `null` where it can, and where
    /// that was not asked.
    pub cannot_say: Option<String>,
    /// For each kernel; those asked for beside the recorded one come first.
    pub kernels: Vec<KernelAnswer>,
    /// Where several were asked for beside the recorded one: how they differ from each other.
    pub between: Vec<String>,
}

impl Answer {
    /// All sentences: a paragraph for why nothing can be said, for each kernel, and for how they differ.
    pub fn paragraphs(&self) -> impl Iterator<Item = String> {
        let kernels = self.kernels.iter().map(|k| k.sentences.join(" "));
        let between = (!self.between.is_empty()).then(|| self.between.join(" "));
        self.cannot_say
            .clone()
            .into_iter()
            .chain(kernels)
            .chain(between)
    }

    /// What stands below the table of changes: of each kernel what is about the same, and what nobody can say.
    pub fn rest(&self) -> impl Iterator<Item = String> {
        let several = self.kernels.iter().filter(|k| !k.rest.is_empty()).count() > 1;
        let some = self.kernels.iter().filter(|k| !k.rest.is_empty());
        some.map(move |k| match several {
            true => format!("{}: {}", k.kernel, k.rest.join(" ")),
            false => k.rest.join(" "),
        })
    }
}

/// The answer of a report, by how far it can be trusted.
pub fn answer(report: &Report, trust: &Trust) -> Answer {
    let mut says = Sayer {
        report,
        recorded: Free::of(report, &report.recorded),
        trust,
        cannot_say: None,
    };
    says.cannot_say = cannot_say::of(report, |k| says.name(k), &says.huge_pages());
    let all = report.kernels.iter().map(|k| says.of(k));
    let (own, others): (Vec<_>, Vec<_>) = all.partition(|k| k.says.is_of_own());
    let mut kernels: Vec<KernelAnswer> = others.into_iter().chain(own).collect();
    // What is wrong with the recorded kernel's model is the same for all.
    let mut known: Vec<String> = vec![];
    for k in &mut kernels {
        k.sentences
            .retain(|s| !s.starts_with(cannot_say::NOTHING_SAID) || !known.contains(s));
        known.extend(k.sentences.iter().cloned());
    }
    Answer {
        between: between::sentences(report),
        recorded: says.recorded,
        cannot_say: says.cannot_say,
        kernels,
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
    cannot_say: Option<String>,
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
        if kernel.broke_down.is_none() {
            sentences.extend(found_none(kernel));
        }
        KernelAnswer {
            kernel: kernel.kernel.clone(),
            rest: self.rest(kernel, says),
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
        let grade = self.trust.model.filter(|_| kernel.accuracy.is_some());
        let (says, how) = match grade {
            Some(Grade::High) => (Says::Follows, "follows this host closely"),
            Some(Grade::Fair) => (Says::Follows, "follows this host fairly well"),
            Some(Grade::Low) => (Says::DoesNotFollow, "follows this host badly"),
            Some(Grade::None) => (
                Says::DoesNotFollow,
                "does not follow this host (what decides stands under Trust)",
            ),
            None => (Says::NotMeasured, "was not held against this host"),
        };
        let name = match self.report.kernels.len() {
            1 => "The model ".into(),
            _ => format!("The model of the recorded kernel ({}) ", kernel.kernel),
        };
        let mut sentences = vec![match (free, &self.recorded) {
            (Some(model), Some(host)) => {
                let (m, h) = (&model.huge_pages, &host.huge_pages);
                format!(
                    "{name}{how}: {} {} at the end, the host had {} (at the beginning {} and {}).",
                    thousands(m.end),
                    self.huge_pages(),
                    thousands(h.end),
                    thousands(m.begin),
                    thousands(h.begin)
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
                format!("{m} {what}, on the host {h}")
            })
            .collect();
        match (told.len() == HAPPENED.len(), some.is_empty()) {
            (false, true) => None,
            (_, true) => Some(
                "Nobody waited for memory or asked for a huge page, on the host or in the model."
                    .into(),
            ),
            _ => Some(format!("Over the whole time: {}.", some.join("; "))),
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
        let (says, first) = match changes::standing(kernel).unwrap_or(Standing::Unknown) {
            Standing::Apart => {
                let first = format!(
                    "Under {name} not comparable as it stands: it begins with other memory than the host."
                );
                let sentences = std::iter::once(first).chain(self.apart(free));
                return (Says::NotComparable, sentences.collect());
            }
            Standing::Differs => {
                let mut differ: Vec<&Change> = what_if.changes.iter().collect();
                differ.retain(|c| !changes::is_of_nothing(c));
                differ.sort_by_key(|c| !FIRST.contains(&c.name));
                let differ = differ.into_iter().filter_map(|c| changes::said(c, sizes));
                let differ: Vec<String> = differ.collect();
                let rest = differ.len().saturating_sub(NAMED);
                let more = match rest {
                    0 => String::new(),
                    n => format!("; {n} more in the table"),
                };
                let guess = match what_if.comparisons {
                    0 => {
                        ", by ranges that are guesses (nothing of this kind was held against a real kernel),"
                    }
                    _ => "",
                };
                let told = differ[..differ.len() - rest].join("; ");
                (Says::Differs, format!("Under {name}{guess} {told}{more}."))
            }
            Standing::Unknown if self.cannot_say.is_some() => {
                let nothing = format!("Of {name} nothing else can be said either.");
                return (Says::CannotSay, vec![nothing]);
            }
            Standing::Same => {
                let same = self.named(what_if, Some(Verdict::Same));
                let same = match same.is_empty() {
                    true => String::new(),
                    false => format!(": about as much of {}", list(&same)),
                };
                (
                    Says::Same,
                    format!("Under {name} no difference that can be told{same}."),
                )
            }
            Standing::Unknown => (
                Says::CannotSay,
                format!(
                    "Cannot say whether {name} would be better or worse: {}.",
                    cannot_say::reasons(what_if)
                ),
            ),
        };
        let mut sentences = vec![first];
        if self.cannot_say.is_none() {
            sentences.extend(cannot_say::off(&changes::off(what_if, sizes)));
            sentences.extend(self.over_time(what_if, free));
        }
        (says, sentences)
    }

    /// What these changes count.
    fn named(&self, what_if: &WhatIf, verdict: Option<Verdict>) -> Vec<String> {
        let those = what_if.changes.iter().filter(|c| c.verdict == verdict);
        let those = those.filter(|c| !changes::is_of_nothing(c));
        let sizes = &self.report.recording.sizes;
        those.map(|c| changes::what(c, sizes)).collect()
    }

    /// What the first sentences leave out.
    fn rest(&self, kernel: &KernelReport, says: Says) -> Vec<String> {
        let Some(what_if) = &kernel.what_if else {
            return vec![];
        };
        let same = self.named(what_if, Some(Verdict::Same));
        let unknown = self.named(what_if, None);
        let told = match says {
            Says::Differs => [Some(same), Some(unknown)],
            Says::Same => [None, Some(unknown)],
            Says::CannotSay => [Some(same), None],
            _ => return vec![],
        };
        let words = ["About the same", "Cannot say whether more or less of"];
        let all = words.into_iter().zip(told);
        let all = all.filter_map(|(words, names)| Some((words, names.filter(|n| !n.is_empty())?)));
        all.map(|(words, names)| format!("{words}: {}.", list(&names)))
            .collect()
    }

    /// Free huge pages over the whole time, and the bar of the end where the first sentence has none.
    fn over_time(&self, what_if: &WhatIf, free: Option<&Free>) -> Option<String> {
        let (host, model) = (&self.recorded.as_ref()?.huge_pages, &free?.huge_pages);
        let mut end = what_if
            .changes
            .iter()
            .filter(|c| c.name == "free_huge_blocks_end");
        let end = end.next();
        if end.is_some_and(changes::is_off) {
            return None;
        }
        let end = end.filter(|c| c.verdict.is_none_or(|v| v == Verdict::Same));
        let bar = end.and_then(|c| Some((c.verdict, changes::bar(c)?)));
        let guess = match what_if.comparisons {
            0 => " (a guess)",
            _ => "",
        };
        let bar = match bar {
            None => String::new(),
            Some((None, bar)) => format!(
                "; four of five such hosts should end with {bar}{guess}, so whether more or fewer cannot be said"
            ),
            Some((_, bar)) => format!("; four of five such hosts should end with {bar}{guess}"),
        };
        Some(format!("{}{bar}.", self.courses(host, model)))
    }

    /// `Free huge pages went from 290 to 130 (-160) on the host, from 290 to 62 (-228) in the model`.
    fn courses(&self, host: &Course, model: &Course) -> String {
        let words = changes::capitalised(&self.huge_pages());
        format!(
            "{words} went from {} on the host, from {} in the model",
            course(host),
            course(model)
        )
    }

    /// The courses of two that begin differently.
    fn apart(&self, free: Option<&Free>) -> Option<String> {
        let (host, model) = (&self.recorded.as_ref()?.huge_pages, &free?.huge_pages);
        let (end, change) = (model.end.cmp(&host.end), model.change.cmp(&host.change));
        let speak = match end == change {
            true => "Since the beginnings differ, neither the end nor the change is evidence.",
            false => "The end speaks for one, the change for the other: neither is evidence.",
        };
        Some(format!("{}. {speak}", self.courses(host, model)))
    }
}

/// How many requests found no memory, in the model and on the host: the numbers of the table. A host of which nobody knows
/// that has no sentence, since most of them may be huge pages that the host was refused, too.
fn found_none(kernel: &KernelReport) -> Option<String> {
    let total = |name: &str| kernel.totals.get(name).copied().flatten();
    let (model, host) = (total("failures")?, total("failures_recorded")?);
    (model > host).then(|| {
        format!(
            "Requests that found no memory: {} in the model of {}, {} on the host.",
            thousands(model),
            kernel.kernel,
            thousands(host)
        )
    })
}

/// `290 to 130 (-160)`.
fn course(c: &Course) -> String {
    let [begin, end] = [c.begin, c.end].map(thousands);
    format!("{begin} to {end} ({})", signed(c.change))
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
