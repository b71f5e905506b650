//! Caches come and go: options, merging, destruction, and `shrink`.

use super::array::{free_aliens, free_array, new_aliens, new_array};
use super::cache::KmemCache;
use super::cpu::Cpu;
use super::desc::{CpuRecord, Desc, NodeLists, NodeRecord, Quarantine};
use super::fault::Name;
use super::formulas::{
    ArrayLimits, BUFCTL, LINE, MAX_OBJECTS, OFF_SLAB, array_limits, bytes, order_for, slab_fit,
    slab_order, slqb_limits, slqb_order, slub_cpu_partial_slabs, slub_min_partial, slub_order,
};
use super::lock::Locked;
use super::object::{CacheFlags, Constructor, ObjectLayout};
use super::record::List;
use super::rules::Design;
use super::slow;
use super::stat;
use super::sync::{AtomicU32, AtomicU64, Ordering};
use super::system::{Inner, Slabs};
use crate::gfp::Gfp;
use core::cell::Cell;
use core::fmt;
use core::ptr::{NonNull, null, null_mut};

/// What a cache should be.
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions<'n> {
    /// Name, 1 to 31 bytes.
    pub name: &'n str,
    /// Bytes of an object; at least 1.
    pub size: usize,
    /// Alignment in bytes, a power of two up to a page; 8 at least.
    pub align: usize,
    /// Properties.
    pub flags: CacheFlags,
    /// Makes a new object ready.
    pub ctor: Option<Constructor>,
    /// Design; `None` takes that of the rules.
    pub design: Option<Design>,
}

impl<'n> CacheOptions<'n> {
    /// A cache without properties.
    pub const fn new(name: &'n str, size: usize) -> CacheOptions<'n> {
        CacheOptions {
            name,
            size,
            align: 8,
            flags: CacheFlags::empty(),
            ctor: None,
            design: None,
        }
    }
    /// The same with a design.
    #[must_use]
    pub const fn design(mut self, design: Design) -> CacheOptions<'n> {
        self.design = Some(design);
        self
    }
    /// The same with properties.
    #[must_use]
    pub const fn flags(mut self, flags: CacheFlags) -> CacheOptions<'n> {
        self.flags = flags;
        self
    }
    /// The same with an alignment.
    #[must_use]
    pub const fn align(mut self, align: usize) -> CacheOptions<'n> {
        self.align = align;
        self
    }
}

/// Why there is no such cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// The name is empty, longer than 31 bytes, or has control characters.
    Name,
    /// An object has no byte, or does not fit the largest block (4 MiB) with what belongs to it.
    Size(usize),
    /// The alignment is no power of two, or above a page.
    Align(usize),
    /// No page for the cache's records.
    NoMemory,
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CreateError::Name => {
                f.write_str("the name of a slab cache has 1 to 31 bytes and no control characters")
            }
            CreateError::Size(n) => write!(
                f,
                "slab objects of {n} bytes: they must have 1 byte at least, and fit 4 MiB with \
                 their red zones"
            ),
            CreateError::Align(n) => write!(
                f,
                "slab objects aligned to {n} bytes: it must be a power of two up to 4096"
            ),
            CreateError::NoMemory => f.write_str("no page for the records of a slab cache"),
        }
    }
}

impl core::error::Error for CreateError {}

/// Why a cache stays.
pub struct DestroyError<'s> {
    /// The cache, as it was.
    pub cache: KmemCache<'s>,
    /// Objects in use.
    pub live: u64,
}

impl fmt::Display for DestroyError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (name, n) = (self.cache.name(), self.live);
        let are = if n == 1 { "object is" } else { "objects are" };
        write!(
            f,
            "slab cache {name}: {n} {are} still in use; free all of them before the cache is destroyed"
        )
    }
}

impl fmt::Debug for DestroyError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for DestroyError<'_> {}

/// What [`KmemCache::shrink`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrunk {
    /// Pages returned.
    pub pages: u64,
    /// CPUs whose lists could not be emptied now, because their token is out: they are asked to do
    /// it at their next slow path or [`Cpu::reap`].
    pub asked: u16,
}

impl<'p> Slabs<'p> {
    /// Makes a cache, or with SLUB takes one with which it can share slabs: of the same properties,
    /// without constructor and checks, and larger by less than a word. `spec: linux-mm 6.2`
    ///
    /// # Errors
    /// If the options make no sense, or there is no memory.
    pub fn create<'s>(&'s self, options: &CacheOptions<'_>) -> Result<KmemCache<'s>, CreateError> {
        let s = self.inner();
        let plan = Plan::new(s, options)?;
        let mut list = s.caches.lock();
        let mut at = list.0;
        while !at.is_null() {
            // SAFETY: caches on the list live.
            #[allow(unsafe_code)]
            let d = unsafe { &*at };
            if plan.merges_with(s, d) {
                d.handles.fetch_add(1, Ordering::Relaxed);
                return Ok(KmemCache::new(s, d));
            }
            at = d.next.get();
        }
        let d = plan.build(s).ok_or(CreateError::NoMemory)?;
        d.next.set(list.0);
        list.0 = d;
        Ok(KmemCache::new(s, d))
    }
}

