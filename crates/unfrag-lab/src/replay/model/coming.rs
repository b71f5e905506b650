//! The recorded operations to come, among which another CPU's next allocation is looked for.
//!
//! Invariant: only the nearest operations are held; of those beyond it is known where to look for them.

use crate::error::Result;
use crate::replay::causes::ops::Decoder;
use crate::replay::causes::{Op, Ops};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use unfrag_eras::MigrateType;

/// Operations that are held, at least, as long as there are so many.
const HELD: usize = 1 << 15;
/// Operations of a stretch.
const STRETCH: usize = 1 << 12;

/// CPU, order and migratetype of an allocation.
type Turn = (u16, u8, u8);

fn turn(op: &Op) -> Option<Turn> {
    let (block, gfp) = op.allocated()?;
    Some((op.cpu, block.order, gfp.mobility()? as u8))
}

/// A recorded operation.
pub(super) struct Recorded {
    pub(super) op: Op,
    /// Whether it was taken ahead.
    pub(super) done: bool,
}

/// The recorded operations to come.
pub(super) struct Coming<'o> {
    ops: &'o Ops,
    held: VecDeque<Recorded>,
    /// Number of the first that is held.
    first: usize,
    /// Chunks that were read.
    chunks: usize,
    decoder: Decoder,
    /// CPUs, in turn.
    cpus: BTreeSet<u16>,
    turns: BTreeMap<Turn, Allocations>,
    /// Numbers of those that were taken ahead, and are not held yet.
    done_beyond: BTreeSet<usize>,
}

/// The allocations to come of one CPU, order and migratetype.
#[derive(Default)]
struct Allocations {
    /// Numbers of those that are held, in turn.
    held: VecDeque<usize>,
    /// Numbers of the stretches that have any, the last first.
    stretches: Vec<u32>,
    /// The first that is not held, if it is known, with its number.
    beyond: Option<(usize, Op)>,
}

impl<'o> Coming<'o> {
    pub(super) fn new(ops: &'o Ops) -> Coming<'o> {
        Coming {
            ops,
            held: VecDeque::new(),
            first: 0,
            chunks: 0,
            decoder: Decoder::default(),
            cpus: BTreeSet::new(),
            turns: BTreeMap::new(),
            done_beyond: BTreeSet::new(),
        }
    }

    /// Notes an operation, with its number: all of them, from the last to the first.
    pub(super) fn note(&mut self, number: usize, op: &Op) {
        if let Some(turn) = turn(op) {
            self.cpus.insert(turn.0);
            let stretches = &mut self.turns.entry(turn).or_default().stretches;
            let stretch = (number / STRETCH) as u32;
            if stretches.last() != Some(&stretch) {
                stretches.push(stretch);
            }
        }
    }

    /// The number after that of the last that is held.
    fn end(&self) -> usize {
        self.first + self.held.len()
    }

    /// The next operation.
    ///
    /// # Errors
    /// If operations cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Recorded>> {
        while self.held.len() < HELD && self.hold_more()? {}
        self.first += 1;
        Ok(self.held.pop_front())
    }

    /// Holds the next chunk; gives whether there is one.
    fn hold_more(&mut self) -> Result<bool> {
        if self.ops.chunk(self.chunks, &mut self.decoder)?.is_none() {
            return Ok(false);
        }
        self.chunks += 1;
        let first = self.end();
        for (number, &op) in (first..).zip(&self.decoder.ops) {
            let done = !self.done_beyond.is_empty() && self.done_beyond.remove(&number);
            self.held.push_back(Recorded { op, done });
            if let Some(allocations) = turn(&op).and_then(|turn| self.turns.get_mut(&turn)) {
                allocations.held.push_back(number);
            }
        }
        Ok(true)
    }

    /// The next allocation of another CPU, of the order of `target` and of a type, if it holds `frame`. It is done then.
    ///
    /// # Errors
    /// If operations cannot be read.
    pub(super) fn take(&mut self, target: &Op, mt: MigrateType, frame: u32) -> Result<Option<Op>> {
        let Some((block, _)) = target.allocated() else {
            return Ok(None);
        };
        let holds = |op: &Op| op.allocated().is_some_and(|(b, _)| b.pfn == frame);
        let end = self.end();
        for &cpu in self.cpus.iter().filter(|&&cpu| cpu != target.cpu) {
            let turn = (cpu, block.order, mt as u8);
            let Some(allocations) = self.turns.get_mut(&turn) else {
                continue;
            };
            // Those that came already, or are done, are no longer to come.
            let held = loop {
                let Some(&number) = allocations.held.front() else {
                    break None;
                };
                let at = number.checked_sub(self.first);
                match at.and_then(|at| self.held.get_mut(at)) {
                    Some(recorded) if !recorded.done => break Some(recorded),
                    _ => drop(allocations.held.pop_front()),
                }
            };
            if let Some(next) = held {
                if holds(&next.op) {
                    next.done = true;
                    return Ok(Some(next.op));
                }
                continue;
            }
            let next = allocations.beyond(turn, self.ops, end, &self.done_beyond)?;
            if let Some((number, op)) = next.filter(|(_, op)| holds(op)) {
                self.done_beyond.insert(number);
                return Ok(Some(op));
            }
        }
        Ok(None)
    }
}

impl Allocations {
    /// The first at or after operation `end` that is not done, with its number.
    fn beyond(
        &mut self,
        wanted: Turn,
        ops: &Ops,
        end: usize,
        done: &BTreeSet<usize>,
    ) -> Result<Option<(usize, Op)>> {
        let is_to_come = |number: usize| number >= end && !done.contains(&number);
        if let Some(known) = self.beyond.filter(|(number, _)| is_to_come(*number)) {
            return Ok(Some(known));
        }
        while let Some(&stretch) = self.stretches.last() {
            let begin = stretch as usize * STRETCH;
            let range = begin.max(end)..begin + STRETCH;
            let found = ops.find(range, |i, op| is_to_come(i) && turn(op) == Some(wanted))?;
            if found.is_some() {
                self.beyond = found;
                return Ok(found);
            }
            self.stretches.pop();
        }
        Ok(None)
    }
}
