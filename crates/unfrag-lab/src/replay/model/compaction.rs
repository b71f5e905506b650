//! The recorded kernel's compaction: a page that a migration moved on the recorded host is moved in the
//! model.
//!
//! Which pages move, and when, is the recording's. Where to is the model's decision, as with any
//! allocation: its free scanner walks down from the end of the zone through movable pageblocks, and
//! stops at the page that moves. `spec: 5, 5.1`
//!
//! Invariant: a move changes no number of free pages, only where they are.

use crate::replay::causes::{Action, Op};
use unfrag_eras::kernel::HighOrder;
use unfrag_eras::{CpuId, Host, Manager, MigrateType, Move, Pfn, Rules, ZoneId};

/// A pause after which a new run of compaction begins, with its scanners where they start.
const PAUSE_NS: u64 = 10_000_000;

/// Whether a kernel compacts.
pub fn compacts(rules: &Rules) -> bool {
    rules.reclaim.high_order == HighOrder::Compaction
}

/// The free scanner of a replay's compaction.
#[derive(Clone, Debug, Default)]
pub struct Compaction {
    /// By zone: the free scanner looks below this frame.
    below: Vec<u64>,
    /// When the last page moved, in nanoseconds of the trace clock.
    last: u64,
    /// The block that the last page left, if memory is compacted for an order.
    block: Option<CompactedBlock>,
}

/// An aligned block of the order that a task compacts for, and the CPU that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CompactedBlock {
    task: u32,
    cpu: CpuId,
    zone: ZoneId,
    /// First frame, in blocks of the order.
    number: u64,
}

impl Compaction {
    /// Moves the page at frame `at` of the model, for `op`, which compacts for `order`. Returns the frame
    /// where the page is then: `at` if it cannot move, or there is no free frame for it.
    pub fn migrate<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        op: &Op,
        order: u8,
        at: u32,
        zone: ZoneId,
    ) -> u32 {
        if self.below.is_empty() || op.time > self.last + PAUSE_NS {
            let zones = m.inspect().zones().map(|z| m.inspect().zone_config(z));
            self.below = zones.map(|c| c.start.0 + c.spanned).collect();
            self.block = None;
        }
        self.last = op.time;
        let from = Pfn(at.into());
        let cpu = CpuId(op.cpu.into());
        let block = (order > 0).then_some(CompactedBlock {
            task: op.task,
            cpu,
            zone,
            number: from.0 >> order,
        });
        if self.block != block {
            self.leave_block(m);
            self.block = block;
        }
        let Some(to) = self.scan(m, zone, from) else {
            return at;
        };
        match Move::begin(m, cpu, from, to) {
            Ok(begun) => {
                begun.commit(m, cpu);
                to.0 as u32
            }
            Err(_) => at,
        }
    }

    /// Before each operation: if a task that compacted does something else, its run is over.
    #[inline]
    pub fn before<H: Host>(&mut self, m: &mut Manager<'_, H>, op: &Op) {
        let moves = matches!(
            op.action,
            Action::Moved { .. } | Action::MovedAway { .. } | Action::MovedTo { .. }
        );
        if self.block.is_some_and(|b| b.task == op.task) && !moves {
            self.leave_block(m);
        }
    }

    /// A task that compacts for an order drains its CPU's lists when it leaves an aligned block of that
    /// order, so that the frames freed there can merge. `spec: 3`
    fn leave_block<H: Host>(&mut self, m: &mut Manager<'_, H>) {
        if let Some(b) = self.block.take() {
            m.drain(b.cpu, b.zone);
        }
    }

    /// The highest free frame below the free scanner, in a movable pageblock that lies above the page and is
    /// not free as a whole.
    fn scan<H: Host>(&mut self, m: &Manager<'_, H>, zone: ZoneId, from: Pfn) -> Option<Pfn> {
        let m = m.inspect();
        let pages = u64::from(m.block_pages());
        let stop = (from.0 / pages + 1) * pages;
        let below = &mut self.below[zone.index()];
        while *below > stop {
            let first = (*below - 1) / pages * pages;
            let whole = m
                .free_block(Pfn(first))
                .is_some_and(|b| u64::from(b.1.frames()) >= pages);
            if m.block_type(Pfn(first)) == Some(MigrateType::Movable) && !whole {
                let mut frames = (first..*below).rev().map(Pfn);
                if let Some(p) = frames.find(|&p| m.free_block(p).is_some()) {
                    *below = p.0 + 1;
                    return Some(p);
                }
            }
            *below = first;
        }
        None
    }
}
