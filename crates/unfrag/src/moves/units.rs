//! [`Units`]: what an evacuator empties next, and what becomes of it.
//!
//! Invariant: at most one unit is set apart at a time, and frames were taken at most once; both go when this is dropped.

use super::goal::{Goal, Limits, Outcome};
use crate::frame::{MigrateType, NodeId, Order, Pfn};
use crate::maps::{BLOCK_ORDER, GiveError, LARGEST_ORDER, Seek};
use crate::memory::apart::{Nodes, Span, Stop};
use crate::memory::{Memory, Request};
use lock_api::RawMutex;

/// Runs that are tried for [`Goal::Run`], and times that the frames of a [`Goal::Range`] are asked for.
const TRIES: u32 = 8;
const PASSES: u32 = 3;

/// Frames that are being emptied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub start: Pfn,
    pub end: Pfn,
    /// Nothing in it is known that cannot be moved, or nobody was asked.
    pub is_checked: bool,
}

impl Unit {
    fn new(start: Pfn, frames: u64) -> Unit {
        Unit {
            start,
            end: Pfn(start.0.saturating_add(frames)),
            is_checked: false,
        }
    }

    fn frames(&self) -> u64 {
        self.end.0 - self.start.0
    }

    /// The blocks that are set apart for it.
    fn span(&self) -> Span {
        Span::around(self.start, self.frames())
    }
}

pub(super) struct Units<'s, 'm, R: RawMutex> {
    pub memory: &'s Memory<'m, R>,
    pub goal: Goal,
    pub limits: Limits,
    unit: Option<Unit>,
    /// What was taken for [`Goal::Run`] or [`Goal::Range`].
    claimed: Option<(Pfn, u64)>,
    outcome: Outcome,
    /// The last frame that stayed, at all, and in this pass.
    stays: Option<Pfn>,
    is_left: bool,
    /// Nodes that are looked at: those with room.
    nodes: Nodes,
    /// Some had none.
    is_short: bool,
    has_begun: bool,
    has_recalled: bool,
    tries: u32,
    pub gained: u32,
    pub copied: u64,
    pub left: u32,
}

impl<'s, 'm, R: RawMutex> Units<'s, 'm, R> {
    pub fn new(memory: &'s Memory<'m, R>, goal: Goal, limits: Limits) -> Units<'s, 'm, R> {
        Units {
            memory,
            goal,
            limits,
            unit: None,
            claimed: None,
            outcome: Outcome::Open,
            stays: None,
            is_left: false,
            nodes: limits.node.map_or(Nodes::ALL, Nodes::only),
            is_short: false,
            has_begun: false,
            has_recalled: false,
            tries: 0,
            gained: 0,
            copied: 0,
            left: 0,
        }
    }

    pub fn unit(&self) -> Option<Unit> {
        self.unit
    }

    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    pub fn count_copies(&mut self, order: Order) {
        self.copied = self.copied.saturating_add(order.frames().into());
    }

    /// What was taken is the caller's.
    pub fn take_claimed(&mut self) -> Option<(Pfn, u64)> {
        self.claimed.take()
    }

    /// The first frame in use of the unit, from `at` on.
    pub fn next_in_use(&self, at: Pfn) -> Option<Pfn> {
        let end = self.unit?.end;
        self.memory.next_in_use(at, end)
    }

    /// Whether a frame of the unit is in use. What a CPU keeps looks as if it were, and is given back before.
    pub fn is_in_use(&mut self, at: Pfn) -> bool {
        let is_used = |u: &Units<'s, 'm, R>| u.next_in_use(at) == Some(at);
        if is_used(self) && !core::mem::replace(&mut self.has_recalled, true) {
            self.memory.drain_locals();
        }
        is_used(self)
    }

    /// Sets the next unit apart, or ends.
    pub fn begin(&mut self) -> Option<Unit> {
        if !core::mem::replace(&mut self.has_begun, true) {
            self.memory.begin_round();
        }
        let set = match self.goal {
            Goal::Blocks(wanted) if self.gained >= wanted => Err(Outcome::Reached),
            Goal::Ahead { blocks } if self.has(blocks) => Err(Outcome::Reached),
            Goal::Blocks(_) | Goal::Ahead { .. } => self.begin_block(),
            Goal::Run(order) => self.begin_run(order),
            Goal::Range { start, frames } => self.begin_range(start, frames),
        };
        match set {
            Ok(unit) => {
                // It is this one's before anything else is called: that may panic.
                self.unit = Some(unit);
                if self.takes() {
                    self.begin_to_take(unit);
                }
            }
            Err(outcome) => self.end(outcome),
        }
        self.unit
    }

    /// Whether the frames are taken in the end.
    fn takes(&self) -> bool {
        matches!(self.goal, Goal::Run(_) | Goal::Range { .. })
    }

