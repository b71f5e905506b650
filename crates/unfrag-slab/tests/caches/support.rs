//! Real memory behind a manager of an era or behind the engine, for slab caches.
#![allow(dead_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use unfrag::maps::Gigabyte;
use unfrag::{Area, MemoryConfig, MemoryLayout, MigrateType, NodeId, Pfn};
use unfrag_eras::{Builder, NullHost};
use unfrag_slab::{
    Fault, FrameEntry, LockedPages, MemoryPages, PageRequest, Pages, SlabConfig, Slabs, SpinLock,
    Window,
};

/// So many frames, or under Miri as few as a small test needs: it boots a manager for each of them.
pub const fn few(frames: u64) -> u64 {
    if cfg!(miri) { 128 } else { frames }
}

/// A source of pages that the tests run over.
pub trait Source: Pages + Sized + 'static {
    /// Over `nodes` nodes, one or two, of `frames` frames each, which are all that is at `base`.
    ///
    /// # Safety
    /// They are memory as long as this lives.
    unsafe fn over(nodes: u8, frames: u64, base: NonNull<u8>) -> Self;
}

/// A manager of an era.
pub type Eras = LockedPages<'static, NullHost>;

impl Source for Eras {
    unsafe fn over(nodes: u8, frames: u64, base: NonNull<u8>) -> Eras {
        let mut config = Builder::new();
        for node in 0..nodes {
            let start = Pfn(1024 + u64::from(node) * frames);
            config = config.node(NodeId(node)).region(start, frames);
        }
        let words = for_ever(vec![0u64; config.layout().unwrap().words].into_boxed_slice());
        let manager = config.boot(NullHost, words).unwrap();
        unsafe { LockedPages::new(manager, base) }.unwrap()
    }
}

/// The engine.
pub type Engine = MemoryPages<'static, 'static>;

/// Frames of a gigabyte, at which areas begin.
const GIGABYTE: u64 = 1 << 18;

/// A memory of areas without frames as yet, one for each node, a gigabyte each.
pub fn areas(
    nodes: u8,
) -> (
    &'static unfrag::Memory<'static, SpinLock>,
    &'static mut [u64],
) {
    let area = |node: u8| Area {
        start: Pfn(u64::from(node) * GIGABYTE),
        frames: GIGABYTE,
        node: NodeId(node),
        shards: 1,
        is_low: false,
    };
    let config = (1..nodes).fold(MemoryConfig::of(area(0)), |c, node| c.and(area(node)));
    let room = MemoryLayout::of(&config);
    let mut words = for_ever(vec![0; room.words].into_boxed_slice());
    let directory: Vec<Gigabyte> = (0..room.gigabytes).map(|_| Gigabyte::NONE).collect();
    let memory = for_ever(Box::new(unfrag::Memory::new(config)));
    let directory = for_ever(directory.into_boxed_slice());
    memory.start(directory, &mut words).unwrap();
    (memory, words)
}

impl Source for Engine {
    /// The first node's frames end where its gigabyte does, and the second's begin there: so they are side by side.
    unsafe fn over(nodes: u8, frames: u64, base: NonNull<u8>) -> Engine {
        let (memory, mut words) = areas(nodes);
        let first = Pfn(GIGABYTE - frames);
        let all = u64::from(nodes) * frames;
        memory.add(first, all, &mut words).unwrap();
        let frames = all as usize;
        unsafe {
            MemoryPages::new(
                memory,
                Window {
                    first,
                    frames,
                    base,
                },
            )
        }
        .unwrap()
    }
}

/// Memory of `nodes` nodes of `frames` frames each, and a source over it.
pub struct Memory<S: Source> {
    pub pages: CountedPages<S>,
    base: NonNull<u8>,
    room: Layout,
}

/// The pages of a source, counted.
pub struct CountedPages<S> {
    pub source: S,
    /// Pages that are allocated.
    pub held: AtomicU64,
    /// Blocks that are allocated, by their first frame: their order and type.
    blocks: Mutex<BTreeMap<u64, (u8, MigrateType)>>,
    /// Allocations to let through before all fail; `u64::MAX` lets all through.
    pub budget: AtomicU64,
    /// Faults reported.
    pub faults: std::sync::Mutex<Vec<Fault>>,
    /// Requests seen, if wanted.
    pub requests: std::sync::Mutex<Option<Vec<(PageRequest, bool)>>>,
}

