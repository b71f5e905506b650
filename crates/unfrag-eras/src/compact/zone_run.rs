//! One run over one zone: the two scanners move towards each other until a block is there. `spec: 5.1, 5.3`
//!
//! Invariant: when a run has ended, it holds no page.

use super::control::Control;
use super::free_scan::{AboveMigrate, FreeScan, first_position};
use super::mover::{Moved, Mover};
use super::outcome::{Mode, Outcome};
use super::score::ScoreMarks;
use super::sourced_state::Sourced;
use super::sources;
use super::targets::held;
use crate::drive::Operation;
use crate::evict::Eviction;
use crate::frame::{CpuId, FrameIx, MigrateType, Order, ZoneId};
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::kernel::{Capture, CompactRules};
use crate::manager::Manager;
use crate::migrate::{Migration, MoveVerdicts};
use crate::need::{Answer, Need, Step};
use crate::trace::Event;

/// One run over one zone. As an operation of its own it compacts the whole zone, as a write to `vm.compact_memory`
/// does ([`whole_zone`](Compaction::whole_zone)).
///
/// It holds pages between two steps: one that is not driven to its end has to be [aborted](Compaction::abort).
#[derive(Debug)]
// For the twin of a manager, in which it holds the same again.
#[cfg_attr(feature = "lab", derive(Clone))]
#[must_use = "it holds frames until it is done or aborted"]
pub struct Compaction {
    pub(super) c: Control,
    phase: Phase,
    pub(super) migrate: FrameIx,
    pub(super) free: FreeScan,
    pub(super) mover: Mover,
    /// Where the last scan that isolated pages began, until its block is left.
    last: Option<FrameIx>,
    /// Where the scan at hand began.
    began: FrameIx,
    /// The scanners began at the ends of the zone.
    whole: bool,
    /// The pageblock is scanned to its end.
    finishes_block: bool,
    /// Synchronous runs are to go on where asynchronous ones do.
    joins_positions: bool,
    /// The block that came together for the request.
    pub(super) captured: Option<FrameIx>,
    /// Pages scanned since the world was last told.
    pub(super) scanned: u64,
    /// What it knows, if the host's source chooses.
    pub(super) sourced: Sourced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begin,
    Scan,
    Move,
    Over(Outcome),
}

impl Operation for Compaction {
    type Output = Outcome;

    fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
    ) -> Step<Outcome> {
        let Some(rules) = m.policy.rules.compact else {
            return Step::Done(Outcome::Skipped);
        };
        let step = if m.policy.rules.is_sourced() {
            self.follow_source(m, &rules, cpu, answer)
        } else {
            self.begin_capture(m, &rules);
            let step = self.advance(m, &rules, cpu, answer);
            self.end_capture(m, cpu);
            step
        };
        match step {
            // It may have come together when the run gave back what it held.
            Step::Done(_) if self.captured.is_some() => Step::Done(Outcome::Success),
            step => step,
        }
    }

    fn eviction(&self) -> &Eviction {
        &Eviction::EMPTY
    }

    fn migration(&self) -> &Migration {
        self.mover.migration()
    }
}

impl Compaction {
    /// A run over a whole zone for no order, as a write to `vm.compact_memory` makes it.
    pub fn whole_zone(zone: ZoneId) -> Compaction {
        Compaction::new(Control::of_zone(zone, Mode::Sync, false))
    }

    pub(crate) fn new(c: Control) -> Compaction {
        Compaction {
            c,
            phase: Phase::Begin,
            migrate: FrameIx(0),
            free: FreeScan::new(FrameIx(0)),
            mover: Mover::NEW,
            last: None,
            began: FrameIx(0),
            whole: false,
            finishes_block: false,
            joins_positions: false,
            captured: None,
            scanned: 0,
            sourced: Sourced::NEW,
        }
    }

    /// Blocks that it emptied, if the host's source chose them.
    pub(super) fn gained(&self) -> u32 {
        self.sourced.gained()
    }

    /// Ends a run early, as its task is killed. `answer` is what became of its last need: without an answer, pages that
    /// it asked about stay where they are. All that it holds is put back or freed.
    pub fn abort<H: Host>(mut self, m: &mut Manager<'_, H>, cpu: CpuId, answer: Answer) {
        if self.sourced.is_under_way() {
            self.abort_source(m, cpu, answer);
        } else if self.phase == Phase::Move {
            let targets = &mut self.free.targets;
            self.mover.abort(m, cpu, answer, targets);
        }
        self.free.release(m, &self.c, cpu);
        if let (Some(ix), Some(order)) = (self.take_captured(), self.c.order) {
            m.free_block(cpu, ix, order);
        }
    }

