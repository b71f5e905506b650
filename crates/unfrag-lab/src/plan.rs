//! A recording made ready for a replay: clock, start, causes, and from an exact start what left no
//! event.
//!
//! Invariant: a plan depends on the recording alone, never on the kernel that will run it.

use crate::cause::{Causes, Do, causes};
use crate::clock::Clock;
use crate::era::Era;
use crate::replay::Sim;
use crate::report::Sample;
use crate::run::StartChoice;
use crate::start::counts::{Anchor, fitted};
use crate::start::evidence::Before;
use crate::start::exact::exact;
use crate::start::waited::Waited;
use crate::start::{Frame, Start, highest_frame, holds};
use crate::{resolve, sample, settings, silent};
use unfrag::Pfn;
use unfrag::kernel::{Preset, preset};
use unfrag_linux::recording::{Recording, Snapshot};
use unfrag_linux::{Error, Result};

/// A recording made ready.
pub struct Plan<'r> {
    pub(crate) rec: &'r Recording,
    /// The recorded kernel.
    pub era: Era,
    /// Where the replay begins.
    pub start: Start,
    /// What it replays.
    pub causes: Causes,
    /// Whether the start is the kernel's exact state.
    pub exact: bool,
    /// Whether it is the recorded occupancy, frame by frame.
    pub occupancy: bool,
    /// What the recorded kernel's reclaim did, if anything.
    pub reclaim: Option<crate::reclaim::Evidence>,
    /// What was inferred.
    pub resolved: resolve::Resolved,
    /// Snapshots from the anchor on, and when they were taken in the trace's clock.
    pub snapshots: Vec<(u64, &'r Snapshot)>,
    first: u64,
    offset: i64,
}

