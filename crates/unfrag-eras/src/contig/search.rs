//! The run of pageblocks that holds the fewest pages in use, and nothing that stays.
//!
//! A run slides over the zone, a pageblock at a time or by its alignment. What stays ends it, and the next one begins
//! behind. So each pageblock is looked at when it enters and when it leaves: a walk from block to block, which is short
//! where memory is free or in large blocks.

use super::obstacle::{Stand, stand, walk};
use crate::frame::{FrameIx, FrameKind, Order, Span, ZoneId};
use crate::host::Host;
use crate::manager::Manager;

/// Pageblocks that are looked at before others have a turn.
const LOOKED_AT_IN_A_TURN: u32 = 128;

/// Runs of a zone that are tried.
pub(super) const TRIES: usize = 8;

/// The search for a run in one zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    zone: ZoneId,
    /// Length and alignment of the run, in frames. The length is in whole pageblocks.
    len: u32,
    align: Order,
    /// The run at hand, and how far it was looked at.
    start: FrameIx,
    end: FrameIx,
    used: u32,
    best: Option<(u32, FrameIx)>,
    /// Frames that turned out to stay.
    avoid: [FrameIx; TRIES],
    avoided: usize,
}

/// What a search came to.
pub(super) enum Found {
    /// The cheapest run begins here.
    Run(FrameIx),
    /// There is none.
    None,
    /// It goes on; so many pageblocks were looked at.
    Later(u32),
}

impl Search {
    /// A search of a zone, for a run of at least one frame.
    pub fn new<H: Host>(m: &Manager<'_, H>, zone: ZoneId, frames: u32, align: Order) -> Search {
        let block = m.frames.geometry.block_order;
        let len = frames.max(1).checked_next_multiple_of(block.frames());
        let mut search = Search {
            zone,
            len: len.unwrap_or(u32::MAX),
            align: align.max(block),
            start: FrameIx(0),
            end: FrameIx(0),
            used: 0,
            best: None,
            avoid: [FrameIx::NIL; TRIES],
            avoided: 0,
        };
        search.again(m);
        search
    }

    /// Begins from the start of the zone.
    fn again<H: Host>(&mut self, m: &Manager<'_, H>) {
        self.best = None;
        self.begin_at(m, m.zone(self.zone).span.start);
    }

    /// The run that was found does not do, since the page at `ix` stays: the next search looks for another one. False,
    /// if it was the last try.
    pub fn avoid<H: Host>(&mut self, m: &Manager<'_, H>, ix: FrameIx) -> bool {
        self.avoid[self.avoided] = ix;
        self.avoided += 1;
        self.again(m);
        self.avoided < TRIES
    }

    /// Begins a run at the first place for one from `ix` on.
    fn begin_at<H: Host>(&mut self, m: &Manager<'_, H>, ix: FrameIx) {
        let z = m.zone(self.zone);
        let pfn = z.config().start.0 + u64::from(ix.0 - z.span.start.0);
        let aligned = 1u64.checked_shl(self.align.0.into());
        let aligned = aligned.and_then(|n| pfn.checked_next_multiple_of(n));
        let skipped = aligned.and_then(|p| u32::try_from(p - pfn).ok());
        let start = skipped.and_then(|n| ix.0.checked_add(n));
        self.start = start.map_or(FrameIx::NIL, FrameIx);
        (self.end, self.used) = (self.start, 0);
    }

    /// Looks on.
    pub fn step<H: Host>(&mut self, m: &Manager<'_, H>) -> Found {
        let zone_end = m.zone(self.zone).span.end;
        let block = m.frames.geometry.block_order.frames();
        let mut looked_at = 0;
        while self.start < zone_end && zone_end.0 - self.start.0 >= self.len {
            if looked_at >= LOOKED_AT_IN_A_TURN {
                return Found::Later(looked_at);
            }
            looked_at += 1;
            if self.end < self.start.plus(self.len) {
                match self.used_in(m, self.end) {
                    Some(used) => {
                        self.used += used;
                        self.end = self.end.plus(block);
                    }
                    None => self.begin_at(m, self.end.plus(block)),
                }
                continue;
            }
            if self.best.is_none_or(|(least, _)| self.used < least) {
                self.best = Some((self.used, self.start));
            }
            if self.used == 0 {
                break;
            }
            // Its start is aligned, so the next one is as far as the alignment.
            let stride = 1u32.checked_shl(self.align.0.into()).unwrap_or(u32::MAX);
            let next = FrameIx(self.start.0.saturating_add(stride));
            if next >= self.end {
                self.begin_at(m, next);
                continue;
            }
            while self.start < next {
                // Pages may have come and gone since it was looked at.
                let used = self.used_in(m, self.start).unwrap_or(0);
                self.used = self.used.saturating_sub(used);
                self.start = self.start.plus(block);
                looked_at += 1;
            }
        }
        self.best.map_or(Found::None, |(_, ix)| Found::Run(ix))
    }

    /// Frames in use of the pageblock at `head`; none, if something in it stays, or is to be avoided.
    fn used_in<H: Host>(&self, m: &Manager<'_, H>, head: FrameIx) -> Option<u32> {
        let block = m.frames.geometry.block_order.frames();
        let span = Span {
            start: head,
            end: head.plus(block),
        };
        if m.frames.is_shared(head) || self.avoid.iter().any(|&ix| span.holds(ix)) {
            return None;
        }
        let mut used = 0;
        for (at, s) in walk(m, span) {
            if let Stand::Stays(_) = stand::<H>(s) {
                return None;
            }
            if s.kind() == FrameKind::Used {
                used += at.plus(s.extent()).min(span.end).0 - at.max(head).0;
            }
        }
        Some(used)
    }
}
