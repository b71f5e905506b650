//! What is emptied at a time: one pageblock, or as many as the wanted block has.
//!
//! Invariant: a unit that is set apart has pageblocks of type `Isolate`, whose free frames nobody allocates;
//! [`Unit::leave`] gives them their type back.

use super::super::control::Control;
use super::super::sources::may_move;
use super::super::targets::held;
use crate::frame::{CpuId, FrameIx, FrameKind, Order, OwnerId, Span, ZoneId};
use crate::host::Host;
use crate::kernel::CompactRules;
use crate::manager::Manager;

/// A unit that is set apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub head: FrameIx,
    pub order: Order,
    zone: ZoneId,
}

impl Unit {
    /// Sets a unit apart.
    pub fn set_apart<H: Host>(
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        zone: ZoneId,
        (head, order): (FrameIx, Order),
    ) -> Unit {
        let unit = Unit { head, order, zone };
        let (_, mut z) = m.parts(zone, cpu);
        z.set_apart(unit.span());
        unit
    }

    /// Behind its last frame.
    pub fn end(&self) -> FrameIx {
        self.head.plus(self.order.frames())
    }

    fn span(&self) -> Span {
        Span {
            start: self.head,
            end: self.end(),
        }
    }

    /// Whether all of it is free.
    pub fn is_empty<H: Host>(&self, m: &Manager<'_, H>) -> bool {
        free_frames(m, (self.head, self.order)) == self.order.frames()
    }

    /// Gives it back. What is free as a whole merges with what lies beside it; `keep`: it is kept for the caller
    /// instead, and its frame returned, in use.
    pub fn leave<H: Host>(
        &self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        keep: bool,
    ) -> Option<FrameIx> {
        let s = m.frames.state(self.head);
        let kept = keep && s.is_buddy_of(self.order);
        let (_, mut z) = m.parts(self.zone, cpu);
        if kept {
            z.isolate(self.head);
            z.frames.set_state(self.head, held(self.order));
        }
        z.rejoin(self.span());
        kept.then_some(self.head)
    }
}

/// Free frames of a unit.
pub(super) fn free_frames<H: Host>(m: &Manager<'_, H>, (head, order): (FrameIx, Order)) -> u32 {
    let mut free = 0;
    let mut at = head;
    while at < head.plus(order.frames()) {
        free += u32::from(m.frames.room(at).free);
        at = at.plus(m.frames.geometry.block_order.frames());
    }
    free
}

/// Notes of each pageblock of a unit that it was emptied, or that it stayed.
pub(super) fn note<H: Host>(
    m: &Manager<'_, H>,
    (head, order): (FrameIx, Order),
    emptied: bool,
    run: u16,
) {
    let mut at = head;
    while at < head.plus(order.frames()) {
        let room = m.frames.room(at);
        let room = if emptied {
            room.emptied()
        } else {
            room.stayed(run)
        };
        m.frames.set_room(at, room);
        at = at.plus(m.frames.geometry.block_order.frames());
    }
}

/// Whether all that is in use in a unit can be moved, as far as the frames' records tell.
pub(super) fn can_be_emptied<H: Host>(
    m: &mut Manager<'_, H>,
    (c, rules): (&Control, &CompactRules),
    (head, order): (FrameIx, Order),
) -> bool {
    let (mut at, mut scanned, mut can) = (head, 0, true);
    while can && at < head.plus(order.frames()) {
        scanned += 1;
        let s = m.frames.state(at);
        can = match s.kind() {
            FrameKind::Buddy => true,
            FrameKind::Used => moves(m, (c, rules), at),
            _ => false,
        };
        at = at.plus(s.order().frames());
    }
    m.note_isolated((head, at), scanned, 0);
    can
}

/// Whether the page at `ix` can be moved. A page that is on no list and has no owner has nobody to ask.
pub(super) fn moves<H: Host>(
    m: &Manager<'_, H>,
    (c, rules): (&Control, &CompactRules),
    ix: FrameIx,
) -> bool {
    let s = m.frames.state(ix);
    may_move(m, (c, rules), ix, s) && (s.lru() != 0 || s.owner() != OwnerId::NONE)
}
