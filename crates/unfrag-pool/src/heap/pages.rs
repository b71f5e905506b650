//! The pages of the heap: free frames behind a lock, and what is where.
//!
//! Slabs and records take blocks of unmovable frames, large requests take runs of others, so that the two do not mix
//! while there is room. Blocks of 2 MiB that are free as a whole go back to the system when there are many; where the process
//! has a limit of addresses, their addresses too, and at once.
//!
//! Invariants: a run's length is written at its first frame, and [`APART`] at the frame where a mapping of its own begins
//! that lies within the window; all other entries are 0. No system call that takes memory back is made with the lock held.

use super::ground::system_memory;
use super::stats::HeapStats;
use super::stock::{MOST_GIGABYTES, REACH, RUN, Stock};
use super::window::{BLOCK, Window, address_limit};
use crate::memory::GIGABYTE;
use crate::space::FRAME_BYTES;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use unfrag::maps::BLOCK_ORDER;
use unfrag::{MigrateType, Order, Pfn};
use unfrag_slab::{Fault, FrameEntry, PageRequest, Pages};

/// The largest request that gets a run, in bytes.
pub(super) const MOST_RUN: usize = 32 << 20;

/// Addresses for so many times the limit of the process are within reach, since it may be raised. The tables take a
/// five-hundredth of them.
const OF_LIMIT: u64 = 4;

/// Whole free blocks that are kept at least.
const KEPT: u32 = 16;

/// Seconds for which a block must have been free before it is given back.
const IDLE: i64 = 1;

/// Whole free blocks that are taken to be given back at a time.
const BATCH: usize = 16;

/// Stands for the length of a run where a mapping of its own begins.
const APART: u32 = u32::MAX;

/// The pages of the heap.
pub(crate) struct HeapPages {
    window: Window,
    /// The frames that slab caches reach: the first ones of the window.
    reach: u32,
    slab_table: NonNull<FrameEntry>,
    runs: NonNull<AtomicU32>,
    stock: Mutex<Stock>,
    /// Held while blocks are on their way to the system, so that a fork loses none. Before the lock of the stock.
    releasing: Mutex<()>,
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
    /// Not in the pages of the heap: in a mapping of its own, or a misuse.
    Elsewhere,
}

/// The locks of the pages, held.
pub(super) struct Held {
    _releasing: MutexGuard<'static, ()>,
    _stock: MutexGuard<'static, Stock>,
}

/// Gigabytes of addresses for twice the system's memory, or for what a process with this limit may have.
fn gigabytes(limit: Option<u64>) -> u32 {
    let info = rustix::system::sysinfo();
    let memory = (info.totalram as u64).saturating_mul(2 * u64::from(info.mem_unit));
    let within = limit.map_or(u64::MAX, |limit| limit.saturating_mul(OF_LIMIT));
    let of_memory = (memory >> 30).clamp(4, MOST_GIGABYTES);
    of_memory.min((within >> 30).max(1)) as u32
}

impl HeapPages {
    /// Pages for a heap, none of them usable as yet. `None`, if the system has no memory for the tables, or no addresses.
    pub fn new() -> Option<HeapPages> {
        let limit = address_limit();
        HeapPages::of(gigabytes(limit), REACH, limit)
    }

    /// Pages in so many gigabytes of addresses, of which slabs reach so many.
    fn of(gigabytes: u32, reach: u32, limit: Option<u64>) -> Option<HeapPages> {
        let (frames, reach) = (gigabytes * GIGABYTE, reach.min(gigabytes) * GIGABYTE);
        let table = |frames: u32| system_memory(frames as usize * size_of::<u32>());
        let slab_table = table(reach)?;
        let window = Window::below(slab_table, frames)?;
        Some(HeapPages {
            window,
            reach,
            slab_table: slab_table.cast(),
            runs: table(frames)?.cast(),
            stock: Mutex::new(Stock::new(&window, reach, limit)?),
            releasing: Mutex::new(()),
        })
    }

