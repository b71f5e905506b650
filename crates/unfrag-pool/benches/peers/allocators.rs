//! The allocators: ours, and those of the registry.
//!
//! One that knows no threads is used bare by one thread, and under a spin lock by two.

use crate::own::{Own, Visit};
use bitmap_allocator::{BitAlloc, BitAlloc256M};
use branch_allocator::{Atomic, BranchAllocator};
use buddy_slab_allocator::BuddyAllocator;
use buddy_system_allocator::FrameAllocator;
use frame_alloc::{
    CpuId as PeerCpu, DepotAllocator, PageSize, PhysicalAllocator, Provenance, RegionInit,
    SummaryBuddyAllocator,
};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use unfrag::maps::Gigabyte;
use unfrag::{CpuId, Gfp, MigrateType, Order, Pfn};
use unfrag::{Local, Memory, MemoryConfig, MemoryLayout};
use unfrag_eras::{Builder, Manager, NullHost, Request};
use unfrag_pool::HostMemory;

/// All of them, the bound first.
pub const NAMES: [&str; 12] = [
    "array",
    "unfrag",
    "2.6.14",
    "V19",
    "2.6.32",
    "6.1",
    "6.18",
    "buddy_system_allocator",
    "buddy-slab-allocator",
    "bitmap-allocator",
    "branch_allocator",
    "frame-alloc",
];

const PAGE: usize = 4096;

/// Makes an allocator of so many frames for so many threads, and shows it to `v`.
pub fn make<V: Visit>(name: &str, frames: u32, threads: usize, v: &mut V) {
    match name {
        "array" => v.visit(arrays(frames, threads)),
        "unfrag" => unfrag(frames, threads, v),
        "buddy_system_allocator" => {
            let mut b = FrameAllocator::new();
            b.add_frame(0, frames as usize);
            alone(b, threads, v);
        }
        "buddy-slab-allocator" => {
            let mut memory = memory_for_peer(frames);
            alone(BuddySlab::new(memory.bytes()), threads, v);
        }
        "bitmap-allocator" => {
            let mut b = Bitmap(Box::new(BitAlloc256M::DEFAULT));
            b.0.insert(0..frames as usize);
            alone(b, threads, v);
        }
        "branch_allocator" => branch(frames, threads, v),
        "frame-alloc" => frame_alloc(frames, threads, v),
        name => era(name, frames, threads, v),
    }
}

/// One that knows no threads.
fn alone<O: Own, V: Visit>(mut own: O, threads: usize, v: &mut V) {
    if threads == 1 {
        return v.visit(vec![&mut own]);
    }
    let lock = spin::Mutex::new(own);
    v.visit((0..threads).map(|_| Locked(&lock)).collect());
}

impl<O: Own> Own for &mut O {
    const PLACES: bool = O::PLACES;
    #[inline]
    fn take(&mut self, order: u8, mt: MigrateType) -> Option<u32> {
        (**self).take(order, mt)
    }
    #[inline]
    fn give(&mut self, frame: u32, order: u8, mt: MigrateType) {
        (**self).give(frame, order, mt);
    }
}

struct Locked<'a, O>(&'a spin::Mutex<O>);

impl<O: Own> Own for Locked<'_, O> {
    const PLACES: bool = O::PLACES;
    #[inline]
    fn take(&mut self, order: u8, mt: MigrateType) -> Option<u32> {
        self.0.lock().take(order, mt)
    }
    #[inline]
    fn give(&mut self, frame: u32, order: u8, mt: MigrateType) {
        self.0.lock().give(frame, order, mt);
    }
}

/// A bare array of numbers, a part of them for each thread: the bound. It has no orders, and nothing merges.
struct Array {
    singles: Vec<u32>,
    huge: Vec<u32>,
}

fn arrays(frames: u32, threads: usize) -> Vec<Array> {
    let each = frames / threads as u32;
    let of = |i: u32| Array {
        singles: (i * each..(i + 1) * each).rev().collect(),
        huge: (i * each..(i + 1) * each).step_by(512).rev().collect(),
    };
    (0..threads as u32).map(of).collect()
}

impl Own for Array {
    const PLACES: bool = false;
    #[inline]
    fn take(&mut self, order: u8, _: MigrateType) -> Option<u32> {
        if order == 0 {
            self.singles.pop()
        } else {
            self.huge.pop()
        }
    }
    #[inline]
    fn give(&mut self, frame: u32, order: u8, _: MigrateType) {
        if order == 0 {
            self.singles.push(frame);
        } else {
            self.huge.push(frame);
        }
    }
}

type Lock = parking_lot::RawMutex;

