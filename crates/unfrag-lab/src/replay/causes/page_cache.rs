//! Page cache: what reclaim could have taken although the recorded kernel's did not.
//!
//! A page that was added to the page cache can be reclaimed until it leaves it, whatever the recorded kernel did. Whether
//! it was in use shows by its age: a kernel that takes pages which came later, and leaves this one, has seen that it was
//! touched. A page that nobody passed over says nothing of that kind, and can be taken like those that were.
//!
//! Invariant: a page is found touched only by what was reclaimed while it was in use.

use super::operations::{Action, Op};
use super::ops::{Decoder, Ops};
use crate::error::{Error, Result};
use crate::geometry::recorded::on_host;
use crate::input::Input;
use crate::input::bits::Bits;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use unfrag_eras::Geometry;
use unfrag_linux::event::page::Cache;
use unfrag_linux::event::{At, Coverage, Kind, Page, Tracker, Unreadable};

/// So many pages that came later have to be reclaimed before one counts as passed over: single ones are taken early for
/// other reasons.
const PASSED_BY: usize = 64;

/// What is known of the page cache of a recording.
#[derive(Clone, Debug, Default)]
pub struct PageCache {
    /// By operation: whether it allocates a page that was added to the page cache.
    pub cached: Bits,
    /// By operation: whether the recorded kernel passed its page over.
    pub touched: Bits,
    /// Frames in use at the start that left the page cache later.
    pub at_start: Vec<u32>,
    /// From which operation on the recorded kernel had passed over what was in use at the start, if it did.
    pub passed_start: Option<usize>,
    /// Whether the trace shows what enters the page cache.
    pub is_shown: bool,
}

/// Nothing is known of a frame's page.
const UNKNOWN: u32 = u32::MAX;
/// It is in use since the start.
const AT_START: u32 = 0;

/// A walk along the operations, and along the events of the page cache beside them.
struct Walk<'o> {
    ops: &'o Ops,
    chunk: usize,
    /// The next operation, in the chunk and of all.
    next: (usize, usize),
    decoder: Decoder,
    /// By frame: one more than the number of the operation that allocated its page.
    owner: Vec<u32>,
    /// Pages in a migration, by its number.
    underway: BTreeMap<u32, u32>,
    /// The latest allocations of which reclaim took pages.
    latest: BinaryHeap<Reverse<usize>>,
    geometry: Geometry,
    found: PageCache,
}

impl PageCache {
    /// Reads a recording.
    ///
    /// # Errors
    /// If its events or operations cannot be read.
    pub(super) fn of(input: &Input<'_>, ops: &Ops, frames: usize) -> Result<PageCache> {
        let mut walk = Walk {
            ops,
            chunk: 0,
            next: (0, 0),
            decoder: Decoder::default(),
            owner: vec![AT_START; frames],
            underway: BTreeMap::new(),
            latest: BinaryHeap::new(),
            geometry: input.geometry()?,
            found: PageCache {
                cached: Bits::zeros(ops.len()),
                touched: Bits::zeros(ops.len()),
                is_shown: Coverage::of(input.recording).has(Kind::CacheAdd),
                ..PageCache::default()
            },
        };
        if walk.found.is_shown {
            input.walk(0..=u64::MAX, &[], &mut walk)?;
        }
        walk.up_to(u64::MAX)?;
        walk.end();
        Ok(walk.found)
    }
}

impl Walk<'_> {
    /// Goes on to a time.
    fn up_to(&mut self, time: u64) -> Result<()> {
        loop {
            if self.next.0 == self.decoder.ops.len() {
                if self.ops.chunk(self.chunk, &mut self.decoder)?.is_none() {
                    self.decoder.ops.clear();
                    self.next.0 = 0;
                    return Ok(());
                }
                self.chunk += 1;
                self.next.0 = 0;
            }
            let Some(&op) = self
                .decoder
                .ops
                .get(self.next.0)
                .filter(|op| op.time <= time)
            else {
                return Ok(());
            };
            self.apply(self.next.1, &op);
            self.next = (self.next.0 + 1, self.next.1 + 1);
        }
    }

    fn apply(&mut self, number: usize, op: &Op) {
        if let Some((block, _)) = op.allocated() {
            self.owner[block.indices()].fill(number as u32 + 1);
            return;
        }
        match op.action {
            Action::Moved { pfn, to, .. } => {
                self.owner[to.get() as usize] = self.leave(pfn.get());
            }
            Action::MovedAway { pfn, number, .. } => {
                let owner = self.leave(pfn.get());
                self.underway.insert(number.get(), owner);
            }
            Action::MovedTo { pfn, number } => {
                let owner = self.underway.remove(&number.get());
                self.owner[pfn.get() as usize] = owner.unwrap_or(UNKNOWN);
            }
            Action::FreeReclaimed { pfn, order } => {
                for at in pfn.get()..pfn.get() + (1 << order) {
                    let owner = self.leave(at);
                    if order == 0 && owner != UNKNOWN && owner != AT_START {
                        self.took(owner as usize - 1, number);
                    }
                }
            }
            _ => {
                for at in op.freed().into_iter().flat_map(|block| block.indices()) {
                    let owner = std::mem::replace(&mut self.owner[at], UNKNOWN);
                    self.is_over(owner);
                }
            }
        }
    }

    /// A page leaves a frame. Whose it was at the start is not followed.
    fn leave(&mut self, pfn: u32) -> u32 {
        match std::mem::replace(&mut self.owner[pfn as usize], UNKNOWN) {
            AT_START => UNKNOWN,
            owner => owner,
        }
    }

    /// Reclaim takes the page that an operation allocated.
    fn took(&mut self, owner: usize, now: usize) {
        self.latest.push(Reverse(owner));
        if self.latest.len() > PASSED_BY {
            self.latest.pop();
        }
        if self.latest.len() == PASSED_BY {
            self.found.passed_start.get_or_insert(now);
        }
    }

    /// The page that an operation allocated is given back by its user, or the trace ends.
    fn is_over(&mut self, owner: u32) {
        if owner == UNKNOWN || owner == AT_START {
            return;
        }
        let passed = self
            .latest
            .peek()
            .filter(|_| self.latest.len() == PASSED_BY);
        if passed.is_some_and(|Reverse(latest)| *latest > owner as usize - 1) {
            self.found.touched.set(owner as usize - 1);
        }
    }

    fn end(&mut self) {
        for at in 0..self.owner.len() {
            self.is_over(self.owner[at]);
        }
    }
}

impl Tracker for Walk<'_> {
    type Error = Error;

    fn takes(&self, kind: Kind) -> bool {
        matches!(kind, Kind::CacheAdd | Kind::CacheDelete)
    }

    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<()> {
        let Some(Page::Cache(cache)) = page else {
            return Ok(());
        };
        self.up_to(at.time)?;
        let (Cache::Add { block, .. } | Cache::Delete { block }) = cache;
        let block = on_host(block, self.geometry)?;
        for pfn in block.frames() {
            match self.owner.get(pfn as usize).copied() {
                None | Some(UNKNOWN) => {}
                Some(AT_START) => self.found.at_start.push(pfn as u32),
                Some(owner) => self.found.cached.set(owner as usize - 1),
            }
        }
        Ok(())
    }

    /// What cannot be read says nothing of any page.
    fn unreadable(&mut self, _: &At, _: Kind, _: Unreadable) -> Result<()> {
        Ok(())
    }
}
