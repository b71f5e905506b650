//! A set of caches over one source of pages: [`Slabs`].
//!
//! All that it knows lives in pages of that source, in the bootstrap cache: the set itself, each
//! cache's descriptor, what CPUs and nodes have of it. The caller hands in one table, four bytes for
//! each frame of the window, which leads from an object to its slab.

use crate::boot::Boot;
use crate::cpu::{Cpu, CpuError};
use crate::desc::Desc;
use crate::formulas::PAGE;
use crate::lock::Locked;
use crate::pages::{DirectMap, Pages};
use crate::rules::Rules;
use crate::shrink::Shrinkers;
use crate::sync::{AtomicU32, AtomicU64, Ordering, spin};
use core::marker::PhantomData;
use core::ptr::{NonNull, null};

/// A table entry for a frame: which slab it belongs to.
#[derive(Default)]
#[repr(transparent)]
pub struct FrameEntry(AtomicU32);

impl FrameEntry {
    /// Of a frame without a slab.
    pub const fn new() -> FrameEntry {
        FrameEntry(AtomicU32::new(0))
    }
}

/// What a set of caches is made for.
#[derive(Clone, Copy, Debug)]
pub struct SlabConfig {
    /// CPUs: tokens that can be claimed. At least one.
    pub cpus: u16,
    /// Nodes; at least one.
    pub nodes: u8,
    /// Node of a CPU.
    pub node_of_cpu: fn(u16) -> u8,
    /// The rules in force.
    pub rules: Rules,
}

impl Default for SlabConfig {
    fn default() -> SlabConfig {
        SlabConfig {
            cpus: 1,
            nodes: 1,
            node_of_cpu: |_| 0,
            rules: Rules::default(),
        }
    }
}

/// Why a set of caches cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlabsError {
    /// No CPU, no node, more than 64 nodes, or a CPU's node does not exist.
    Topology,
    /// The window begins at an address that is no multiple of the page size, has holes for frames
    /// that the table does not cover, or is larger than 256 GiB.
    Window,
    /// No page for the first records.
    NoMemory,
}

impl core::fmt::Display for SlabsError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str(match self {
            SlabsError::Topology => {
                "slab caches need a CPU, 1 to 64 nodes, and for each CPU a node that exists"
            }
            SlabsError::Window => {
                "the window of slab caches must begin at a page, be at most 256 GiB, and have a \
                 table entry for each frame"
            }
            SlabsError::NoMemory => "no page for the first records of the slab caches",
        })
    }
}

impl core::error::Error for SlabsError {}

/// Most nodes.
pub(crate) const MAX_NODES: u8 = 64;

/// Where a CPU's token is: here, with somebody, with somebody for a moment.
const IN: u32 = 0;
const OUT: u32 = 1;
const BORROWED: u32 = 2;

/// The set itself, in a page of its own.
pub(crate) struct Inner {
    pub pages: &'static dyn Pages,
    pub map: DirectMap,
    pub boot: Boot,
    pub rules: Rules,
    pub cpus: u16,
    pub nodes: u8,
    /// Whether there are more than 32 MiB, which moves SLAB's break order.
    pub large_memory: bool,
    /// One word a CPU: where its token is.
    claims: *const AtomicU32,
    pub node_of_cpu: fn(u16) -> u8,
    /// First of all caches.
    pub caches: Locked<CacheList>,
    pub shrinkers: Shrinkers,
    /// Pages of all slabs, and those that kmalloc handed out as such.
    pub slab_pages: AtomicU64,
}

/// The list of all caches.
pub(crate) struct CacheList(pub *const Desc);

// SAFETY: the descriptors are reached under the list's lock, or through handles that keep them.
#[allow(unsafe_code)]
unsafe impl Send for CacheList {}
// SAFETY: all that changes is atomic or locked, but for the records of CPUs, which tokens guard.
#[allow(unsafe_code)]
unsafe impl Sync for Inner {}

impl Inner {
    /// Memory for a record.
    pub fn boot_alloc(&self, bytes: usize, gfp: unfrag::Gfp, node: u8) -> Option<NonNull<u8>> {
        self.boot.alloc(self.pages, &self.map, bytes, gfp, node)
    }
    /// # Safety
    /// As for [`Boot::free`].
    #[allow(unsafe_code)]
    pub unsafe fn boot_free(&self, at: NonNull<u8>, bytes: usize) {
        // SAFETY: as the caller says.
        unsafe { self.boot.free(self.pages, &self.map, at, bytes) }
    }
    /// Takes a CPU's token, if it is not out; waits for whoever has it only for a moment.
    pub fn claim(&self, cpu: u16) -> bool {
        loop {
            match self.try_claim(cpu, OUT) {
                Ok(_) => return true,
                Err(BORROWED) => spin(),
                Err(_) => return false,
            }
        }
    }
    /// Takes it for a moment, to empty the CPU's lists.
    pub fn borrow(&self, cpu: u16) -> bool {
        self.try_claim(cpu, BORROWED).is_ok()
    }
    fn try_claim(&self, cpu: u16, to: u32) -> Result<u32, u32> {
        let word = self.word(cpu);
        word.compare_exchange(IN, to, Ordering::Acquire, Ordering::Relaxed)
    }
    /// Gives a CPU's token back.
    pub fn release(&self, cpu: u16) {
        self.word(cpu).store(IN, Ordering::Release);
    }
    fn word(&self, cpu: u16) -> &AtomicU32 {
        assert!(cpu < self.cpus, "no such CPU");
        // SAFETY: there is a word for each CPU.
        #[allow(unsafe_code)]
        unsafe {
            &*self.claims.add(cpu.into())
        }
    }
    /// Calls `f` with each cache. No cache comes or goes meanwhile.
    pub fn each_cache(&self, mut f: impl FnMut(&Desc)) {
        let list = self.caches.lock();
        let mut at = list.0;
        while !at.is_null() {
            // SAFETY: caches on the list live.
            #[allow(unsafe_code)]
            let d = unsafe { &*at };
            f(d);
            at = d.next.get();
        }
    }
}

