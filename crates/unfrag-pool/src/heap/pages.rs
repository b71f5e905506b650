//! The pages of the heap: free frames behind a lock, and what is where.
//!
//! Slabs and records take blocks of unmovable frames, large requests take runs of others, so that the two do not mix
//! while there is room. Blocks of 2 MiB that are free as a whole go back to the system when there are many; where the process
//! has a limit of addresses, their addresses too, and at once.
//!
//! Invariants: the entry of a frame of a slab where an object of a class begins says so, and how many frames of the slab lie before
//! it; the entry at the first frame of a run has the run's class or length, and [`APART`] stands where a mapping of its own begins that lies within the
//! window; all other entries are 0. No system call that takes memory back is made with the lock held.

use super::classes::{
    CLASSES, MOST_OBJECT, bytes_of, class_of, divisor_of, frames_of, is_multiple,
};
use super::ground::{misuse, system_memory};
use super::mark::Secret;
use super::stats::HeapStats;
use super::stock::{MOST_GIGABYTES, REACH, RUN, Stock};
use super::window::{BLOCK, Window, address_limit};
use crate::memory::GIGABYTE;
use crate::space::FRAME_BYTES;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use unfrag::{MigrateType, Order, Pfn};
use unfrag_slab::{Fault, FaultKind, FrameEntry, PageRequest, Pages};

/// The largest request that gets a run, in bytes.
pub(super) const MOST_RUN: usize = 32 << 20;

/// Addresses for so many times the limit of the process are within reach, since it may be raised. The tables take a
/// five-hundredth of them.
const OF_LIMIT: u64 = 4;

// What an entry says beside 0. The lowest byte is a class, or 0: entries without one are told from those with one by it. Above it
// stands the place in the slab.
const CLASS: u32 = 0xff;
const PLACE_SHIFT: u32 = 8;
/// A run without a class: its length stands above the lowest byte.
const LONG: u32 = 1 << 31;
/// Where a mapping of its own begins.
const APART: u32 = !CLASS;
const _: () = assert!(CLASSES <= CLASS as usize && MOST_RUN / FRAME_BYTES < 1 << 20);

/// The pages of the heap.
pub(crate) struct HeapPages {
    pub(super) window: Window,
    /// By which free objects are marked.
    pub(super) secret: Secret,
    /// The frames that slab caches reach: the first ones of the window.
    reach: u32,
    slab_table: NonNull<FrameEntry>,
    entries: NonNull<AtomicU32>,
    pub(super) stock: Mutex<Stock>,
    /// Held while blocks are on their way to the system, so that a fork loses none. Before the lock of the stock.
    pub(super) releasing: Mutex<()>,
}

