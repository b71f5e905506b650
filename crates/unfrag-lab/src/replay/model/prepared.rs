//! A recording made ready for a replay by the recorded kernel's own model.
//!
//! With an exact start that model says which operations left no event; without one it says which start
//! leads to what the anchor shows.
//!
//! Invariant: what is prepared depends on the recording alone, never on the kernel that will run it.

use super::fit::fitted;
use super::huge_touches::Touches;
use super::inference::{Inferred, infer};
use super::sim::Sim;
use crate::era::Era;
use crate::era::settings::{self, RecordedSettings, Setting};
use crate::error::{Error, Result};
use crate::input::Input;
use crate::parallel::both;
use crate::replay::causes::clock::Clock;
use crate::replay::causes::{Causes, HostBlock, RecordedReclaim};
use crate::replay::start::cached_at_start;
use crate::replay::start::{Beginning, Frame, Plan, Start, StartChoice};
use std::sync::Arc;
use unfrag_eras::kernel::{Preset, preset};
use unfrag_linux::recording::Snapshot;

/// A recording made ready for a replay.
pub struct Prepared<'r> {
    /// The recording.
    pub input: Input<'r>,
    /// The recorded kernel.
    pub era: Era,
    /// Where the replay begins.
    pub start: Start,
    /// The operations to replay.
    pub causes: Causes,
    /// Whether the start is the kernel's exact state.
    pub exact: bool,
    /// Whether it is the recorded occupancy, frame by frame.
    pub occupancy: bool,
    /// What the recorded kernel's reclaim did, if anything.
    pub reclaim: RecordedReclaim,
    /// What tasks take after faults that get no huge page.
    pub touches: Touches,
    /// What was inferred.
    pub inferred: Inferred,
    /// Snapshots from the start on, and when they were taken in the trace's clock.
    pub snapshots: Vec<(u64, &'r Snapshot)>,
    first: u64,
    offset: i64,
}

impl<'r> Prepared<'r> {
    /// Makes a recording ready for a replay that begins where `choice` says.
    ///
    /// # Errors
    /// If it lacks what a replay needs.
    pub fn new(input: impl Into<Input<'r>>, choice: StartChoice) -> Result<Prepared<'r>> {
        Prepared::of(Plan::new(input.into(), choice, None)?)
    }

    /// The same, where the clock of the recording is known already, if it is.
    pub(crate) fn with_clock(
        input: Input<'r>,
        choice: StartChoice,
        clock: Option<Arc<Clock>>,
    ) -> Result<Prepared<'r>> {
        Prepared::of(Plan::new(input, choice, clock)?)
    }

    /// Runs the recorded kernel's model over a plan.
    fn of(plan: Plan<'r>) -> Result<Prepared<'r>> {
        let Plan {
            input,
            era,
            mut causes,
            beginning,
            snapshots,
            first,
            offset,
        } = plan;
        let rules = recorded_preset(era).rules;
        let sysctl = settings::recorded(input.recording);
        let (exact, occupancy) = match &beginning {
            Beginning::Exact(_) => (true, false),
            Beginning::Anchor(anchor) => (false, anchor.flags.is_some()),
        };
        let (mut start, inferred) = match beginning {
            Beginning::Exact(start) => {
                let frames = start.frames.len() as u32;
                let mut memory = vec![0; start.words(rules, sysctl)?];
                let mut sim = Sim::new(start.manager(rules, sysctl, true, &mut memory)?, frames);
                sim.recorded_era = true;
                let inferred = infer(&mut causes, &mut sim)?;
                (*start, inferred)
            }
            Beginning::Anchor(anchor) => (
                fitted(&anchor, &causes, rules, sysctl)?,
                Inferred::default(),
            ),
        };
        let snapshots: Vec<_> = snapshots
            .into_iter()
            .filter(|(t, _)| *t >= start.time)
            .collect();
        if snapshots.is_empty() {
            return Err(Error::lacking(
                "no snapshot was taken after the start of the replay",
            ));
        }
        let frames = start.frames.len();
        let (firsts, reclaim) = both(
            || Firsts::of(&causes, frames),
            || RecordedReclaim::of(input.clone(), &causes),
        );
        firsts?.mark(&mut start);
        let touches = Touches::of(&causes, start.geometry.huge_order)?;
        let mut reclaim = reclaim?;
        reclaim.cached_at_start =
            cached_at_start(&start, &reclaim, snapshots[0].1, input.recording, offset)?;
        Ok(Prepared {
            input,
            era,
            start,
            exact,
            occupancy,
            reclaim,
            touches,
            inferred,
            snapshots,
            first,
            offset,
            causes,
        })
    }

    /// A time of the snapshots' clock in the trace's.
    pub fn trace_time(&self, time: u64) -> u64 {
        time.saturating_add_signed(-self.offset)
    }

    /// The recorded host's settings over time; `given` holds where the recording says something else, or nothing.
    pub(crate) fn settings(&self, given: &[Setting]) -> RecordedSettings {
        RecordedSettings::of(self.input.recording, self.first, self.offset, given)
    }

    /// The time of the trace so many nanoseconds after its first event.
    pub(crate) fn after_first(&self, ns: u64) -> u64 {
        self.first.saturating_add(ns)
    }

    /// Nanoseconds from the first event to a time of the trace.
    pub(crate) fn since_first(&self, time: u64) -> u64 {
        time.saturating_sub(self.first)
    }

    pub(crate) fn seconds(&self, time: u64) -> f64 {
        time.saturating_sub(self.first) as f64 / 1e9
    }
}

/// The preset of the recorded kernel.
pub fn recorded_preset(era: Era) -> &'static Preset {
    match preset(era.preset()) {
        Some(p) => p,
        None => unreachable!("every era has a preset"),
    }
}

/// What comes first of each frame.
struct Firsts {
    /// It is freed.
    freed: First,
    /// A migration moves its page.
    moved: First,
}

impl Firsts {
    fn of(causes: &Causes, frames: usize) -> Result<Firsts> {
        let mut firsts = Firsts {
            freed: First::new(frames),
            moved: First::new(frames),
        };
        causes.ops.each(0..causes.ops.len(), |_, op| {
            let taken = op.allocated().map(|(block, _)| block);
            let given = op.freed();
            if let Some(block) = given.or(taken) {
                firsts.freed.note(block, given.is_some());
                firsts.moved.note(block, false);
            } else if let Some(pfn) = op.moved_from() {
                firsts.moved.note(HostBlock { pfn, order: 0 }, true);
            }
        })?;
        Ok(firsts)
    }

    /// Notes which frames in use at the start are freed later; and that a frame whose page a migration moved before
    /// anything else was movable, whatever its flags say.
    fn mark(self, start: &mut Start) {
        start.freed_later = self.freed.is;
        let frames = start.frames.iter_mut().zip(&mut start.freed_later);
        for ((frame, later), moved) in frames.zip(self.moved.is) {
            *later &= *frame != Frame::Free;
            if moved && *frame == Frame::Pinned {
                *frame = Frame::Movable;
            }
        }
    }
}

/// For each frame whether the first that is noted of it is a yes.
struct First {
    seen: Vec<bool>,
    is: Vec<bool>,
}

impl First {
    fn new(frames: usize) -> First {
        First {
            seen: vec![false; frames],
            is: vec![false; frames],
        }
    }

    fn note(&mut self, block: HostBlock, is: bool) {
        for p in block.indices() {
            if !std::mem::replace(&mut self.seen[p], true) {
                self.is[p] = is;
            }
        }
    }
}