    /// The block that came together for the request, to be handed out. Its frames count as in use.
    pub(super) fn take_captured(&mut self) -> Option<FrameIx> {
        self.captured.take()
    }

    fn begin_capture<H: Host>(&self, m: &mut Manager<'_, H>, rules: &CompactRules) {
        if let Some(order) = self.c.order
            && self.c.direct
            && self.captured.is_none()
            && rules.capture != Capture::No
        {
            let from_movable =
                rules.capture == Capture::MovableForMovable && self.c.mt == MigrateType::Movable;
            let area = &mut m.zones[self.c.zone.index()].free_area;
            area.begin_capture(order, from_movable);
        }
    }

    fn end_capture<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) {
        let (Some(order), true) = (self.c.order, self.c.direct) else {
            return;
        };
        let (_, mut z) = m.parts(self.c.zone, cpu);
        if let Some(ix) = z.zone.free_area.end_capture() {
            z.count(-i64::from(order.frames()));
            z.frames.set_state(ix, held(order));
            self.captured = Some(ix);
        }
    }

    fn advance<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        rules: &CompactRules,
        cpu: CpuId,
        answer: Answer,
    ) -> Step<Outcome> {
        let mut answer = answer;
        loop {
            match self.phase {
                Phase::Begin => {
                    let suitable = m.compaction_suitable(&self.c);
                    if suitable != Outcome::Continue {
                        return Step::Done(suitable);
                    }
                    self.begin(m, rules);
                    self.phase = Phase::Scan;
                }
                Phase::Scan => {
                    let outcome = self.finished(m, rules);
                    if outcome != Outcome::Continue {
                        self.phase = Phase::Over(outcome);
                        continue;
                    }
                    self.phase = match self.isolate(m, rules, cpu) {
                        0 => {
                            self.after_vain_scan(m);
                            self.leave_block(m, cpu);
                            match rules.notices_capture_late {
                                true => Phase::Scan,
                                false => self.unless_captured(m),
                            }
                        }
                        pages => {
                            self.joins_positions = false;
                            self.last = Some(self.began);
                            self.mover.begin(pages, self.c.mode);
                            Phase::Move
                        }
                    };
                    if self.phase == Phase::Scan && self.c.mode != Mode::Async {
                        return Step::Need(self.turn());
                    }
                }
                Phase::Move => {
                    if let Answer::Migrated(verdicts) = core::mem::replace(&mut answer, Answer::Go)
                    {
                        self.settle(m, cpu, &verdicts);
                    }
                    let mut scan = AboveMigrate {
                        scan: &mut self.free,
                        migrate: self.migrate,
                        of: (&self.c, rules),
                    };
                    if self.mover.next(m, cpu, &mut scan) {
                        return Step::Need(Need::Migrate);
                    }
                    let moved = self.mover.end(m, cpu);
                    self.phase = match self.after_moves(m, rules, moved) {
                        Some(outcome) => Phase::Over(outcome),
                        None if rules.notices_capture_late => {
                            let next = self.unless_captured(m);
                            self.leave_block(m, cpu);
                            next
                        }
                        None => {
                            self.leave_block(m, cpu);
                            self.unless_captured(m)
                        }
                    };
                }
                Phase::Over(outcome) => {
                    self.end(m, cpu, outcome);
                    return Step::Done(outcome);
                }
            }
        }
    }

    fn settle<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, v: &MoveVerdicts) {
        self.mover.settle(m, cpu, v, &mut self.free.targets);
    }

    pub(super) fn turn(&mut self) -> Need {
        Need::Turn {
            scanned: u32::try_from(core::mem::take(&mut self.scanned)).unwrap_or(u32::MAX),
            freed: 0,
        }
    }

    /// Where the scanners begin.
    fn begin<H: Host>(&mut self, m: &mut Manager<'_, H>, rules: &CompactRules) {
        let c = self.c;
        if let Some(order) = c.order
            && rules.skips
            && m.zone(c.zone).compact.is_restarting(order)
        {
            m.reset_skips(c.zone);
        }
        let (span, geometry) = (m.zone(c.zone).span, m.frames.geometry);
        let last = first_position(m, c.zone);
        let z = &mut m.zones[c.zone.index()].compact;
        if c.whole_zone || !rules.skips {
            (self.migrate, self.free) = (span.start, FreeScan::new(last));
            self.whole = true;
        } else {
            let mut free = z.free;
            if free < span.start || free >= span.end {
                free = last.head(geometry.block_order);
                z.free = free;
            }
            let mut migrate = z.migrate[usize::from(!c.mode.is_async())];
            if migrate < span.start || migrate >= span.end {
                migrate = span.start;
                z.migrate = [migrate; 2];
            }
            self.whole = migrate <= z.first_migrate;
            (self.migrate, self.free) = (migrate, FreeScan::new(free));
        }
        self.joins_positions = c.mode.is_async() && z.migrate[0] == z.migrate[1];
        self.trace(m, None);
    }

    /// Whether the run is over (`compact_finished`).
    fn finished<H: Host>(&self, m: &mut Manager<'_, H>, rules: &CompactRules) -> Outcome {
        let c = &self.c;
        let block_order = m.frames.geometry.block_order;
        let (span, geometry) = (m.zone(c.zone).span, m.frames.geometry);
        if self.free.at.head(block_order) <= self.migrate.head(block_order) {
            let z = &mut m.zones[c.zone.index()].compact;
            z.reset_positions(span, geometry);
            z.flush_skips |= c.direct;
            return if self.whole {
                Outcome::Complete
            } else {
                Outcome::PartialSkipped
            };
        }
        if c.proactive
            && let Some(proactive) = &rules.proactive
        {
            let node = m.zone(c.zone).node;
            if m.node(node).is_some_and(|n| n.kswapd_awake) {
                return Outcome::PartialSkipped;
            }
            let marks = ScoreMarks::new(m.policy.sysctl.compaction_proactiveness, proactive);
            let score = if proactive.weighted_stop {
                m.weighted_score(c.zone)
            } else {
                m.zone_score(c.zone)
            };
            return if score > marks.low {
                Outcome::Continue
            } else {
                Outcome::Success
            };
        }
        let Some(order) = c.order else {
            return Outcome::Continue;
        };
        if rules.modes && !self.migrate.is_aligned(block_order) {
            return Outcome::Continue;
        }
        let z = m.zone(c.zone);
        if c.in_blocks {
            let passes = z.blocks_pass(&m.policy.rules, geometry, order, c.highest);
            return if passes {
                Outcome::Success
            } else {
                Outcome::Continue
            };
        }
        if !rules.modes {
            // 2.6.36: the mark of the request holds.
            let mark = z.marks.of(AllocFlags::WMARK_LOW);
            let low = AllocFlags::WMARK_LOW;
            if !z.passes(
                &m.policy.rules,
                Order::ZERO,
                mark + u64::from(order.frames()),
                c.highest,
                low,
            ) {
                return Outcome::Continue;
            }
        }
        let fits = |mt: MigrateType| z.free_area.fits(mt) >> order.0 != 0;
        let own = fits(c.mt) || c.mt == MigrateType::Movable && fits(MigrateType::Cma);
        let claims = rules.modes
            && z.free_area
                .could_claim(&m.frames, &m.policy.rules, order, c.mt);
        if own || claims {
            Outcome::Success
        } else {
            Outcome::Continue
        }
    }

    /// Isolates pages of the next pageblock that has some for this run. Returns how many.
    fn isolate<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        rules: &CompactRules,
        cpu: CpuId,
    ) -> u32 {
        let c = self.c;
        let block_order = m.frames.geometry.block_order;
        let block = block_order.frames();
        let start = m.zone(c.zone).span.start;
        self.began = self.migrate;
        self.finishes_block = rules.fast_search
            && self
                .last
                .is_some_and(|l| l.head(block_order) == self.migrate.head(block_order));
        let mut found_fast = false;
        if rules.fast_search
            && !self.finishes_block
            && let Some(ix) = self.free.search.source(m, &c, (self.migrate, self.free.at))
        {
            (self.migrate, found_fast) = (ix, true);
            if rules.finishes_found_block {
                self.began = ix;
            }
        }
        loop {
            let at = self.migrate;
            let head = at.head(block_order);
            let end = head.plus(block);
            if end > self.free.at {
                return 0;
            }
            let is_first = at == start || at == head;
            let skipped = rules.skips
                && !c.ignores_skips
                && is_first
                && !found_fast
                && m.frames.is_skipped(at);
            if skipped || m.frames.zone_of(at) != c.zone {
                self.migrate = end;
                found_fast = false;
                continue;
            }
            if !sources::is_source(m, &c, at) {
                m.zones[c.zone.index()]
                    .compact
                    .migrate_from(end, c.mode.is_async());
                self.migrate = end;
                found_fast = false;
                continue;
            }
            let whole = self.finishes_block;
            let before = m.compact_counters.compact_migrate_scanned;
            let held = &mut self.mover.sources;
            let found = sources::scan(m, (&c, rules), cpu, (at, end), whole, held);
            self.scanned += m.compact_counters.compact_migrate_scanned - before;
            if found.taken > 0 && rules.skips && rules.marks_at_once && !c.ignores_skips {
                m.frames.set_skipped(at, true);
            }
            if found.at >= end && (found.taken == 0 || whole) && rules.skips {
                m.frames.set_skipped(at, true);
                let next = match rules.passes_over_next {
                    true => end.plus(block),
                    false => end,
                };
                m.zones[c.zone.index()]
                    .compact
                    .migrate_from(next, c.mode.is_async());
            }
            self.migrate = found.at;
            return found.taken;
        }
    }

    /// After a scan that isolated nothing.
    fn after_vain_scan<H: Host>(&mut self, m: &mut Manager<'_, H>) {
        if self.joins_positions {
            let z = &mut m.zones[self.c.zone.index()].compact;
            z.migrate[1] = z.migrate[0];
        }
    }

    /// After the moves: how the run ends, if it does.
    fn after_moves<H: Host>(
        &mut self,
        m: &Manager<'_, H>,
        rules: &CompactRules,
        moved: Moved,
    ) -> Option<Outcome> {
        let block_order = m.frames.geometry.block_order;
        if moved.failed == 0 {
            return None;
        }
        let met = self.free.at.head(block_order) <= self.migrate.head(block_order);
        if moved.lacks_target && !met {
            return Some(Outcome::Contended);
        }
        // What is left of the block is useless for the request.
        if self.c.direct
            && self.c.mode.is_async()
            && rules.async_leaves_block
            && let Some(order) = self.c.order
        {
            let at = FrameIx(self.migrate.0.saturating_sub(1));
            self.migrate = self.migrate.max(at.head(order).plus(order.frames()));
            self.last = None;
        }
        None
    }

    /// Between two scans: when an aligned block of the wanted order that pages left is behind the scanner, the CPU's
    /// lists are drained, so that what was freed there can merge.
    fn leave_block<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) {
        if let Some(order) = self.c.order
            && let Some(last) = self.last
            && last < self.migrate.head(order)
        {
            m.drain(cpu, self.c.zone);
            self.last = None;
        }
    }

    /// Goes on, unless a block came together for the request: that ends the run.
    fn unless_captured<H: Host>(&self, m: &Manager<'_, H>) -> Phase {
        if self.captured.is_some() || m.zone(self.c.zone).free_area.has_captured() {
            return Phase::Over(Outcome::Success);
        }
        Phase::Scan
    }

    fn end<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, outcome: Outcome) {
        self.free.release(m, &self.c, cpu);
        self.trace(m, Some(outcome));
    }

    pub(super) fn trace<H: Host>(&self, m: &mut Manager<'_, H>, outcome: Option<Outcome>) {
        if !H::TRACING {
            return;
        }
        let pfn = |ix: FrameIx| m.map.pfn(ix);
        let (migrate, free) = (pfn(self.migrate), pfn(self.free.at));
        let event = match outcome {
            None => Event::CompactionBegin {
                zone: self.c.zone,
                migrate,
                free,
                sync: !self.c.mode.is_async(),
            },
            Some(outcome) => Event::CompactionEnd {
                zone: self.c.zone,
                migrate,
                free,
                sync: !self.c.mode.is_async(),
                outcome: outcome.name(),
            },
        };
        m.host.trace(&event);
    }
}

impl<H: Host> Manager<'_, H> {
    /// Clears the skip marks of a zone; its scans begin anew.
    pub(crate) fn reset_skips(&mut self, zone: ZoneId) {
        let geometry = self.frames.geometry;
        let span = self.zone(zone).span;
        let mut at = span.start;
        while at < span.end {
            self.frames.set_skipped(at, false);
            at = at
                .head(geometry.block_order)
                .plus(geometry.block_order.frames());
        }
        let z = &mut self.zones[zone.index()].compact;
        z.flush_skips = false;
        z.reset_positions(span, geometry);
    }
}
