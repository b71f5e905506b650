//! What is emptied at a time: one pageblock, or as many as the wanted block has.
//!
//! Invariant: a unit that is set apart has pageblocks of type [`MigrateType::Isolate`], whose free frames nobody
//! allocates; [`Unit::leave`] gives them their type back.

use super::super::control::Control;
use super::super::sources::may_move;
use super::super::targets::held;
use crate::frame::{CpuId, FrameIx, FrameKind, MigrateType, Order, OwnerId, Pfn, ZoneId};
use crate::host::Host;
use crate::kernel::CompactRules;
use crate::manager::Manager;
use crate::placement::{End, FreeTo};
use crate::trace::Event;

/// A unit that is set apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub head: FrameIx,
    pub order: Order,
    zone: ZoneId,
    /// The type of its pageblocks, which they get back.
    mt: MigrateType,
}

impl Unit {
    /// Sets a unit apart.
    pub fn set_apart<H: Host>(
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        zone: ZoneId,
        (head, order): (FrameIx, Order),
    ) -> Unit {
        let mt = m.frames.block_type(head);
        let unit = Unit {
            head,
            order,
            zone,
            mt,
        };
        unit.retype(m, cpu, MigrateType::Isolate);
        unit
    }

    /// Behind its last frame.
    pub fn end(&self) -> FrameIx {
        self.head.plus(self.order.frames())
    }

    fn retype<H: Host>(&self, m: &mut Manager<'_, H>, cpu: CpuId, mt: MigrateType) {
        let block = m.frames.geometry.block_order;
        let (_, z) = m.parts(self.zone, cpu);
        let mut at = self.head;
        while at < self.end() {
            z.frames.set_block_type(at, mt);
            z.zone.free_area.retype(z.frames, at, mt, End::Tail);
            at = at.plus(block.frames());
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
        if !self.is_empty(m) {
            self.retype(m, cpu, self.mt);
            return None;
        }
        let mut at = self.head;
        while at < self.end() {
            let Some(ix) = m.buddy_of(at) else { break };
            let (_, mut z) = m.parts(self.zone, cpu);
            let order = z.isolate(ix);
            self.restore_types(m, at, ix.plus(order.frames()));
            if keep && (ix, order) == (self.head, self.order) {
                m.frames.set_state(ix, held(order));
                return Some(ix);
            }
            let (_, mut z) = m.parts(self.zone, cpu);
            z.give(ix, order, FreeTo::ByRules);
            at = ix.plus(order.frames());
        }
        None
    }

    /// Gives the pageblocks from `start` to `end` their type back, as far as they are of the unit.
    fn restore_types<H: Host>(&self, m: &Manager<'_, H>, start: FrameIx, end: FrameIx) {
        let mut at = start;
        while at < end.min(self.end()) {
            m.frames.set_block_type(at, self.mt);
            at = at.plus(m.frames.geometry.block_order.frames());
        }
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
    m.compact_counters.compact_migrate_scanned += scanned;
    if H::TRACING {
        let start = m.map.pfn(head);
        let event = Event::CompactionIsolateMigratepages {
            start,
            end: Pfn(start.0 + u64::from(at.0 - head.0)),
            nr_scanned: scanned as u32,
            nr_taken: 0,
        };
        m.host.trace(&event);
    }
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