fn unfrag<V: Visit>(frames: u32, threads: usize, v: &mut V) {
    let gigabytes = frames.div_ceil(1 << 18) as usize;
    let config = MemoryConfig::new(Pfn(0), frames.into())
        .with_shards(threads.min(gigabytes))
        .with_locals(threads);
    let room = MemoryLayout::of(&config);
    let mut directory: Vec<Gigabyte> = (0..room.gigabytes).map(|_| Gigabyte::NONE).collect();
    let mut words = vec![0; room.words];
    let mut words = &mut words[..];
    let shared: Memory<Lock> = Memory::new(config);
    let started = shared.start(&mut directory, &mut words);
    started.expect("a memory");
    let added = shared.add(Pfn(0), frames.into(), &mut words);
    added.expect("not added before");
    v.visit((0..threads).filter_map(|_| shared.local()).collect());
    shared.validate().expect("every invariant");
}

impl Own for Local<'_, '_, Lock> {
    #[inline]
    fn take(&mut self, order: u8, mt: MigrateType) -> Option<u32> {
        self.alloc(Order(order), mt).ok().map(|p| p.0 as u32)
    }
    #[inline]
    fn give(&mut self, frame: u32, order: u8, mt: MigrateType) {
        // SAFETY: whoever gives a frame has taken it, and nothing is at it.
        let freed = unsafe { self.free(Pfn(frame.into()), Order(order), mt) };
        freed.expect("in use");
    }
}

fn era<V: Visit>(name: &str, frames: u32, threads: usize, v: &mut V) {
    let config = Builder::new()
        .region(Pfn(0), frames.into())
        .cpus(threads)
        .era(name);
    let mut words = vec![0; config.layout().expect("an era").words];
    let manager = config.boot(NullHost, &mut words).expect("a manager");
    if threads == 1 {
        let mut manager = manager;
        return v.visit(vec![OnCpu(&mut manager, CpuId(0))]);
    }
    let lock = spin::Mutex::new(manager);
    v.visit(
        (0..threads as u32)
            .map(|c| LockedCpu(&lock, CpuId(c)))
            .collect(),
    );
}

fn request(order: u8, mt: MigrateType, cpu: CpuId) -> Request {
    let gfp = if mt == MigrateType::Movable {
        Gfp::HIGHUSER_MOVABLE
    } else {
        Gfp::KERNEL
    };
    Request::new(Order(order), gfp).on(cpu)
}

/// A manager by one of its CPUs.
struct OnCpu<'a, 'm>(&'a mut Manager<'m, NullHost>, CpuId);

impl Own for OnCpu<'_, '_> {
    #[inline]
    fn take(&mut self, order: u8, mt: MigrateType) -> Option<u32> {
        let got = self.0.alloc(&request(order, mt, self.1));
        got.ok().map(|p| p.0 as u32)
    }
    #[inline]
    fn give(&mut self, frame: u32, order: u8, _: MigrateType) {
        self.0
            .free(self.1, Pfn(frame.into()), Order(order))
            .expect("in use");
    }
}

struct LockedCpu<'a, 'm>(&'a spin::Mutex<Manager<'m, NullHost>>, CpuId);

impl Own for LockedCpu<'_, '_> {
    #[inline]
    fn take(&mut self, order: u8, mt: MigrateType) -> Option<u32> {
        OnCpu(&mut self.0.lock(), self.1).take(order, mt)
    }
    #[inline]
    fn give(&mut self, frame: u32, order: u8, mt: MigrateType) {
        OnCpu(&mut self.0.lock(), self.1).give(frame, order, mt);
    }
}

impl Own for FrameAllocator<32> {
    #[inline]
    fn take(&mut self, order: u8, _: MigrateType) -> Option<u32> {
        self.alloc(1 << order).map(|f| f as u32)
    }
    #[inline]
    fn give(&mut self, frame: u32, order: u8, _: MigrateType) {
        self.dealloc(frame as usize, 1 << order);
    }
}

struct Bitmap(Box<BitAlloc256M>);

impl Own for Bitmap {
    #[inline]
    fn take(&mut self, order: u8, _: MigrateType) -> Option<u32> {
        let got = match order {
            0 => self.0.alloc(),
            _ => self.0.alloc_contiguous(None, 1 << order, order.into()),
        };
        got.map(|f| f as u32)
    }
    #[inline]
    fn give(&mut self, frame: u32, order: u8, _: MigrateType) {
        let freed = match order {
            0 => self.0.dealloc(frame as usize),
            _ => self.0.dealloc_contiguous(frame as usize, 1 << order),
        };
        assert!(freed);
    }
}

/// Memory for a peer that keeps what it needs within the memory that it manages.
fn memory_for_peer(frames: u32) -> HostMemory {
    HostMemory::map(frames as usize * PAGE, false).expect("addresses")
}

struct BuddySlab {
    buddy: BuddyAllocator<PAGE>,
    start: usize,
}