// The tests share it between threads; the memory is reached through the caches.
unsafe impl<S: Source> Sync for Memory<S> {}

unsafe impl<S: Source> Pages for CountedPages<S> {
    fn alloc(&self, r: &PageRequest) -> Option<Pfn> {
        let budget = self.budget.load(Ordering::Relaxed);
        if budget == 0 {
            return None;
        }
        if budget != u64::MAX {
            self.budget.store(budget - 1, Ordering::Relaxed);
        }
        let got = self.source.alloc(r);
        if let Some(first) = got {
            self.held.fetch_add(1 << r.order, Ordering::Relaxed);
            assert_ne!(r.mt(), MigrateType::Movable, "no object can be moved");
            let mut blocks = self.blocks.lock().unwrap();
            let twice = blocks.insert(first.0, (r.order, r.mt()));
            assert_eq!(twice, None, "frame {first:?} is in use");
        }
        if let Some(all) = &mut *self.requests.lock().unwrap() {
            all.push((*r, got.is_some()));
        }
        got
    }
    unsafe fn free(&self, first: Pfn, order: u8, mt: MigrateType) {
        let taken = self.blocks.lock().unwrap().remove(&first.0);
        assert_eq!(taken, Some((order, mt)), "as frame {first:?} was taken");
        self.held.fetch_sub(1 << order, Ordering::Relaxed);
        unsafe { self.source.free(first, order, mt) };
    }
    fn window(&self) -> Window {
        self.source.window()
    }
    fn node_of(&self, pfn: Pfn) -> u8 {
        self.source.node_of(pfn)
    }
    fn free_and_total(&self) -> (u64, u64) {
        self.source.free_and_total()
    }
    fn fault(&self, fault: &Fault) {
        self.faults.lock().unwrap().push(*fault);
    }
}

/// What tests leave behind for ever.
struct Left(#[allow(dead_code)] *mut ());

// SAFETY: nobody uses it.
unsafe impl Send for Left {}

/// A value for the rest of the process. It stays within reach, so that no tool takes it for lost.
pub fn for_ever<T: ?Sized>(value: Box<T>) -> &'static mut T {
    static ALL: Mutex<Vec<Left>> = Mutex::new(vec![]);
    let value = Box::leak(value);
    ALL.lock().unwrap().push(Left((&raw mut *value).cast()));
    value
}

impl<S: Source> Memory<S> {
    pub fn new(nodes: u8, frames: u64) -> Memory<S> {
        let room = Layout::from_size_align(nodes as usize * frames as usize * 4096, 4096).unwrap();
        let base = NonNull::new(unsafe { alloc(room) }).unwrap();
        Memory {
            pages: CountedPages {
                source: unsafe { S::over(nodes, frames, base) },
                held: AtomicU64::new(0),
                blocks: Mutex::default(),
                budget: AtomicU64::new(u64::MAX),
                faults: std::sync::Mutex::default(),
                requests: std::sync::Mutex::default(),
            },
            base,
            room,
        }
    }

    /// Pages that the caches hold, records included.
    pub fn held(&self) -> u64 {
        self.pages.held.load(Ordering::Relaxed)
    }

    pub fn table(&self) -> Vec<FrameEntry> {
        let frames = self.pages.window().frames;
        (0..frames).map(|_| FrameEntry::new()).collect()
    }

    /// Calls `f` with a set of caches; afterwards every page must be back.
    pub fn with<T>(&self, config: &SlabConfig, f: impl FnOnce(&Slabs) -> T) -> T {
        let mut table = self.table();
        let slabs = Slabs::new(&self.pages, &mut table, config).unwrap();
        let done = f(&slabs);
        drop(slabs);
        assert_eq!(self.held(), 0, "pages are lost");
        done
    }
}

impl<S: Source> Drop for Memory<S> {
    fn drop(&mut self) {
        unsafe { dealloc(self.base.as_ptr(), self.room) };
    }
}
