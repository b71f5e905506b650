//! The free scanner: takes free blocks from the end of a zone, for pages to move to. `spec: 5.1`
//!
//! Invariant: it goes down, and stays above the pageblock of the migrate scanner.

use super::control::Control;
use super::fast::{Found, Search};
use super::mover::Supply;
use super::targets::{CLUSTER, Targets, has_room, take_block};
use crate::frame::{CpuId, FrameIx, FrameKind, MigrateType, Order, Pfn, ZoneId};
use crate::host::Host;
use crate::kernel::CompactRules;
use crate::manager::Manager;
use crate::trace::Event;
use crate::zone::last_block;

/// The free scanner of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeScan {
    /// It goes on at this frame, up to the end of its pageblock, and then in the pageblocks below.
    pub at: FrameIx,
    pub targets: Targets,
    pub search: Search,
}

/// Blocks taken in one pageblock.
struct Taken {
    pages: u32,
    /// Where the scan stopped.
    at: FrameIx,
}

/// The free scanner as what a run takes its targets from, above the migrate scanner.
pub(super) struct AboveMigrate<'a> {
    pub scan: &'a mut FreeScan,
    pub migrate: FrameIx,
    pub of: (&'a Control, &'a CompactRules),
}

impl Supply for AboveMigrate<'_> {
    fn targets(&mut self) -> &mut Targets {
        &mut self.scan.targets
    }

    fn fill<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, (_, wanted): (Order, u32)) {
        self.scan.fill(m, self.of, cpu, (wanted, self.migrate));
    }
}

impl FreeScan {
    /// A scanner that begins at a frame.
    pub const fn new(at: FrameIx) -> FreeScan {
        FreeScan {
            at,
            targets: Targets::NONE,
            search: Search::NEW,
        }
    }

