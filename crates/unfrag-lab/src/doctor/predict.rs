//! What a replay of a recording predicts for a piece of advice.
//!
//! The recording is replayed by the model of its own kernel as `unfrag replay --set` does, with the value advised, beside its
//! replay as it was; one that was made with the value advised, with the current value. What is said of it is what `unfrag replay` says: its sentence, and where that cannot say, nothing.
//!
//! A replay is evidence: where it shows no gain, the advice is withdrawn; where it shows one, it makes up for readings that a
//! candidate lacks.
//!
//! Invariant: only what the model has is predicted, and a number only where a what-if has a verdict on it. All else gets a
//! sentence that says why not.

use super::advice::{Advice, Change, Lasts, NotGiven, Predicted, Sure, Unit};
use super::diagnosis::Diagnosis;
use crate::era::settings::Setting;
use crate::error::Result;
use crate::input::Input;
use crate::replay::answer::report::KernelReport;
use crate::replay::answer::{LEAST_SHARE, NoWatch, Options, replay};
use crate::replay::view::said::{Says, Told};
use crate::report::number;
use unfrag_linux::recording::Recording;
use unfrag_linux::share::Share;

/// Puts a prediction into each piece of advice and each candidate. One of which the replay shows no gain is withdrawn; a
/// candidate of which it shows one is advice.
///
/// # Errors
/// If the recording cannot be replayed.
pub fn predict(d: &mut Diagnosis, recording: &Recording, name: &str) -> Result<()> {
    let share = Input::from(recording).share()?.map(Share::fraction);
    let little = share.filter(|s| *s < LEAST_SHARE);
    for a in std::mem::take(&mut d.advice) {
        let a = one(a, little, recording, name)?;
        match against(&a, name) {
            Some(why_not) => d.withdrawn.push(NotGiven { advice: a, why_not }),
            None => d.advice.push(a),
        }
    }
    for mut candidate in std::mem::take(&mut d.candidates) {
        candidate.advice = one(candidate.advice, little, recording, name)?;
        let is_setting = candidate.advice.lasts == Lasts::Setting;
        match against(&candidate.advice, name) {
            Some(why_not) => d.withdrawn.push(NotGiven {
                why_not,
                ..candidate
            }),
            None if is_setting && gains(&candidate.advice) => {
                let mut a = candidate.advice;
                a.change = a.change.or_else(|| change(a.predicted.as_ref()?));
                d.advice.push(a);
            }
            None => d.candidates.push(candidate),
        }
    }
    Ok(())
}

fn gains(a: &Advice) -> bool {
    a.predicted.as_ref().is_some_and(Predicted::gains)
}

/// What a replay says against advice: that nothing would be served better. Where that cannot be said, it says nothing.
fn against(a: &Advice, name: &str) -> Option<String> {
    let p = a.predicted.as_ref()?;
    let said = a.prediction.as_ref()?;
    (!p.gains() && p.cannot_say.is_none()).then(|| {
        format!(
            "a replay of {name} with {} shows nothing that is served better than with {}: {said}",
            p.to, p.from
        )
    })
}

/// The number by which a replay shows a gain.
fn change(p: &Predicted) -> Option<Change> {
    let fewer = |[from, to]: [u64; 2]| (to < from).then_some((from, to));
    let more = |[from, to]: [u64; 2]| (to > from).then_some((from, to));
    let free = more(p.free_huge_blocks).filter(|_| p.cannot_say.is_none());
    let all = [
        ("failed requests in the recording", fewer(p.failures)),
        (
            "faults that get a huge page in the recording",
            more(p.thp_fault_alloc),
        ),
        ("free huge pages at the end of the recording", free),
        (
            "requests that reclaim or compact first in the recording",
            fewer(p.stalls),
        ),
    ];
    let (what, numbers) = all.into_iter().find(|(_, n)| n.is_some())?;
    let (from, to) = numbers?;
    Some(Change {
        what: what.into(),
        unit: Unit::Number,
        from,
        to,
        sure: Sure::About,
    })
}

fn one(mut a: Advice, little: Option<f64>, recording: &Recording, name: &str) -> Result<Advice> {
    if let Some(share) = little {
        a.prediction = Some(format!(
            "the recording has {} of what its host allocated, so that a replay of it tells nothing",
            number::percent(share)
        ));
        return Ok(a);
    }
    match a.for_replay() {
        Err(why) => a.prediction = Some(why),
        Ok((setting, value)) => {
            let Some(from) = a.current.clone() else {
                a.prediction =
                    Some("today's value is not known, so there is nothing to compare with".into());
                return Ok(a);
            };
            match compare(recording, name, setting, &from, value)? {
                Ok((p, said)) => {
                    a.prediction = Some(said);
                    a.predicted = Some(p);
                }
                Err(why) => a.prediction = Some(why),
            }
        }
    }
    Ok(a)
}

/// The numbers and the sentence of a replay with another value; else why there are none.
type Compared = std::result::Result<(Predicted, String), String>;