    /// The table that the caches use.
    pub fn slab_table(&self) -> &'static [FrameEntry] {
        // SAFETY: it has an entry for each frame that slabs reach, zeros at first, and lives as long as the process.
        unsafe { std::slice::from_raw_parts(self.slab_table.as_ptr(), self.reach as usize) }
    }

    /// Where an address is.
    #[inline]
    pub fn place(&self, memory: NonNull<u8>) -> Place {
        let Some(frame) = self.window.frame_of(memory) else {
            return Place::Elsewhere;
        };
        if !memory.addr().get().is_multiple_of(FRAME_BYTES) {
            return Place::Slab;
        }
        match self.run(frame).load(Relaxed) {
            0 => Place::Slab,
            APART => Place::Elsewhere,
            frames => Place::Run(frames),
        }
    }

    /// A mapping of its own begins here. The system may have put it among the addresses of the heap.
    pub fn begin_apart(&self, memory: NonNull<u8>) {
        if let Some(frame) = self.window.frame_of(memory) {
            self.run(frame).store(APART, Relaxed);
        }
    }

    /// It is about to end, or to move.
    pub fn end_apart(&self, memory: NonNull<u8>) {
        if let Some(frame) = self.window.frame_of(memory) {
            self.run(frame).store(0, Relaxed);
        }
    }

    /// The entry of a frame. Whoever asks about an address has it from whoever allocated it, which orders the two; of several
    /// who free one run, the swap lets one through, and the lock of the stock orders what comes next.
    fn run(&self, frame: u32) -> &AtomicU32 {
        assert!(frame < self.window.frames());
        // SAFETY: the table has an entry for each frame.
        unsafe { self.runs.add(frame as usize).as_ref() }
    }

    fn lock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_releasing(&self) -> MutexGuard<'_, ()> {
        let locked = self.releasing.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the locks, for a fork.
    pub fn hold(&'static self) -> Held {
        Held {
            _releasing: self.lock_releasing(),
            _stock: self.lock(),
        }
    }

    /// Memory for a large request.
    pub fn allocate_run(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let frames = size.div_ceil(FRAME_BYTES).max(1) as u32;
        let of_align = align.div_ceil(FRAME_BYTES).next_power_of_two() as u32;
        let order = Order(frames.max(of_align).next_power_of_two().ilog2() as u8);
        let mut stock = self.lock();
        let spare = order.frames() - frames;
        let first = stock.take_with_spare(&self.window, order, spare)?;
        stock.give(first + frames, spare, RUN);
        drop(stock);
        self.run(first).store(frames, Relaxed);
        Some(self.window.at(first))
    }

    /// Gives a run back; false if none begins there.
    pub fn free_run(&self, memory: NonNull<u8>) -> bool {
        let Some(first) = self.window.frame_of(memory) else {
            return false;
        };
        let is_first = self.window.at(first) == memory;
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

    /// Gives whole free blocks back to the system: those that nobody needed for [`IDLE`] seconds, and under a limit of
    /// addresses at once those beyond what may be kept.
    fn release_surplus(&self, mut stock: MutexGuard<'_, Stock>) {
        let keep = KEPT.max(stock.usable_frames() / BLOCK / 8);
        let whole = stock.whole_blocks();
        if let Some(most) = stock.most_kept(whole)
            && whole > most
        {
            drop(stock);
            // Half as many, so that not each free comes here.
            return self.release_unless_busy(most / 2);
        }
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
            self.release_unless_busy(whole - (idle - keep));
        }
    }

    /// As [`release`](HeapPages::release), unless another thread is at it.
    fn release_unless_busy(&self, keep: u32) {
        match self.releasing.try_lock() {
            Ok(_alone) => self.release_alone(keep),
            Err(TryLockError::Poisoned(_)) => self.release(keep),
            Err(TryLockError::WouldBlock) => 0,
        };
    }

    /// Gives whole free blocks back to the system but for some. Returns the bytes.
    pub fn release(&self, keep: u32) -> u64 {
        let _alone = self.lock_releasing();
        self.release_alone(keep)
    }

    /// Whether the process has a limit of addresses, and it may have so many bytes.
    pub fn is_within_limit(&self, bytes: usize) -> bool {
        let limit = self.lock().look_at_limit();
        limit.is_some_and(|limit| bytes as u64 <= limit)
    }

    /// Gives whole free blocks back, and their addresses where there is a limit. The caller holds the lock for it.
    fn release_alone(&self, keep: u32) -> u64 {
        let limited = self.lock().look_at_limit().is_some();
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
                break;
            }
            self.give_back(&blocks[..count], limited);
            bytes += count as u64 * u64::from(BLOCK) * FRAME_BYTES as u64;
        }
        if limited {
            self.close_released();
        }
        bytes
    }

    /// Closes the blocks that the system has back and that are mapped still, from before there was a limit.
    fn close_released(&self) {
        let mut below = usize::MAX;
        loop {
            let mut blocks = [0; BATCH];
            let mut count = 0;
            let mut stock = self.lock();
            while count < BATCH
                && let Some(first) = stock.released.take_mapped(&mut below)
            {
                blocks[count] = first;
                count += 1;
            }
            drop(stock);
            // Where one cannot be closed, others hardly can.
            if count == 0 || !self.give_back(&blocks[..count], true) {
                return;
            }
        }
    }

    /// Gives blocks that the caller took back to the system, with their addresses or without. False, if addresses are left.
    fn give_back(&self, blocks: &[u32], addresses: bool) -> bool {
        let mut closed = [false; BATCH];
        for (&first, closed) in blocks.iter().zip(&mut closed) {
            *closed = addresses && self.window.close(first, BLOCK);
            if !*closed {
                self.window.release(first, BLOCK);
            }
        }
        let mut stock = self.lock();
        for (&first, &closed) in blocks.iter().zip(&closed) {
            stock.released.put(first, closed);
        }
        closed[..blocks.len()].iter().all(|closed| *closed)
    }
    /// Where the memory is.
    pub fn stats(&self) -> HeapStats {
        let stock = self.lock();
        let bytes = |frames: u64| frames * FRAME_BYTES as u64;
        HeapStats {
            free_bytes: bytes(stock.free_frames()),
            released_bytes: bytes(stock.released.count() as u64 * u64::from(BLOCK)),
            usable_bytes: bytes(stock.usable_frames().into()),
            ..HeapStats::default()
        }
    }
}