    /// What CPUs keep of a unit is given back to blocks that nobody takes it from again. What is left costs its copies.
    fn begin_to_take(&mut self, unit: Unit) {
        let is_used = self.memory.next_in_use(unit.start, unit.end).is_some();
        if is_used && !core::mem::replace(&mut self.has_recalled, true) {
            self.memory.drain_locals();
        }
        if self.memory.in_use(unit.start, unit.end) > self.budget() {
            self.leave(None);
            self.end(Outcome::Copies);
        }
    }

    fn has(&self, blocks: u32) -> bool {
        let huge = self.limits.huge;
        let nodes = self.limits.node.map_or(Nodes::ALL, Nodes::only);
        is_run(huge) && self.memory.whole_runs_of(huge, nodes) >= blocks
    }

    fn end(&mut self, outcome: Outcome) {
        self.outcome = outcome;
        if matches!(self.goal, Goal::Ahead { .. }) {
            let is_reached = outcome == Outcome::Reached;
            self.memory.ahead().tried(is_reached || self.gained > 0);
        }
    }

    /// Copies that may still be made.
    fn budget(&self) -> u64 {
        self.limits.copies.saturating_sub(self.copied)
    }

    fn begin_block(&mut self) -> Result<Unit, Outcome> {
        let order = self.limits.huge;
        check_order(order)?;
        let runs = order.frames() / BLOCK_ORDER.frames();
        let most = self
            .limits
            .most
            .min(BLOCK_ORDER.frames())
            .saturating_mul(runs);
        let most = |budget: u64| u32::try_from(budget).unwrap_or(u32::MAX).min(most);
        let seek = |most| Seek {
            most,
            in_use_only: true,
            not_waiting: true,
        };
        let all = seek(most(u64::MAX));
        match self.set_cheapest_apart(order, seek(most(self.budget()))) {
            Ok(start) => Ok(Unit::new(start, order.frames().into())),
            Err(Stop::Nothing) if self.memory.has_run(order, all, self.nodes) => {
                Err(Outcome::Copies)
            }
            Err(why) => Err(self.why(why)),
        }
    }

    /// Sets the cheapest run apart, of a node that has room.
    fn set_cheapest_apart(&mut self, order: Order, seek: Seek) -> Result<Pfn, Stop> {
        loop {
            match self.memory.set_cheapest_apart(order, seek, self.nodes) {
                Err(Stop::Short(node)) => self.leave_out(node),
                set => return set,
            }
        }
    }

    /// A node has no room.
    fn leave_out(&mut self, node: NodeId) {
        self.is_short = true;
        self.nodes = self.nodes.without(node);
    }

    fn begin_run(&mut self, order: Order) -> Result<Unit, Outcome> {
        check_order(order)?;
        let seek = |most, not_waiting| Seek {
            most,
            in_use_only: false,
            not_waiting,
        };
        let most = u32::try_from(self.budget()).unwrap_or(u32::MAX);
        let is_first = self.tries == 0;
        let mut found = Err(Stop::Nothing);
        if self.tries < TRIES {
            found = self.set_cheapest_apart(order, seek(most, true));
        }
        if is_first && found == Err(Stop::Nothing) {
            // One with a frame that stayed a short while ago is better than none.
            found = self.set_cheapest_apart(order, seek(most, false));
        }
        self.tries += 1;
        match found {
            Ok(start) => Ok(Unit::new(start, order.frames().into())),
            Err(why) => {
                let all = seek(u32::MAX, false);
                let is_dear = is_first && self.memory.has_run(order, all, self.nodes);
                let copies = is_dear && why == Stop::Nothing;
                Err(if copies {
                    Outcome::Copies
                } else {
                    self.why(why)
                })
            }
        }
    }

    fn begin_range(&mut self, start: Pfn, frames: u64) -> Result<Unit, Outcome> {
        let can = |u: &Units<'s, 'm, R>| u.memory.can_be_emptied(start, frames);
        if let Err(GiveError::InUse(_)) = can(self) {
            // What a CPU keeps may be all that is in the way.
            self.memory.drain_locals();
        }
        can(self).map_err(|why| match why {
            GiveError::InUse(at) => Outcome::Stays(at),
            why => Outcome::Wrong(why),
        })?;
        let unit = Unit::new(start, frames);
        self.memory
            .set_apart(unit.span())
            .map_err(|why| self.why(why))?;
        Ok(unit)
    }

    /// Why it ends that nothing more was set apart.
    fn why(&self, stop: Stop) -> Outcome {
        match (stop, self.stays) {
            (Stop::Nothing, _) if self.is_short => Outcome::NoRoom,
            (Stop::Nothing, Some(at)) => Outcome::Stays(at),
            (Stop::Nothing, None) => Outcome::Nothing,
            (Stop::Short(_), _) => Outcome::NoRoom,
            (Stop::Wrong(why), _) => Outcome::Wrong(why),
        }
    }

    /// Nothing in the unit is known that cannot be moved.
    pub fn checked(&mut self) {
        if let Some(unit) = &mut self.unit {
            unit.is_checked = true;
        }
    }

