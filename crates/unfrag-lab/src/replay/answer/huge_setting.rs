//! The settings of transparent huge pages that a question asks for, as rules for the recorded faults.
//!
//! A trace has the requests of faults that asked for a huge page. That fewer ask, or with another effort, it can answer,
//! where it is known which memory was advised to have huge pages. Which faults would have asked that did not, it
//! does not show, and such a question is refused.
//!
//! Invariant: what is asked for and was so anyway is no question.
//!
//! `spec: 5.6`

use crate::era::huge_pages::{DEFRAG, ENABLED, effort};
use crate::era::settings::{RecordedSettings, Setting};
use crate::error::{Asked, Error, Result};
use crate::replay::model::{Advised, HugeRules, Silent};

/// Whether a setting is one of huge pages.
pub(super) fn is_of_huge_pages(setting: &Setting) -> bool {
    [ENABLED, DEFRAG].contains(&&setting.name[..])
}

/// What a question asks for of huge pages.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HugeQuestion {
    /// For the recorded faults.
    pub rules: HugeRules,
    /// Names and values that were asked for.
    pub asked: Vec<(String, String)>,
}

fn refused(setting: &Setting, why: &str, help: impl Into<String>) -> Error {
    Error::option(Asked::Setting, format!("{setting}: {why}")).help(help.into())
}

/// The value that the recorded host had all the time.
fn recorded_value<'r>(recorded: &'r RecordedSettings, name: &str, of: &Setting) -> Result<&'r str> {
    match recorded.values(name) {
        [(_, value)] => Ok(value),
        [] => Err(refused(
            of,
            &format!("the recording does not show {name} of its host"),
            format!("say what it was (--recorded {name}=VALUE)"),
        )),
        _ => Err(refused(
            of,
            &format!("the recorded host changed {name} while the trace ran"),
            "ask for a part of the recording in which it did not change",
        )),
    }
}

/// How it is known which memory was advised to have huge pages.
fn advised(recorded: &RecordedSettings, of: &Setting) -> Result<Advised> {
    if recorded_value(recorded, ENABLED, of)? == "madvise" {
        return Ok(Advised::All);
    }
    match recorded_value(recorded, DEFRAG, of)? {
        "madvise" | "defer+madvise" => Ok(Advised::Direct),
        other => Err(refused(
            of,
            &format!(
                "with {DEFRAG}={other} the recorded requests do not show which memory was advised to have huge pages"
            ),
            "record with transparent_hugepage/defrag at madvise or defer+madvise, or ask for never or defer",
        )),
    }
}

/// The rules for what is asked for.
///
/// # Errors
/// If the recording cannot answer it.
pub(super) fn huge_question(recorded: &RecordedSettings, set: &[Setting]) -> Result<HugeQuestion> {
    let mut question = HugeQuestion::default();
    for s in set.iter().filter(|s| is_of_huge_pages(s)) {
        if s.at.is_some() {
            return Err(refused(
                s,
                "huge pages are asked for with one setting all the time",
                "leave out the time of this setting",
            ));
        }
        let before = recorded_value(recorded, &s.name, s)?;
        if before == s.value {
            continue;
        }
        let rules = &mut question.rules;
        match (&s.name[..], before, &s.value[..]) {
            (ENABLED, _, "never") => rules.silent = Silent::All,
            (ENABLED, "always", _) => {
                rules.silent = Silent::Plain;
                rules.advised = advised(recorded, s)?;
            }
            (ENABLED, ..) => {
                return Err(refused(
                    s,
                    &format!(
                        "the trace does not show which faults would have asked for a huge page, as {before} kept them from it"
                    ),
                    "record with transparent_hugepage/enabled=always",
                ));
            }
            (_, _, value) => {
                let [plain, in_advised] = [false, true].map(|advised| effort(value, advised));
                rules.effort = Some([plain, in_advised]);
                if plain != in_advised {
                    rules.advised = advised(recorded, s)?;
                }
            }
        }
        question.asked.push((s.name.clone(), s.value.clone()));
    }
    Ok(question)
}