// SAFETY: the engine hands a frame out once until it is given back, before the end of what slabs reach, at a multiple of the
// block's size, after it was made usable.
unsafe impl Pages for HeapPages {
    fn alloc(&self, request: &PageRequest) -> Option<Pfn> {
        let mut stock = self.lock();
        let first = stock.take_in_reach(&self.window, Order(request.order), request.mt())?;
        Some(Pfn(first.into()))
    }

    unsafe fn free(&self, first: Pfn, order: u8, mt: MigrateType) {
        let mut stock = self.lock();
        stock.give(first.0 as u32, Order(order).frames(), mt);
        self.release_surplus(stock);
    }

    fn window(&self) -> unfrag_slab::Window {
        unfrag_slab::Window {
            first: Pfn(0),
            frames: self.reach as usize,
            base: self.window.at(0),
        }
    }

    fn fault(&self, _fault: &Fault) {}
}

#[cfg(test)]
mod tests {
    use super::super::window::only::Only;
    use super::*;
    use unfrag::Gfp;
    use unfrag_slab::{SlabConfig, Slabs};

    #[test]
    fn a_mapping_among_the_addresses_of_the_heap_is_known_until_it_ends() {
        let pages = Only::new(HeapPages::new, |p| p.window);
        let memory = pages.window.at(GIGABYTE / 2);
        assert_eq!(pages.place(memory), Place::Slab);
        pages.begin_apart(memory);
        assert_eq!(pages.place(memory), Place::Elsewhere);
        pages.end_apart(memory);
        assert_eq!(pages.place(memory), Place::Slab);
    }

    #[test]
    fn the_tables_take_a_hundredth_of_what_the_process_may_have() {
        for limit in [1, 500_000 << 10, 2_000_000 << 10, 4_000_000 << 10] {
            let tables = u64::from(gigabytes(Some(limit))) << 21;
            assert!(tables <= (limit / 100).max(2 << 20), "{limit}: {tables}");
        }
        assert!(gigabytes(None) >= 4);
        assert!(gigabytes(Some(u64::MAX)) <= MOST_GIGABYTES as u32);
    }
    /// Pages in so many gigabytes of addresses, of which slabs reach so many.
    fn heap(gigabytes: u32, reach: u32) -> Only<HeapPages> {
        Only::new(|| HeapPages::of(gigabytes, reach, None), |p| p.window)
    }

    /// Pages of slabs of an order that can be had, and the first frame of each.
    fn slabs(pages: &HeapPages, order: u8, most: usize) -> Vec<u32> {
        let request = PageRequest::new(order, Gfp::KERNEL);
        let next = || pages.alloc(&request).map(|p| p.0 as u32);
        std::iter::from_fn(next).take(most).collect()
    }

