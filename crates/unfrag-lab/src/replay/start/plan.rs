//! The plan of a replay: the recording's clock, what its workload asked for, and where to begin.
//!
//! Invariant: a plan depends on the recording alone. No model runs here.

use super::anchor::Anchor;
use super::choice::StartChoice;
use super::evidence::BeforeAnchor;
use super::exact::exact;
use super::pcp_trace::PcpTrace;
use super::state::Start;
use super::zones::{highest_frame, zone_facts};
use crate::era::Era;
use crate::error::{Error, Remedy, Result};
use crate::host::Host;
use crate::input::Input;
use crate::parallel::both;
use crate::replay::causes::clock::Clock;
use crate::replay::causes::{Causes, causes, unseen};
use std::sync::Arc;
use unfrag_eras::Geometry;
use unfrag_linux::kpageflags;
use unfrag_linux::recording::{Recording, Snapshot};

/// What a replay needs of a recording.
pub struct Plan<'r> {
    /// The recording.
    pub input: Input<'r>,
    /// The recorded kernel.
    pub era: Era,
    /// The operations to replay.
    pub causes: Causes,
    /// What is known of the state at the beginning.
    pub beginning: Beginning,
    /// Snapshots taken while the trace ran, and when, in the trace's clock.
    pub snapshots: Vec<(u64, &'r Snapshot)>,
    /// Time of the first event.
    pub first: u64,
    /// Clock of the snapshots less that of the trace, in nanoseconds.
    pub offset: i64,
}

/// What a recording shows of the state at which a replay begins.
pub enum Beginning {
    /// The kernel's own free lists.
    Exact(Box<Start>),
    /// What any host shows, from which a start is to be fitted.
    Anchor(Box<Anchor>),
}

impl<'r> Plan<'r> {
    /// Reads a recording. Its clock is found, if it is not `known`.
    ///
    /// # Errors
    /// If it lacks what a replay needs.
    pub fn new(
        input: Input<'r>,
        choice: StartChoice,
        known: Option<Arc<Clock>>,
    ) -> Result<Plan<'r>> {
        let rec = input.recording;
        let geometry = input.geometry()?;
        let Some((first, last)) = input.events.span() else {
            return Err(Error::lacking("the recording has no events").remedy(Remedy::Sentence(
                "record the host for a time: a snapshot alone can be looked at, and not replayed".into(),
            )));
        };
        let era = Era::of(&rec.meta.kernel_release)?;
        let walk = || walked_whole(&input, era, choice);
        let (clock, walked) = match known {
            Some(clock) => (clock, walk()),
            None => {
                let (clock, walked) = both(|| Clock::of(input.clone()), walk);
                (Arc::new(clock?), walked)
            }
        };
        let offset = clock.offset;
        let within: Vec<(u64, &Snapshot)> = rec
            .snapshots
            .iter()
            .filter_map(|s| Some((clock.buddyinfo(s)?, s)))
            .filter(|(t, _)| (first..=last).contains(t))
            .collect();
        let begins: Vec<&Snapshot> = before_first(rec, &clock, first)?;
        let shows = |s: &Snapshot| s.file("zoneinfo").is_some() && clock.buddyinfo(s).is_some();
        let Some(&(_, anchor)) = within.iter().find(|(_, s)| shows(s)) else {
            return Err(Error::lacking(
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
        let listed =
            |s: &&&Snapshot| s.file("freelists").is_some() && time_of_lists(s, offset) < first;
        let before = begins.iter().rfind(listed).copied();
        let inside = |s: &&&Snapshot| (first..=last).contains(&time_of_lists(s, offset));
        let mark = before.or_else(|| marks.iter().find(inside).copied());
        // The text of free lists has no sizes: it is of hosts with the usual ones.
        let mark = mark.filter(|_| geometry == Geometry::PAGES_4K);
        let exact_mark = match (choice, mark) {
            (StartChoice::Counts | StartChoice::Occupancy, _)
            | (StartChoice::Auto | StartChoice::Boot, None) => None,
            (_, Some(s)) => Some(s),
            (StartChoice::Exact, None) => {
                return Err(Error::lacking(
                    "no snapshot within the trace holds the kernel's free lists of a host with the usual sizes",
                )
                .remedy(Remedy::StartFromCounts));
            }
        };
        let flagged = |s: &&Snapshot| shows(s) && s.content(kpageflags::NAME).is_some();
        let before = begins.iter().copied().rfind(flagged);
        let anchor = match choice {
            StartChoice::Counts => anchor,
            StartChoice::Exact | StartChoice::Auto | StartChoice::Boot => before.unwrap_or(anchor),
            StartChoice::Occupancy => {
                let inside = || within.iter().map(|w| w.1).find(flagged);
                before.or_else(inside).ok_or_else(|| {
                    Error::lacking("the snapshots within the trace have no page flags")
                        .remedy(Remedy::PageFlagsOrCounts)
                })?
            }
        };
        let (causes, beginning) = match exact_mark {
            Some(s) => exact_beginning(&input, era, s, offset)?,
            None => anchored_beginning(&input, era, anchor, &clock, choice, walked)?,
        };
        Ok(Plan {
            input,
            era,
            causes,
            beginning,
            snapshots: within,
            first,
            offset,
        })
    }
}

/// The snapshots taken before the first event, after which nothing was freed unseen. Each is as good as one
/// within the trace.
fn before_first<'r>(rec: &'r Recording, clock: &Clock, first: u64) -> Result<Vec<&'r Snapshot>> {
    let mut all = vec![];
    for s in &rec.snapshots {
        let read = s.files.iter().filter_map(|f| f.time).map(|t| t.1).max();
        let early = read.is_some_and(|t| t.saturating_add_signed(-clock.offset) < first);
        if early && clock.begins_at(s)? {
            all.push(s);
        }
    }
    Ok(all)
}

