//! Takes target frames out of the fullest pageblocks.

use super::super::control::Control;
use super::super::mover::Supply;
use super::super::targets::{Targets, has_room, take_block};
use super::survey::{survey, takes_pages};
use crate::frame::{CpuId, FrameIx, FrameKind, Order, Pfn};
use crate::host::Host;
use crate::kernel::CompactRules;
use crate::manager::Manager;
use crate::trace::Event;
use crate::zone::Survey;

/// The supply of a run.
pub(super) struct Fullest<'a> {
    pub targets: &'a mut Targets,
    pub survey: &'a mut Survey,
    /// Number of the run in its zone.
    pub run: u16,
    pub of: (&'a Control, &'a CompactRules),
}

impl Supply for Fullest<'_> {
    fn targets(&mut self) -> &mut Targets {
        self.targets
    }

    fn fill<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, (order, wanted): (Order, u32)) {
        let (c, rules) = self.of;
        let mut is_fresh = false;
        loop {
            while let Some(pick) = self.survey.targets.peek() {
                if !has_room(m, c.zone, order) {
                    return;
                }
                self.take_in(m, (c, rules), cpu, pick.head, (order, wanted));
                if self.targets.pages >= wanted && self.targets.serve(order) {
                    return;
                }
                self.survey.targets.advance();
            }
            if is_fresh || self.targets.serve(order) {
                return;
            }
            *self.survey = survey(m, c, self.run);
            is_fresh = true;
        }
    }
}

impl Fullest<'_> {
    /// Takes free blocks of a pageblock, of `order` or larger, until there are as many frames as wanted.
    fn take_in<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        (c, rules): (&Control, &CompactRules),
        cpu: CpuId,
        head: FrameIx,
        (order, wanted): (Order, u32),
    ) {
        let block = m.frames.geometry.block_order;
        let is_target = takes_pages(m.frames.block_type(head));
        if !is_target || u32::from(m.frames.room(head).free) == block.frames() {
            return;
        }
        let (mut at, mut scanned, mut pages) = (head, 0, 0);
        while at < head.plus(block.frames()) && self.targets.pages < wanted {
            scanned += 1;
            let s = m.frames.state(at);
            if s.kind() == FrameKind::Buddy && s.order() >= order {
                if !has_room(m, c.zone, s.order()) {
                    break;
                }
                take_block(m, (c.zone, rules), cpu, at, self.targets);
                pages += s.order().frames();
            }
            at = at.plus(s.order().frames());
        }
        m.compact_counters.compact_free_scanned += scanned;
        m.compact_counters.compact_isolated += u64::from(pages);
        if H::TRACING {
            let start = m.map.pfn(head);
            let event = Event::CompactionIsolateFreepages {
                start,
                end: Pfn(start.0 + u64::from(at.0 - head.0)),
                nr_scanned: scanned as u32,
                nr_taken: pages,
            };
            m.host.trace(&event);
        }
    }
}
