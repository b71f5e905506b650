//! What is set apart to be emptied, over all shards: the cheapest run of blocks, or the blocks of a range.
//!
//! A gigabyte is locked at a time. So a large range is set apart, and taken, piece by piece; what has been set apart already
//! is given back if the rest cannot be.
//!
//! Invariant: frames that are set apart are reserved: they count as free for nobody.

use crate::frame::{MigrateType, NodeId, Order, Pfn};
use crate::maps::{BLOCK_ORDER, GiveError, LARGEST_ORDER, Seek};
use crate::memory::config::{GIGABYTE, MAX_NODES};
use crate::memory::shards::Memory;
use crate::memory::totals::Floor;
use lock_api::RawMutex;

/// Searches that find that somebody else was faster, until none is made any more.
const RACES: u32 = 8;

/// Why nothing was set apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// There is no such run, or none that can be emptied.
    Nothing,
    /// It would leave fewer free frames of this node than its min watermark.
    Short(NodeId),
    /// Some of it is no memory, or stays where it is, or is set apart by somebody else.
    Wrong(GiveError),
}

/// Some of the nodes, a bit each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nodes(u32);

const _: () = assert!(MAX_NODES <= 32, "a bit each");

impl Nodes {
    pub const ALL: Nodes = Nodes(!0);

    /// This one alone; none, if there is no such node.
    pub fn only(node: NodeId) -> Nodes {
        Nodes(1u32.checked_shl(node.0.into()).unwrap_or(0))
    }

    /// All of these but one.
    pub fn without(self, node: NodeId) -> Nodes {
        Nodes(self.0 & !Nodes::only(node).0)
    }

    fn has(self, node: u8) -> bool {
        self.0 & Nodes::only(NodeId(node)).0 != 0
    }
}

/// Frames, in whole blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub start: Pfn,
    pub end: Pfn,
}

impl Span {
    /// `2^order` frames from `start` on, or those of the blocks that hold some of `frames` frames.
    pub fn around(start: Pfn, frames: u64) -> Span {
        let block = u64::from(BLOCK_ORDER.frames());
        let end = start.0.saturating_add(frames);
        Span {
            start: Pfn(start.0 & !(block - 1)),
            end: Pfn(end.checked_next_multiple_of(block).unwrap_or(end)),
        }
    }
}

/// Frames of one gigabyte: its shard, the first frame there, and the numbers that the shard has for them.
struct Part {
    shard: usize,
    base: Pfn,
    start: u32,
    end: u32,
}

impl Part {
    fn frames(&self) -> u32 {
        self.end - self.start
    }

    /// The first block, and the number of blocks.
    fn blocks(&self) -> (u32, u32) {
        (
            self.start >> BLOCK_ORDER.0,
            self.frames().div_ceil(BLOCK_ORDER.frames()),
        )
    }

    fn number(&self, pfn: Pfn) -> Option<u32> {
        u32::try_from(pfn.0.checked_sub(self.base.0)?).ok()
    }

    fn pfn(&self, number: u32) -> Pfn {
        Pfn(self.base.0 + u64::from(number))
    }
}

impl<'m, R: RawMutex> Memory<'m, R> {
    /// Whether it is time to make whole free blocks of order `huge` ahead of demand: fewer than `blocks` are free. For each
    /// [`Goal::Ahead`](crate::moves::Goal::Ahead) that gained nothing in a row it says no twice as often in between, up to 63
    /// times: what stands in the way will hardly have gone so soon.
    pub fn wants_blocks(&self, blocks: u32, huge: Order) -> bool {
        if self.whole_runs(huge) >= blocks {
            return false;
        }
        // So that blocks that wait for a round do not wait for so many tries.
        self.begin_round();
        self.ahead().is_due()
    }

    /// Aligned runs of `2^order` frames, of order 9 to 18, that are free as a whole.
    pub fn whole_runs(&self, order: Order) -> u32 {
        self.whole_runs_of(order, Nodes::ALL)
    }

    /// The same of some nodes.
    pub(crate) fn whole_runs_of(&self, order: Order, nodes: Nodes) -> u32 {
        let of = |shard| self.with(shard, |e| e.whole_runs(order)).unwrap_or(0);
        self.shards_on(nodes).map(of).sum()
    }

    /// The shards of some nodes.
    fn shards_on(&self, nodes: Nodes) -> impl Iterator<Item = usize> + use<'_, 'm, R> {
        let spans = self.spans().iter().enumerate();
        spans.filter_map(move |(shard, span)| nodes.has(span.node).then_some(shard))
    }