/// From the kernel's own free lists in a mark.
fn exact_beginning(
    input: &Input<'_>,
    era: Era,
    mark: &Snapshot,
    offset: i64,
) -> Result<(Causes, Beginning)> {
    let start = exact(mark, era, offset, &*input.cpus()?)?;
    let is_free = |p: u32| start.is_free(p);
    let frames = start.frames.len() as u32;
    let causes = causes(
        input.clone(),
        era,
        frames,
        start.time,
        u64::MAX,
        Some(&is_free),
    )?;
    Ok((causes, Beginning::Exact(Box::new(start))))
}

/// From a snapshot that any host has.
fn anchored_beginning(
    input: &Input<'_>,
    era: Era,
    anchor: &Snapshot,
    clock: &Clock,
    choice: StartChoice,
    walked: Option<Walked>,
) -> Result<(Causes, Beginning)> {
    let dated = clock.date_of_zoneinfo(anchor)?;
    let time = clock.buddyinfo(anchor).unwrap_or(0);
    let mut anchor = Anchor::read(anchor, time, &*input.cpus()?, input.geometry()?)?;
    anchor.dated = dated;
    if choice == StartChoice::Counts {
        anchor.flags = None;
    }
    let frames = highest_frame(&anchor.zones, anchor.geometry)?;
    // With each frame's flags the anchor itself is known; what came before it only says who waits
    // on which per-CPU list.
    let from = match anchor.flags {
        Some(_) => anchor.time,
        None => 0,
    };
    if anchor.flags.is_some() {
        let until = from.saturating_sub(1);
        let before = causes(input.clone(), era, frames, 0, until, None)?;
        anchor.before = Some(BeforeAnchor::of(&before)?);
        anchor.pcp_trace = PcpTrace::of(input, era, frames, from)?;
    }
    let mut causes = match walked {
        Some(walked) if walked.frames == frames && from == 0 => walked.causes,
        _ => causes(input.clone(), era, frames, from, u64::MAX, None)?,
    };
    let since_anchor = |s: &&Snapshot| clock.buddyinfo(s).is_some_and(|t| t >= anchor.time);
    let snapshots = input.recording.snapshots.iter().filter(since_anchor);
    unseen::insert(&mut causes, input.geometry()?, snapshots, clock)?;
    Ok((causes, Beginning::Anchor(Box::new(anchor))))
}

/// The operations of a whole trace, on a host with so many frame numbers.
struct Walked {
    frames: u32,
    causes: Causes,
}

/// Walks the whole trace, which a start by counts needs whatever its clock says; `None` where the start may be another
/// one, or something is wrong, which is found out later.
fn walked_whole(input: &Input<'_>, era: Era, choice: StartChoice) -> Option<Walked> {
    let snapshots = &input.recording.snapshots;
    let shows_more =
        |s: &Snapshot| s.content("freelists").is_some() || s.content(kpageflags::NAME).is_some();
    let by_counts = match choice {
        StartChoice::Counts => true,
        StartChoice::Auto | StartChoice::Boot => !snapshots.iter().any(shows_more),
        StartChoice::Exact | StartChoice::Occupancy => false,
    };
    let zones = snapshots.iter().filter(|_| by_counts);
    let zones = zones
        .filter_map(|s| zone_facts(&Host::recorded(s).ok()?).ok())
        .next()?;
    let frames = highest_frame(&zones, input.geometry().ok()?).ok()?;
    let causes = causes(input.clone(), era, frames, 0, u64::MAX, None).ok()?;
    Some(Walked { frames, causes })
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
