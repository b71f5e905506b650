//! [`Memory`]: memory in shards, each under its own lock.

use crate::error::AllocError;
use crate::frame::{MigrateType, NodeId, Order, Pfn};
use crate::local::slot::Slots;
use crate::maps::{Engine, EngineLayout, Gigabyte, GiveError, LARGEST_ORDER};
use crate::memory::ahead::Ahead;
use crate::memory::config::{
    GIGABYTE, MAX_NODES, MAX_SHARDS, Marks, MemoryConfig, MemoryLayout, StartError,
};
use crate::memory::request::{From, Request};
use crate::memory::totals::{Floor, Totals};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use lock_api::{Mutex, RawMutex};

/// Where a shard is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub start: u64,
    pub frames: u64,
    pub node: u8,
    pub is_low: bool,
}

impl Span {
    const NONE: Span = Span {
        start: u64::MAX,
        frames: 0,
        node: 0,
        is_low: false,
    };

    #[inline]
    fn has(&self, frame: u64) -> bool {
        frame.wrapping_sub(self.start) < self.frames
    }
}

/// Frames side by side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range {
    start: u64,
    frames: u64,
}

impl Range {
    /// Whether a block of this order could begin at a frame: it is aligned, and within these frames, which begin at a
    /// multiple of the largest block.
    #[inline]
    pub fn has_block(&self, pfn: Pfn, order: Order) -> bool {
        // The bits that a multiple of the size has not become the highest: no number of blocks is as large.
        let blocks = pfn.0.wrapping_sub(self.start).rotate_right(order.0.into());
        order <= LARGEST_ORDER && blocks < self.frames >> order.0
    }
}

/// The engine of a shard, alone on its cache lines.
#[repr(align(128))]
struct Shard<'m, R>(Mutex<R, Engine<'m>>);

/// Memory that many CPUs allocate from. Each has a [`Local`](crate::Local).
///
/// It is made without memory, which may be in a `static`; [`start`](Self::start) gives it room for its directory and for what
/// CPUs keep, and [`add`](Self::add) its memory, with words for the tables of it.
///
/// ```
/// use unfrag::maps::Gigabyte;
/// use unfrag::{Memory, MemoryConfig, MemoryLayout, MigrateType, Order, Pfn};
///
/// const CONFIG: MemoryConfig = MemoryConfig::new(Pfn(0), 1 << 18).with_locals(2);
/// const ROOM: MemoryLayout = MemoryLayout::of(&CONFIG);
/// static MEMORY: Memory<spin::Mutex<()>> = Memory::new(CONFIG);
///
/// let mut words = vec![0; ROOM.words].leak();
/// let directory = Vec::leak(vec![Gigabyte::NONE]);
/// MEMORY.start(directory, &mut words)?;
/// // The memory map has a hole.
/// MEMORY.add(Pfn(0x100), 0x9f00, &mut words)?;
/// MEMORY.add(Pfn(0x10000), 0x30000, &mut words)?;
///
/// std::thread::scope(|threads| {
///     for _ in 0..2 {
///         threads.spawn(|| {
///             let mut local = MEMORY.local().expect("two of them");
///             let frame = local.alloc(Order(0), MigrateType::Movable).expect("memory");
///             // SAFETY: the frame is this thread's, which uses it no more.
///             let freed = unsafe { local.free(frame, Order(0), MigrateType::Movable) };
///             freed.expect("in use");
///         });
///     }
/// });
/// assert_eq!(MEMORY.free_frames(), 0x39f00);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Memory<'m, R> {
    config: MemoryConfig,
    spans: [Span; MAX_SHARDS],
    shards: [Shard<'m, R>; MAX_SHARDS],
    count: usize,
    /// From the first frame that there may be to the last one.
    all: Range,
    nodes: [Totals; MAX_NODES],
    /// The nodes that have shards, a bit each.
    own: u32,
    slots: Mutex<R, Slots<'m>>,
    is_started: AtomicBool,
    refused: AtomicU64,
    ahead: Ahead,
}

