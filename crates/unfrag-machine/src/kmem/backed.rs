//! Slab caches of [`unfrag_slab`] over real memory, with virtual CPUs, and objects by number.
//!
//! The memory is reserved at once and touched only where slabs and the caches' records lie. One thread
//! acts as every CPU in turn, so a run is a function of its inputs.
//!
//! Invariant: an object's number stands for it from its allocation to its free, and for nothing else, so
//! no caller can free twice or into the wrong cache.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use unfrag_eras::{Config, Gfp, Manager, NodeId, NullHost, Pfn, ZoneConfig, ZoneKind, layout};
use unfrag_slab::{
    CacheFlags, CacheInfo, CacheOptions, Cpu, CreateError, Due, FrameEntry, Kmalloc, KmemCache,
    LockedPages, NoMemory, Rules, SlabConfig, Slabs, SlabsError,
};

/// Configuration of the machine.
#[derive(Clone, Copy, Debug)]
pub struct SlabMachineConfig {
    /// Frames of memory, in one zone.
    pub frames: u64,
    /// CPUs.
    pub cpus: u16,
    /// Rules of the page allocator.
    pub page_rules: unfrag_eras::Rules,
    /// Rules of the caches.
    pub rules: Rules,
}

/// Why a machine cannot be set up.
#[derive(Debug)]
pub enum MachineError {
    /// The page allocator refuses this amount of memory.
    Pages(String),
    /// The caches do not start.
    Slabs(SlabsError),
    /// The host cannot reserve the memory.
    Host,
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            MachineError::Pages(why) => f.write_str(why),
            MachineError::Slabs(why) => why.fmt(f),
            MachineError::Host => f.write_str("this host has not so much memory to reserve"),
        }
    }
}

impl std::error::Error for MachineError {}

/// Memory reserved from the host; what is not touched takes none.
struct Room {
    base: NonNull<u8>,
    layout: Layout,
}

/// Alignment of the memory: that of the largest block.
const ALIGN: usize = 4 << 20;

impl Room {
    fn reserve(frames: u64) -> Option<Room> {
        let bytes = usize::try_from(frames).ok()?.checked_mul(4096)?;
        let layout = Layout::from_size_align(bytes.max(4096), ALIGN).ok()?;
        // SAFETY: the size is not 0.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Room { base, layout })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: allocated with that layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// Number of a cache, in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheId(pub usize);

/// Number of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(usize);

/// What an object was allocated from.
#[derive(Clone, Copy)]
enum Home {
    Cache(usize),
    Kmalloc,
}

/// A machine with slab caches, while it runs.
pub struct SlabMachine<'a> {
    slabs: &'a Slabs<'a>,
    cpus: Vec<Cpu<'a>>,
    caches: Vec<KmemCache<'a>>,
    kmalloc: Kmalloc<'a>,
    objects: Vec<Option<(NonNull<u8>, Home)>>,
    vacant: Vec<usize>,
}

/// Runs `f` on a machine that is booted for it.
///
/// # Errors
/// If the machine cannot be set up.
pub fn with_slab_machine<T>(
    config: &SlabMachineConfig,
    f: impl FnOnce(&mut SlabMachine) -> T,
) -> Result<T, MachineError> {
    let zone = ZoneConfig::whole(NodeId(0), ZoneKind::Normal, Pfn(0x400), config.frames);
    let zones = [zone];
    let pages = Config::new(&zones, config.page_rules);
    let refused = |e: unfrag_eras::ConfigError| MachineError::Pages(e.to_string());
    let mut metadata = vec![0; layout(&pages).map_err(refused)?.words];
    let manager = Manager::boot(&pages, NullHost, &mut metadata).map_err(refused)?;
    let room = Room::reserve(config.frames).ok_or(MachineError::Host)?;
    // SAFETY: the room has all frames of the manager's one zone, outlives it, and serves nothing
    // else.
    let pages: LockedPages<NullHost> =
        unsafe { LockedPages::new(manager, room.base) }.ok_or(MachineError::Host)?;
    let mut table: Vec<FrameEntry> = (0..config.frames).map(|_| FrameEntry::new()).collect();
    let slab_config = SlabConfig::new(config.cpus).rules(config.rules);
    let slabs = Slabs::new(&pages, &mut table, &slab_config).map_err(MachineError::Slabs)?;
    let no_memory = || MachineError::Slabs(SlabsError::NoMemory);
    let cpus = (0..config.cpus).map(|c| slabs.cpu(c));
    let mut machine = SlabMachine {
        slabs: &slabs,
        cpus: cpus.collect::<Result<_, _>>().map_err(|_| no_memory())?,
        caches: vec![],
        kmalloc: Kmalloc::new(&slabs, config.rules.design, CacheFlags::empty())
            .map_err(|_| no_memory())?,
        objects: vec![],
        vacant: vec![],
    };
    let done = f(&mut machine);
    machine.free_all();
    Ok(done)
}

impl SlabMachine<'_> {
    /// Creates a cache.
    ///
    /// # Errors
    /// As [`Slabs::create`].
    pub fn create(&mut self, options: &CacheOptions<'_>) -> Result<CacheId, CreateError> {
        self.caches.push(self.slabs.create(options)?);
        Ok(CacheId(self.caches.len() - 1))
    }