    /// Begins a round of evacuation: blocks that have waited for it may be tried again.
    pub(crate) fn begin_round(&self) {
        for shard in 0..self.spans().len() {
            self.with(shard, |e| e.begin_round());
        }
    }

    /// Frames by gigabytes, as far as they are in areas.
    fn by_gigabyte(&self, span: Span) -> impl Iterator<Item = Part> + use<'_, 'm, R> {
        let mut at = span.start;
        core::iter::from_fn(move || {
            let shard = self.shard_of(at.0).filter(|_| at < span.end)?;
            let base = self.spans()[shard].start;
            let frames = (GIGABYTE - at.0 % GIGABYTE).min(span.end.0 - at.0);
            let start = (at.0 - base) as u32;
            at = Pfn(at.0.saturating_add(frames));
            Some(Part {
                shard,
                base: Pfn(base),
                start,
                end: start + frames as u32,
            })
        })
    }

    /// Sets the run of `2^order` frames apart that is the cheapest to empty. Returns its first frame.
    ///
    /// # Errors
    /// [`Stop`], if there is none, or if it would leave too few free frames.
    pub(crate) fn set_cheapest_apart(
        &self,
        order: Order,
        seek: Seek,
        nodes: Nodes,
    ) -> Result<Pfn, Stop> {
        for _ in 0..RACES {
            let (shard, g) = self.cheapest(order, seek, nodes).ok_or(Stop::Nothing)?;
            let set = self.with(shard, |e| {
                let found = match g {
                    Some(g) => e.cheapest_run(g, order, seek),
                    None => e.cheapest(seek.most),
                };
                let (_, first) = found?;
                let blocks = 1 << (order.0 - BLOCK_ORDER.0);
                let free = e.free_of(first, blocks).ok()?;
                if !self.node(shard).reserve_all(free.into(), Floor::Min) {
                    return Some(Err(Stop::Short(NodeId(self.spans()[shard].node))));
                }
                let set = e.set_apart(first, blocks).map_err(Stop::Wrong);
                Some(set.map(|_| first))
            });
            // Nothing any more: somebody else has been faster.
            if let Some(set) = set.flatten() {
                let start = self.spans()[shard].start;
                return set.map(|first| Pfn(start + (u64::from(first) << BLOCK_ORDER.0)));
            }
        }
        Err(Stop::Nothing)
    }

    /// Whether there is a run that could be set apart.
    pub(crate) fn has_run(&self, order: Order, seek: Seek, nodes: Nodes) -> bool {
        self.cheapest(order, seek, nodes).is_some()
    }

    /// The shard of the cheapest run, and its gigabyte; no gigabyte, for a single block in use, which bins find.
    fn cheapest(&self, order: Order, seek: Seek, nodes: Nodes) -> Option<(usize, Option<u32>)> {
        let mut best: Option<(u32, (usize, Option<u32>))> = None;
        for shard in self.shards_on(nodes) {
            let by_bins = order == BLOCK_ORDER && seek.in_use_only;
            let gigabytes = match by_bins {
                true => 0..1,
                false => 0..(self.spans()[shard].frames / GIGABYTE) as u32,
            };
            for g in gigabytes {
                let found = self.with(shard, |e| match by_bins {
                    true => e.cheapest(seek.most),
                    false => e.cheapest_run(g, order, seek),
                });
                let Some((used, _)) = found.flatten() else {
                    continue;
                };
                if best.is_none_or(|(least, _)| used < least) {
                    best = Some((used, (shard, (!by_bins).then_some(g))));
                }
            }
        }
        best.map(|(_, at)| at)
    }

    /// Whether a range is memory, and holds nothing in whole blocks that cannot be moved.
    ///
    /// # Errors
    /// [`GiveError`], for the first frame that is none or in the way.
    pub(crate) fn can_be_emptied(&self, start: Pfn, frames: u64) -> Result<(), GiveError> {
        self.parts(start, frames, |_, _, _| Ok(()))?;
        let end = Pfn(start.0.saturating_add(frames));
        for part in self.by_gigabyte(Span { start, end }) {
            let can = self.with(part.shard, |e| e.can_be_emptied(part.start, part.frames()));
            can.unwrap_or(Err(GiveError::NoMemory(part.pfn(part.start))))?;
        }
        Ok(())
    }

