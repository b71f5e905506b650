//! A run whose blocks and places the host's source chooses. See [`Source`](crate::source::Source).
//!
//! Invariant: what the source empties is set apart in the zone too, so that nobody gets what has just been freed there; outside
//! [`Phase::Move`] no frame is held as a target.

use super::control::Control;
use super::mover::Supply;
use super::outcome::Outcome;
use super::sourced_state::Phase;
use super::sources::may_move_in;
use super::targets::{CLUSTER, Targets, held};
use super::zone_run::Compaction;
use crate::frame::{CpuId, FrameIx, FrameKind, Frames, Order, OwnerId, Pfn, Span};
use crate::host::Host;
use crate::kernel::CompactRules;
use crate::manager::Manager;
use crate::need::{Answer, Need, Step};
use crate::placement::{End, FreeTo};
use crate::policy::Policy;
use crate::source::{Next, Room};

/// The targets of a batch, all of which are there before it begins.
struct Ready<'a>(&'a mut Targets);

impl Supply for Ready<'_> {
    fn targets(&mut self) -> &mut Targets {
        self.0
    }

    fn fill<H: Host>(&mut self, _: &mut Manager<'_, H>, _: CpuId, _: (Order, u32)) {}
}

impl Compaction {
    /// Continues a run of the source.
    pub(super) fn follow_source<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        rules: &CompactRules,
        cpu: CpuId,
        answer: Answer,
    ) -> Step<Outcome> {
        let mut answer = answer;
        loop {
            match self.sourced.phase {
                Phase::Begin => {
                    let suitable = m.compaction_suitable(&self.c);
                    if suitable != Outcome::Continue {
                        return Step::Done(suitable);
                    }
                    for cpu in m.cpu_ids() {
                        m.drain(cpu, self.c.zone);
                    }
                    (self.migrate, self.free.at) =
                        (m.zone(self.c.zone).span.start, m.zone(self.c.zone).span.end);
                    self.trace(m, None);
                    let room = room(&self.c, m.source_order(&self.c));
                    let run = m.host.source().map(|s| s.begin(self.c.zone, room));
                    let Some(run) = run else {
                        return Step::Done(Outcome::Skipped);
                    };
                    (self.sourced.run, self.sourced.phase) = (run, Phase::Ask);
                }
                Phase::Ask => match self.ask(m, rules, cpu) {
                    None => {
                        self.leave_source(m, cpu);
                        let outcome = self.source_outcome(m);
                        self.trace(m, Some(outcome));
                        return Step::Done(outcome);
                    }
                    // What was named is not to be had: the source hears of it when it is asked again.
                    Some(0) if !self.c.mode.is_async() => return Step::Need(self.turn()),
                    Some(0) => {}
                    Some(pages) => {
                        self.mover.begin(pages, self.c.mode);
                        self.sourced.phase = Phase::Move;
                    }
                },
                Phase::Move => {
                    let given = core::mem::replace(&mut answer, Answer::Go);
                    let targets = &mut self.sourced.targets;
                    if let Answer::Migrated(verdicts) = given {
                        self.mover.settle(m, cpu, &verdicts, targets);
                    }
                    if self.mover.next(m, cpu, &mut Ready(targets)) {
                        return Step::Need(Need::Migrate);
                    }
                    self.mover.end(m, cpu);
                    self.release_places(m, cpu);
                    self.sourced.phase = Phase::Ask;
                }
                Phase::Over => return Step::Done(self.source_outcome(m)),
            }
        }
    }

    /// How it ended.
    fn source_outcome<H: Host>(&self, m: &Manager<'_, H>) -> Outcome {
        let has = match self.c.order {
            Some(_) => {
                self.captured.is_some() || m.compaction_suitable(&self.c) == Outcome::Success
            }
            None => self.sourced.gained > 0,
        };
        if has {
            Outcome::Success
        } else {
            Outcome::Complete
        }
    }

    /// Asks what should move next, and isolates it with what follows, up to a batch. Returns how many pages; `None`, if the
    /// run has ended.
    fn ask<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        rules: &CompactRules,
        cpu: CpuId,
    ) -> Option<u32> {
        let (c, run) = (self.c, self.sourced.run);
        let mut looks = 0;
        let next = {
            let (frames, policy, map) = (&m.frames, &m.policy, &m.map);
            let mut moves = |pfn: Pfn| {
                looks += 1;
                moves_as::<H>((frames, policy), (&c, rules), map.ix(pfn)?)
            };
            m.host.source()?.next(run, &mut moves)
        };
        m.compact_counters.compact_migrate_scanned += looks;
        self.scanned += looks;
        let Next::Frame(first) = next else {
            return None;
        };
        let mut at = Some(first);
        let (mut taken, mut scanned) = (0, 0);
        self.enter_unit(m, cpu, m.map.ix(first)?);
        while taken < CLUSTER
            && let Some(pfn) = at
            && let Some(ix) = m.map.ix(pfn)
        {
            scanned += 1;
            let Some(order) = moves_as::<H>((&m.frames, &m.policy), (&c, rules), ix) else {
                if m.frames.state(ix).kind() == FrameKind::Pcp && taken == 0 {
                    // A CPU has freed it meanwhile, and keeps it.
                    m.cpu_ids().for_each(|cpu| m.drain(cpu, c.zone));
                }
                break;
            };
            let place = m.host.source().and_then(|s| s.place(run, order));
            let Some(place) = place else { break };
            let (_, mut z) = m.parts(c.zone, cpu);
            let Some(to) = z.take_place(place, order) else {
                break;
            };
            self.sourced.targets.push(&m.frames, to, order, End::Tail);
            m.pages().hold(ix);
            self.mover.sources.push(m.frames.table, ix, End::Tail);
            taken += order.frames();
            let last = Pfn(pfn.0 + u64::from(order.frames()) - 1);
            at = m.host.source().and_then(|s| s.after(run, last));
        }
        m.compact_counters.compact_migrate_scanned += scanned;
        m.compact_counters.compact_isolated += u64::from(taken);
        self.scanned += scanned;
        Some(taken)
    }

    /// The pageblocks that hold a frame are what is emptied from now on.
    fn enter_unit<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, ix: FrameIx) {
        let order = m.source_order(&self.c);
        let zone = m.zone(self.c.zone).span;
        let head = ix.head(order);
        let unit = Span {
            start: head.max(zone.start),
            end: head.plus(order.frames()).min(zone.end),
        };
        let is_same = |u: Span| u.start == unit.start;
        if self.sourced.unit.is_some_and(is_same) {
            return;
        }
        self.leave_unit_of_source(m, cpu);
        let (_, mut z) = m.parts(self.c.zone, cpu);
        z.set_apart(unit);
        self.sourced.unit = Some(unit);
    }

    /// Gives the pageblocks back. If a request waits for a block, and all of them are free, it has them.
    fn leave_unit_of_source<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) {
        let Some(unit) = self.sourced.unit.take() else {
            return;
        };
        let wanted = self.c.order.filter(|_| self.c.direct);
        let whole = wanted.filter(|_| self.captured.is_none());
        let (_, mut z) = m.parts(self.c.zone, cpu);
        z.rejoin(unit);
        let Some(order) = whole else { return };
        let is_free = z.frames.buddy_of(unit.start).is_some_and(|head| {
            z.frames.state(head).order() >= order && unit.start.is_aligned(order)
        });
        if is_free && z.claim(unit.start, order, self.c.mt) {
            let pfn = z.tracer.map.pfn(unit.start);
            if let Some(ix) = z.take_place(pfn, order) {
                z.frames.set_state(ix, held(order));
                self.captured = Some(ix);
            }
        }
    }

    /// Gives what was not moved to back.
    fn release_places<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) {
        while let Some((ix, order)) = self.sourced.targets.take_any(&m.frames) {
            let (_, mut z) = m.parts(self.c.zone, cpu);
            z.give(ix, order, FreeTo::ByRules);
        }
    }

    /// Ends the run with the source.
    fn leave_source<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) {
        let run = self.sourced.run;
        self.sourced.gained = m.host.source().map_or(0, |s| s.end(run));
        self.sourced.phase = Phase::Over;
        self.leave_unit_of_source(m, cpu);
    }

    /// Ends the run early.
    pub(super) fn abort_source<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
    ) {
        if self.sourced.phase == Phase::Move {
            let targets = &mut self.sourced.targets;
            self.mover.abort(m, cpu, answer, targets);
            self.release_places(m, cpu);
        }
        self.leave_source(m, cpu);
    }
}

/// What the source is asked for.
fn room(c: &Control, order: Order) -> Room {
    match (c.order, c.goal) {
        (Some(_), _) => Room::Block(order),
        (None, Some(goal)) => Room::Ahead {
            order,
            blocks: goal.blocks,
        },
        (None, None) => Room::All(order),
    }
}

/// The order of the block in use that begins at a frame, if somebody can be asked to move it.
fn moves_as<H: Host>(
    (frames, policy): (&Frames, &Policy),
    of: (&Control, &CompactRules),
    ix: FrameIx,
) -> Option<Order> {
    let s = frames.state(ix);
    let has_owner = s.lru() != 0 || s.owner() != OwnerId::NONE;
    (may_move_in::<H>((frames, policy), of, ix, s) && has_owner).then(|| s.order())
}

impl<H: Host> Manager<'_, H> {
    /// The order of what a run of the source empties at a time: that of a pageblock and of a huge page at least.
    fn source_order(&self, c: &Control) -> Order {
        let wanted = c.order.or(c.goal.map(|g| g.order)).unwrap_or(Order::ZERO);
        let block = self.frames.geometry.block_order;
        wanted.max(block).max(Order::HUGE)
    }
}
