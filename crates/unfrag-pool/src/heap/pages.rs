//! The pages of the heap: an engine for each gigabyte of reserved addresses, opened step by step.
//!
//! Slabs and records take blocks of unmovable frames, large requests take runs of others, so that the two do not mix
//! while there is room. Blocks of 2 MiB that are free as a whole go back to the system when there are many.
//!
//! Invariants: a run's length is written at its first frame, and nowhere else. No system call that takes memory back is
//! made with the lock held.

use super::ground::system_memory;
use super::stats::HeapStats;
use crate::memory::GIGABYTE;
use crate::space::{Backing, FRAME_BYTES, Space};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use unfrag::maps::{BLOCK_ORDER, Engine, EngineLayout};
use unfrag::{MigrateType, Order, Pfn};
use unfrag_slab::{Fault, FrameEntry, PageRequest, Pages, Window};

/// The largest request that gets a run, in bytes.
pub(super) const MOST_RUN: usize = 32 << 20;

/// Gigabytes that a set of caches can see.
const MOST_GIGABYTES: usize = 256;

/// Frames of a block of 2 MiB.
const BLOCK: u32 = BLOCK_ORDER.frames();

/// The steps in which addresses are opened: at least and at most so many frames.
const STEP: (u32, u32) = (2 * BLOCK, 32 * BLOCK);

/// What is opened beyond so many frames is backed by huge pages.
const HUGE_FROM: u32 = 16 * BLOCK;

/// Whole free blocks that are kept at least.
const KEPT: u32 = 16;

/// Seconds for which a block must have been free before it is given back.
const IDLE: i64 = 1;

/// Whole free blocks that are taken to be given back at a time.
const BATCH: usize = 16;

/// Runs are of this type, slabs and records are unmovable.
const RUN: MigrateType = MigrateType::Movable;

/// The pages of the heap.
pub(crate) struct HeapPages {
    space: Space,
    frames: u32,
    slab_table: NonNull<FrameEntry>,
    runs: NonNull<AtomicU32>,
    stock: Mutex<Stock>,
}

// SAFETY: the tables are shared as `&[AtomicU32]`, or the caches' own.
unsafe impl Sync for HeapPages {}
// SAFETY: as above.
unsafe impl Send for HeapPages {}

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the heap, where no run begins: in a slab, or a misuse.
    Slab,
    /// At the start of a run of so many frames.
    Run(u32),
    /// Not in the pages of the heap.
    Elsewhere,
}

/// Free frames.
struct Stock {
    engines: [Option<Engine<'static>>; MOST_GIGABYTES],
    gigabytes: usize,
    /// Frames from the first on that are usable.
    opened: u32,
    limit: u32,
    /// The fewest whole free blocks since `since`, in seconds of the system's clock.
    fewest: u32,
    since: i64,
    /// Blocks that were given back to the system: a stack.
    released: &'static mut [u32],
    count: usize,
}

/// The lock of the pages, held.
pub(super) struct Held {
    _stock: MutexGuard<'static, Stock>,
}

/// A table with an entry for each of some frames, all zeros.
fn table<T>(frames: u32) -> Option<NonNull<T>> {
    Some(system_memory(frames as usize * size_of::<T>())?.cast())
}

impl HeapPages {
    /// Reserves twice as many addresses as there is memory, or fewer if the system refuses.
    pub fn new() -> Option<HeapPages> {
        let info = rustix::system::sysinfo();
        let memory = info.totalram as u64 * u64::from(info.mem_unit);
        let mut gigabytes = ((2 * memory) >> 30).clamp(4, MOST_GIGABYTES as u64) as u32;
        let space = loop {
            match Space::new(u64::from(gigabytes * GIGABYTE)) {
                Ok(space) => break space,
                Err(_) if gigabytes > 1 => gigabytes /= 2,
                Err(_) => return None,
            }
        };
        let frames = gigabytes * GIGABYTE;
        let blocks = (frames / BLOCK) as usize;
        let released = table::<u32>(blocks as u32)?;
        // SAFETY: new memory of the system, that long, for as long as the process lives.
        let released = unsafe { std::slice::from_raw_parts_mut(released.as_ptr(), blocks) };
        Some(HeapPages {
            space,
            frames,
            slab_table: table(frames)?,
            runs: table(frames)?,
            stock: Mutex::new(Stock {
                engines: [const { None }; MOST_GIGABYTES],
                gigabytes: 0,
                opened: 0,
                limit: frames,
                fewest: 0,
                since: 0,
                released,
                count: 0,
            }),
        })
    }

