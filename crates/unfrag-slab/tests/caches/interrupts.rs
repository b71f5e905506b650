//! Interrupts that allocate and free, at every point where they can come: while pages are taken or given back, and whenever
//! a lock that switched them off is released.
//!
//! A thread plays the CPU. Its interrupts are off while it holds a lock; a second attempt to take a lock that it holds
//! would wait for ever, and is a panic here.

use super::support::{Memory, for_ever};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use unfrag::{Gfp, MigrateType, Pfn};
use unfrag_slab::{
    CacheFlags, CacheOptions, Cpu, CurrentCpu, Design, Due, Heap, Kmalloc, PageRequest, Pages,
    SlabConfig, Slabs, Window,
};

thread_local! {
    /// Locks that this CPU holds: interrupts are on without one.
    static HELD: Cell<u32> = const { Cell::new(0) };
    /// An interrupt is being handled, which another does not interrupt.
    static HANDLING: Cell<bool> = const { Cell::new(false) };
    static HANDLED: Cell<u64> = const { Cell::new(0) };
    static HANDLER: Cell<Option<&'static Handler>> = const { Cell::new(None) };
    static TOKEN: Cell<Option<Cpu<'static, Off>>> = const { Cell::new(None) };
}

/// A lock that switches interrupts off while it is held.
struct Off(AtomicBool);

unsafe impl lock_api::RawMutex for Off {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Off = Off(AtomicBool::new(false));
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        assert!(
            self.try_lock(),
            "a CPU waits for a lock that it holds itself"
        );
    }
    fn try_lock(&self) -> bool {
        let got = !self.0.swap(true, Ordering::Acquire);
        HELD.set(HELD.get() + u32::from(got));
        got
    }
    unsafe fn unlock(&self) {
        self.0.store(false, Ordering::Release);
        HELD.set(HELD.get() - 1);
        interrupt();
    }
}

/// What an interrupt does.
struct Handler {
    heap: &'static Heap<ThisCpu, Off>,
    live: RefCell<Vec<Block>>,
}

/// An interrupt comes, if they are on.
fn interrupt() {
    let Some(handler) = HANDLER.get() else { return };
    if HELD.get() > 0 || HANDLING.replace(true) {
        return;
    }
    let n = HANDLED.get();
    let mut live = handler.live.borrow_mut();
    let size = [40, 64, 500, 5000][(n % 4) as usize];
    live.extend(Block::new(handler.heap, size, 8));
    if live.len() > 30 {
        live.swap_remove(n as usize % 30);
    }
    HANDLED.set(n + 1);
    HANDLING.set(false);
}

