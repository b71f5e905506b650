//! Whether a log holds failures, for scripts: in one line.
//!
//! Invariant: *none* only where every line that looks like a report was understood.

use super::answer::{Explanation, Failure};

/// Signs in the line at most.
const WIDTH: usize = 80;

/// What a log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whether anything failed; `None` if there was nothing that was understood, and something that was not.
    pub any: Option<bool>,
    /// The answer in one line of at most 80 signs.
    pub line: String,
}

/// Whether it is about something that failed, not a stall, a report that was asked for, or a try that is gone on without.
fn is_failure(f: &Failure) -> bool {
    !matches!(f.kind, "stall" | "show-memory") && !matches!(f.verdict, Some("harmless" | "manual"))
}

/// Whether there are failures, and of what kind the most frequent are.
pub fn found(answer: &Explanation) -> Found {
    let failures = || answer.reports.iter().filter(|f| is_failure(f));
    let n = failures().fold(0, |n: u64, f| n.saturating_add(f.count));
    let first = failures().max_by_key(|f| (f.count, std::cmp::Reverse(f.line)));
    let (any, line) = match (first, answer.skipped.as_slice()) {
        (Some(f), _) => (Some(true), format!("{n} failed: {}", what(f))),
        (None, []) if !answer.is_log => (
            None,
            "not known: no line of it is a kernel's, so it is no kernel log".to_owned(),
        ),
        (None, []) => (Some(false), "no failure".to_owned()),
        (None, [first, ..]) => (
            None,
            format!(
                "not known: line {} was not understood ({})",
                first.line, first.why
            ),
        ),
    };
    // What a task is called is not this host's to choose.
    let line = line.chars().map(|c| if c.is_control() { '?' } else { c });
    Found {
        any,
        line: line.take(WIDTH).collect(),
    }
}

/// A failure in few words.
fn what(f: &Failure) -> String {
    let order = f.order.filter(|&o| o >= 0).map(|o| format!(" order {o}"));
    let verdict = f.verdict.map(|v| format!(" ({})", in_words(v, f)));
    let task = f.task.as_ref().map(|t| format!(", {t}"));
    let parts = [order, verdict, task].into_iter().flatten();
    f.kind.to_owned() + &parts.collect::<String>()
}

/// A verdict in words that need no table.
fn in_words<'a>(verdict: &'a str, f: &Failure) -> &'a str {
    match verdict {
        "raced" if f.advice.is_empty() => "memory does not explain it",
        "raced" => "enough was free when it was printed",
        "short" => "memory was short",
        "marks" => "the watermark kept the block",
        "reserved" => "what was free is set aside",
        "cma" => "only CMA was free",
        "protected" => "lowmem_reserve kept what was free",
        "zone" => "free memory is in other zones",
        "cgroup" => "limit of a control group",
        "too-large" => "too large to exist",
        "address-space" => "no addresses were left",
        "caller" => "it asked for 0 bytes",
        "not-a-page" => "no page was refused",
        "incomplete" => "the text does not say why",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::answer::Skipped;

    fn one(kind: &'static str, verdict: Option<&'static str>, count: u64) -> Failure {
        Failure {
            kind,
            verdict,
            count,
            order: Some(4),
            task: Some("swapper\u{1b}/0".repeat(20)),
            ..Failure::default()
        }
    }

    fn of(reports: Vec<Failure>, skipped: Vec<Skipped>) -> Found {
        found(&Explanation {
            reports,
            skipped,
            notes: vec![],
            is_log: true,
        })
    }

    #[test]
    fn what_went_on_all_the_same_is_no_failure() {
        assert_eq!(of(vec![], vec![]).any, Some(false));
        for (kind, verdict) in [
            ("stall", None),
            ("show-memory", None),
            ("vmalloc", Some("harmless")),
            ("oom", Some("manual")),
        ] {
            assert_eq!(
                of(vec![one(kind, verdict, 3)], vec![]).any,
                Some(false),
                "{kind}"
            );
        }
    }

    #[test]
    fn the_line_is_short_and_controls_no_screen() {
        let f = of(
            vec![
                one("oom", Some("short"), 1),
                one("allocation-failure", Some("fragmented"), 7),
            ],
            vec![],
        );
        assert_eq!(f.any, Some(true));
        let begin = "8 failed: allocation-failure order 4 (fragmented), swapper?/0";
        assert!(f.line.starts_with(begin), "{}", f.line);
        assert_eq!(f.line.chars().count(), 80);
    }

    #[test]
    fn what_was_not_understood_is_not_known() {
        let skipped = || {
            vec![Skipped {
                line: 7,
                why: "a lowmem_reserve of no zone".into(),
            }]
        };
        let f = of(vec![], skipped());
        assert_eq!(f.any, None);
        assert!(f.line.starts_with("not known: line 7"), "{}", f.line);
        let with_failure = of(vec![one("oom", Some("short"), 1)], skipped());
        assert_eq!(with_failure.any, Some(true));
    }
}