impl<'m, R: RawMutex> Memory<'m, R> {
    /// A memory that has not been started. What is wrong with its configuration is said when it is.
    pub const fn new(config: MemoryConfig) -> Memory<'m, R> {
        let mut spans = [Span::NONE; MAX_SHARDS];
        let (mut count, mut area, mut nodes) = (0, 0, 0u32);
        let (mut base, mut end) = (u64::MAX, 0);
        while area < config.areas.len() {
            let own = config.areas.get(area);
            let gigabytes = own.frames.div_ceil(GIGABYTE);
            // Whole gigabytes to each; the last one may have fewer.
            let each = gigabytes.div_ceil(if own.shards == 0 {
                1
            } else {
                own.shards as u64
            });
            let mut from = 0;
            while from < gigabytes && count < MAX_SHARDS {
                let left = gigabytes - from;
                let start = own.start.0.wrapping_add(from.wrapping_mul(GIGABYTE));
                let frames = (if each < left { each } else { left }).wrapping_mul(GIGABYTE);
                spans[count] = Span {
                    start,
                    frames,
                    node: own.node.0,
                    is_low: own.is_low,
                };
                nodes |= 1u32.unbounded_shl(own.node.0 as u32);
                count += 1;
                from += each;
                if start < base {
                    base = start;
                }
                if start.wrapping_add(frames) > end {
                    end = start.wrapping_add(frames);
                }
            }
            area += 1;
        }
        Memory {
            spans,
            shards: [const { Shard(Mutex::from_raw(R::INIT, Engine::unchecked(&mut []))) };
                MAX_SHARDS],
            count,
            all: Range {
                start: base,
                frames: end.wrapping_sub(base),
            },
            nodes: [const { Totals::new(Marks::NONE) }; MAX_NODES],
            own: nodes,
            slots: Mutex::from_raw(R::INIT, Slots::NONE),
            is_started: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            ahead: Ahead::new(),
            config,
        }
    }

    /// Gives it room: a directory of [`MemoryLayout::gigabytes`] entries, and words for what CPUs keep, off the front of
    /// `supply`: as many as [`MemoryLayout::locals`] says.
    ///
    /// # Errors
    /// [`StartError`], if the configuration is of no memory that can be, if there is too little room, or if it has been started
    /// before.
    pub fn start(
        &self,
        directory: &'m mut [Gigabyte<'m>],
        supply: &mut &'m mut [u64],
    ) -> Result<(), StartError> {
        self.config.check()?;
        let room = MemoryLayout::of(&self.config);
        if directory.len() < room.gigabytes {
            return Err(StartError::Directory(room.gigabytes));
        }
        if supply.len() < room.locals {
            return Err(StartError::Words(room.locals));
        }
        if !directory.iter().all(Gigabyte::is_none) {
            return Err(StartError::InUse);
        }
        // Who finds it started finds all that is done before its end, through the locks.
        if self.is_started.swap(true, Relaxed) {
            return Err(StartError::Started);
        }
        for node in &self.nodes {
            node.set_marks(self.config.marks);
        }
        let (own, rest) = core::mem::take(supply).split_at_mut(room.locals);
        *supply = rest;
        let (locals, keeps) = (self.config.locals, self.config.keeps);
        *self.slots.lock() = Slots::new(locals, keeps, self.config.barrier, own);
        let mut rest = directory;
        for (span, shard) in self.spans().iter().zip(&self.shards) {
            let (own, others) = rest.split_at_mut((span.frames / GIGABYTE) as usize);
            rest = others;
            let engine = Engine::new(Pfn(span.start), own);
            *shard.0.lock() = engine.ok_or(StartError::InUse)?;
        }
        Ok(())
    }

    /// Adds memory, all of it free: the `frames` frames from `start` on, which were not added before. Tables are made in words
    /// off the front of `supply`, for each gigabyte that has none: [`EngineLayout::of`] says how many are enough.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, if some of them are in no area, or were added before, if too many blocks would be
    /// partly memory, or if there are too few words. Nothing has changed then, unless somebody else has added some of them
    /// meanwhile.
    pub fn add(
        &self,
        start: Pfn,
        frames: u64,
        supply: &mut &'m mut [u64],
    ) -> Result<(), GiveError> {
        let mut missing = 0;
        self.parts(start, frames, |shard, start, frames| {
            missing += self.shards[shard].0.lock().can_add(start, frames)?;
            Ok(())
        })?;
        if !EngineLayout::fits(supply, missing) {
            return Err(GiveError::NoTables(start));
        }
        self.parts(start, frames, |shard, start, frames| {
            self.shards[shard].0.lock().add(start, frames, supply)?;
            self.node(shard).add_frames(frames);
            Ok(())
        })
    }

    /// Removes memory that the caller has, all of it: the `frames` frames from `start` on. They cannot be given back any more.
    /// When nothing of a gigabyte is left, [`take_tables`](Self::take_tables) gives back the words of its tables.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, if some of them are no memory, or not in use, or if too many blocks would be partly
    /// memory. What is of the first shard whose part is refused, and of those behind it, has not changed then.
    pub fn remove(&self, start: Pfn, frames: u64) -> Result<(), GiveError> {
        self.parts(start, frames, |shard, start, frames| {
            self.shards[shard].0.lock().can_give(start, frames)
        })?;
        self.parts(start, frames, |shard, start, frames| {
            self.shards[shard].0.lock().remove(start, frames)
        })
    }

    /// The words of the tables of the gigabyte of a frame, of which nothing is memory any more. `None`, if some is, or if it
    /// has no tables.
    pub fn take_tables(&self, frame: Pfn) -> Option<&'m mut [u64]> {
        let shard = self.shard_of(frame.0)?;
        self.shards[shard].0.lock().take_tables(frame)
    }

    /// Calls `f` with each shard that has some of a range, and with the first frame and the number of frames of that part.
    ///
    /// # Errors
    /// [`GiveError`], if some of the range is in no shard, and as `f` says: then no more parts are named.
    pub(crate) fn parts(
        &self,
        start: Pfn,
        frames: u64,
        mut f: impl FnMut(usize, Pfn, u64) -> Result<(), GiveError>,
    ) -> Result<(), GiveError> {
        if frames == 0 {
            return Err(GiveError::NoFrames(start));
        }
        let (mut at, mut left) = (start.0, frames);
        let mut parts = 0;
        // What is out of range is refused before anything changes.
        while left > 0 {
            let shard = self.shard_of(at).ok_or(GiveError::NoMemory(Pfn(at)))?;
            let span = &self.spans[shard];
            let part = left.min(span.start + span.frames - at);
            left -= part;
            at = match at.checked_add(part) {
                Some(at) => at,
                None if left == 0 => at,
                None => return Err(GiveError::NoMemory(Pfn(u64::MAX))),
            };
            parts += 1;
        }
        let (mut at, mut left) = (start.0, frames);
        for _ in 0..parts {
            let Some(shard) = self.shard_of(at) else {
                break;
            };
            let span = &self.spans[shard];
            let part = left.min(span.start + span.frames - at);
            f(shard, Pfn(at), part)?;
            left -= part;
            at = at.wrapping_add(part);
        }
        Ok(())
    }

    /// Where the shards are.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans[..self.count.min(MAX_SHARDS)]
    }

    /// The shard that a frame is in.
    #[inline]
    pub(crate) fn shard_of(&self, frame: u64) -> Option<usize> {
        self.spans().iter().position(|span| span.has(frame))
    }

    /// The totals of a shard's node.
    #[inline]
    pub(crate) fn node(&self, shard: usize) -> &Totals {
        &self.nodes[usize::from(self.spans[shard].node) % MAX_NODES]
    }

    /// The nodes that have shards.
    #[inline]
    fn own_nodes(&self) -> impl Iterator<Item = &Totals> {
        let mut left = self.own;
        core::iter::from_fn(move || {
            let node = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            self.nodes.get(node as usize)
        })
    }

    /// The shards of a node.
    pub(crate) fn shards_of(&self, node: NodeId) -> impl Iterator<Item = usize> {
        let is_own = move |(i, span): (usize, &Span)| (span.node == node.0).then_some(i);
        self.spans().iter().enumerate().filter_map(is_own)
    }

    /// What each `Local` keeps.
    pub(crate) fn slots(&self) -> Slots<'m> {
        *self.slots.lock()
    }

    /// When making whole blocks ahead of demand should be tried.
    pub(crate) fn ahead(&self) -> &Ahead {
        &self.ahead
    }

    /// What it was made for.
    pub fn config(&self) -> &MemoryConfig {
        &self.config
    }

    /// Calls `f` with an engine, locked.
    pub(crate) fn with<T>(&self, shard: usize, f: impl FnOnce(&mut Engine<'m>) -> T) -> Option<T> {
        let own = self.shards.get(shard)?;
        Some(f(&mut own.0.lock()))
    }

    /// Calls `f` with each engine in turn, locked.
    pub(crate) fn each<T>(&self, f: impl Fn(&mut Engine<'m>) -> T) -> impl Iterator<Item = T> {
        (0..self.spans().len()).filter_map(move |shard| self.with(shard, &f))
    }

    /// Sets the watermarks of a node.
    pub fn set_marks(&self, node: NodeId, marks: Marks) {
        if let Some(own) = self.nodes.get(usize::from(node.0)) {
            own.set_marks(marks);
        }
    }

    /// The watermarks of a node.
    pub fn marks(&self, node: NodeId) -> Marks {
        let own = self.nodes.get(usize::from(node.0));
        own.map_or(Marks::NONE, Totals::marks)
    }

    /// Free frames in the maps of a node.
    pub fn free_frames_of(&self, node: NodeId) -> u64 {
        let own = self.nodes.get(usize::from(node.0));
        own.map_or(0, Totals::free)
    }

    /// The node of a frame, if it is in an area.
    pub fn node_of(&self, frame: Pfn) -> Option<NodeId> {
        let shard = self.shard_of(frame.0)?;
        Some(NodeId(self.spans[shard].node))
    }

    /// Free frames, those that `Local`s keep among them: exact, if nobody takes or gives any.
    pub fn free_frames(&self) -> u64 {
        self.own_nodes().map(Totals::free).sum::<u64>() + self.slots().held()
    }

    /// Whether memory fell below the low watermark of a node, and nobody has said yet that he reclaims: it may be asked often.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.own_nodes().any(Totals::is_short)
    }

    /// Whether memory fell below the low watermark of a node since the last call: then somebody should reclaim.
    pub fn take_short(&self) -> bool {
        // Each is asked.
        self.own_nodes()
            .fold(false, |is, node| node.take_short() | is)
    }

    /// Whether a node has as many free frames as its high watermark says.
    pub fn is_balanced(&self, node: NodeId) -> bool {
        self.free_frames_of(node) >= self.marks(node).high
    }

    /// Blocks that were refused when a `Local` gave its frames back at its end: they had been freed twice.
    pub fn refused(&self) -> u64 {
        // A count that stands for itself.
        self.refused.load(Relaxed)
    }

    pub(crate) fn count_refused(&self) {
        // A count that stands for itself.
        self.refused.fetch_add(1, Relaxed);
    }

    /// Whether a block of this order could begin at a frame: it is aligned, and within what there may be.
    #[inline]
    pub(crate) fn is_block(&self, pfn: Pfn, order: Order) -> bool {
        self.all.has_block(pfn, order)
    }

    /// Frames side by side of a node, and of no other one: as many as there are.
    pub(crate) fn range_of(&self, node: NodeId) -> Range {
        let spans = self.spans();
        if spans.iter().all(|s| s.node == node.0) {
            return self.all;
        }
        let runs = spans.chunk_by(|a, b| a.node == b.node);
        let own = runs.filter(|run| run[0].node == node.0);
        let ranges = own.map(|run| {
            let (first, last) = (run[0], run[run.len() - 1]);
            Range {
                start: first.start,
                frames: last.start + last.frames - first.start,
            }
        });
        ranges.max_by_key(|r| r.frames).unwrap_or_default()
    }

    /// Why no block that could be given back begins at a frame.
    #[cold]
    pub(crate) fn no_block(&self, pfn: Pfn) -> GiveError {
        match self.shard_of(pfn.0) {
            Some(_) => GiveError::NotABlock(pfn),
            None => GiveError::NoMemory(pfn),
        }
    }

    /// The shard that the `Local` with a number, of a node, takes from first.
    pub(crate) fn home_of(&self, local: usize, node: NodeId) -> usize {
        let own = |s: &usize| self.spans[*s].node == node.0 && !self.spans[*s].is_low;
        let count = (0..self.spans().len()).filter(own).count();
        let mut all = (0..self.spans().len()).filter(own);
        all.nth(local.checked_rem(count).unwrap_or(0)).unwrap_or(0)
    }

    /// Takes one block without a `Local`, down to the min watermark.
    ///
    /// # Errors
    /// As [`Local::alloc`](crate::local::Local::alloc).
    pub fn take_one(&self, order: Order, mt: MigrateType) -> Result<Pfn, AllocError> {
        self.alloc(&Request::new(order, mt))
    }

    /// Takes a block for a request that names where.
    ///
    /// # Errors
    /// As [`Local::alloc`](crate::local::Local::alloc), and [`AllocError::Nowhere`], if nothing that it names can ever be
    /// memory.
    pub fn alloc(&self, request: &Request) -> Result<Pfn, AllocError> {
        let from = From {
            home: self.home_of(0, request.node.unwrap_or_default()),
            floor: if request.is_atomic {
                Floor::Zero
            } else {
                Floor::Min
            },
            only: request.node.filter(|_| request.is_only).map(|n| n.0),
            below: request.below.map_or(u64::MAX, |p| p.0),
        };
        let may = |s: &Span| from.may(s.start, s.node);
        if !self.spans().iter().any(may) {
            return Err(AllocError::Nowhere);
        }
        let got = self.take_frame(request.order, request.mt, from);
        got.or_else(|why| self.take_drained(request.order, request.mt, from, why))
    }

    /// Gives one block back without a `Local`.
    ///
    /// # Errors
    /// [`GiveError`], if no such block begins there, or if it is not in use as a whole: it stays as it is.
    ///
    /// # Safety
    /// The block is the caller's, and nobody uses it any more: it was taken from this memory, as it is or as a part of a
    /// larger one, and not given back since. What is free already is refused, but the maps do not know whose a frame is: one
    /// that somebody else has would be handed out once more.
    #[allow(unsafe_code, reason = "a promise of the caller, and no operation")]
    pub unsafe fn give_one(
        &self,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        self.give_back(pfn, order, mt)
    }

    /// The same for a block that is known to be the caller's.
    pub(crate) fn give_back(
        &self,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        if !self.is_block(pfn, order) {
            return Err(self.no_block(pfn));
        }
        self.give(&mut [pfn.0], order, mt)
    }

    /// Takes one block.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(crate) fn take_frame(
        &self,
        order: Order,
        mt: MigrateType,
        from: From,
    ) -> Result<Pfn, AllocError> {
        let mut one = [0];
        self.take(&mut one, order, mt, from)?;
        Ok(Pfn(one[0]))
    }

    /// Takes up to `out.len()` blocks of one node, as many as leave the floor. Returns how many, at least one.
    ///
    /// # Errors
    /// As [`Local::alloc`](crate::local::Local::alloc).
    pub(crate) fn take(
        &self,
        out: &mut [u64],
        order: Order,
        mt: MigrateType,
        from: From,
    ) -> Result<usize, AllocError> {
        if order > LARGEST_ORDER {
            return Err(AllocError::OrderTooLarge);
        }
        let home = usize::from(self.spans[from.home % MAX_SHARDS].node);
        let mut why = AllocError::Short;
        for i in 0..MAX_NODES {
            let node = (home + i) % MAX_NODES;
            let Some(totals) = self.nodes.get(node).filter(|_| from.may_node(node)) else {
                continue;
            };
            // Another node's frames are not kept here.
            let most = if i == 0 { out.len() } else { 1 };
            let granted = totals.reserve(most.min(out.len()), order, from.floor);
            if granted == 0 {
                continue;
            }
            let got = self.take_reserved(&mut out[..granted], order, mt, (from, node));
            totals.add(granted - got, order);
            if got > 0 {
                return Ok(got);
            }
            why = AllocError::Fragmented;
        }
        Err(why)
    }

    /// Takes blocks from the first shard of a node that has some, beginning at home. Types mix only if each shard would have
    /// to mix them. What cannot be moved is taken from the same shard by all. Low addresses come last.
    fn take_reserved(
        &self,
        out: &mut [u64],
        order: Order,
        mt: MigrateType,
        (from, node): (From, usize),
    ) -> usize {
        let count = self.spans().len();
        for (is_low, mixes) in [(false, false), (false, true), (true, false), (true, true)] {
            // Who names an address has only what is below it.
            let is_low = is_low != (from.below != u64::MAX);
            for i in 0..count {
                // Down from the last shard, for what cannot be moved; up from home, for what can.
                let i = if mt == MigrateType::Movable {
                    (from.home + i) % count
                } else {
                    count - 1 - i
                };
                let span = &self.spans[i];
                if usize::from(span.node) != node
                    || span.is_low != is_low
                    || !from.may(span.start, span.node)
                {
                    continue;
                }
                let mut engine = self.shards[i].0.lock();
                let got = if span.start + span.frames <= from.below {
                    engine.take(out, order, mt, mixes)
                } else {
                    let one = engine.take_below(Pfn(from.below), order, mt);
                    let slot = out.first_mut().zip(one);
                    slot.map_or(0, |(slot, one)| {
                        *slot = one.0;
                        1
                    })
                };
                if got > 0 {
                    return got;
                }
            }
        }
        0
    }

    /// Gives blocks back, each to its shard. A block that is refused stays out.
    pub(crate) fn give(
        &self,
        blocks: &mut [u64],
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        if blocks.is_empty() {
            return Ok(());
        }
        if self.count == 1 {
            return self.counted(0, |e| e.give(blocks, order, mt));
        }
        let mut result = Ok(());
        let mut rest = blocks;
        while let Some(&first) = rest.first() {
            let Some(shard) = self.shard_of(first) else {
                result = result.and(Err(GiveError::NoMemory(Pfn(first))));
                rest = &mut core::mem::take(&mut rest)[1..];
                continue;
            };
            let n = gather(&self.spans[shard], rest);
            let (of_shard, others) = core::mem::take(&mut rest).split_at_mut(n);
            rest = others;
            result = result.and(self.counted(shard, |e| e.give(of_shard, order, mt)));
        }
        result
    }

    /// Calls `f` with an engine, locked, and counts the frames that it gives back.
    #[inline]
    pub(crate) fn counted<T>(&self, shard: usize, f: impl FnOnce(&mut Engine<'m>) -> T) -> T {
        let (done, freed) = {
            let mut engine = self.shards[shard % MAX_SHARDS].0.lock();
            let before = engine.free_frames();
            let done = f(&mut engine);
            (done, engine.free_frames().wrapping_sub(before))
        };
        self.node(shard % MAX_SHARDS).add_frames(freed);
        done
    }

    /// Takes the `frames` frames from `start` on, if all of them are free, for requests of a type: for a device, a firmware, or
    /// a caller that asks for an address.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, if some of them are no memory, or in use. Nothing has changed then.
    pub fn take_at(&self, start: Pfn, frames: u64, mt: MigrateType) -> Result<(), GiveError> {
        let mut taken = 0;
        let result = self.parts(start, frames, |shard, part, n| {
            // What is reserved first is not taken by others meanwhile.
            let reserved = usize::try_from(n).unwrap_or(usize::MAX);
            let node = self.node(shard);
            let granted = node.reserve(reserved, Order::ZERO, Floor::Zero);
            let got = if granted == reserved {
                self.with(shard, |e| e.take_range(part, n, mt))
                    .unwrap_or(Err(GiveError::NoMemory(part)))
            } else {
                Err(GiveError::InUse(part))
            };
            match got {
                Ok(()) => taken += n,
                Err(_) => node.add(granted, Order::ZERO),
            }
            got
        });
        if result.is_err() && taken > 0 {
            let back = self.give_range_back(start, taken, mt);
            debug_assert!(back.is_ok(), "what has just been taken");
        }
        result
    }

    /// Gives a range back that is known to be the caller's.
    pub(crate) fn give_range_back(
        &self,
        start: Pfn,
        frames: u64,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let mut result = Ok(());
        self.parts(start, frames, |shard, start, n| {
            let given = self.counted(shard, |e| e.give_range(start, n, mt));
            result = result.and(given);
            Ok(())
        })?;
        result
    }
}

/// Brings the blocks of a shard to the front; returns how many there are.
#[inline]
fn gather(span: &Span, blocks: &mut [u64]) -> usize {
    let in_front = blocks.iter().take_while(|&&n| span.has(n)).count();
    let mut count = in_front;
    for i in in_front..blocks.len() {
        if span.has(blocks[i]) {
            blocks.swap(i, count);
            count += 1;
        }
    }
    count
}
