//! The free frames of a pool: for each NUMA node a [`Memory`].
//!
//! Invariant: a frame's number says its node; nodes begin at multiples of a gigabyte.
#![allow(unsafe_code)]

use crate::barrier;
use crate::counts::Counts;
use crate::error::PoolError;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use unfrag::maps::LARGEST_ORDER;
use unfrag::{AllocError, MigrateType, Order, Pfn};
use unfrag::{MAX_SHARDS, MemoryConfig, MemoryLayout};

/// The lock of a shard.
pub(crate) type Lock = parking_lot::RawMutex;

/// Frames of a gigabyte.
pub(crate) const GIGABYTE: u32 = LARGEST_ORDER.frames();

/// A node's free frames.
pub(crate) struct Node {
    pub shared: unfrag::Memory<'static, Lock>,
    /// The first number of its frames.
    pub first: u32,
    /// Frames that there may be.
    pub limit: u32,
    /// Its number in the system.
    pub id: usize,
    pub marks: Marks,
    words: *mut [u64],
}

// SAFETY: `words` is only freed, by whoever drops the node.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl Drop for Node {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw`; `shared`, which refers to it, has no destructor that reads it.
        drop(unsafe { Box::from_raw(self.words) });
    }
}

/// Watermarks of a node, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    pub min: u64,
    pub low: u64,
    pub high: u64,
}

impl Node {
    fn new(
        first: u32,
        limit: u32,
        id: usize,
        locals: usize,
        marks: Marks,
    ) -> Result<Node, PoolError> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let gigabytes = limit.div_ceil(GIGABYTE) as usize;
        let config = MemoryConfig {
            shards: cpus.min(gigabytes).clamp(1, MAX_SHARDS),
            locals,
            min: marks.min,
            low: marks.low,
            barrier: Some(barrier::of_process()),
            ..MemoryConfig::new(Pfn(first.into()), limit)
        };
        let words = vec![0; MemoryLayout::of(&config).words].into_boxed_slice();
        let words = Box::into_raw(words);
        // SAFETY: the words live as long as the node, and nobody else refers to them.
        let shared = unfrag::Memory::new(config, unsafe { &mut *words });
        let shared = shared.ok_or(PoolError::TooLarge {
            frames: limit.into(),
        })?;
        Ok(Node {
            shared,
            first,
            limit,
            id,
            marks,
            words,
        })
    }
}

impl Node {
    /// Blocks of 2 MiB that there may be.
    pub fn blocks(&self) -> u32 {
        self.limit.div_ceil(Order::HUGE.frames())
    }

    /// Takes a block without a `Local`. Nobody counts it.
    pub fn take(&self, order: Order, mt: MigrateType) -> Result<u32, AllocError> {
        let got = self.shared.take_one(order, mt);
        got.map(|p| p.0 as u32)
    }
}

/// Of the errors of two nodes, the one that says what can help.
pub(crate) fn nearest(a: AllocError, b: AllocError) -> AllocError {
    match (a, b) {
        (AllocError::Short, other) | (other, AllocError::Short) => other,
        (AllocError::Fragmented, _) | (_, AllocError::Fragmented) => AllocError::Fragmented,
        (other, _) => other,
    }
}

/// The free frames of a pool.
pub(crate) struct Memory {
    /// Tells pools apart, for threads that use several.
    pub id: u64,
    pub nodes: Box<[Node]>,
    /// The node of each gigabyte.
    of_gigabyte: Box<[u8]>,
    /// The pool is no more: a hint, for threads that keep something of it.
    pub closed: AtomicBool,
    /// Blocks that were refused when they were given back: a count to look at, which orders nothing.
    pub refused: AtomicU64,
    threads: Mutex<Threads>,
}

/// Counts of the threads that are, and sums of those that were.
#[derive(Default)]
struct Threads {
    are: Vec<Arc<Counts>>,
    were: Counts,
}