fn compare(
    recording: &Recording,
    name: &str,
    setting: &str,
    from: &str,
    to: &str,
) -> Result<Compared> {
    let ask = |value: &str| {
        let options = Options {
            set: vec![Setting {
                name: setting.to_owned(),
                value: value.to_owned(),
                at: None,
            }],
            ..Options::default()
        };
        replay(recording, name, &options, &mut NoWatch)
    };
    let mut report = ask(to)?;
    // What was recorded with the value advised is compared with the current one.
    let advised_was_recorded = report.own.is_none();
    if advised_was_recorded {
        report = ask(from)?;
    }
    let told = Told::of(&report).answer;
    let (Some(own), [asked], [answer]) = (&report.own, &report.kernels[..], &told.kernels[..])
    else {
        return Ok(Err(format!(
            "no replay of this recording shows {setting} at {to} beside {from}"
        )));
    };
    let sentence = answer.sentences.first().cloned().unwrap_or_default();
    if let Some(why) = &told.cannot_say {
        return Ok(Err(why.clone()));
    }
    if !matches!(answer.says, Says::Differs | Says::Same) {
        return Ok(Err(sentence));
    }
    let change = |name: &str| {
        let mut changes = asked.what_if.iter().flat_map(|w| &w.changes);
        changes.find(|c| c.name == name)
    };
    // Of what nothing is said, the value advised has as much as the one that was.
    let said = |names: &[&str], of: [u64; 2]| {
        let mut changes = names.iter().map(|n| change(n));
        match changes.all(|c| c.is_some_and(|c| c.verdict.is_some())) {
            true => of,
            false => [of[0]; 2],
        }
    };
    let mut ends = [own, asked].map(End::of);
    if advised_was_recorded {
        ends.reverse();
    }
    let pair = |of: fn(&End) -> u64| ends.each_ref().map(of);
    let free = change("free_huge_blocks_end");
    Ok(Ok((
        Predicted {
            from: from.to_owned(),
            to: to.to_owned(),
            free_huge_blocks: said(&["free_huge_blocks_end"], pair(|e| e.free_huge_blocks)),
            // Failures of a model were never held against those of a real kernel.
            failures: said(&["failures"], pair(|e| e.failures)),
            stalls: said(&["allocstall", "compact_stall"], pair(|e| e.stalls)),
            free_pages: said(&["free_pages_end"], pair(|e| e.free_pages)),
            thp_fault_alloc: said(&["thp_fault_alloc"], pair(|e| e.thp_fault_alloc)),
            pgmigrate_success: said(&["pgmigrate_success"], pair(|e| e.pgmigrate_success)),
            cannot_say: free.filter(|c| c.verdict.is_none()).and_then(|c| c.bar),
        },
        sentence,
    )))
}

/// What a replay came to.
struct End {
    free_huge_blocks: u64,
    failures: u64,
    stalls: u64,
    free_pages: u64,
    thp_fault_alloc: u64,
    pgmigrate_success: u64,
}

impl End {
    fn of(kernel: &KernelReport) -> End {
        let zones = kernel.samples.last().map_or(&[][..], |s| &s.zones);
        let total = |name: &str| kernel.totals.get(name).copied().flatten().unwrap_or(0);
        End {
            free_huge_blocks: zones.iter().map(|z| z.free_huge_blocks).sum(),
            failures: kernel.failed(),
            stalls: total("allocstall") + total("compact_stall"),
            free_pages: zones.iter().map(|z| z.free_pages).sum(),
            thp_fault_alloc: total("thp_fault_alloc"),
            pgmigrate_success: total("pgmigrate_success"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(predicted: Predicted) -> Advice {
        Advice {
            command: "sysctl -w vm.compaction_proactiveness=80".into(),
            lasts: Lasts::Setting,
            setting: Some("vm.compaction_proactiveness".into()),
            current: Some("20".into()),
            value: Some("80".into()),
            reason: String::new(),
            change: None,
            cost: String::new(),
            huge_pages: None,
            prediction: Some("no difference that can be told".into()),
            predicted: Some(predicted),
        }
    }

    /// A replay in which the value makes no difference but the work of compaction.
    fn same() -> Predicted {
        Predicted {
            from: "20".into(),
            to: "80".into(),
            free_huge_blocks: [4250, 4250],
            failures: [3, 3],
            stalls: [7, 7],
            free_pages: [900, 900],
            thp_fault_alloc: [50, 50],
            pgmigrate_success: [10, 9000],
            cannot_say: None,
        }
    }

    #[test]
    fn a_replay_that_shows_no_gain_speaks_against_advice() {
        let why = against(&advice(same()), "host.unfrag").unwrap();
        assert!(
            why.contains("with 80 shows nothing that is served better than with 20: no difference"),
            "{why}"
        );
        let worse = Predicted {
            free_huge_blocks: [4250, 4000],
            failures: [3, 9],
            ..same()
        };
        assert!(against(&advice(worse), "host.unfrag").is_some());
    }

    #[test]
    fn a_replay_that_cannot_say_speaks_neither_for_nor_against() {
        let unsure = Predicted {
            free_huge_blocks: [4250, 4300],
            cannot_say: Some([4100.0, 4400.0]),
            ..same()
        };
        assert_eq!(against(&advice(unsure.clone()), "host.unfrag"), None);
        assert!(!unsure.gains());
        assert_eq!(change(&unsure), None);
    }

    #[test]
    fn a_gain_is_named_from_what_to_what() {
        let table: [(Predicted, u64, u64); 4] = [
            (
                Predicted {
                    failures: [3, 1],
                    ..same()
                },
                3,
                1,
            ),
            (
                Predicted {
                    stalls: [7, 2],
                    ..same()
                },
                7,
                2,
            ),
            (
                Predicted {
                    thp_fault_alloc: [50, 60],
                    ..same()
                },
                50,
                60,
            ),
            (
                Predicted {
                    free_huge_blocks: [4250, 4400],
                    ..same()
                },
                4250,
                4400,
            ),
        ];
        for (p, from, to) in table {
            assert_eq!(against(&advice(p.clone()), "host.unfrag"), None);
            let c = change(&p).unwrap();
            assert_eq!((c.from, c.to), (from, to), "{c:?}");
        }
    }
}
