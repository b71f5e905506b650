//! What a replay of a recording predicts for a piece of advice.
//!
//! The recording is replayed twice by the model of its own kernel, from one starting state: with the current
//! value of the setting, and with the value advised. The difference is the effect of the setting.
//!
//! Invariant: only what the model has is predicted. A replay models neither reclaim nor compaction: a
//! setting that acts through them alone gets a sentence, never a number.

use super::advice::{Advice, Predicted};
use crate::error::Result;
use crate::replay::answer::report::KernelReport;
use crate::replay::answer::{NoWatch, Options, replay};
use crate::report::number;
use unfrag_linux::recording::Recording;

/// Puts a prediction into each piece of advice.
///
/// # Errors
/// If the recording cannot be replayed.
pub fn predict(advice: &mut [Advice], recording: &Recording, name: &str) -> Result<()> {
    for a in advice {
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
                let p = compare(recording, name, setting, &from, value)?;
                a.prediction = Some(in_words(&p));
                a.predicted = Some(p);
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
) -> Result<Predicted> {
    let run = |value: &str| -> Result<(u64, u64, u64)> {
        let options = Options {
            set: vec![(setting.to_owned(), value.to_owned())],
            // One member each, so that the two runs differ in the setting alone.
            members: Some(1),
            ..Options::default()
        };
        let report = replay(recording, name, &options, &mut NoWatch)?;
        Ok(report.kernels.first().map_or((0, 0, 0), end))
    };
    let before = run(from)?;
    let after = run(to)?;
    Ok(Predicted {
        from: from.to_owned(),
        to: to.to_owned(),
        free_huge_blocks: [before.0, after.0],
        failures: [before.1, after.1],
        free_pages: [before.2, after.2],
    })
}

/// Free huge blocks, failures and free pages at the end of a replay.
fn end(kernel: &KernelReport) -> (u64, u64, u64) {
    let zones = kernel.samples.last().map_or(&[][..], |s| &s.zones);
    (
        zones.iter().map(|z| z.free_huge_blocks).sum(),
        kernel.failed(),
        zones.iter().map(|z| z.free_pages).sum(),
    )
}

fn in_words(p: &Predicted) -> String {
    let pair = |[a, b]: [u64; 2]| {
        format!(
            "{} instead of {}",
            number::thousands(b),
            number::thousands(a)
        )
    };
    format!(
        "at the end of the recording {} free huge pages with {} than with {}, {} failed requests (reclaim as \
         recorded, compaction not modelled)",
        pair(p.free_huge_blocks),
        p.to,
        p.from,
        pair(p.failures)
    )
}