    fn free_slabs(pages: &HeapPages, order: u8, all: Vec<u32>) {
        for first in all {
            // SAFETY: taken by the caller, and used by nobody.
            unsafe { pages.free(Pfn(first.into()), order, MigrateType::Unmovable) };
        }
    }

    /// Runs of a size, and the first frame of each.
    fn runs(pages: &HeapPages, size: usize, most: usize) -> Vec<(NonNull<u8>, u32)> {
        let next = || {
            let run = pages.allocate_run(size, FRAME_BYTES)?;
            Some((run, pages.window.frame_of(run).expect("in the window")))
        };
        std::iter::from_fn(next).take(most).collect()
    }

    /// What slabs reach is a gigabyte here, of three.
    #[test]
    fn slabs_stay_within_reach_and_runs_are_anywhere() {
        const RUN_FRAMES: u32 = (MOST_RUN / FRAME_BYTES) as u32;
        let pages = heap(3, 1);
        let all = |runs: &[(NonNull<u8>, u32)]| runs.len() as u32 * RUN_FRAMES;
        // Runs go on behind the first half of what slabs reach, but for a step, and leave them the rest.
        let mut first = runs(&pages, MOST_RUN, 48);
        assert_eq!(all(&first), GIGABYTE + GIGABYTE / 2);
        let low = first.iter().filter(|(_, at)| *at < GIGABYTE);
        let low = low.count() as u32 * RUN_FRAMES;
        assert!((GIGABYTE / 2..GIGABYTE / 2 + 64 * BLOCK).contains(&low));
        let some = slabs(&pages, 4, (GIGABYTE / 4 / 16) as usize);
        assert_eq!(some.len() as u32 * 16, GIGABYTE / 4);
        assert!(some.iter().all(|at| (low..GIGABYTE).contains(at)));
        // Then runs have whatever is left.
        first.extend(runs(&pages, MOST_RUN, usize::MAX));
        let small = runs(&pages, FRAME_BYTES, usize::MAX);
        let taken = all(&first) + small.len() as u32;
        assert_eq!(taken, 3 * GIGABYTE - GIGABYTE / 4);
        first.extend(small);
        assert_eq!(slabs(&pages, 0, 1), []);
        // Of runs that go, slabs get those within reach alone, whichever come first.
        let (behind, within): (Vec<_>, Vec<_>) =
            first.into_iter().partition(|(_, at)| *at >= GIGABYTE);
        for (run, _) in &behind {
            assert!(pages.free_run(*run));
        }
        assert_eq!(slabs(&pages, 0, 1), []);
        for (run, _) in &within {
            assert!(pages.free_run(*run));
        }
        let rest = slabs(&pages, 0, usize::MAX);
        assert_eq!(rest.len() as u32, GIGABYTE - GIGABYTE / 4);
        assert!(rest.iter().all(|at| *at < GIGABYTE));
        free_slabs(&pages, 0, rest);
        free_slabs(&pages, 4, some);
        let free = {
            let stock = pages.lock();
            stock.free_frames() + stock.released.count() as u64 * u64::from(BLOCK)
        };
        assert_eq!(free, 3 * u64::from(GIGABYTE), "nothing is lost");
    }

    #[test]
    fn slabs_take_blocks_within_reach_back_from_the_system() {
        let pages = heap(2, 1);
        let all = runs(&pages, MOST_RUN, usize::MAX);
        for (run, _) in &all {
            assert!(pages.free_run(*run));
        }
        assert_eq!(pages.release(0), 2 << 30);
        let taken = slabs(&pages, 3, usize::MAX);
        assert_eq!(taken.len() as u32 * 8, GIGABYTE);
        assert!(taken.iter().all(|at| *at < GIGABYTE));
        free_slabs(&pages, 3, taken);
    }

    #[test]
    fn slab_caches_start_in_a_heap_that_is_longer_than_their_reach() {
        for gigabytes in [REACH - 1, REACH, REACH + 1, 4 * REACH] {
            let pages = heap(gigabytes, REACH);
            let frames = gigabytes.min(REACH) * GIGABYTE;
            assert_eq!(pages.slab_table().len(), frames as usize);
            let config = SlabConfig::new(1);
            // SAFETY: the table is new memory of the system, and the caches alone use it.
            let made: Result<Slabs, _> =
                unsafe { Slabs::with_new_table(&*pages, pages.slab_table(), &config) };
            assert_eq!(made.err(), None, "{gigabytes} gigabytes");
        }
    }
}