/// Pages whose source is interrupted at each request.
struct Interrupted(&'static Memory);

unsafe impl Pages for Interrupted {
    fn alloc(&self, request: &PageRequest) -> Option<Pfn> {
        assert_eq!(HELD.get(), 0, "a lock is held while pages are taken");
        interrupt();
        self.0.pages.alloc(request)
    }
    unsafe fn free(&self, first: Pfn, order: u8, mt: MigrateType) {
        assert_eq!(HELD.get(), 0, "a lock is held while pages are given back");
        unsafe { self.0.pages.free(first, order, mt) };
        interrupt();
    }
    fn window(&self) -> Window {
        self.0.pages.window()
    }
}

/// The thread's token, unless it is in use: then whoever asks is an interrupt.
struct ThisCpu;

impl CurrentCpu<Off> for ThisCpu {
    fn with<T>(&self, f: impl FnOnce(Option<&Cpu<'static, Off>>) -> T) -> T {
        let cpu = TOKEN.take();
        let done = f(cpu.as_ref());
        if cpu.is_some() {
            TOKEN.set(cpu);
        }
        done
    }
}

/// Memory with a mark in its first and last byte.
struct Block {
    heap: &'static Heap<ThisCpu, Off>,
    at: *mut u8,
    layout: Layout,
}

impl Block {
    fn new(heap: &'static Heap<ThisCpu, Off>, size: usize, align: usize) -> Option<Block> {
        let layout = Layout::from_size_align(size, align).expect("a layout");
        let at = unsafe { heap.alloc(layout) };
        if at.is_null() {
            return None;
        }
        assert!(at.addr().is_multiple_of(align));
        let block = Block { heap, at, layout };
        unsafe {
            at.write(block.mark());
            at.add(size - 1).write(block.mark());
        }
        Some(block)
    }
    fn mark(&self) -> u8 {
        (self.at.addr() >> 3) as u8
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let ends = unsafe { [self.at.read(), self.at.add(self.layout.size() - 1).read()] };
        assert_eq!(ends, [self.mark(); 2], "somebody else has this memory too");
        unsafe { self.heap.dealloc(self.at, self.layout) };
    }
}

#[test]
fn an_interrupt_allocates_wherever_it_comes() {
    let seed = std::env::var("UNFRAG_SEED").map_or(3, |s| s.parse().expect("a number"));
    println!("seed {seed}: set UNFRAG_SEED for another");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&u64::to_le_bytes(seed));
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let rounds = if cfg!(miri) { 60 } else { 20_000 };
    for design in Design::ALL {
        let memory: &'static Memory = for_ever(Box::new(Memory::new(
            1,
            if cfg!(miri) { 512 } else { 1024 },
        )));
        let table = for_ever(memory.table().into_boxed_slice());
        let pages: &'static Interrupted = for_ever(Box::new(Interrupted(memory)));
        let slabs = Slabs::with_lock(pages, table, &SlabConfig::new(2)).expect("caches");
        let slabs: &'static Slabs<'static, Off> = for_ever(Box::new(slabs));
        let sizes = Kmalloc::new(slabs, design, CacheFlags::empty()).expect("sizes");
        let heap: &'static Heap<ThisCpu, Off> = for_ever(Box::new(Heap::new(ThisCpu)));
        heap.install(sizes).expect("not installed before");
        TOKEN.set(Some(slabs.cpu(0).expect("a token")));
        let live = RefCell::default();
        let handler: &'static Handler = for_ever(Box::new(Handler { heap, live }));
        HANDLER.set(Some(handler));
        HANDLED.set(0);
        let other = slabs.cpu(1).expect("another token");
        let mut live = vec![];
        for round in 0..rounds {
            let n = rng.next_u32() as usize;
            if n & 7 < 5 {
                live.extend(Block::new(heap, 1 + (n >> 8) % 9000, 8 << (n >> 4 & 3)));
            } else if !live.is_empty() {
                live.swap_remove((n >> 8) % live.len());
            }
            match round % 50 {
                7 => {
                    let options = CacheOptions::new("passing", 48).design(design);
                    let cache = slabs.create(&options).expect("a cache");
                    let object = cache.alloc(&other, Gfp::KERNEL).expect("an object");
                    let second = cache.alloc_without_cpu(Gfp::KERNEL).expect("an object");
                    unsafe { cache.free_without_cpu(object) }.expect("in use");
                    unsafe { cache.free(&other, second) }.expect("in use");
                    cache.shrink(&other);
                    cache.destroy().expect("no object");
                }
                13 => other.reap(Due::ALL),
                17 => drop(heap.sizes().map(|sizes| sizes.shrink(&other))),
                23 => live.clear(),
                _ => {}
            }
        }
        live.clear();
        assert!(HANDLED.get() > rounds / 20, "{} interrupts", HANDLED.get());
        HANDLER.set(None);
        handler.live.borrow_mut().clear();
        let used = |info: &unfrag_slab::CacheInfo| (info.name, info.allocs() - info.frees());
        slabs.each_cache(|info| assert_eq!(used(info), (info.name, 0), "{design}"));
        slabs.validate().expect("every invariant");
        TOKEN.set(None);
    }
}

/// The fault of a lock that leaves interrupts on is what the test above would find: with such a lock it does.
#[test]
#[should_panic(expected = "a CPU waits for a lock that it holds itself")]
fn a_lock_that_is_held_cannot_be_taken_again_on_its_cpu() {
    let lock = lock_api::Mutex::<Off, ()>::new(());
    let first = lock.lock();
    let _second = lock.lock();
    drop(first);
}