// SAFETY: the tables are shared as `&[AtomicU32]`, or the caches' own.
unsafe impl Sync for HeapPages {}
// SAFETY: as above.
unsafe impl Send for HeapPages {}

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Where an object or a run of a class begins.
    Class(usize),
    /// At the start of a run of so many frames.
    Run(u32),
    /// Not in the pages of the heap: in a mapping of its own, or a misuse.
    Elsewhere,
    /// Where nothing begins that the heap hands out.
    Nothing,
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
            secret: Secret::new(),
            reach,
            slab_table: slab_table.cast(),
            entries: table(frames)?.cast(),
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
    pub fn place(&self, memory: NonNull<u8>) -> Place {
        let Some(frame) = self.window.frame_of(memory) else {
            return Place::Elsewhere;
        };
        let within = (memory.addr().get() % FRAME_BYTES) as u32;
        let entry = self.entry(frame).load(Relaxed);
        let class = (entry & CLASS) as usize;
        if class != 0 {
            let within = (entry >> PLACE_SHIFT) * FRAME_BYTES as u32 + within;
            return match is_multiple(within, divisor_of(class)) {
                true => Place::Class(class),
                false => Place::Nothing,
            };
        }
        match entry {
            _ if within != 0 => Place::Nothing,
            0 => Place::Nothing,
            APART => Place::Elsewhere,
            run => Place::Run((run & !LONG) >> PLACE_SHIFT),
        }
    }

    /// The address of the first frame.
    pub fn start(&self) -> usize {
        self.window.at(0).addr().get()
    }

    /// Frames that there may be.
    pub fn frames(&self) -> usize {
        self.window.frames() as usize
    }

    /// The table with an entry for each of them, as long as the process lives.
    pub fn entries(&self) -> NonNull<AtomicU32> {
        self.entries
    }

    /// A mapping of its own begins here. The system may have put it among the addresses of the heap.
    pub fn begin_apart(&self, memory: NonNull<u8>) {
        if let Some(frame) = self.window.frame_of(memory) {
            self.entry(frame).store(APART, Relaxed);
        }
    }

    /// It is about to end, or to move.
    pub fn end_apart(&self, memory: NonNull<u8>) {
        if let Some(frame) = self.window.frame_of(memory) {
            self.entry(frame).store(0, Relaxed);
        }
    }

    /// The entry of a frame. Whoever asks about an address has it from whoever allocated it, which orders the two; of several
    /// who free one run, the swap lets one through, and the lock of the stock orders what comes next.
    fn entry(&self, frame: u32) -> &AtomicU32 {
        assert!(frame < self.window.frames());
        // SAFETY: the table has an entry for each frame.
        unsafe { self.entries.add(frame as usize).as_ref() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock_releasing(&self) -> MutexGuard<'_, ()> {
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

    /// A run of a class, and whether it reads as zeros.
    pub fn allocate_of(&self, class: usize) -> Option<(NonNull<u8>, bool)> {
        self.allocate(frames_of(class), 1, class as u32)
    }

    /// Memory for a request that has no class, and whether it reads as zeros.
    pub fn allocate_run(&self, size: usize, align: usize) -> Option<(NonNull<u8>, bool)> {
        let frames = size.div_ceil(FRAME_BYTES).max(1) as u32;
        let of_align = align.div_ceil(FRAME_BYTES).next_power_of_two() as u32;
        self.allocate(frames, of_align, LONG | frames << PLACE_SHIFT)
    }

    fn allocate(&self, frames: u32, of_align: u32, entry: u32) -> Option<(NonNull<u8>, bool)> {
        let order = Order(frames.max(of_align).next_power_of_two().ilog2() as u8);
        let mut stock = self.lock();
        let spare = order.frames() - frames;
        let first = stock.take_with_spare(&self.window, order, spare)?;
        stock.give(first + frames, spare, RUN);
        let is_zero = stock.touched.set(first, frames);
        drop(stock);
        self.entry(first).store(entry, Relaxed);
        Some((self.window.at(first), is_zero))
    }

    /// Gives a run of a class back, which begins there.
    pub fn free_of(&self, class: usize, memory: NonNull<u8>) {
        if let Some(first) = self.window.frame_of(memory) {
            self.entry(first).store(0, Relaxed);
            self.free_frames(first, frames_of(class), RUN);
        }
    }

    /// Gives a run without a class back; false if none begins there.
    pub fn free_run(&self, memory: NonNull<u8>) -> bool {
        let Place::Run(frames) = self.place(memory) else {
            return false;
        };
        let Some(first) = self.window.frame_of(memory) else {
            return false;
        };
        // Of two who free it at once, one has it.
        if self.entry(first).swap(0, Relaxed) == 0 {
            return false;
        }
        self.free_frames(first, frames, RUN);
        true
    }

    /// Says where objects of a class begin in a new slab, and marks them as free: a free of one that nobody has is found before
    /// it was ever handed out.
    fn begin_objects(&self, first: u32, frames: u32, class: usize) {
        let bytes = bytes_of(class);
        let count = frames as usize * FRAME_BYTES / bytes;
        let Some(last) = count.checked_sub(1).map(|n| n * bytes) else {
            return;
        };
        // No object begins beyond this frame, so the entries there stay 0.
        let behind = (last / FRAME_BYTES + 1) * FRAME_BYTES;
        for place in 0..(behind / FRAME_BYTES) as u32 {
            let entry = class as u32 | place << PLACE_SHIFT;
            self.entry(first + place).store(entry, Relaxed);
        }
        let start = self.window.at(first);
        // What is left behind the last object is told from one by a mark alone, which stays. Sizes and frames are multiples of
        // two words.
        for offset in (0..behind).step_by(bytes) {
            // SAFETY: the frames are new, and have two words there.
            unsafe { self.secret.set(start.add(offset)) };
        }
    }

    fn free_frames(&self, first: u32, frames: u32, mt: MigrateType) {
        let mut stock = self.lock();
        stock.give(first, frames, mt);
        self.release_surplus(stock);
    }

    /// Where the memory is.
    pub fn stats(&self) -> HeapStats {
        let stock = self.lock();
        let bytes = |frames: u64| frames * FRAME_BYTES as u64;
        HeapStats {
            free_bytes: bytes(stock.free_frames()),
            released_bytes: bytes(stock.released.count() as u64 * u64::from(BLOCK)),
            usable_bytes: bytes(stock.usable_frames().into()),
            whole_bytes: bytes(u64::from(stock.whole_blocks()) * u64::from(BLOCK)),
            ..HeapStats::default()
        }
    }
}

// SAFETY: the engine hands a frame out once until it is given back, before the end of what slabs reach, at a multiple of the
// block's size, after it was made usable.
unsafe impl Pages for HeapPages {
    fn alloc(&self, request: &PageRequest) -> Option<Pfn> {
        let mut stock = self.lock();
        let order = Order(request.order);
        let first = stock.take_in_reach(&self.window, order, request.mt())?;
        stock.touched.set(first, order.frames());
        drop(stock);
        let bytes = request.object_bytes as usize;
        let class = class_of(bytes.min(MOST_OBJECT));
        if bytes_of(class) == bytes {
            self.begin_objects(first, order.frames(), class);
        }
        Some(Pfn(first.into()))
    }

    unsafe fn free(&self, first: Pfn, order: u8, mt: MigrateType) {
        let (first, frames) = (first.0 as u32, Order(order).frames());
        for frame in first..first + frames {
            self.entry(frame).store(0, Relaxed);
        }
        self.free_frames(first, frames, mt);
    }

    fn window(&self) -> unfrag_slab::Window {
        unfrag_slab::Window {
            first: Pfn(0),
            frames: self.reach as usize,
            base: self.window.at(0),
        }
    }

    fn fault(&self, fault: &Fault) {
        // What a free finds, the caller of the free reports.
        if fault.kind == FaultKind::Link
            && let Some(at) = NonNull::new(std::ptr::without_provenance_mut(fault.object))
        {
            misuse("write to memory that is not in use", at);
        }
    }
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
        assert_eq!(pages.place(memory), Place::Nothing);
        pages.begin_apart(memory);
        assert_eq!(pages.place(memory), Place::Elsewhere);
        pages.end_apart(memory);
        assert_eq!(pages.place(memory), Place::Nothing);
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

    #[test]
    fn where_objects_and_runs_begin_is_told_from_all_other_places() {
        let pages = heap(1, 1);
        let mut request = PageRequest::new(2, Gfp::KERNEL);
        request.object_bytes = 48;
        let first = pages.alloc(&request).expect("memory").0 as u32;
        let slab = pages.window.at(first);
        // SAFETY: within the slab, or at its end.
        let at = |offset: usize| unsafe { slab.add(offset) };
        for offset in 0..4 * FRAME_BYTES {
            let object = match offset % 48 {
                0 => Place::Class(class_of(48)),
                _ => Place::Nothing,
            };
            assert_eq!(pages.place(at(offset)), object, "{offset}");
        }
        assert_eq!(pages.place(at(4 * FRAME_BYTES)), Place::Nothing);
        // SAFETY: taken above, and used by nobody.
        unsafe { pages.free(Pfn(first.into()), 2, MigrateType::Unmovable) };
        assert_eq!(pages.place(slab), Place::Nothing);
        let class = class_of(100_000);
        let (run, is_zero) = pages.allocate_of(class).expect("memory");
        assert!(is_zero);
        assert_eq!(pages.place(run), Place::Class(class));
        // SAFETY: within the run.
        for inside in [8, FRAME_BYTES, 2 * FRAME_BYTES].map(|n| unsafe { run.add(n) }) {
            assert_eq!(pages.place(inside), Place::Nothing);
        }
        pages.free_of(class, run);
        assert_eq!(pages.place(run), Place::Nothing);
        let (long, _) = pages.allocate_run(3 << 20, FRAME_BYTES).expect("memory");
        assert_eq!(pages.place(long), Place::Run(768));
        assert!(pages.free_run(long) && !pages.free_run(long));
    }

    /// By the table and the marks: of all addresses that a free may name in a new slab, none is in use.
    #[test]
    fn nothing_of_a_new_slab_is_in_use_and_nothing_begins_behind_its_last_object() {
        let pages = heap(1, 1);
        for bytes in [16, 48, 320, 1792, 5120, 10_240, 14_336, 28_672, 32_768] {
            for order in 0..=3 {
                let frames = 1 << order;
                let mut request = PageRequest::new(order, Gfp::KERNEL);
                request.object_bytes = bytes as u32;
                let first = pages.alloc(&request).expect("memory").0 as u32;
                let slab = pages.window.at(first);
                for offset in (0..frames * FRAME_BYTES).step_by(16) {
                    // SAFETY: within the slab.
                    let at = unsafe { slab.add(offset) };
                    let begins = pages.place(at) == Place::Class(class_of(bytes));
                    if offset % bytes == 0 && offset + bytes <= frames * FRAME_BYTES {
                        assert!(begins, "{bytes} at {offset}");
                    }
                    // SAFETY: it is mapped.
                    let is_free = unsafe { pages.secret.is_set(at) };
                    assert!(!begins || is_free, "{bytes} at {offset}");
                }
                // SAFETY: taken above, and used by nobody.
                unsafe { pages.free(Pfn(first.into()), order, MigrateType::Unmovable) };
                assert_eq!(pages.place(slab), Place::Nothing);
            }
        }
    }

    #[test]
    fn memory_is_known_to_be_zeros_until_it_is_used_and_when_the_system_had_it_back() {
        let pages = heap(1, 1);
        let is_zero = || {
            let (run, is_zero) = pages.allocate_run(1 << 20, FRAME_BYTES).expect("memory");
            assert!(pages.free_run(run));
            is_zero
        };
        assert!(is_zero() && !is_zero());
        pages.release(0);
        assert!(is_zero() && !is_zero());
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
            let (run, _) = pages.allocate_run(size, FRAME_BYTES)?;
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
        pages.release(0);
        assert_eq!(pages.stats().released_bytes, 2 << 30);
        let taken = slabs(&pages, 3, usize::MAX);
        assert_eq!(taken.len() as u32 * 8, GIGABYTE);
        assert!(taken.iter().all(|at| *at < GIGABYTE));
        free_slabs(&pages, 3, taken);
    }

    #[test]
    fn runs_of_several_blocks_take_what_the_system_has_back_before_more_addresses() {
        let pages = heap(2, 1);
        for size in [3 << 20, 5 << 20, MOST_RUN] {
            let mut first = None;
            for _ in 0..5 {
                let all = runs(&pages, size, 12);
                for (run, _) in all {
                    assert!(pages.free_run(run));
                }
                pages.release(0);
                let usable = pages.stats().usable_bytes;
                assert_eq!(*first.get_or_insert(usable), usable, "{size}");
            }
        }
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
