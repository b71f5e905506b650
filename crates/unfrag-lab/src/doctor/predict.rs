//! What a replay of a recording predicts for a piece of advice.
//!
//! The recording is replayed twice by the model of its own kernel, from one starting state: with the current
//! value of the setting, and with the value advised. The difference is the effect of the setting.
//!
//! Invariant: only what the model has is predicted. A setting that it lacks gets a sentence, never a number.

use super::advice::{Advice, Predicted};
use crate::era::settings::Setting;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::replay::answer::report::KernelReport;
use crate::replay::answer::{LEAST_SHARE, NoWatch, Options, replay};
use crate::report::number;
use unfrag_linux::recording::Recording;
use unfrag_linux::share::Share;

/// Puts a prediction into each piece of advice.
///
/// # Errors
/// If the recording cannot be replayed.
pub fn predict(advice: &mut [Advice], recording: &Recording, name: &str) -> Result<()> {
    let share = Input::from(recording).share()?.map(Share::fraction);
    let little = share.filter(|s| *s < LEAST_SHARE);
    for a in advice {
        if let Some(share) = little {
            a.prediction = Some(format!(
                "the recording has {} of what its host allocated, so that a replay of it tells nothing",
                number::percent(share)
            ));
            continue;
        }
        match a.for_replay() {
            Err(why) => a.prediction = Some(why),
            Ok((setting, value)) => {
                let from = a.current.clone();
                let Some(from) = from else {
                    a.prediction = Some(
                        "today's value is not known, so there is nothing to compare with".into(),
                    );
                    continue;
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
    }
    Ok(())
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