    /// Takes free blocks until there are as many pages as `wanted`, or the scanner meets the migrate scanner, which is
    /// at `migrate`.
    fn fill<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        (c, rules): (&Control, &CompactRules),
        cpu: CpuId,
        (wanted, migrate): (u32, FrameIx),
    ) {
        if rules.fast_search && c.order.is_some_and(|o| o > Order::ZERO) {
            let found = self.search.targets(
                m,
                (c, rules),
                cpu,
                (wanted, migrate),
                (&mut self.at, &mut self.targets),
            );
            match found {
                Found::Enough => return,
                Found::Near(block) => {
                    // The rest of the pageblock that the search hit is taken too.
                    let end = m.zone(c.zone).span.end;
                    let end = block.plus(m.frames.geometry.block_order.frames()).min(end);
                    self.take_in(m, (c, rules), cpu, (block, end), 1, wanted);
                    // A place alone is no target: the sweep looks where the search did not.
                    if self.targets.pages > 0 {
                        return;
                    }
                }
                Found::Nothing => {}
            }
        }
        self.sweep(m, (c, rules), cpu, (wanted, migrate));
    }

    /// Scans pageblocks downwards.
    fn sweep<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        (c, rules): (&Control, &CompactRules),
        cpu: CpuId,
        (wanted, migrate): (u32, FrameIx),
    ) {
        let block_order = m.frames.geometry.block_order;
        let block = block_order.frames();
        let zone_end = m.zone(c.zone).span.end;
        let low = migrate.head(block_order).plus(block);
        let mut stride = if rules.fast_search && c.mode.is_async() {
            CLUSTER
        } else {
            1
        };
        let mut head = self.at.head(block_order);
        while head >= low {
            let end = head.plus(block).min(zone_end);
            let skipped = rules.skips && !c.ignores_skips && m.frames.is_skipped(head);
            if !skipped && is_target(m, (c, rules), head) {
                let taken = self.take_in(m, (c, rules), cpu, (self.at, end), stride, wanted);
                let is_over = taken.at >= end;
                if is_over {
                    note_scanned(m, c, rules, head);
                }
                if !is_over || self.targets.pages >= wanted {
                    self.at = if is_over {
                        previous(head, block)
                    } else {
                        taken.at
                    };
                    return;
                }
                stride = match taken.pages {
                    0 if rules.fast_search => (stride * 2).min(CLUSTER),
                    _ => 1,
                };
            }
            head = previous(head, block);
            self.at = head;
        }
    }

    /// Takes the free blocks between two frames of a pageblock.
    fn take_in<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        (c, rules): (&Control, &CompactRules),
        cpu: CpuId,
        (start, end): (FrameIx, FrameIx),
        stride: u32,
        wanted: u32,
    ) -> Taken {
        let (mut at, mut scanned, mut pages) = (start, 0, 0);
        while at < end {
            scanned += 1;
            let s = m.frames.state(at);
            match s.kind() {
                FrameKind::Buddy => {
                    let order = s.order();
                    if !has_room(m, c.zone, order) {
                        break;
                    }
                    take_block(m, (c.zone, rules), cpu, at, &mut self.targets);
                    let taken = order.frames();
                    (pages, scanned) = (pages + taken, scanned + taken - 1);
                    at = at.plus(taken);
                    if self.targets.pages >= wanted {
                        break;
                    }
                    // The stride is counted from the last page taken.
                    at = at.plus(stride - 1);
                }
                FrameKind::Used if s.order() > Order::ZERO => {
                    at = at.plus(s.order().frames());
                }
                _ => at = at.plus(stride),
            }
        }
        let at = at.min(end);
        m.compact_counters.compact_free_scanned += u64::from(scanned);
        m.compact_counters.compact_isolated += u64::from(pages);
        if H::TRACING {
            let event = Event::CompactionIsolateFreepages {
                start: m.map.pfn(start),
                end: Pfn(m.map.pfn(start).0 + u64::from(at.0 - start.0)),
                nr_scanned: scanned,
                nr_taken: pages,
            };
            m.host.trace(&event);
        }
        Taken { pages, at }
    }

    /// Frees the blocks that were not used. The zone's next run begins at the highest of them, if that is above where
    /// it would.
    pub fn release<H: Host>(&mut self, m: &mut Manager<'_, H>, c: &Control, cpu: CpuId) {
        let mut highest = None;
        while let Some((ix, order)) = self.targets.take_any(&m.frames) {
            highest = highest.max(Some(ix));
            m.account_free(m.map.pfn(ix), order);
            m.free_block(cpu, ix, order);
        }
        if let Some(ix) = highest {
            let head = ix.head(m.frames.geometry.block_order);
            let z = &mut m.zones[c.zone.index()];
            z.compact.free = z.compact.free.max(head);
        }
    }
}

/// The first frame of the pageblock before the one at `head`. AboveMigrate all others there is none: then the migrate scanner
/// is met.
fn previous(head: FrameIx, block: u32) -> FrameIx {
    FrameIx(head.0.saturating_sub(block))
}

/// Whether the pageblock at `head` may take pages: movable, and not free as a whole.
fn is_target<H: Host>(
    m: &Manager<'_, H>,
    (c, rules): (&Control, &CompactRules),
    head: FrameIx,
) -> bool {
    let block_order = m.frames.geometry.block_order;
    let spared = match c.order {
        Some(order) if rules.spares_wanted_order => order.min(block_order),
        _ => block_order,
    };
    if m.frames.zone_of(head) != c.zone {
        return false;
    }
    let s = m.frames.state(head);
    let is_whole = s.is_buddy() && s.order() >= spared;
    let mt = m.frames.block_type(head);
    !is_whole && matches!(mt, MigrateType::Movable | MigrateType::Cma)
}

/// Marks a pageblock that the free scanner has scanned to its end, and goes on below it the next time.
fn note_scanned<H: Host>(m: &mut Manager<'_, H>, c: &Control, rules: &CompactRules, head: FrameIx) {
    if !rules.skips {
        return;
    }
    m.frames.set_skipped(head, true);
    let z = &mut m.zones[c.zone.index()];
    z.compact.free = z.compact.free.min(head);
}

/// Where a run over the whole zone begins.
pub(super) fn first_position<H: Host>(m: &Manager<'_, H>, zone: ZoneId) -> FrameIx {
    last_block(m.zone(zone).span, m.frames.geometry)
}
