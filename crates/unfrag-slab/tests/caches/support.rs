//! Real memory behind a manager, for slab caches.
#![allow(dead_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use unfrag::{NodeId, Pfn};
use unfrag_eras::{Builder, NullHost};
use unfrag_slab::{Fault, FrameEntry, LockedPages, PageRequest, Pages, SlabConfig, Slabs, Window};

/// So many frames, or under Miri as few as a small test needs: it boots a manager for each of them.
pub const fn few(frames: u64) -> u64 {
    if cfg!(miri) { 128 } else { frames }
}

/// Memory of `nodes` nodes of `frames` frames each, and a manager over it.
pub struct Memory {
    pub pages: CountedPages,
    base: NonNull<u8>,
    room: Layout,
    metadata: *mut [u64],
}

/// The manager's pages, counted.
pub struct CountedPages {
    pub manager: LockedPages<'static, NullHost>,
    /// Pages that are allocated.
    pub held: AtomicU64,
    /// Allocations to let through before all fail; `u64::MAX` lets all through.
    pub budget: AtomicU64,
    /// Faults reported.
    pub faults: std::sync::Mutex<Vec<Fault>>,
    /// Requests seen, if wanted.
    pub requests: std::sync::Mutex<Option<Vec<(PageRequest, bool)>>>,
}

// The tests share it between threads; the metadata is the manager's, which has a lock.
unsafe impl Sync for Memory {}

unsafe impl Pages for CountedPages {
    fn alloc(&self, r: &PageRequest) -> Option<Pfn> {
        let budget = self.budget.load(Ordering::Relaxed);
        if budget == 0 {
            return None;
        }
        if budget != u64::MAX {
            self.budget.store(budget - 1, Ordering::Relaxed);
        }
        let got = self.manager.alloc(r);
        if got.is_some() {
            self.held.fetch_add(1 << r.order, Ordering::Relaxed);
        }
        if let Some(all) = &mut *self.requests.lock().unwrap() {
            all.push((*r, got.is_some()));
        }
        got
    }
    unsafe fn free(&self, first: Pfn, order: u8) {
        self.held.fetch_sub(1 << order, Ordering::Relaxed);
        unsafe { self.manager.free(first, order) };
    }
    fn window(&self) -> Window {
        self.manager.window()
    }
    fn node_of(&self, pfn: Pfn) -> u8 {
        self.manager.node_of(pfn)
    }
    fn free_and_total(&self) -> (u64, u64) {
        self.manager.free_and_total()
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

impl Memory {
    pub fn new(nodes: u8, frames: u64) -> Memory {
        let mut config = Builder::new();
        for node in 0..nodes {
            let start = Pfn(1024 + u64::from(node) * frames);
            config = config.node(NodeId(node)).region(start, frames);
        }
        let words = config.layout().unwrap().words;
        let metadata = Box::into_raw(vec![0u64; words].into_boxed_slice());
        // It goes with this, and so after the manager's last use.
        let manager = config.boot(NullHost, unsafe { &mut *metadata }).unwrap();
        let room = Layout::from_size_align(nodes as usize * frames as usize * 4096, 4096).unwrap();
        let base = NonNull::new(unsafe { alloc(room) }).unwrap();
        let manager = unsafe { LockedPages::new(manager, base) }.unwrap();
        Memory {
            pages: CountedPages {
                manager,
                held: AtomicU64::new(0),
                budget: AtomicU64::new(u64::MAX),
                faults: std::sync::Mutex::default(),
                requests: std::sync::Mutex::default(),
            },
            base,
            room,
            metadata,
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

impl Drop for Memory {
    fn drop(&mut self) {
        unsafe {
            dealloc(self.base.as_ptr(), self.room);
            drop(Box::from_raw(self.metadata));
        }
    }
}
