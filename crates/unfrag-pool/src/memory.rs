//! The free frames of a pool: for each NUMA node a [`Shared`].
//!
//! Invariant: a frame's number says its node; nodes begin at multiples of a gigabyte.
#![allow(unsafe_code)]

use crate::counts::Counts;
use crate::error::PoolError;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use unfrag::maps::LARGEST_ORDER;
use unfrag::shared::{MAX_SHARDS, Shared, SharedConfig, SharedLayout};
use unfrag::{MigrateType, Order, Pfn};

/// The lock of a shard.
pub(crate) type Lock = parking_lot::RawMutex;

/// Frames of a gigabyte.
pub(crate) const GIGABYTE: u32 = LARGEST_ORDER.frames();

/// A node's free frames.
pub(crate) struct Node {
    pub shared: Shared<'static, Lock>,
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
        let config = SharedConfig {
            shards: cpus.min(gigabytes).clamp(1, MAX_SHARDS),
            locals,
            min: marks.min,
            low: marks.low,
            ..SharedConfig::new(Pfn(first.into()), limit)
        };
        let words = vec![0; SharedLayout::of(&config).words].into_boxed_slice();
        let words = Box::into_raw(words);
        // SAFETY: the words live as long as the node, and nobody else refers to them.
        let shared = Shared::new(config, unsafe { &mut *words });
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

/// The free frames of a pool.
pub(crate) struct Memory {
    /// Tells pools apart, for threads that use several.
    pub id: u64,
    pub nodes: Box<[Node]>,
    /// The node of each gigabyte.
    of_gigabyte: Box<[u8]>,
    /// The pool is no more.
    pub closed: AtomicBool,
    /// Blocks that were refused when they were given back.
    pub refused: AtomicU64,
    threads: Mutex<Threads>,
    /// Frames that are in use for no thread's count.
    in_use_otherwise: AtomicI64,
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
            id: NEXT.fetch_add(1, Relaxed),
            nodes: all.into(),
            of_gigabyte: of_gigabyte.into(),
            closed: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            threads: Mutex::default(),
            in_use_otherwise: AtomicI64::new(0),
        })
    }

    /// Numbers of frames, those without memory among them.
    pub fn numbers(&self) -> u32 {
        self.of_gigabyte.len() as u32 * GIGABYTE
    }

    /// The node of a frame.
    #[inline]
    pub fn node_of(&self, frame: u32) -> usize {
        let node = self.of_gigabyte.get((frame / GIGABYTE) as usize);
        node.map_or(0, |&n| n.into())
    }

    /// Takes a block without a `Local`.
    pub fn take_one(&self, order: Order, mt: MigrateType, home: usize) -> Option<u32> {
        let nodes = self.nodes.iter().cycle().skip(home).take(self.nodes.len());
        let mut got = nodes.filter_map(|n| n.shared.take_one(order, mt).ok());
        let got = got.next()?;
        let frames = i64::from(order.frames());
        self.in_use_otherwise.fetch_add(frames, Relaxed);
        Some(got.0 as u32)
    }

    /// Gives a block back without a `Local`.
    pub fn give_one(&self, frame: u32, order: Order, mt: MigrateType) {
        let node = &self.nodes[self.node_of(frame)];
        // SAFETY: whoever calls it has the block, and gives it up: a handle, or what was taken by `take_one`.
        #[allow(unsafe_code)]
        let given = unsafe { node.shared.give_one(Pfn(frame.into()), order, mt) };
        if given.is_err() {
            self.count_refused();
        }
        let frames = i64::from(order.frames());
        self.in_use_otherwise.fetch_sub(frames, Relaxed);
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

    /// Frames that threads took, and that they gave back.
    pub fn allocs_and_frees(&self) -> (u64, u64) {
        let threads = self.threads.lock();
        let all = threads.are.iter().map(|c| &**c).chain([&threads.were]);
        all.fold((0, 0), |(a, f), c| {
            (a + c.pgalloc.load(Relaxed), f + c.pgfree.load(Relaxed))
        })
    }

    /// Frames that are in use, if threads took and gave so many.
    pub fn in_use(&self, pgalloc: u64, pgfree: u64) -> u64 {
        let of_threads = pgalloc.wrapping_sub(pgfree) as i64;
        (of_threads + self.in_use_otherwise.load(Relaxed)).max(0) as u64
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

    /// Free frames of all nodes, as of the last batches of the threads.
    pub fn free_frames(&self) -> u64 {
        self.nodes.iter().map(|n| n.shared.free_frames()).sum()
    }
}
