//! A recording made ready for a replay by the recorded kernel's own model.
//!
//! With an exact start that model says which operations left no event; without one it says which start
//! leads to what the anchor shows.
//!
//! Invariant: what is prepared depends on the recording alone, never on the kernel that will run it.

use super::fit::fitted;
use super::inference::{Inferred, infer};
use super::sim::Sim;
use crate::era::{Era, sysctl};
use crate::error::{Error, Result};
use crate::replay::causes::{Causes, HostBlock, Op, RecordedReclaim};
use crate::replay::start::{Beginning, Frame, Plan, Start, StartChoice};
use unfrag::kernel::{Preset, preset};
use unfrag_linux::recording::{Recording, Snapshot};

/// A recording made ready for a replay.
pub struct Prepared<'r> {
    /// The recording.
    pub rec: &'r Recording,
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
    pub fn new(rec: &'r Recording, choice: StartChoice) -> Result<Prepared<'r>> {
        Prepared::of(Plan::new(rec, choice)?)
    }

    /// Runs the recorded kernel's model over a plan.
    fn of(plan: Plan<'r>) -> Result<Prepared<'r>> {
        let Plan {
            rec,
            era,
            mut causes,
            beginning,
            snapshots,
            first,
            offset,
        } = plan;
        let rules = recorded_preset(era).rules;
        let sysctl = sysctl::recorded(rec);
        let (exact, occupancy) = match &beginning {
            Beginning::Exact(_) => (true, false),
            Beginning::Anchor(anchor) => (false, anchor.flags.is_some()),
        };
        let (start, inferred) = match beginning {
            Beginning::Exact(start) => {
                let frames = start.frames.len() as u32;
                let mut memory = vec![0; start.words(rules, sysctl)?];
                let mut sim = Sim::new(start.manager(rules, sysctl, true, &mut memory)?, frames);
                sim.recorded_era = true;
                let inferred = infer(&mut causes, &mut sim);
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
        let mut prepared = Prepared {
            rec,
            era,
            start,
            exact,
            occupancy,
            reclaim: RecordedReclaim::default(),
            inferred,
            snapshots,
            first,
            offset,
            causes,
        };
        prepared.mark_freed();
        prepared.mark_movable();
        prepared.reclaim = RecordedReclaim::of(rec, &prepared.causes);
        Ok(prepared)
    }

    /// For each frame whether the first operation on it that `of` answers for is a yes.
    fn first(&self, of: impl Fn(&Op) -> Option<(HostBlock, bool)>) -> Vec<bool> {
        let mut seen = vec![false; self.start.frames.len()];
        let mut yes = seen.clone();
        for (block, is) in self.causes.ops.iter().filter_map(of) {
            for p in block.indices() {
                if !std::mem::replace(&mut seen[p], true) {
                    yes[p] = is;
                }
            }
        }
        yes
    }

    /// Notes which frames in use at the start are freed later.
    fn mark_freed(&mut self) {
        self.start.freed_later = self.first(|op| {
            let freed = op.freed().map(|block| (block, true));
            freed.or_else(|| Some((op.allocated()?.0, false)))
        });
        let frames = self.start.frames.iter().zip(&mut self.start.freed_later);
        frames.for_each(|(frame, later)| *later &= *frame != Frame::Free);
    }

    /// A frame in use at the start whose page a migration moved before anything else was movable,
    /// whatever its flags say.
    fn mark_movable(&mut self) {
        let moved = self.first(|op| {
            let page = |pfn| HostBlock { pfn, order: 0 };
            let moved = op.moved_from().map(|pfn| (page(pfn), true));
            let other = || op.freed().or_else(|| Some(op.allocated()?.0));
            moved.or_else(|| Some((other()?, false)))
        });
        for (frame, moved) in self.start.frames.iter_mut().zip(moved) {
            if moved && *frame == Frame::Pinned {
                *frame = Frame::Movable;
            }
        }
    }

    /// A time of the snapshots' clock in the trace's.
    pub fn trace_time(&self, time: u64) -> u64 {
        time.saturating_add_signed(-self.offset)
    }

    pub(crate) fn seconds(&self, time: u64) -> f64 {
        time.saturating_sub(self.first) as f64 / 1e9
    }
}

fn recorded_preset(era: Era) -> &'static Preset {
    match preset(era.preset()) {
        Some(p) => p,
        None => unreachable!("every era has a preset"),
    }
}