    fn cpu(&self, cpu: u16) -> &Cpu<'_> {
        &self.cpus[usize::from(cpu) % self.cpus.len()]
    }

    fn number(&mut self, object: NonNull<u8>, home: Home) -> ObjectId {
        let entry = Some((object, home));
        ObjectId(match self.vacant.pop() {
            Some(i) => {
                self.objects[i] = entry;
                i
            }
            None => {
                self.objects.push(entry);
                self.objects.len() - 1
            }
        })
    }

    /// Allocates an object on a CPU (modulo the number of CPUs).
    ///
    /// # Errors
    /// If there is no memory for it.
    ///
    /// # Panics
    /// If there is no such cache.
    pub fn alloc(&mut self, cpu: u16, cache: CacheId, gfp: Gfp) -> Result<ObjectId, NoMemory> {
        let object = self.caches[cache.0].alloc(self.cpu(cpu), gfp)?;
        Ok(self.number(object, Home::Cache(cache.0)))
    }

    /// Allocates memory by size.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn kmalloc(&mut self, cpu: u16, size: usize, gfp: Gfp) -> Result<ObjectId, NoMemory> {
        let object = self.kmalloc.alloc(self.cpu(cpu), size, gfp)?;
        Ok(self.number(object, Home::Kmalloc))
    }

    /// Frees an object on a CPU; false if it was freed before.
    pub fn free(&mut self, cpu: u16, object: ObjectId) -> bool {
        let Some((at, home)) = self.objects.get_mut(object.0).and_then(Option::take) else {
            return false;
        };
        self.vacant.push(object.0);
        let cpu = self.cpu(cpu);
        // SAFETY: the object was allocated there, and its number is gone since just now.
        let freed = match home {
            Home::Cache(c) => unsafe { self.caches[c].free(cpu, at) },
            Home::Kmalloc => unsafe { self.kmalloc.free(cpu, at) },
        };
        debug_assert!(freed.is_ok(), "{freed:?}");
        freed.is_ok()
    }

    /// Does the periodic work of a CPU.
    pub fn reap(&self, cpu: u16, due: Due) {
        self.cpu(cpu).reap(due);
    }

    /// Counters of each cache, those of `kmalloc` included, the oldest first.
    pub fn infos(&self) -> Vec<CacheInfo> {
        let mut all = vec![];
        self.slabs.each_cache(|c| all.push(*c));
        all.reverse();
        all
    }

    /// Counters of a cache.
    ///
    /// # Panics
    /// If there is no such cache.
    pub fn info(&self, cache: CacheId) -> CacheInfo {
        self.caches[cache.0].info()
    }

    /// Pages of all slabs.
    pub fn slab_pages(&self) -> u64 {
        self.slabs.slab_pages()
    }

    /// Pages of the caches' own records.
    pub fn record_pages(&self) -> u64 {
        self.slabs.record_pages()
    }

    /// Returns the pages of all empty slabs.
    pub fn shrink(&mut self) {
        let Some((first, rest)) = self.cpus.split_first() else {
            return;
        };
        // This thread acts as each CPU in turn: each empties its own lists.
        for cache in &self.caches {
            for cpu in rest {
                cache.shrink(cpu);
            }
            cache.shrink(first);
        }
        for cpu in rest {
            self.kmalloc.shrink(cpu);
        }
        self.kmalloc.shrink(first);
    }

    fn free_all(&mut self) {
        for i in 0..self.objects.len() {
            self.free(0, ObjectId(i));
        }
    }
}