/// A cache on paper.
struct Plan {
    name: Name,
    design: Design,
    flags: CacheFlags,
    ctor: Option<Constructor>,
    object_size: u32,
    layout: ObjectLayout,
    order: u8,
    min_order: u8,
}

impl Plan {
    fn new(s: &Inner, o: &CacheOptions<'_>) -> Result<Plan, CreateError> {
        let name = Name::new(o.name).ok_or(CreateError::Name)?;
        if !o.align.is_power_of_two() || o.align > 4096 {
            return Err(CreateError::Align(o.align));
        }
        let bad_size = CreateError::Size(o.size);
        let size = u32::try_from(o.size).map_err(|_| bad_size)?;
        if size == 0 || size > 4 << 20 {
            return Err(bad_size);
        }
        let design = o.design.unwrap_or(s.rules.design);
        let (flags, ctor) = (o.flags, o.ctor.is_some());
        let layout =
            ObjectLayout::new(size, o.align as u32, flags, ctor, design).ok_or(bad_size)?;
        let reclaimable = flags.contains(CacheFlags::RECLAIM_ACCOUNT);
        let order = match design {
            Design::Slab => slab_order(layout.size, layout.align, reclaimable, s.large_memory),
            Design::Slub => slub_order(layout.size, s.cpus.into(), &s.rules.slub),
            Design::Slqb => slqb_order(layout.size, &s.rules.slqb),
        };
        let order = order.ok_or(bad_size)?;
        let min_order = match design {
            Design::Slub => order_for(layout.size.into()).min(order),
            _ => order,
        };
        Ok(Plan {
            name,
            design,
            flags,
            ctor: o.ctor,
            object_size: size,
            layout,
            order,
            min_order,
        })
    }

    fn merges_with(&self, s: &Inner, d: &Desc) -> bool {
        let never = CacheFlags::DEBUG | CacheFlags::NO_MERGE;
        let (mine, its) = (self.layout.size, d.layout.size);
        s.rules.merge
            && self.design == Design::Slub
            && d.design == Design::Slub
            && !self.flags.intersects(never)
            && !d.flags.intersects(never)
            && self.ctor.is_none()
            && d.ctor.is_none()
            && self.flags.contains(CacheFlags::RECLAIM_ACCOUNT)
                == d.flags.contains(CacheFlags::RECLAIM_ACCOUNT)
            && its >= mine
            && its.is_multiple_of(self.layout.align)
            && its - mine < 8
    }

