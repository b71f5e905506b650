//! Several questions about one recording, which is read once.
//!
//! The questions that can be answered event by event share one walk over the file. A profile has to know of each page
//! what it was for before it can say how long it lived, so it walks twice: over the events that the first walk kept.
//!
//! Invariant: each answer is the one that the question gets alone.

use crate::blame::{self, Blame};
use crate::error::{Error, Result};
use crate::find::recordings::Streamed;
use crate::input::counted::Counted;
use crate::profile::{self, Identity, Profile};
use crate::summary::{self, Summary};
use serde::Serialize;
use unfrag_linux::event::Pass;
use unfrag_linux::file::Common;
use unfrag_linux::recording::Events;

/// The questions that are asked beside the summary.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// Who holds the kernel memory that spoils pageblocks.
    pub blame: bool,
    /// What the command does to memory; of the recording with this identity.
    pub profile: Option<Identity>,
}

/// What was answered.
#[derive(Clone, Debug, Serialize)]
pub struct Answers {
    /// What the trace alone tells.
    pub summary: Summary,
    /// Who holds the kernel memory that spoils pageblocks, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
    /// What the command does to memory, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// The common columns that any of the questions reads.
const COMMON: &[Common] = &[Common::Cpu, Common::Task, Common::Flags];

/// Asks a recording, which is called `source` and whose file is called `name`; `budget` is the memory for what is made of
/// the events, in bytes.
///
/// # Errors
/// If a question cannot be answered, which is said before the events are read where that shows at once; or if the events
/// cannot be read.
pub fn ask(
    mut streamed: Streamed,
    source: &str,
    name: &str,
    questions: Questions,
    budget: u64,
) -> Result<Answers> {
    let mut kept = Events::default();
    let keeps = questions.profile.is_some() && streamed.is_in_file();
    if questions.profile.is_some() {
        Profile::check(&streamed.recording)?;
    }
    let (summary, blame) = {
        let input = streamed.input(budget);
        let mut summary = summary::Count::of(&input);
        let mut blame = questions
            .blame
            .then(|| blame::Count::of(&input))
            .transpose()?;
        let mut pass: Pass<'_, Error> = Pass(vec![&mut summary]);
        if let Some(blame) = &mut blame {
            pass.0.push(blame);
        }
        let mut counted = Counted::of(&input);
        let field = |event: &str, field: &str| keeps && profile::reads(event, field);
        input.walk_and(0..=u64::MAX, COMMON, &mut pass, &field, &mut |batch| {
            counted.add(batch);
            if keeps {
                kept.append(batch.clone());
            }
            Ok(())
        })?;
        let blame = blame.map(|b| b.report(name, &counted)).transpose()?;
        (summary.report(source, &counted), blame)
    };
    if keeps {
        let from = streamed.covered.as_ref().map_or(0, |c| c.times().start);
        let first = kept.time.partition_point(|&t| t < from);
        streamed.recording.events = kept.split_off(first);
    }
    let profile = questions
        .profile
        .map(|i| Profile::of(&streamed.recording, &i));
    Ok(Answers {
        summary,
        blame,
        profile: profile.transpose()?,
    })
}