    /// The table that the caches use.
    pub fn slab_table(&self) -> &'static [FrameEntry] {
        // SAFETY: it has an entry for each frame, zeros at first, and lives as long as the process.
        unsafe { std::slice::from_raw_parts(self.slab_table.as_ptr(), self.frames as usize) }
    }

    /// The frame of an address of the heap.
    #[inline]
    fn frame_of(&self, memory: NonNull<u8>) -> Option<u32> {
        let bytes = memory
            .addr()
            .get()
            .wrapping_sub(self.space.at(0).addr().get());
        let frame = bytes / FRAME_BYTES;
        (frame < self.frames as usize).then_some(frame as u32)
    }

    /// Where an address is.
    #[inline]
    pub fn place(&self, memory: NonNull<u8>) -> Place {
        let Some(frame) = self.frame_of(memory) else {
            return Place::Elsewhere;
        };
        if !memory.addr().get().is_multiple_of(FRAME_BYTES) {
            return Place::Slab;
        }
        match self.run(frame).load(Relaxed) {
            0 => Place::Slab,
            frames => Place::Run(frames),
        }
    }

    fn run(&self, frame: u32) -> &AtomicU32 {
        assert!(frame < self.frames);
        // SAFETY: the table has an entry for each frame.
        unsafe { self.runs.add(frame as usize).as_ref() }
    }

    fn lock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock, for a fork.
    pub fn hold(&'static self) -> Held {
        Held {
            _stock: self.lock(),
        }
    }

    /// Memory for a large request.
    pub fn allocate_run(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let frames = size.div_ceil(FRAME_BYTES).max(1) as u32;
        let of_align = align.div_ceil(FRAME_BYTES).next_power_of_two() as u32;
        let order = Order(frames.max(of_align).next_power_of_two().ilog2() as u8);
        let mut stock = self.lock();
        let first = stock.take(&self.space, order, RUN)?;
        stock.give(first + frames, order.frames() - frames, RUN);
        drop(stock);
        self.run(first).store(frames, Relaxed);
        Some(self.space.at(first))
    }

    /// Gives a run back; false if none begins there.
    pub fn free_run(&self, memory: NonNull<u8>) -> bool {
        let Some(first) = self.frame_of(memory) else {
            return false;
        };
        let is_first = self.space.at(first) == memory;
        let frames = if is_first {
            self.run(first).swap(0, Relaxed)
        } else {
            0
        };
        if frames == 0 {
            return false;
        }
        let mut stock = self.lock();
        stock.give(first, frames, RUN);
        self.release_surplus(stock);
        true
    }

    /// Gives whole free blocks back to the system, those that nobody needed for [`IDLE`] seconds.
    fn release_surplus(&self, mut stock: MutexGuard<'_, Stock>) {
        let keep = KEPT.max(stock.opened / BLOCK / 8);
        let whole = stock.whole_blocks();
        if whole <= keep {
            return;
        }
        let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse).tv_sec;
        if now - stock.since < IDLE {
            return;
        }
        let idle = stock.fewest.min(whole);
        (stock.fewest, stock.since) = (whole, now);
        drop(stock);
        if idle > keep {
            self.release(whole - (idle - keep));
        }
    }

    /// Gives whole free blocks back to the system but for some. Returns the bytes.
    pub fn release(&self, keep: u32) -> u64 {
        let mut bytes = 0;
        loop {
            let mut blocks = [0; BATCH];
            let mut stock = self.lock();
            let surplus = stock.whole_blocks().saturating_sub(keep) as usize;
            let wanted = &mut blocks[..surplus.min(BATCH)];
            let mut count = 0;
            for block in wanted {
                let Some(first) = stock.take_open(BLOCK_ORDER, RUN, false) else {
                    break;
                };
                *block = first;
                count += 1;
            }
            drop(stock);
            if count == 0 {
                return bytes;
            }
            for &first in &blocks[..count] {
                // A block that the system does not take back is used as it is.
                let _ = self.space.release(first, BLOCK);
            }
            let mut stock = self.lock();
            for &first in &blocks[..count] {
                let at = stock.count;
                stock.released[at] = first;
                stock.count += 1;
            }
            bytes += count as u64 * u64::from(BLOCK) * FRAME_BYTES as u64;
        }
    }

    /// Where the memory is.
    pub fn stats(&self) -> HeapStats {
        let stock = self.lock();
        let bytes = |frames: u64| frames * FRAME_BYTES as u64;
        HeapStats {
            free_bytes: bytes(stock.engines().map(Engine::free_frames).sum()),
            released_bytes: bytes(stock.count as u64 * u64::from(BLOCK)),
            usable_bytes: bytes(stock.opened.into()),
            ..HeapStats::default()
        }
    }
}