    /// Puts the cache into the bootstrap cache.
    #[allow(unsafe_code)]
    fn build(&self, s: &Inner) -> Option<&'static Desc> {
        let size = self.layout.size;
        let objects_at = |order: u8| match self.design {
            Design::Slab => slab_fit(size, self.layout.align, order, size >= OFF_SLAB).objects,
            _ => ((bytes(order) - self.layout.lead) / size).clamp(1, MAX_OBJECTS),
        };
        let (objects, min_objects) = (objects_at(self.order), objects_at(self.min_order));
        let (head, left_over) = match self.design {
            Design::Slab => {
                let fit = slab_fit(size, self.layout.align, self.order, size >= OFF_SLAB);
                (fit.head, fit.left_over)
            }
            _ => (0, bytes(self.order) - objects * size),
        };
        debug_assert!(head == 0 || head >= BUFCTL * objects);
        let colour_step = LINE.max(self.layout.align);
        let colours = match self.design {
            Design::Slub => 1,
            _ => left_over / colour_step + 1,
        };
        let cpus = self.records_of_cpus(s)?;
        let Some(nodes) = self.records_of_nodes(s) else {
            free_cpus(s, cpus);
            return None;
        };
        let Some(at) = s.boot_alloc(size_of::<Desc>(), Gfp::KERNEL, 0) else {
            free_cpus(s, cpus);
            free_nodes(s, nodes);
            return None;
        };
        let desc = Desc {
            inner: s,
            cpus,
            nodes,
            name: self.name,
            design: self.design,
            flags: self.flags,
            object_size: self.object_size,
            layout: self.layout,
            ctor: self.ctor,
            order: self.order,
            min_order: self.min_order,
            objects: objects as u16,
            min_objects: min_objects as u16,
            head,
            colours,
            colour_step,
            colour_next: AtomicU32::new(0),
            min_partial: slub_min_partial(size, s.rules.slub.min_partial_of_half),
            cpu_partial: match s.rules.slub.cpu_partial {
                true if !self.flags.intersects(CacheFlags::DEBUG) => {
                    slub_cpu_partial_slabs(size, objects)
                }
                _ => 0,
            },
            arrays: self.arrays(s),
            slqb: slqb_limits(size),
            handles: AtomicU32::new(1),
            slabs_of: [const { AtomicU32::new(0) }; _],
            order_fallbacks: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            quarantine: Locked::new(Quarantine(null_mut())),
            next: Cell::new(null()),
        };
        let at = at.cast::<Desc>();
        // SAFETY: the record is large enough, aligned to 64 bytes, and ours; it lives until the
        // cache goes.
        let d = unsafe {
            at.write(desc);
            at.as_ref()
        };
        let checked = usize::from(d.is_checked());
        for c in d.all_cpus() {
            c.tag.set(core::ptr::from_ref(c).addr() | checked);
        }
        Some(d)
    }

    fn arrays(&self, s: &Inner) -> ArrayLimits {
        array_limits(self.layout.size, s.cpus.into())
    }

    #[allow(unsafe_code)]
    fn records_of_cpus(&self, s: &Inner) -> Option<*const CpuRecord> {
        let cpus = usize::from(s.cpus);
        let at = s.boot_alloc(cpus * size_of::<CpuRecord>(), Gfp::KERNEL, 0)?;
        let at = at.cast::<CpuRecord>();
        let hiwater = match self.design {
            Design::Slqb => slqb_limits(self.layout.size).hiwater,
            _ => u32::MAX,
        };
        let mut whole = true;
        for cpu in 0..s.cpus {
            let node = (s.node_of_cpu)(cpu);
            let array = match self.design {
                Design::Slab => new_array(s, self.arrays(s).limit, node),
                _ => Some(null_mut()),
            };
            whole &= array.is_some();
            let next_at = self.layout.next_at as usize;
            let c = CpuRecord::new(node, hiwater, next_at, array.unwrap_or(null_mut()));
            // SAFETY: there is room for one a CPU.
            unsafe { at.add(cpu.into()).write(c) };
        }
        if !whole {
            free_cpus(s, at.as_ptr());
        }
        whole.then_some(at.as_ptr().cast_const())
    }

    #[allow(unsafe_code)]
    fn records_of_nodes(&self, s: &Inner) -> Option<*const NodeRecord> {
        let nodes = usize::from(s.nodes);
        let at = s.boot_alloc(nodes * size_of::<NodeRecord>(), Gfp::KERNEL, 0)?;
        let at = at.cast::<NodeRecord>();
        let limits = self.arrays(s);
        let slab = self.design == Design::Slab;
        for node in 0..s.nodes {
            let shared = match slab && limits.shared > 0 {
                true => new_array(s, limits.shared * limits.batch, node).unwrap_or(null_mut()),
                false => null_mut(),
            };
            let aliens = match slab && s.nodes > 1 {
                true => new_aliens(s, node).unwrap_or(null()),
                false => null(),
            };
            let lists = NodeLists {
                partial: List::default(),
                full: List::default(),
                free: List::default(),
                free_objects: 0,
                shared,
                touched: false,
            };
            let n = NodeRecord {
                lists: Locked::new(lists),
                slabs: AtomicU64::new(0),
                objects: AtomicU64::new(0),
                aliens,
            };
            // SAFETY: there is room for one a node.
            unsafe { at.add(node.into()).write(n) };
        }
        Some(at.as_ptr())
    }
}

#[allow(unsafe_code)]
fn free_cpus(s: &Inner, cpus: *const CpuRecord) {
    let Some(at) = NonNull::new(cpus.cast_mut()) else {
        return;
    };
    for cpu in 0..usize::from(s.cpus) {
        // SAFETY: there is one a CPU, and nobody uses the cache any more.
        free_array(s, unsafe { at.add(cpu).as_ref() }.array.get());
    }
    // SAFETY: allocated with that size.
    unsafe { s.boot_free(at.cast(), usize::from(s.cpus) * size_of::<CpuRecord>()) };
}

#[allow(unsafe_code)]
fn free_nodes(s: &Inner, nodes: *const NodeRecord) {
    let Some(at) = NonNull::new(nodes.cast_mut()) else {
        return;
    };
    for node in 0..usize::from(s.nodes) {
        // SAFETY: there is one a node, and nobody uses the cache any more.
        let n = unsafe { at.add(node).as_ref() };
        free_array(s, n.lists.lock().shared);
        free_aliens(s, n.aliens);
    }
    // SAFETY: allocated with that size.
    unsafe { s.boot_free(at.cast(), usize::from(s.nodes) * size_of::<NodeRecord>()) };
}