impl Memory {
    /// Memory without frames as yet. `nodes`: the number and the limit of each.
    pub fn new(
        nodes: &[(usize, u32)],
        locals: usize,
        marks: impl Fn(u32) -> Marks,
    ) -> Result<Memory, PoolError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let (mut all, mut of_gigabyte) = (Vec::new(), Vec::new());
        for (i, &(id, limit)) in nodes.iter().enumerate() {
            let first = of_gigabyte.len() as u32 * GIGABYTE;
            all.push(Node::new(first, limit, id, locals, marks(limit))?);
            of_gigabyte.extend((0..limit.div_ceil(GIGABYTE)).map(|_| i as u8));
        }
        Ok(Memory {
            // An addition gives each a number of its own, in whatever order.
            id: NEXT.fetch_add(1, Relaxed),
            nodes: all.into(),
            of_gigabyte: of_gigabyte.into(),
            closed: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            threads: Mutex::default(),
        })
    }

    /// Numbers of frames, those without memory among them.
    pub fn numbers(&self) -> u32 {
        self.of_gigabyte.len() as u32 * GIGABYTE
    }

    /// Numbers up to the last frame that may have memory.
    pub fn addresses(&self) -> u64 {
        let last = self.nodes.last();
        last.map_or(0, |n| u64::from(n.first) + u64::from(n.limit))
    }

    /// The node of a frame.
    #[inline]
    pub fn node_of(&self, frame: u32) -> usize {
        let node = self.of_gigabyte.get((frame / GIGABYTE) as usize);
        node.map_or(0, |&n| n.into())
    }

    /// Takes a block without a `Local`, from the node with a place in the list, then from the others. Nobody counts it.
    ///
    /// # Errors
    /// The error that is true of the node that is the nearest to having one: a fragmented one can be compacted.
    pub fn take(&self, order: Order, mt: MigrateType, home: usize) -> Result<u32, AllocError> {
        let mut why = AllocError::Short;
        for i in 0..self.nodes.len() {
            let node = &self.nodes[(home + i) % self.nodes.len()];
            match node.take(order, mt) {
                Ok(frame) => return Ok(frame),
                Err(of_node) => why = nearest(why, of_node),
            }
        }
        Err(why)
    }

    /// Gives a block back without a `Local`. Nobody counts it.
    ///
    /// # Safety
    /// The caller has the block, and nobody uses it any more.
    pub unsafe fn give(&self, frame: u32, order: Order, mt: MigrateType) {
        let node = &self.nodes[self.node_of(frame)];
        // SAFETY: as the caller says.
        let given = unsafe { node.shared.give_one(Pfn(frame.into()), order, mt) };
        if given.is_err() {
            self.count_refused();
        }
    }

    /// The largest order of which there can ever be a block.
    pub fn largest(&self) -> Order {
        let most = |n: &Node| u64::from(n.limit).saturating_sub(n.marks.min).max(1);
        let most = self.nodes.iter().map(most).max().unwrap_or(1);
        Order((most.ilog2() as u8).min(LARGEST_ORDER.0))
    }

    /// Whether the arenas of a node have room for so many frames above its min watermark: if not, no free makes it.
    pub fn could_hold(&self, frames: u64) -> bool {
        let room = |n: &Node| n.shared.counts().present.saturating_sub(n.marks.min);
        self.nodes.iter().any(|n| room(n) >= frames)
    }

    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// Counts for a thread that comes.
    pub fn counts_of_thread(&self) -> Arc<Counts> {
        let counts = Arc::new(Counts::default());
        self.threads.lock().are.push(counts.clone());
        counts
    }

    /// A thread has ended.
    pub fn end_of_thread(&self, counts: &Arc<Counts>) {
        let mut threads = self.threads.lock();
        threads.are.retain(|c| !Arc::ptr_eq(c, counts));
        threads.were.add_all(counts);
    }

    /// A thread that keeps no counts any more, since it is about to end, took so many frames and gave so many.
    pub fn count_at_end_of_thread(&self, took: u32, gave: u32) {
        let were = &mut self.threads.lock().were;
        *were.pgalloc.get_mut() += u64::from(took);
        *were.pgfree.get_mut() += u64::from(gave);
    }

    /// Frames that threads took, and that they gave back.
    pub fn allocs_and_frees(&self) -> (u64, u64) {
        let threads = self.threads.lock();
        let all = threads.are.iter().map(|c| &**c).chain([&threads.were]);
        all.fold((0, 0), |(a, f), c| {
            (a + c.pgalloc.load(Relaxed), f + c.pgfree.load(Relaxed))
        })
    }

    /// Frames of all arenas.
    pub fn present(&self) -> u64 {
        self.nodes.iter().map(|n| n.shared.counts().present).sum()
    }

    /// Blocks of 2 MiB that are free as a whole.
    pub fn whole_blocks(&self) -> u32 {
        self.nodes.iter().map(|n| n.shared.whole_blocks()).sum()
    }

    /// Free frames at which kswapd stops.
    pub fn high(&self) -> u64 {
        self.nodes.iter().map(|n| n.marks.high).sum()
    }

    /// Gives back to the maps what threads keep.
    pub fn drain(&self) {
        for node in &self.nodes {
            node.shared.drain_locals();
        }
    }

    /// Free frames of all nodes, what threads keep among them.
    pub fn free_frames(&self) -> u64 {
        self.nodes.iter().map(|n| n.shared.free_frames()).sum()
    }
}
