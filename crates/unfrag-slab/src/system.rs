//! A set of caches over one source of pages: [`Slabs`].
//!
//! All its state lives in pages of that source, in the bootstrap cache: the set itself, each cache's descriptor,
//! the records of CPUs and nodes. The caller hands in one table, four bytes for
//! each frame of the window, which leads from an object to its slab.

use crate::bootstrap::BootstrapCache;
use crate::cpu::{Cpu, CpuError};
use crate::destroy::drop_all;
use crate::formulas::PAGE;
use crate::hold::HeldLocks;
use crate::lock::{Locked, SpinLock};
use crate::map::{DirectMap, UNIT};
use crate::memory::Memory;
use crate::pages::Pages;
use crate::rules::Rules;
use crate::set::{CacheList, Set};
use crate::stat::{CacheInfo, info};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use core::marker::PhantomData;
use core::ptr::NonNull;
use lock_api::RawMutex;
use unfrag::Gfp;

/// A table entry for a frame, 4 bytes: which slab it belongs to.
#[derive(Default)]
#[repr(transparent)]
pub struct FrameEntry(AtomicU32);

impl FrameEntry {
    /// Of a frame without a slab.
    pub const fn new() -> FrameEntry {
        FrameEntry(AtomicU32::new(0))
    }
}

/// Configuration of a set of caches.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SlabConfig {
    /// CPUs: tokens that can be claimed. At least one.
    pub cpus: u16,
    /// Nodes; at least one.
    pub nodes: u8,
    /// Node of a CPU; asked again whenever that is needed, so it must not change.
    pub node_of_cpu: fn(u16) -> u8,
    /// The rules in force.
    pub rules: Rules,
}

impl SlabConfig {
    /// For so many CPUs of one node, under the rules of 6.x.
    pub const fn new(cpus: u16) -> SlabConfig {
        SlabConfig {
            cpus,
            nodes: 1,
            node_of_cpu: |_| 0,
            rules: Rules::MODERN,
        }
    }
    /// For so many nodes, where a CPU is on the node that `node_of_cpu` says.
    #[must_use]
    pub const fn nodes(mut self, nodes: u8, node_of_cpu: fn(u16) -> u8) -> SlabConfig {
        self.nodes = nodes;
        self.node_of_cpu = node_of_cpu;
        self
    }
    /// Under these rules.
    #[must_use]
    pub const fn rules(mut self, rules: Rules) -> SlabConfig {
        self.rules = rules;
        self
    }
}

impl Default for SlabConfig {
    /// One CPU on one node, under the rules of 6.x.
    fn default() -> SlabConfig {
        SlabConfig::new(1)
    }
}

/// Why a set of caches cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

/// A set of slab caches. Two sets share nothing. `R` is the lock of its lists and records: a spin lock unless it is made
/// [with another](Slabs::with_lock).
///
/// When it is dropped, its pages go back unless a cache still has objects in use; those, and the
/// records, then stay where they are.
pub struct Slabs<'p, R: RawMutex = SpinLock> {
    set: NonNull<Set<R>>,
    pages: PhantomData<&'p dyn Pages>,
}

// SAFETY: `Set` may be used from any thread.
#[allow(unsafe_code)]
unsafe impl<R: RawMutex + Send + Sync> Send for Slabs<'_, R> {}
// SAFETY: `Set` may be used from any thread.
#[allow(unsafe_code)]
unsafe impl<R: RawMutex + Send + Sync> Sync for Slabs<'_, R> {}

impl<'p> Slabs<'p> {
    /// Makes a set of caches that takes its memory from `pages`. `table` has an entry for each frame
    /// of its window. Its locks spin; for others see [`with_lock`](Slabs::with_lock).
    ///
    /// # Errors
    /// If the configuration contradicts itself, or there is no page for the first records.
    pub fn new(
        pages: &'p dyn Pages,
        table: &'p mut [FrameEntry],
        config: &SlabConfig,
    ) -> Result<Slabs<'p>, SlabsError> {
        Slabs::with_lock(pages, table, config)
    }
}

