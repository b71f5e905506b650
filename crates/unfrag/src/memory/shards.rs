//! [`Memory`]: memory in shards, each under its own lock.

use super::ahead::Ahead;
use super::config::{
    GIGABYTE, MAX_NODES, MAX_SHARDS, Marks, MemoryConfig, MemoryLayout, StartError,
};
use super::span::{Range, Span};
use super::totals::Totals;
use crate::frame::{NodeId, Order, Pfn};
use crate::local::slot::Slots;
use crate::maps::{Engine, Gigabyte, GiveError};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use lock_api::{Mutex, RawMutex};

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
    /// A memory that has not been started. What is wrong with its configuration is said when it is; until then nothing can be
    /// memory of it.
    pub const fn new(config: MemoryConfig) -> Memory<'m, R> {
        let mut spans = [Span::NONE; MAX_SHARDS];
        let (mut count, mut area, mut nodes) = (0, 0, 0u32);
        let (mut base, mut end) = (u64::MAX, 0);
        // Whatever is asked of a memory relies on what is checked, and nobody need start it.
        let is_sound = config.check().is_ok();
        while is_sound && area < config.areas.len() {
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
                frames: if count == 0 { 0 } else { end - base },
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

    /// Where the shards are.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans[..self.count.min(MAX_SHARDS)]
    }

    /// The shard that a frame is in.
    #[inline]
    pub(crate) fn shard_of(&self, frame: u64) -> Option<usize> {
        self.spans().iter().position(|span| span.has(frame))
    }

    /// The engine of a shard.
    #[inline]
    pub(crate) fn engine(&self, shard: usize) -> &Mutex<R, Engine<'m>> {
        &self.shards[shard].0
    }

    /// The totals of a node.
    #[inline]
    pub(crate) fn totals(&self, node: usize) -> Option<&Totals> {
        self.nodes.get(node)
    }

    /// The totals of a shard's node.
    #[inline]
    pub(crate) fn node(&self, shard: usize) -> &Totals {
        &self.nodes[usize::from(self.spans[shard].node) % MAX_NODES]
    }

    /// The nodes that have shards.
    #[inline]
    pub(crate) fn own_nodes(&self) -> impl Iterator<Item = &Totals> {
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
        let home = all.nth(local.checked_rem(count).unwrap_or(0));
        // A node with low addresses alone is the nearest all the same.
        home.or(self.shards_of(node).next()).unwrap_or(0)
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
}