    /// Frames in use of a range.
    pub(crate) fn in_use(&self, start: Pfn, end: Pfn) -> u64 {
        let of = |part: Part| {
            let used = self.with(part.shard, |e| e.in_use(part.start, part.frames()));
            u64::from(used.unwrap_or(0))
        };
        self.by_gigabyte(Span { start, end }).map(of).sum()
    }

    /// Sets blocks apart.
    ///
    /// # Errors
    /// [`Stop`], if some are set apart already, or if it would leave too few free frames. Nothing has changed then.
    pub(crate) fn set_apart(&self, span: Span) -> Result<(), Stop> {
        for part in self.by_gigabyte(span) {
            let (first, blocks) = part.blocks();
            let set = self.with(part.shard, |e| {
                let free = e.free_of(first, blocks).map_err(Stop::Wrong)?;
                if !self.node(part.shard).reserve_all(free.into(), Floor::Min) {
                    return Err(Stop::Short(NodeId(self.spans()[part.shard].node)));
                }
                e.set_apart(first, blocks).map_err(Stop::Wrong)
            });
            match set {
                Some(Ok(_)) => {}
                Some(Err(why)) => {
                    let end = part.pfn(first << BLOCK_ORDER.0);
                    self.end_apart(Span { end, ..span }, None);
                    return Err(why);
                }
                None => return Err(Stop::Nothing),
            }
        }
        Ok(())
    }

    /// The first frame in use of what is set apart.
    pub(crate) fn next_in_use(&self, start: Pfn, end: Pfn) -> Option<Pfn> {
        self.by_gigabyte(Span { start, end }).find_map(|part| {
            let found = self.with(part.shard, |e| e.next_in_use(part.start, part.end));
            Some(part.pfn(found.flatten()?))
        })
    }

    /// Ends the setting apart of blocks; `stays`: a frame that nobody moved. Returns how many of them are whole free blocks.
    pub(crate) fn end_apart(&self, span: Span, stays: Option<Pfn>) -> u32 {
        let of = |part: Part| {
            let (first, blocks) = part.blocks();
            let stays = stays.and_then(|pfn| part.number(pfn));
            self.counted(part.shard, |e| e.end_apart(first, blocks, stays))
        };
        self.by_gigabyte(span).map(of).sum()
    }

    /// Takes frames that are free and set apart, with all of their blocks.
    ///
    /// # Errors
    /// [`GiveError`], for the first that is not. Those before it are taken.
    pub(crate) fn take_apart(
        &self,
        start: Pfn,
        end: Pfn,
        mt: MigrateType,
    ) -> Result<(), (Pfn, GiveError)> {
        for part in self.by_gigabyte(Span { start, end }) {
            let at = part.pfn(part.start);
            let taken = self.counted(part.shard, |e| e.take_apart(part.start, part.frames(), mt));
            taken.map_err(|why| (at, why))?;
        }
        Ok(())
    }

    /// Takes a block beside others that can be moved, from the node of `near`, its shard before the others. No whole free run of
    /// order `huge` is broken for it.
    pub(crate) fn take_near(&self, order: Order, huge: Order, near: Pfn) -> Option<Pfn> {
        let first = self.shard_of(near.0).filter(|_| order <= LARGEST_ORDER)?;
        let node = self.node(first);
        if node.reserve(1, order, Floor::Min) == 0 {
            return None;
        }
        let own = self.spans()[first];
        // What only low addresses serve is left to who needs it.
        let may = |&s: &usize| s != first && (own.is_low || !self.spans()[s].is_low);
        let others = self.shards_of(NodeId(own.node)).filter(may);
        let mut all = core::iter::once(first).chain(others);
        let got = all.find_map(|s| self.with(s, |e| e.take_near(order, huge)).flatten());
        if got.is_none() {
            node.add(1, order);
        }
        got
    }

    /// Gives back `frames` frames from `start` on, that requests of a type had: of blocks that were taken, or of a
    /// [`Claimed`](crate::moves::Claimed) range.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, or if some are beyond those that there may be: nothing has changed then; or for the
    /// first aligned part that is not in use as a whole: all others are free then.
    ///
    /// # Safety
    /// As for [`free`](Self::free), for all of them.
    #[allow(unsafe_code, reason = "a promise of the caller, and no operation")]
    pub unsafe fn free_range(
        &self,
        start: Pfn,
        frames: u64,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        self.give_range_back(start, frames, mt)
    }
}