impl<'p, R: RawMutex> Slabs<'p, R> {
    /// As [`new`](Slabs::new), with locks of the type `R`: in a kernel whose interrupts use the caches too, one that
    /// switches interrupts off while it is held.
    ///
    /// # Errors
    /// As [`new`](Slabs::new).
    #[allow(unsafe_code)]
    pub fn with_lock(
        pages: &'p dyn Pages,
        table: &'p mut [FrameEntry],
        config: &SlabConfig,
    ) -> Result<Slabs<'p, R>, SlabsError> {
        table.fill_with(FrameEntry::new);
        // SAFETY: all entries are new, and the table is the set's alone.
        unsafe { Slabs::with_new_table(pages, table, config) }
    }

    /// As [`new`](Slabs::new), without a look at the table: for one in memory that reads as zeros and is used only
    /// when it is written.
    ///
    /// # Errors
    /// As [`new`](Slabs::new).
    ///
    /// # Safety
    /// Each entry is as [`FrameEntry::new`] makes it, which is all zeros, and the set alone uses the table.
    #[allow(unsafe_code)]
    pub unsafe fn with_new_table(
        pages: &'p dyn Pages,
        table: &'p [FrameEntry],
        config: &SlabConfig,
    ) -> Result<Slabs<'p, R>, SlabsError> {
        const { assert!(align_of::<R>() <= UNIT, "records are aligned to 64 bytes") };
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
        let map = DirectMap::new(&window, table);
        // SAFETY: `Slabs<'p>` and all that it lends live no longer than `'p`.
        let pages: &'static dyn Pages = unsafe { core::mem::transmute(pages) };
        let bootstrap = BootstrapCache::new();
        let claims = bootstrap
            .alloc(pages, &map, cpus * size_of::<AtomicU32>(), Gfp::KERNEL, 0)
            .ok_or(SlabsError::NoMemory)?;
        let room = bootstrap.alloc(pages, &map, size_of::<Set<R>>(), Gfp::KERNEL, 0);
        let Some(room) = room else {
            // SAFETY: allocated above with that size; zero is a valid word.
            unsafe { bootstrap.free(pages, &map, claims, cpus * size_of::<AtomicU32>()) };
            bootstrap.trim(pages, &map);
            return Err(SlabsError::NoMemory);
        };
        let set = Set {
            memory: Memory {
                pages,
                map,
                bootstrap,
            },
            rules: config.rules,
            cpus: config.cpus,
            nodes: config.nodes,
            large_memory: pages.free_and_total().1.max(window.frames as u64) > (32 << 20 >> 12),
            claims: claims.as_ptr().cast(),
            node_of_cpu: config.node_of_cpu,
            caches: Locked::new(CacheList::new()),
            slab_pages: AtomicU64::new(0),
        };
        let room = room.cast::<Set<R>>();
        // SAFETY: the record is large enough, aligned to 64 bytes, and ours.
        unsafe { room.write(set) };
        Ok(Slabs {
            set: room,
            pages: PhantomData,
        })
    }

    pub(crate) fn set(&self) -> &Set<R> {
        // SAFETY: it lives as long as `self`.
        #[allow(unsafe_code)]
        unsafe {
            self.set.as_ref()
        }
    }

    /// Claims the token of a CPU, until the token is dropped.
    ///
    /// # Errors
    /// If the CPU does not exist, or its token is claimed already.
    pub fn cpu(&self, cpu: u16) -> Result<Cpu<'_, R>, CpuError> {
        Cpu::claim(self.set(), cpu)
    }

    /// Claims the token of any CPU.
    ///
    /// # Errors
    /// If all are claimed.
    pub fn any_cpu(&self) -> Result<Cpu<'_, R>, CpuError> {
        (0..self.set().cpus)
            .find_map(|c| self.cpu(c).ok())
            .ok_or(CpuError::AllTaken)
    }

    /// CPUs of the set.
    pub fn cpus(&self) -> u16 {
        self.set().cpus
    }

    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.set().rules
    }

    /// Calls `f` with the counts of each cache, the youngest first. No cache comes or goes
    /// meanwhile; `f` must not create or destroy one.
    pub fn each_cache(&self, mut f: impl FnMut(&CacheInfo)) {
        let set = self.set();
        set.each_cache(|cache| f(&info(set, cache)));
    }

    /// Pages of all slabs of all caches, and those that kmalloc handed out as whole pages.
    pub fn slab_pages(&self) -> u64 {
        // Relaxed: nothing is read because of this count.
        self.set().slab_pages.load(Ordering::Relaxed)
    }

    /// Takes every lock of the set, so that a process may be forked: what is behind the locks is whole then, in the child
    /// too. They are free again when the result is dropped, which each of the two processes does for itself.
    ///
    /// A call of another thread that takes no lock may be under way; so the tokens of other threads' CPUs are lost in the
    /// child. Sets with caches of the design SLAB have more locks than these.
    pub fn hold_locks(&self) -> HeldLocks<'_, R> {
        HeldLocks::new(self.set())
    }

    /// Pages that the caches' own records take, beside [`slab_pages`](Slabs::slab_pages).
    pub fn record_pages(&self) -> u64 {
        self.set().memory.bootstrap.pages()
    }
}

impl<R: RawMutex> Drop for Slabs<'_, R> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let set = self.set();
        if !drop_all(set) {
            return;
        }
        let claims = NonNull::new(set.claims.cast_mut().cast::<u8>());
        let claims_len = usize::from(set.cpus) * size_of::<AtomicU32>();
        // SAFETY: no cache and no token exists any more; the set is read out of its record, and the
        // records are freed with the sizes that they were allocated with.
        unsafe {
            let set = self.set.read();
            if let Some(claims) = claims {
                set.memory.free_record(claims, claims_len);
            }
            set.memory.free_record(self.set.cast(), size_of::<Set<R>>());
            set.memory.trim();
        }
    }
}
