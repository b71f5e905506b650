//! The kernel's heap: slab caches over unmovable frames, behind Rust's global allocator.
//!
//! Invariant: a CPU's token is used with interrupts off, for the whole of a call. So a handler may use the heap too.

use crate::cpu;
use crate::frames::{self, Rights};
use crate::memory_map::{DIRECT, MemoryMap};
use crate::once::Once;
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use unfrag::{MigrateType, Order, Pfn};
use unfrag_slab::{
    CacheFlags, Cpu, CurrentCpu, Design, Fault, FrameEntry, Heap, Kmalloc, PageRequest, Pages,
    SlabConfig, Slabs, Window,
};

#[global_allocator]
static HEAP: Heap<Current> = Heap::new(Current);

static SLABS: Once<Slabs<'static>> = Once::new();
static PAGES: Once<KernelPages> = Once::new();

/// The token of a CPU.
struct Token(UnsafeCell<Option<Cpu<'static>>>);
// SAFETY: Each CPU uses its own, with interrupts off.
unsafe impl Sync for Token {}
static TOKENS: [Token; cpu::MAX_CPUS] = [const { Token(UnsafeCell::new(None)) }; cpu::MAX_CPUS];

struct Current;

impl CurrentCpu for Current {
    fn with<R>(&self, f: impl FnOnce(Option<&Cpu<'static>>) -> R) -> R {
        let _off = cpu::interrupts_off();
        // SAFETY: The calling CPU's own, with interrupts off.
        f(unsafe { (*TOKENS[cpu::id()].0.get()).as_ref() })
    }
}

/// Frames for slabs, in the direct map. Not `unfrag_slab::MemoryPages`: they come through what each CPU keeps, without the lock of
/// a shard, and from an era as well.
struct KernelPages {
    frames: usize,
}

// SAFETY: The window is the direct map. What the frames' allocator hands out is in it, and nobody else's.
unsafe impl Pages for KernelPages {
    fn alloc(&self, request: &PageRequest) -> Option<Pfn> {
        // The heap may dip into the reserve: a kernel without a heap cannot go on.
        frames::alloc(Order(request.order), request.mt(), Rights::Interrupt)
    }

    unsafe fn free(&self, first: Pfn, order: u8, mt: MigrateType) {
        frames::free(first, Order(order), mt);
    }

    fn window(&self) -> Window {
        Window {
            first: Pfn(0),
            frames: self.frames,
            base: NonNull::new(DIRECT as *mut u8).expect("not null"),
        }
    }

    fn fault(&self, fault: &Fault) {
        panic!("heap: {fault}");
    }
}

/// The table of the caches, carved out of the map before its frames are given away.
pub fn carve(map: &mut MemoryMap, from: u64) -> &'static mut [FrameEntry] {
    let frames = map.end() as usize;
    // SAFETY: Zeros are entries without a slab.
    unsafe { map.carve(from, frames) }
}

/// Starts the heap.
pub fn init(table: &'static mut [FrameEntry], cpus: usize) {
    let pages = PAGES.set(KernelPages {
        frames: table.len(),
    });
    let config = SlabConfig::new(cpus as u16);
    let slabs = SLABS.set(Slabs::new(pages, table, &config).expect("frames for the first records"));
    for (id, token) in TOKENS.iter().enumerate().take(cpus) {
        let cpu = slabs.cpu(id as u16).expect("nobody has it");
        // SAFETY: No other CPU runs, and the heap is not in use.
        unsafe { *token.0.get() = Some(cpu) };
    }
    let sizes = Kmalloc::new(slabs, Design::Slub, CacheFlags::empty()).expect("frames for caches");
    HEAP.install(sizes).expect("installed once");
}

/// Frames that the heap has.
pub fn frames() -> u64 {
    let slabs = SLABS.get();
    slabs.slab_pages() + slabs.record_pages()
}