/// A set of slab caches. Two sets share nothing.
///
/// When it is dropped, its pages go back unless a cache still has objects in use; those, and the
/// records, then stay where they are.
pub struct Slabs<'p> {
    inner: NonNull<Inner>,
    pages: PhantomData<&'p dyn Pages>,
}

// SAFETY: `Inner` may be used from any thread.
#[allow(unsafe_code)]
unsafe impl Send for Slabs<'_> {}
// SAFETY: the same.
#[allow(unsafe_code)]
unsafe impl Sync for Slabs<'_> {}

impl<'p> Slabs<'p> {
    /// Makes a set of caches that takes its memory from `pages`. `table` has an entry for each frame
    /// of its window.
    ///
    /// # Errors
    /// If the configuration contradicts itself, or there is no page for the first records.
    #[allow(unsafe_code)]
    pub fn new(
        pages: &'p dyn Pages,
        table: &'p mut [FrameEntry],
        config: &SlabConfig,
    ) -> Result<Slabs<'p>, SlabsError> {
        let cpus = usize::from(config.cpus);
        let node_exists = |c| (config.node_of_cpu)(c) < config.nodes;
        if cpus == 0
            || !(1..=MAX_NODES).contains(&config.nodes)
            || !(0..config.cpus).all(node_exists)
        {
            return Err(SlabsError::Topology);
        }
        let window = pages.window();
        if !window.base.addr().get().is_multiple_of(PAGE as usize)
            || table.len() < window.frames
            || window.frames > 1 << 26
        {
            return Err(SlabsError::Window);
        }
        // SAFETY: `FrameEntry` is transparent, and the table is ours alone as long as `'p` lasts.
        let table: &'p [AtomicU32] =
            unsafe { core::slice::from_raw_parts(table.as_ptr().cast(), table.len()) };
        table.iter().for_each(|e| e.store(0, Ordering::Relaxed));
        let map = DirectMap::new(&window, table);
        // SAFETY: `Slabs<'p>` and all that it lends live no longer than `'p`.
        let pages: &'static dyn Pages = unsafe { core::mem::transmute(pages) };
        let boot = Boot::new();
        let claims = boot
            .alloc(
                pages,
                &map,
                cpus * size_of::<AtomicU32>(),
                unfrag::Gfp::KERNEL,
                0,
            )
            .ok_or(SlabsError::NoMemory)?;
        let room = boot.alloc(pages, &map, size_of::<Inner>(), unfrag::Gfp::KERNEL, 0);
        let Some(room) = room else {
            // SAFETY: allocated above with that size; zero is a valid word.
            unsafe { boot.free(pages, &map, claims, cpus * size_of::<AtomicU32>()) };
            boot.trim(pages, &map);
            return Err(SlabsError::NoMemory);
        };
        let inner = Inner {
            pages,
            map,
            boot,
            rules: config.rules,
            cpus: config.cpus,
            nodes: config.nodes,
            large_memory: pages.free_and_total().1.max(window.frames as u64) > (32 << 20 >> 12),
            claims: claims.as_ptr().cast(),
            node_of_cpu: config.node_of_cpu,
            caches: Locked::new(CacheList(null())),
            shrinkers: Shrinkers::new(),
            slab_pages: AtomicU64::new(0),
        };
        let room = room.cast::<Inner>();
        // SAFETY: the record is large enough, aligned to 64 bytes, and ours.
        unsafe { room.write(inner) };
        Ok(Slabs {
            inner: room,
            pages: PhantomData,
        })
    }

    pub(crate) fn inner(&self) -> &Inner {
        // SAFETY: it lives as long as `self`.
        #[allow(unsafe_code)]
        unsafe {
            self.inner.as_ref()
        }
    }

    /// Claims the token of a CPU: whoever has it is that CPU.
    ///
    /// # Errors
    /// If the CPU does not exist, or its token is out.
    pub fn cpu(&self, cpu: u16) -> Result<Cpu<'_>, CpuError> {
        Cpu::claim(self.inner(), cpu)
    }

    /// Claims the token of any CPU.
    ///
    /// # Errors
    /// If all are out.
    pub fn any_cpu(&self) -> Result<Cpu<'_>, CpuError> {
        (0..self.inner().cpus)
            .find_map(|c| self.cpu(c).ok())
            .ok_or(CpuError::AllTaken)
    }

    /// CPUs of the set.
    pub fn cpus(&self) -> u16 {
        self.inner().cpus
    }

    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.inner().rules
    }

    /// Pages that the caches' own records take.
    pub fn record_pages(&self) -> u64 {
        self.inner().boot.pages()
    }
}

impl Drop for Slabs<'_> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let inner = self.inner();
        crate::destroy::drop_all(inner);
        if !inner.caches.lock().0.is_null() {
            return;
        }
        inner.shrinkers.clear(inner);
        let (pages, map) = (inner.pages, inner.map);
        let claims = NonNull::new(inner.claims.cast_mut().cast::<u8>());
        let claims_len = usize::from(inner.cpus) * size_of::<AtomicU32>();
        // SAFETY: nobody has a cache or a token any more; the set is read out of its record, and the
        // records are freed with the sizes that they were allocated with.
        unsafe {
            let inner = self.inner.read();
            if let Some(claims) = claims {
                inner.boot.free(pages, &map, claims, claims_len);
            }
            inner
                .boot
                .free(pages, &map, self.inner.cast(), size_of::<Inner>());
            inner.boot.trim(pages, &map);
        }
    }
}
