//! The free frames of a pool: one memory, with an area for each NUMA node.
//!
//! Invariant: a frame's number says its node; nodes begin at multiples of a gigabyte.
#![allow(unsafe_code)]

use crate::barrier;
use crate::counts::Counts;
use crate::error::PoolError;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use unfrag::maps::{Gigabyte, GiveError, LARGEST_ORDER};
use unfrag::{AllocError, MigrateType, NodeId, Order, Pfn, Request};
use unfrag::{Area, MAX_NODES, MAX_SHARDS, Marks, MemoryConfig, MemoryLayout};

/// The lock of a shard.
pub(crate) type Lock = parking_lot::RawMutex;

/// Frames of a gigabyte.
pub(crate) const GIGABYTE: u32 = LARGEST_ORDER.frames();

/// A node of the system.
pub(crate) struct Node {
    /// The first number of its frames.
    pub first: u32,
    /// Frames that there may be.
    pub limit: u32,
    /// Its number in the system.
    pub id: usize,
    pub marks: Marks,
}

/// The number of a node in the memory, by its place in the list of nodes. Where there are more than the memory knows, some
/// share their watermarks.
pub(crate) fn node_id(place: usize) -> NodeId {
    NodeId((place % MAX_NODES) as u8)
}

/// What a memory lies in. It is the last to go.
struct Room {
    words: *mut [u64],
    directory: *mut [Gigabyte<'static>],
}

// SAFETY: it is only freed, by whoever drops it.
unsafe impl Send for Room {}
// SAFETY: as above.
unsafe impl Sync for Room {}

impl Room {
    fn new(layout: &MemoryLayout) -> Room {
        let words = vec![0; layout.words].into_boxed_slice();
        let directory = (0..layout.gigabytes).map(|_| Gigabyte::NONE).collect();
        Room {
            words: Box::into_raw(words),
            directory: Box::into_raw(directory),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw`; the memory that refers to them has gone, or has no destructor that reads them.
        drop(unsafe { (Box::from_raw(self.words), Box::from_raw(self.directory)) });
    }
}

/// The free frames of a pool.
pub(crate) struct Memory {
    /// Tells pools apart, for threads that use several.
    pub id: u64,
    pub shared: unfrag::Memory<'static, Lock>,
    /// Words for the tables of memory that comes.
    tables: Mutex<&'static mut [u64]>,
    pub nodes: Box<[Node]>,
    /// The node of each gigabyte.
    of_gigabyte: Box<[u8]>,
    /// The pool is no more: a hint, for threads that keep something of it.
    pub closed: AtomicBool,
    /// Blocks that were refused when they were given back: a count to look at, which orders nothing.
    pub refused: AtomicU64,
    threads: Mutex<Threads>,
    _room: Room,
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
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let most = (MAX_SHARDS / nodes.len().max(1)).max(1);
        let (mut all, mut of_gigabyte) = (Vec::new(), Vec::new());
        let mut areas = Vec::new();
        for (i, &(id, limit)) in nodes.iter().enumerate() {
            let first = of_gigabyte.len() as u32 * GIGABYTE;
            let gigabytes = limit.div_ceil(GIGABYTE) as usize;
            areas.push(Area {
                start: Pfn(first.into()),
                frames: limit.into(),
                node: node_id(i),
                shards: cpus.min(gigabytes).clamp(1, most),
                is_low: false,
            });
            let marks = marks(limit);
            all.push(Node {
                first,
                limit,
                id,
                marks,
            });
            of_gigabyte.extend((0..gigabytes).map(|_| i as u8));
        }
        let frames = nodes.iter().map(|n| u64::from(n.1)).sum();
        let too_large = |_| PoolError::TooLarge { frames };
        let (first, others) = areas.split_first().ok_or(PoolError::Empty)?;
        let config = others
            .iter()
            .fold(MemoryConfig::of(*first), |c, a| c.and(*a));
        let config = MemoryConfig {
            locals,
            keeps: MemoryConfig::new(Pfn(0), frames).keeps,
            barrier: Some(barrier::of_process()),
            ..config
        };
        let room = Room::new(&MemoryLayout::of(&config));
        // SAFETY: both live as long as the memory, and nobody else refers to them.
        let (mut tables, directory) = unsafe { (&mut *room.words, &mut *room.directory) };
        let shared = unfrag::Memory::new(config);
        shared.start(directory, &mut tables).map_err(too_large)?;
        for (i, node) in all.iter().enumerate() {
            shared.set_marks(node_id(i), node.marks);
        }
        Ok(Memory {
            // An addition gives each a number of its own, in whatever order.
            id: NEXT.fetch_add(1, Relaxed),
            shared,
            tables: Mutex::new(tables),
            nodes: all.into(),
            of_gigabyte: of_gigabyte.into(),
            closed: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            threads: Mutex::default(),
            _room: room,
        })
    }

    /// Adds frames that are usable from now on.
    pub fn add(&self, first: u32, frames: u32) -> Result<(), GiveError> {
        let mut tables = self.tables.lock();
        self.shared
            .add(Pfn(first.into()), frames.into(), &mut tables)
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
    /// As [`unfrag::Memory::alloc`].
    pub fn take(&self, order: Order, mt: MigrateType, home: usize) -> Result<u32, AllocError> {
        let request = Request::new(order, mt).near(node_id(home));
        self.shared.alloc(&request).map(|p| p.0 as u32)
    }

    /// Gives a block back without a `Local`. Nobody counts it.
    ///
    /// # Safety
    /// The caller has the block, and nobody uses it any more.
    pub unsafe fn give(&self, frame: u32, order: Order, mt: MigrateType) {
        // SAFETY: as the caller says.
        let given = unsafe { self.shared.free(Pfn(frame.into()), order, mt) };
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
        let room = |(i, n): (usize, &Node)| {
            let present = self.shared.present_of(node_id(i));
            present.saturating_sub(n.marks.min) >= frames
        };
        self.nodes.iter().enumerate().any(room)
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
        self.shared.present()
    }

    /// Blocks of 2 MiB that are free as a whole.
    pub fn whole_blocks(&self) -> u32 {
        self.shared.whole_blocks()
    }

    /// Gives back to the maps what threads keep.
    pub fn drain(&self) {
        self.shared.drain_locals();
    }

    /// Free frames of all nodes, what threads keep among them.
    pub fn free_frames(&self) -> u64 {
        self.shared.free_frames()
    }
}
