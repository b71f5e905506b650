//! What a replay of a recording predicts for a piece of advice.
//!
//! The recording is replayed twice by the model of its own kernel, from one starting state: with the current
//! value of the setting, and with the value advised. The difference is the effect of the setting.
//!
//! A replay is evidence: where it shows no gain, the advice is withdrawn; where it shows one, it makes up for readings that a
//! candidate lacks.
//!
//! Invariant: only what the model has is predicted. A setting that it lacks gets a sentence, never a number.

use super::advice::{Advice, Change, Lasts, NotGiven, Predicted, Sure, Unit};
use super::diagnosis::Diagnosis;
use crate::era::settings::Setting;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::replay::answer::report::KernelReport;
use crate::replay::answer::{LEAST_SHARE, NoWatch, Options, replay};
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
    let [from, to] = p.free_huge_blocks;
    (!p.gains() && p.cannot_say.is_none()).then(|| {
        format!(
            "a replay of {name} with {} serves nothing better than with {}: {} free huge pages at its end instead of {}, {} failed requests instead of {}, {} stalls instead of {}",
            p.to,
            p.from,
            number::thousands(to),
            number::thousands(from),
            number::thousands(p.failures[1]),
            number::thousands(p.failures[0]),
            number::thousands(p.stalls[1]),
            number::thousands(p.stalls[0]),
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
                Ok(p) => {
                    a.prediction = Some(in_words(&p));
                    a.predicted = Some(p);
                }
                Err(why) => a.prediction = Some(why),
            }
        }
    }
    Ok(a)
}

fn compare(
    recording: &Recording,
    name: &str,
    setting: &str,
    from: &str,
    to: &str,
) -> Result<std::result::Result<Predicted, String>> {
    let run = |value: &str| -> Result<KernelReport> {
        let options = Options {
            set: vec![Setting {
                name: setting.to_owned(),
                value: value.to_owned(),
                at: None,
            }],
            // One member each, so that the two runs differ in the setting alone.
            members: Some(1),
            ..Options::default()
        };
        let report = replay(recording, name, &options, &mut NoWatch)?;
        let kernel = report.kernels.into_iter().next();
        kernel.ok_or_else(|| Error::lacking("a replay of it has no answer"))
    };
    let both = [(from, run(from)?), (to, run(to)?)];
    for (value, kernel) in &both {
        if let Some(why) = &kernel.broke_down {
            return Ok(Err(format!("no answer with {value}: {why}")));
        }
    }
    let asked = both[1].1.what_if.as_ref();
    let change = asked.and_then(|w| w.changes.iter().find(|c| c.name == "free_huge_blocks_end"));
    let cannot_say = change.filter(|c| c.verdict.is_none()).and_then(|c| c.bar);
    let ends = both.map(|(_, kernel)| End::of(&kernel));
    Ok(Ok(Predicted {
        from: from.to_owned(),
        to: to.to_owned(),
        free_huge_blocks: ends.each_ref().map(|e| e.free_huge_blocks),
        failures: ends.each_ref().map(|e| e.failures),
        stalls: ends.each_ref().map(|e| e.stalls),
        free_pages: ends.each_ref().map(|e| e.free_pages),
        thp_fault_alloc: ends.each_ref().map(|e| e.thp_fault_alloc),
        pgmigrate_success: ends.each_ref().map(|e| e.pgmigrate_success),
        cannot_say,
    }))
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

fn in_words(p: &Predicted) -> String {
    let pair = |[a, b]: [u64; 2]| {
        format!(
            "{} instead of {}",
            number::thousands(b),
            number::thousands(a)
        )
    };
    let cannot_say = p.cannot_say.map_or_else(String::new, |[low, high]| {
        format!("; whether a real host would have more or fewer free huge pages cannot be said ({low} to {high})")
    });
    format!(
        "at the end of the recording {} free huge pages with {} than with {}, {} failed requests, {} pages moved by \
         compaction{cannot_say}",
        pair(p.free_huge_blocks),
        p.to,
        p.from,
        pair(p.failures),
        pair(p.pgmigrate_success)
    )
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
            prediction: None,
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
            why.contains("4,250 free huge pages at its end instead of 4,250"),
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
