//! One run over one zone, unit by unit.
//!
//! Invariant: outside [`Phase::Take`] and [`Phase::Move`] no unit is set apart, and no frame is held as a target.

use super::super::free_scan::first_position;
use super::super::mover::{Moved, put_all_back};
use super::super::outcome::Outcome;
use super::super::targets::CLUSTER;
use super::super::zone_run::Compaction;
use super::state::Phase;
use super::supply::Fullest;
use super::survey;
use super::unit::{self, Unit};
use crate::frame::{CpuId, FrameKind};
use crate::host::Host;
use crate::kernel::CompactRules;
use crate::manager::Manager;
use crate::need::{Answer, Need, Step};
use crate::placement::{End, FreeTo};
use crate::zone::Survey;

/// What a look for the next unit came to.
enum Choice {
    Unit(Unit),
    /// There is none whose pages have room elsewhere.
    Nothing,
    /// The next one costs more than is left of the budget.
    TooDear,
    /// Others are to have a turn first.
    Later,
}

impl Compaction {
    /// Continues a run of the evacuator.
    pub(in super::super) fn evacuate<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        rules: &CompactRules,
        cpu: CpuId,
        answer: Answer,
    ) -> Step<Outcome> {
        let mut answer = answer;
        loop {
            match self.evacuation.phase {
                Phase::Begin => {
                    let suitable = m.compaction_suitable(&self.c);
                    if suitable != Outcome::Continue {
                        return Step::Done(suitable);
                    }
                    self.begin_evacuation(m);
                }
                Phase::Choose => {
                    if let Some(outcome) = self.evacuation_outcome(m) {
                        self.evacuation.phase = Phase::Over(outcome);
                        continue;
                    }
                    self.evacuation.phase = match self.choose(m, rules, cpu) {
                        Choice::Unit(unit) => {
                            (self.evacuation.unit, self.evacuation.at) = (Some(unit), unit.head);
                            Phase::Take
                        }
                        Choice::Later => return Step::Need(self.turn()),
                        Choice::Nothing => Phase::Over(Outcome::Complete),
                        Choice::TooDear => Phase::Over(Outcome::PartialSkipped),
                    };
                }
                Phase::Take => match self.take_pages(m, rules, cpu) {
                    0 => {
                        self.leave_unit(m, cpu);
                        if !self.c.mode.is_async() {
                            return Step::Need(self.turn());
                        }
                    }
                    pages => {
                        self.mover.begin(pages, self.c.mode);
                        self.evacuation.phase = Phase::Move;
                    }
                },
                Phase::Move => {
                    let given = core::mem::replace(&mut answer, Answer::Go);
                    if let Answer::Migrated(verdicts) = given {
                        let targets = &mut self.evacuation.targets;
                        self.mover.settle(m, cpu, &verdicts, targets);
                    }
                    let e = &mut self.evacuation;
                    let mut supply = Fullest {
                        targets: &mut e.targets,
                        survey: &mut e.survey,
                        run: e.run,
                        of: (&self.c, rules),
                    };
                    if self.mover.next(m, cpu, &mut supply) {
                        return Step::Need(Need::Migrate);
                    }
                    self.after_batch(m, cpu);
                }
                Phase::Over(outcome) => {
                    survey::keep(m, &self.c, &self.evacuation.survey);
                    self.trace(m, Some(outcome));
                    return Step::Done(outcome);
                }
            }
        }
    }

    fn begin_evacuation<H: Host>(&mut self, m: &mut Manager<'_, H>) {
        let c = self.c;
        for cpu in m.cpu_ids() {
            m.drain(cpu, c.zone);
        }
        (self.migrate, self.free.at) = (m.zone(c.zone).span.start, first_position(m, c.zone));
        self.trace(m, None);
        let unit = u64::from(m.unit_order(&c).frames());
        let block = u64::from(m.frames.geometry.block_order.frames());
        let missing = c
            .goal
            .map(|g| g.blocks.saturating_sub(m.huge_free(c.zone, g.order)));
        let frames = match (c.order, missing) {
            (Some(_), _) if c.in_blocks => None,
            (Some(_), _) => Some(unit),
            (None, missing) => missing.map(|n| u64::from(n) * block),
        };
        let z = &mut m.zones[c.zone.index()].compact;
        z.evacuations = z.evacuations.wrapping_add(1);
        let run = z.evacuations;
        let kept = survey::kept(m, &c);
        let e = &mut self.evacuation;
        (e.run, e.survey) = (run, kept);
        // One unit's worth is for owners that refuse.
        e.budget = frames.map(|n| n + unit);
        e.phase = Phase::Choose;
    }

    /// How the run ends, if it has what it is for.
    fn evacuation_outcome<H: Host>(&self, m: &Manager<'_, H>) -> Option<Outcome> {
        let c = &self.c;
        let has = match (c.order, c.goal) {
            (Some(_), _) => {
                self.evacuation.gained > 0 && !c.in_blocks
                    || m.compaction_suitable(c) == Outcome::Success
            }
            (None, Some(goal)) => m.huge_free(c.zone, goal.order) >= goal.blocks,
            (None, None) => false,
        };
        has.then_some(Outcome::Success)
    }

    /// Finds the cheapest unit that can be emptied, and sets it apart.
    fn choose<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        rules: &CompactRules,
        cpu: CpuId,
    ) -> Choice {
        let (c, order) = (self.c, m.unit_order(&self.c));
        let e = &mut self.evacuation;
        let mut is_fresh = false;
        loop {
            let Some(pick) = e.survey.sources.peek() else {
                if is_fresh {
                    return Choice::Nothing;
                }
                if e.surveys > 0 && !e.has_yielded {
                    e.has_yielded = true;
                    return Choice::Later;
                }
                e.survey = survey::survey(m, &c, e.run);
                (e.surveys, is_fresh, e.has_yielded) = (e.surveys + 1, true, false);
                continue;
            };
            is_fresh = false;
            e.survey.sources.advance();
            let place = (pick.head, order);
            let free = unit::free_frames(m, place);
            let cost = order.frames() - free;
            let next = e.survey.sources.peek();
            let is_source = survey::is_source(m, &c, place, e.run);
            if cost == 0 || free == 0 || !is_source || next.is_some_and(|n| cost > n.rank) {
                continue;
            }
            let is_old = e.survey.run != e.run;
            let lacks_room = e.survey.room < u64::from(cost) + u64::from(free);
            let is_dear = e.budget.is_some_and(|b| b < u64::from(cost));
            if (lacks_room || is_dear) && is_old {
                e.survey = Survey::NONE;
                continue;
            }
            if lacks_room {
                return Choice::Nothing;
            }
            if is_dear {
                return Choice::TooDear;
            }
            if !unit::can_be_emptied(m, (&c, rules), place) {
                unit::note(m, place, false, e.run);
                continue;
            }
            e.survey.room -= u64::from(order.frames());
            return Choice::Unit(Unit::set_apart(m, cpu, c.zone, place));
        }
    }

    /// Isolates the next pages of the unit, up to a batch. None, if one of them cannot be moved any more.
    fn take_pages<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        rules: &CompactRules,
        cpu: CpuId,
    ) -> u32 {
        let e = &mut self.evacuation;
        let Some(unit) = e.unit else { return 0 };
        let (start, mut taken, mut scanned) = (e.at, 0, 0);
        while e.at < unit.end() && taken < CLUSTER {
            scanned += 1;
            let s = m.frames.state(e.at);
            if s.kind() == FrameKind::Used {
                if !unit::moves(m, (&self.c, rules), e.at) {
                    put_all_back(m, cpu, &mut self.mover.sources);
                    taken = 0;
                    break;
                }
                m.pages().hold(e.at);
                self.mover.sources.push(m.frames.table, e.at, End::Tail);
                taken += s.order().frames();
            }
            e.at = e.at.plus(s.order().frames());
        }
        self.scanned += u64::from(scanned);
        m.note_isolated((start, e.at), scanned, taken);
        taken
    }

    /// After the moves of a batch: the unit is left if some page stayed.
    fn after_batch<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) {
        let before = m.compact_counters.pgmigrate_success;
        let Moved {
            failed,
            lacks_target,
        } = self.mover.end(m, cpu);
        let moved = m.compact_counters.pgmigrate_success - before;
        if let Some(budget) = &mut self.evacuation.budget {
            *budget = budget.saturating_sub(moved);
        }
        self.evacuation.phase = Phase::Take;
        if failed > 0 {
            self.leave_unit(m, cpu);
        }
        if lacks_target {
            self.evacuation.phase = Phase::Over(Outcome::Complete);
        }
    }

    /// Gives the unit and the targets back, and notes how it ended.
    pub(in super::super) fn leave_unit<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) {
        let e = &mut self.evacuation;
        while let Some((ix, order)) = e.targets.take_any(&m.frames) {
            m.account_free(m.map.pfn(ix), order);
            let (_, mut z) = m.parts(self.c.zone, cpu);
            z.give(ix, order, FreeTo::ByRules);
        }
        e.phase = Phase::Choose;
        let Some(unit) = e.unit.take() else { return };
        let emptied = unit.is_empty(m);
        unit::note(m, (unit.head, unit.order), emptied, e.run);
        let keep = emptied && self.c.direct && self.c.order.is_some();
        let kept = unit.leave(m, cpu, keep);
        e.gained += u32::from(emptied);
        self.captured = self.captured.or(kept);
    }
}