// SAFETY: it points into a mapping, which any thread may use.
unsafe impl Send for BuddySlab {}

impl BuddySlab {
    fn new(memory: &mut [u8]) -> BuddySlab {
        let mut buddy = BuddyAllocator::new();
        // SAFETY: nobody else uses the memory, and it outlives this.
        unsafe { buddy.init(memory) }.expect("a region");
        // Its blocks are aligned from here on.
        let start = buddy.section(0).expect("a section").start;
        BuddySlab { buddy, start }
    }
}

impl Own for BuddySlab {
    #[inline]
    fn take(&mut self, order: u8, _: MigrateType) -> Option<u32> {
        let got = self.buddy.alloc_pages(1 << order, PAGE);
        got.ok().map(|a| ((a - self.start) / PAGE) as u32)
    }
    #[inline]
    fn give(&mut self, frame: u32, order: u8, _: MigrateType) {
        self.buddy
            .dealloc_pages(self.start + frame as usize * PAGE, 1 << order);
    }
}

/// It has no search: a caller says which block it wants. Here it wants the next one, round and round.
struct Branch<'a> {
    tree: BranchAllocator<'a>,
    next: [u32; 2],
    frames: u32,
}

fn branch<V: Visit>(frames: u32, threads: usize, v: &mut V) {
    let order = frames.ilog2() as usize;
    let words = (0..BranchAllocator::required(order)).map(|_| Atomic::new(0));
    let words: Vec<Atomic> = words.collect();
    let tree = BranchAllocator::new(&words, order).expect("words");
    let each = frames / threads as u32;
    let own = |i: u32| Branch {
        tree: tree.clone(),
        next: [i * each; 2],
        frames,
    };
    v.visit((0..threads as u32).map(own).collect());
}

impl Own for Branch<'_> {
    #[inline]
    fn take(&mut self, order: u8, _: MigrateType) -> Option<u32> {
        let next = &mut self.next[usize::from(order > 0)];
        for _ in 0..self.frames >> order {
            let frame = *next;
            *next = (frame + (1 << order)) % self.frames;
            if self
                .tree
                .try_allocate(frame as usize, order.into())
                .is_some()
            {
                return Some(frame);
            }
        }
        None
    }
    #[inline]
    fn give(&mut self, frame: u32, order: u8, _: MigrateType) {
        self.tree
            .deallocate(frame as usize, order.into())
            .expect("in use");
        self.next[usize::from(order > 0)] = frame;
    }
}

/// Which of the bench's threads this is.
struct Thread;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Gives this thread a number, for allocators that ask for it.
pub fn number_thread(i: usize) {
    NUMBER.set(i);
}

impl PeerCpu for Thread {
    #[inline]
    fn current_cpu() -> usize {
        NUMBER.get()
    }
}

struct Exposed;

// SAFETY: the mapping is one allocation, and its address is exposed.
unsafe impl Provenance for Exposed {
    unsafe fn create(address: usize) -> NonNull<u8> {
        // SAFETY: of a mapping, so not null.
        unsafe { NonNull::new_unchecked(std::ptr::with_exposed_provenance_mut(address)) }
    }
    unsafe fn destroy<T>(p: NonNull<T>) -> usize {
        p.addr().get()
    }
}

/// Orders 0 to 10.
type Summary = SummaryBuddyAllocator<11, Exposed>;

struct Depot<'a> {
    of: &'a DepotAllocator<Summary, Thread, 2>,
    start: usize,
}

const BASE: PageSize = PageSize::from_log2(12);

fn frame_alloc<V: Visit>(frames: u32, threads: usize, v: &mut V) {
    let mut memory = memory_for_peer(frames);
    let memory = memory.bytes();
    let (start, len) = (memory.as_mut_ptr().expose_provenance(), memory.len());
    let depot = Box::new(DepotAllocator::new(BASE, Summary::new(BASE)));
    // SAFETY: once, by one thread, and the mapping is ours.
    unsafe { depot.init_region(start, len) };
    let own = |_| Depot { of: &depot, start };
    v.visit((0..threads).map(own).collect());
}

impl Own for Depot<'_> {
    #[inline]
    fn take(&mut self, order: u8, _: MigrateType) -> Option<u32> {
        let count = NonZeroUsize::new(1 << order)?;
        let got = self.of.allocate_physical(BASE, count).ok()?;
        Some(((got - self.start) / PAGE) as u32)
    }
    #[inline]
    fn give(&mut self, frame: u32, order: u8, _: MigrateType) {
        let Some(count) = NonZeroUsize::new(1 << order) else {
            return;
        };
        // SAFETY: it was taken with the same count.
        unsafe {
            let address = self.start + frame as usize * PAGE;
            self.of.deallocate_physical(BASE, count, address);
        }
    }
}
