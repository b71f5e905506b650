//! Memory that is taken offline and online at run time.
//!
//! Frames that are offline stay in the frame table, so a host that will grow is configured with all the memory that it
//! may ever have, and takes what is not there yet offline before it allocates anything.
//!
//! Invariant: a zone's `present` and `managed` pages do not count what is offline; marks, protections and the sizes of
//! per-CPU lists follow.

use super::claim::Claim;
use super::obstacle::ClaimError;
use crate::drive::Operation;
use crate::evict::Eviction;
use crate::frame::{CpuId, FrameIx, FrameKind, Pfn, Span, State, ZoneId};
use crate::host::Host;
use crate::manager::Manager;
use crate::migrate::Migration;
use crate::need::{Answer, Step};

/// Takes memory offline (`offline_pages`): its pages are moved elsewhere, and it is handed out no more. A range of whole
/// pageblocks of one zone.
///
/// It ends as a [`Claim`] does, and is [aborted](Offline::abort) like one.
#[derive(Debug)]
#[must_use = "nothing is taken offline unless it is driven, and it holds frames until it is done or aborted"]
pub struct Offline {
    claim: Claim,
    start: Pfn,
    frames: u64,
}

impl Offline {
    /// Takes the `frames` frames from `start` on offline.
    pub fn new(start: Pfn, frames: u64) -> Offline {
        Offline {
            claim: Claim::offline(start, frames),
            start,
            frames,
        }
    }

    /// Its first frame.
    pub fn start(&self) -> Pfn {
        self.start
    }

    /// Ends it early; see [`Claim::abort`]. The memory stays online.
    pub fn abort<H: Host>(self, m: &mut Manager<'_, H>, cpu: CpuId, answer: Answer) {
        self.claim.abort(m, cpu, answer);
    }
}

impl Operation for Offline {
    type Output = Result<(), ClaimError>;

    fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
    ) -> Step<Result<(), ClaimError>> {
        if !m.are_whole_blocks(self.start, self.frames) {
            let block = m.frames.geometry.block_order.frames();
            return Step::Done(Err(ClaimError::Unaligned(block)));
        }
        match self.claim.step(m, cpu, answer) {
            Step::Need(need) => Step::Need(need),
            Step::Done(Err(why)) => Step::Done(Err(why)),
            Step::Done(Ok(_)) => {
                let (zone, span) = self.claim.taken();
                m.count_memory(zone, span, false);
                Step::Done(Ok(()))
            }
        }
    }

    fn eviction(&self) -> &Eviction {
        self.claim.eviction()
    }

    fn migration(&self) -> &Migration {
        self.claim.migration()
    }
}

/// Why memory was not taken online. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnlineError {
    /// The range does not begin, or end, with a pageblock; so many frames have one.
    Unaligned(u32),
    /// This frame of the range is not offline, or not in the zone of its first one.
    NotOffline(Pfn),
}

impl core::fmt::Display for OnlineError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match *self {
            OnlineError::Unaligned(n) => ClaimError::Unaligned(n).fmt(f),
            OnlineError::NotOffline(p) => write!(f, "frame {:#x} is not offline", p.0),
        }
    }
}

impl core::error::Error for OnlineError {}

impl<H: Host> Manager<'_, H> {
    /// Takes memory that is not in use offline, at once: for what is not there yet when a host boots.
    ///
    /// # Errors
    /// [`ClaimError`]; a page in use is [`InTheWay`](ClaimError::InTheWay) or [`Busy`](ClaimError::Busy), even if it could
    /// be moved. Nothing has changed then.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn offline_unused(
        &mut self,
        cpu: CpuId,
        start: Pfn,
        frames: u64,
    ) -> Result<(), ClaimError> {
        let mut offline = Offline::new(start, frames);
        match offline.step(self, cpu, Answer::Go) {
            Step::Done(result) => result,
            Step::Need(_) => {
                let asks = offline.claim.migration().asks();
                let page = asks.first().map_or(start, |ask| ask.from);
                offline.abort(self, cpu, Answer::Go);
                Err(ClaimError::Busy(page))
            }
        }
    }

    /// Takes memory online again (`online_pages`): whole pageblocks of one zone, all of them offline. It is free from then
    /// on, the largest blocks first, each at the tail of its list. `spec: 1.2`
    ///
    /// # Errors
    /// [`OnlineError`]; nothing has changed then.
    pub fn online(&mut self, start: Pfn, frames: u64) -> Result<(), OnlineError> {
        if !self.are_whole_blocks(start, frames) {
            let block = self.frames.geometry.block_order.frames();
            return Err(OnlineError::Unaligned(block));
        }
        let bad = OnlineError::NotOffline;
        let (zone, span) = self.span_in_zone(start, frames).map_err(bad)?;
        let present = |s: State| s.kind() != FrameKind::Absent;
        if let Some(ix) = span
            .start
            .until(span.end)
            .find(|&ix| present(self.frames.state(ix)))
        {
            return Err(bad(self.map.pfn(ix)));
        }
        let block = self.frames.geometry.block_order.frames();
        let initial = self.policy.rules.initial_type();
        for at in (span.start.0..span.end.0).step_by(block as usize) {
            self.frames.set_block_type(FrameIx(at), initial);
        }
        self.count_memory(zone, span, true);
        self.hand_over(zone, span);
        Ok(())
    }

    /// Whether a range begins and ends with a pageblock.
    fn are_whole_blocks(&self, start: Pfn, frames: u64) -> bool {
        let block = u64::from(self.frames.geometry.block_order.frames());
        start.0.is_multiple_of(block) && frames.is_multiple_of(block) && frames > 0
    }

    /// Counts memory that has come online, or gone.
    fn count_memory(&mut self, zone: ZoneId, span: Span, online: bool) {
        let pages = u64::from(span.end.0 - span.start.0);
        self.zones[zone.index()].resize(pages, online);
        self.size_zones();
    }
}