impl HugeQuestion {
    /// What a reader must know of the answer.
    pub fn note(&self, collapses: u64) -> Option<String> {
        if self.asked.is_empty() {
            return None;
        }
        let khugepaged = match (self.rules.silent, collapses) {
            (Silent::Plain, 1..) => format!(
                " The {collapses} collapses of khugepaged stay: nothing shows which of them were of advised memory."
            ),
            _ => String::new(),
        };
        Some(format!(
            "Faults that asked for huge pages ask as the settings say; in place of a huge page that is not asked for a task \
             takes as many small pages as the trace shows that it takes after a refused fault.{khugepaged}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: &[(&str, &str)]) -> RecordedSettings {
        let given: Vec<Setting> = values
            .iter()
            .map(|(n, v)| Setting::new(n, v).unwrap())
            .collect();
        RecordedSettings::of(&Default::default(), 0, 0, &given)
    }

    fn ask(
        was: &[(&str, &str)],
        name: &str,
        value: &str,
    ) -> std::result::Result<HugeRules, String> {
        let set = [Setting::new(name, value).unwrap()];
        huge_question(&recorded(was), &set)
            .map(|q| q.rules)
            .map_err(|e| e.to_string())
    }

    /// Each question, and what the recording can say of it.
    #[test]
    fn what_a_trace_shows_is_answered_and_all_else_is_refused() {
        let usual = [(ENABLED, "always"), (DEFRAG, "madvise")];
        let advised = [(ENABLED, "madvise"), (DEFRAG, "always")];
        let blind = [(ENABLED, "always"), (DEFRAG, "defer")];
        let off = [(ENABLED, "never"), (DEFRAG, "madvise")];
        let silent = |silent, advised| HugeRules {
            silent,
            advised,
            effort: None,
        };
        type Answer = std::result::Result<HugeRules, &'static str>;
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str, Answer);
        let answers: [Case<'_>; 10] = [
            (&usual, ENABLED, "always", Ok(HugeRules::default())),
            (
                &usual,
                ENABLED,
                "never",
                Ok(silent(Silent::All, Advised::Unknown)),
            ),
            (
                &usual,
                ENABLED,
                "madvise",
                Ok(silent(Silent::Plain, Advised::Direct)),
            ),
            (
                &advised,
                ENABLED,
                "always",
                Err("which faults would have asked"),
            ),
            (
                &off,
                ENABLED,
                "always",
                Err("which faults would have asked"),
            ),
            (
                &blind,
                ENABLED,
                "madvise",
                Err("do not show which memory was advised"),
            ),
            (
                &blind,
                DEFRAG,
                "always",
                Err("do not show which memory was advised"),
            ),
            (
                &[],
                DEFRAG,
                "never",
                Err("--recorded transparent_hugepage/defrag"),
            ),
            (
                &usual[1..],
                ENABLED,
                "never",
                Err("--recorded transparent_hugepage/enabled"),
            ),
            (&usual[..1], DEFRAG, "always", Err("does not show")),
        ];
        for (was, name, value, answer) in answers {
            match (ask(was, name, value), answer) {
                (Ok(rules), Ok(right)) => assert_eq!(rules, right, "{name}={value}"),
                (Err(e), Err(right)) => assert!(e.contains(right), "{name}={value}: {e}"),
                (got, _) => panic!("{was:?} {name}={value}: {got:?}"),
            }
        }
        let defer = ask(&blind, DEFRAG, "never").unwrap();
        assert_eq!(defer.effort, Some([unfrag_eras::Gfp::empty(); 2]));
        let always = ask(&advised, DEFRAG, "madvise").unwrap();
        assert_eq!(always.advised, Advised::All);
        let set = [Setting::new(ENABLED, "never@5").unwrap()];
        let e = huge_question(&recorded(&usual), &set).unwrap_err();
        assert!(e.to_string().contains("time"), "{e}");
    }
}