impl<'r> Plan<'r> {
    /// Prepares a recording.
    ///
    /// # Errors
    /// If it lacks what a replay needs.
    pub fn new(rec: &'r Recording, choice: StartChoice) -> Result<Plan<'r>> {
        let (Some(&first), Some(&last)) = (rec.events.time.first(), rec.events.time.last()) else {
            return Err(Error::malformed("the recording has no events"));
        };
        let era = Era::of(&rec.meta.kernel_release)?;
        let clock = Clock::of(rec)?;
        let offset = clock.offset;
        let within: Vec<(u64, &Snapshot)> = rec
            .snapshots
            .iter()
            .filter_map(|s| Some((clock.buddyinfo(s)?, s)))
            .filter(|(t, _)| (first..=last).contains(t))
            .collect();
        let Some(&(_, anchor)) = within.iter().find(|(_, s)| s.file("zoneinfo").is_some()) else {
            return Err(Error::malformed(
                "no snapshot with buddyinfo and zoneinfo was taken while the trace ran",
            )
            .help(
                "record procfs snapshots once a second beside the trace, and import them with it",
            ));
        };
        let marks = rec
            .snapshots
            .iter()
            .filter(|s| s.file("freelists").is_some());
        let marks: Vec<&Snapshot> = marks.collect();
        // A mark after which nothing happened unseen is as good as one within the trace.
        let mut before = None;
        for s in marks.iter().filter(|s| time_of_lists(s, offset) < first) {
            if clock.begins_at(s)? {
                before = Some(*s);
            }
        }
        let inside = |s: &&&Snapshot| (first..=last).contains(&time_of_lists(s, offset));
        let mark = before.or_else(|| marks.iter().find(inside).copied());
        let exact_mark = match (choice, mark) {
            (StartChoice::Counts | StartChoice::Occupancy, _) | (StartChoice::Auto, None) => None,
            (_, Some(s)) => Some(s),
            (StartChoice::Exact, None) => {
                return Err(Error::malformed(
                    "no snapshot within the trace holds the kernel's free lists",
                )
                .help("use --start counts"));
            }
        };
        if choice == StartChoice::Occupancy && anchor.file("kpageflags").is_none() {
            return Err(Error::malformed(format!(
                "snapshot `{}`, the first within the trace, has no page flags",
                anchor.name
            ))
            .help("record with `unfrag record` as root, or use --start counts"));
        }
        let mut plan = match exact_mark {
            Some(s) => Plan::exact(rec, era, s, offset)?,
            None => Plan::counts(rec, era, anchor, &clock, choice)?,
        };
        plan.snapshots = within
            .into_iter()
            .filter(|(t, _)| *t >= plan.start.time)
            .collect();
        if plan.snapshots.is_empty() {
            return Err(Error::malformed(
                "no snapshot was taken after the start of the replay",
            ));
        }
        (plan.first, plan.offset) = (first, offset);
        plan.mark_freed();
        plan.mark_movable();
        plan.reclaim = crate::reclaim::Evidence::of(rec, &plan.causes);
        Ok(plan)
    }

    fn exact(rec: &'r Recording, era: Era, mark: &Snapshot, offset: i64) -> Result<Plan<'r>> {
        let start = exact(mark, era, offset)?;
        let is_free = |p: u32| start.is_free(p);
        let frames = start.frames.len() as u32;
        let mut causes = causes(rec, era, frames, start.time, u64::MAX, Some(&is_free))?;
        let p = recorded_preset(era);
        let sysctl = settings::recorded(rec);
        let mut memory = vec![0; start.words(p.rules, sysctl)?];
        let mut sim = Sim::new(start.manager(p.rules, sysctl, true, &mut memory)?, frames);
        sim.recorded_era = true;
        let resolved = resolve::resolve(&mut causes, &mut sim);
        drop(sim);
        Ok(Plan {
            rec,
            era,
            start,
            causes,
            exact: true,
            occupancy: false,
            reclaim: None,
            resolved,
            snapshots: vec![],
            first: 0,
            offset,
        })
    }

    fn counts(
        rec: &'r Recording,
        era: Era,
        anchor: &Snapshot,
        clock: &Clock,
        choice: StartChoice,
    ) -> Result<Plan<'r>> {
        let offset = clock.offset;
        let dated = clock.date(anchor)?;
        let time = clock.buddyinfo(anchor).unwrap_or(0);
        let mut anchor = Anchor::read(anchor, time)?;
        anchor.dated = dated;
        if choice == StartChoice::Counts {
            anchor.flags = None;
        }
        let frames = highest_frame(&anchor.zones)?;
        // With each frame's flags the anchor itself is known; what came before it only says who waits
        // on which per-CPU list.
        let from = match anchor.flags {
            Some(_) => anchor.time,
            None => 0,
        };
        if anchor.flags.is_some() {
            let until = from.saturating_sub(1);
            anchor.before = Some(Before::of(&causes(rec, era, frames, 0, until, None)?));
            anchor.waited = Waited::of(rec, era, frames, anchor.cpus, from);
        }
        let mut causes = causes(rec, era, frames, from, u64::MAX, None)?;
        let since_anchor = |s: &&Snapshot| clock.buddyinfo(s).is_some_and(|t| t >= anchor.time);
        let snapshots = rec.snapshots.iter().filter(since_anchor);
        silent::insert(&mut causes, snapshots, clock)?;
        let start = fitted(
            &anchor,
            &causes,
            recorded_preset(era).rules,
            settings::recorded(rec),
        )?;
        let resolved = resolve::Resolved::default();
        Ok(Plan {
            rec,
            era,
            start,
            causes,
            exact: false,
            occupancy: anchor.flags.is_some(),
            reclaim: None,
            resolved,
            snapshots: vec![],
            first: 0,
            offset,
        })
    }

    /// Whether the first operation on each frame, among those that `of` answers for, is a yes.
    fn first(&self, of: impl Fn(Do) -> Option<bool>) -> Vec<bool> {
        let mut seen = vec![false; self.start.frames.len()];
        let mut yes = seen.clone();
        for op in &self.causes.ops {
            let Some(is) = of(op.act) else { continue };
            let order = match op.act {
                Do::Moved | Do::Left => 0,
                _ => op.order,
            };
            for p in op.pfn as usize..op.pfn as usize + (1 << order) {
                if !std::mem::replace(&mut seen[p], true) {
                    yes[p] = is;
                }
            }
        }
        yes
    }

    /// Notes which frames in use at the start are freed later.
    fn mark_freed(&mut self) {
        self.start.freed_later = self.first(|act| match act {
            Do::Free | Do::FreeGiven | Do::FreeUnseen => Some(true),
            Do::Alloc | Do::AllocRaced => Some(false),
            _ => None,
        });
        let frames = self.start.frames.iter().zip(&mut self.start.freed_later);
        frames.for_each(|(frame, later)| *later &= *frame != Frame::Free);
    }

    /// What compaction moved first of all was movable at the start, whatever the flags say.
    fn mark_movable(&mut self) {
        let moved = self.first(|act| match act {
            Do::Moved | Do::Left => Some(true),
            Do::Alloc | Do::AllocRaced | Do::Free | Do::FreeGiven | Do::FreeUnseen => Some(false),
            _ => None,
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

    pub(crate) fn recorded_samples(&self) -> Result<Vec<Sample>> {
        let of = |(t, s): &(u64, &Snapshot)| sample::of_snapshot(s, self.seconds(*t)).transpose();
        self.snapshots.iter().filter_map(of).collect()
    }

    /// For each snapshot after the anchor and each zone: pages taken since the anchor.
    pub(crate) fn taken(&self, anchor: &Sample) -> Vec<Vec<i64>> {
        let Some(&(from, _)) = self.snapshots.first() else {
            return vec![];
        };
        let zones: Vec<_> = anchor
            .zones
            .iter()
            .map(|z| {
                let of = |c: &unfrag::ZoneConfig| {
                    u32::from(c.node.0) == z.node && c.kind.name() == z.zone
                };
                self.start.zones.iter().map(|f| f.config).find(of)
            })
            .collect();
        let mut sum = vec![0i64; zones.len()];
        let mut all = vec![];
        let mut next = self.snapshots.iter().skip(1).peekable();
        for op in self.causes.ops.iter().filter(|o| o.time >= from) {
            while next.next_if(|(t, _)| op.time > *t).is_some() {
                all.push(sum.clone());
            }
            let (pfn, pages) = (Pfn(op.frame(&self.causes).into()), op.pages_taken());
            if pages == 0 {
                continue;
            }
            let inside = |c: &unfrag::ZoneConfig| holds(c, pfn);
            if let Some(i) = zones.iter().position(|z| z.as_ref().is_some_and(inside)) {
                sum[i] += pages;
            }
        }
        all.resize(self.snapshots.len().saturating_sub(1), sum);
        all
    }
}

/// When the walk over a mark's free lists ended, in the trace's clock.
fn time_of_lists(mark: &Snapshot, offset: i64) -> u64 {
    let time = mark
        .files
        .iter()
        .find(|f| f.name == "freelists")
        .and_then(|f| f.time);
    time.map_or(0, |(_, end)| end.saturating_add_signed(-offset))
}

fn recorded_preset(era: Era) -> &'static Preset {
    match preset(era.preset()) {
        Some(p) => p,
        None => unreachable!("every era has a preset"),
    }
}