/// Empties all lists of a cache that the caller has alone, and returns its empty slabs.
fn empty(d: &Desc) {
    slow::release_quarantine(d);
    // Twice, for one CPU's flush may queue objects for another.
    for _ in 0..2 {
        for c in d.all_cpus() {
            slow::flush_cpu(d, c);
        }
    }
    slow::shrink_nodes(d);
}

/// Takes a cache without slabs apart.
///
/// # Safety
/// Nobody uses it any more, and it is on no list.
#[allow(unsafe_code)]
unsafe fn take_apart(s: &Inner, d: *const Desc) {
    // SAFETY: it lives until the last line.
    let (cpus, nodes) = unsafe { ((*d).cpus, (*d).nodes) };
    free_cpus(s, cpus);
    free_nodes(s, nodes);
    if let Some(at) = NonNull::new(d.cast_mut().cast::<u8>()) {
        // SAFETY: allocated with that size.
        unsafe { s.boot_free(at, size_of::<Desc>()) };
    }
}

/// Gives a handle up. The cache goes with its last one, unless objects are in use: then the answer
/// is how many.
fn let_go(s: &Inner, desc: NonNull<Desc>, even_if_live: bool) -> Result<(), u64> {
    let mut list = s.caches.lock();
    // SAFETY: the handle keeps it.
    #[allow(unsafe_code)]
    let d = unsafe { desc.as_ref() };
    if d.handles.load(Ordering::Acquire) > 1 {
        d.handles.fetch_sub(1, Ordering::Release);
        return Ok(());
    }
    // The last handle is the caller's, who gives it up, and the list's lock lets nobody merge with
    // the cache: it is his alone.
    empty(d);
    let live = stat::live_objects(d);
    if live > 0 {
        if even_if_live {
            d.handles.store(0, Ordering::Relaxed);
        }
        return Err(live);
    }
    unlink(&mut list.0, d);
    // SAFETY: the last handle goes, and the list forgot it.
    #[allow(unsafe_code)]
    unsafe {
        take_apart(s, d);
    }
    Ok(())
}

fn unlink(head: &mut *const Desc, d: &Desc) {
    if core::ptr::eq(*head, d) {
        *head = d.next.get();
        return;
    }
    let mut at = *head;
    while !at.is_null() {
        // SAFETY: caches on the list live.
        #[allow(unsafe_code)]
        let before = unsafe { &*at };
        if core::ptr::eq(before.next.get(), d) {
            before.next.set(d.next.get());
            return;
        }
        at = before.next.get();
    }
}

/// Takes the caches apart whose handles are gone and whose objects came back since.
pub(super) fn drop_all(s: &Inner) {
    let mut list = s.caches.lock();
    let mut at = list.0;
    while !at.is_null() {
        // SAFETY: caches on the list live.
        #[allow(unsafe_code)]
        let d = unsafe { &*at };
        at = d.next.get();
        empty(d);
        if stat::live_objects(d) == 0 {
            unlink(&mut list.0, d);
            // SAFETY: the set goes, so that nobody has a handle.
            #[allow(unsafe_code)]
            unsafe {
                take_apart(s, d);
            }
        }
    }
}

impl<'s> KmemCache<'s> {
    /// Destroys the cache and returns its pages; one that others share stays for them.
    ///
    /// # Errors
    /// If objects are still in use: how many, and the cache again.
    pub fn destroy(self) -> Result<(), DestroyError<'s>> {
        let (s, desc) = (self.inner(), self.desc);
        match let_go(s, desc, false) {
            Ok(()) => {
                core::mem::forget(self);
                Ok(())
            }
            Err(live) => Err(DestroyError { cache: self, live }),
        }
    }

    /// Returns the pages of all empty slabs. The lists of `cpu`, and of all CPUs whose token is not
    /// out, are emptied first; other CPUs are asked to empty theirs.
    pub fn shrink(&self, cpu: &Cpu<'_>) -> Shrunk {
        let (s, d) = (self.inner(), self.desc());
        assert!(
            core::ptr::eq(cpu.inner(), s),
            "the CPU's token belongs to another set"
        );
        let before = stat::slab_pages(d);
        let mut asked = 0;
        for _ in 0..2 {
            asked = 0;
            for id in 0..s.cpus {
                let own = id == cpu.id();
                if own || s.claim(id) {
                    slow::flush_cpu(d, d.cpu(id));
                    if !own {
                        s.release(id);
                    }
                } else {
                    d.cpu(id).drain.store(1, Ordering::Relaxed);
                    asked += 1;
                }
            }
        }
        slow::shrink_nodes(d);
        Shrunk {
            pages: before.saturating_sub(stat::slab_pages(d)),
            asked,
        }
    }
}

impl Drop for KmemCache<'_> {
    /// What [`destroy`](KmemCache::destroy) does; a cache with objects in use stays, without a
    /// handle, until the set goes.
    fn drop(&mut self) {
        let _ = let_go(self.inner(), self.desc, true);
    }
}