    /// A frame of the unit cannot be moved, and nothing of it was.
    pub fn refused(&mut self, at: Pfn) {
        self.stays = Some(at);
        self.leave(Some(at));
        if matches!(self.goal, Goal::Range { .. }) {
            self.end(Outcome::Stays(at));
        }
    }

    /// A frame of the unit was not moved. A range goes on, and it is asked for once more.
    pub fn stayed(&mut self, at: Pfn) {
        self.stays = Some(at);
        match self.goal {
            Goal::Range { .. } => self.is_left = true,
            _ => self.leave(Some(at)),
        }
    }

    /// A frame of the unit was not moved, since there was no place for a block of an order. Where not even a single frame has
    /// one, nothing of the node can be moved.
    pub fn no_room(&mut self, at: Pfn, order: Order) {
        if self.takes() {
            self.leave(None);
            self.end(Outcome::NoRoom);
        } else if order == Order::ZERO {
            self.leave(None);
            self.memory
                .node_of(at)
                .into_iter()
                .for_each(|n| self.leave_out(n));
        } else {
            self.stayed(at);
        }
    }

    /// Gives the unit up; `stays`: a frame of it that nobody moved.
    fn leave(&mut self, stays: Option<Pfn>) {
        if let Some(unit) = self.unit.take() {
            self.memory.end_apart(unit.span(), stays);
            self.left = self.left.saturating_add(stays.is_some().into());
        }
    }

    /// Each frame of the unit has been asked for. Returns the unit, if it has to be gone through once more.
    pub fn emptied(&mut self) -> Option<Unit> {
        let unit = self.unit?;
        let rest = self.memory.next_in_use(unit.start, unit.end);
        match self.goal {
            Goal::Blocks(_) | Goal::Ahead { .. } => match rest {
                Some(_) => self.leave(rest),
                None => {
                    self.unit = None;
                    let whole = self.memory.end_apart(unit.span(), None);
                    // Some of it may have been removed meanwhile.
                    let is_all = u64::from(whole) == unit.frames() >> BLOCK_ORDER.0;
                    self.gained += u32::from(is_all);
                }
            },
            Goal::Run(_) | Goal::Range { .. } => match rest {
                Some(at) => return self.once_more(unit, at),
                None => self.take(unit),
            },
        }
        None
    }

    /// Something is left: it is asked for again, so many times.
    fn once_more(&mut self, unit: Unit, at: Pfn) -> Option<Unit> {
        let is_range = matches!(self.goal, Goal::Range { .. });
        self.tries += 1;
        self.stays = Some(at);
        if is_range && core::mem::take(&mut self.is_left) && self.tries < PASSES {
            self.memory.drain_locals();
            return Some(unit);
        }
        self.leave(Some(at));
        if is_range {
            self.end(Outcome::Stays(at));
        }
        None
    }

    /// Takes the frames of the unit, all of which are free.
    fn take(&mut self, unit: Unit) {
        self.unit = None;
        let taken = self.memory.take_apart(unit.start, unit.end, self.limits.mt);
        match taken {
            Ok(()) => {
                self.claimed = Some((unit.start, unit.frames()));
                self.end(Outcome::Reached);
            }
            // They are free, and nobody else can have them.
            Err((at, why)) => {
                self.give_back((unit.start, at.0 - unit.start.0));
                self.memory.end_apart(unit.span(), None);
                self.end(Outcome::Wrong(why));
            }
        }
    }

    fn give_back(&self, (start, frames): (Pfn, u64)) {
        let back = self.memory.give_range_back(start, frames, self.limits.mt);
        if frames > 0 && back.is_err() {
            self.memory.count_refused();
        }
    }

    /// A place for a block of an order that moves out of the unit. To take frames, whole free blocks may be broken.
    pub fn place(&self, unit: Unit, order: Order) -> Option<Pfn> {
        if !self.takes() {
            return self.memory.take_near(order, self.limits.huge, unit.start);
        }
        let near = self.memory.take_near(order, BLOCK_ORDER, unit.start);
        near.or_else(|| {
            self.memory
                .alloc(&Request::new(order, MigrateType::Movable))
                .ok()
        })
    }
}

/// Whether runs of an order can be emptied.
fn is_run(order: Order) -> bool {
    (BLOCK_ORDER..=LARGEST_ORDER).contains(&order)
}

fn check_order(order: Order) -> Result<(), Outcome> {
    let wrong = Outcome::Wrong(GiveError::NotABlock(Pfn(0)));
    if is_run(order) { Ok(()) } else { Err(wrong) }
}

impl<R: RawMutex> Drop for Units<'_, '_, R> {
    fn drop(&mut self) {
        if let Some(unit) = self.unit.take() {
            self.memory.end_apart(unit.span(), None);
        }
        if let Some(taken) = self.claimed.take() {
            self.give_back(taken);
        }
    }
}