impl Stock {
    fn engines(&self) -> impl Iterator<Item = &Engine<'static>> {
        self.engines[..self.gigabytes].iter().flatten()
    }

    fn whole_blocks(&self) -> u32 {
        self.engines().map(Engine::whole_blocks).sum()
    }

    /// Takes a block. Types mix where no more memory can be had.
    fn take(&mut self, space: &Space, order: Order, mt: MigrateType) -> Option<u32> {
        loop {
            if let Some(first) = self.take_open(order, mt, false) {
                self.fewest = self.fewest.min(self.whole_blocks());
                return Some(first);
            }
            if order <= BLOCK_ORDER && self.count > 0 {
                self.count -= 1;
                let block = self.released[self.count];
                // As the type that `release` took it as.
                self.give(block, BLOCK, RUN);
            } else if !self.open(space, order) {
                return self.take_open(order, mt, true);
            }
        }
    }

    /// Takes a block of what is usable.
    fn take_open(&mut self, order: Order, mt: MigrateType, mixes: bool) -> Option<u32> {
        let engines = self.engines[..self.gigabytes].iter_mut().flatten();
        for (i, engine) in engines.enumerate() {
            let mut one = [0];
            if engine.free_frames() >= order.frames().into()
                && engine.take(&mut one, order, mt, mixes) == 1
            {
                return Some(one[0] + i as u32 * GIGABYTE);
            }
        }
        None
    }

    /// Gives frames back that were taken.
    fn give(&mut self, first: u32, frames: u32, mt: MigrateType) {
        if frames == 0 {
            return;
        }
        let (gigabyte, start) = (first / GIGABYTE, first % GIGABYTE);
        if let Some(engine) = &mut self.engines[gigabyte as usize] {
            let given = engine.give_range(start, frames, mt);
            debug_assert!(given.is_ok(), "frames that were taken: {given:?}");
        }
    }

    /// Makes more addresses usable, enough for a block of an order; false if there are no more.
    fn open(&mut self, space: &Space, order: Order) -> bool {
        // A block begins at a multiple of its size: what lies before it is opened as well.
        let from = self.opened;
        let needed = from.next_multiple_of(order.frames()) + order.frames() - from;
        let wanted = (from / 8).clamp(STEP.0, STEP.1).max(needed);
        let room = (GIGABYTE - from % GIGABYTE).min(self.limit - from);
        let frames = wanted.next_multiple_of(BLOCK).min(room);
        if frames == 0 {
            return false;
        }
        let gigabyte = (from / GIGABYTE) as usize;
        if gigabyte == self.gigabytes {
            self.engines[gigabyte] = new_engine();
            if self.engines[gigabyte].is_none() {
                return false;
            }
            self.gigabytes += 1;
        }
        let backing = Backing {
            huge_pages: from >= HUGE_FROM,
            populate: false,
            node: None,
        };
        if space.open(from, frames, &backing).is_err() {
            return false;
        }
        let engine = self.engines[gigabyte].as_mut();
        let added = engine.map(|e| e.add(from % GIGABYTE, frames));
        debug_assert_eq!(added, Some(Ok(())), "frames that were not usable before");
        self.opened += frames;
        true
    }
}

/// An engine for a gigabyte.
fn new_engine() -> Option<Engine<'static>> {
    let words = EngineLayout::of(GIGABYTE).words;
    let at = system_memory(words * 8)?.cast::<u64>();
    // SAFETY: new memory of the system, that long, for as long as the process lives.
    Engine::new(GIGABYTE, unsafe {
        std::slice::from_raw_parts_mut(at.as_ptr(), words)
    })
}

// SAFETY: the engine hands a frame out once until it is given back, within the reserved addresses, at a multiple of the
// block's size, after it was made usable.
unsafe impl Pages for HeapPages {
    fn alloc(&self, request: &PageRequest) -> Option<Pfn> {
        let mut stock = self.lock();
        let first = stock.take(&self.space, Order(request.order), MigrateType::Unmovable)?;
        Some(Pfn(first.into()))
    }

    unsafe fn free(&self, first: Pfn, order: u8) {
        let mut stock = self.lock();
        stock.give(
            first.0 as u32,
            Order(order).frames(),
            MigrateType::Unmovable,
        );
        self.release_surplus(stock);
    }

    fn window(&self) -> Window {
        Window {
            first: Pfn(0),
            frames: self.frames as usize,
            base: self.space.at(0),
        }
    }

    fn fault(&self, _fault: &Fault) {}
}
