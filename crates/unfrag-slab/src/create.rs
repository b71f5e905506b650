//! Caches come: planned, merged with one that is there, or built into the bootstrap cache.

use crate::array_cache::{free_aliens, free_array, new_aliens, new_array};
use crate::cache::KmemCache;
use crate::desc::{CpuRecord, Desc, NodeLists, NodeRecord, Quarantine};
use crate::fault::Name;
use crate::formulas::{
    ArrayLimits, BUFCTL, LINE, MAX_OBJECTS, OFF_SLAB, array_limits, bytes, order_for, slab_fit,
    slab_order, slqb_limits, slqb_order, slub_cpu_partial_slabs, slub_min_partial, slub_order,
};
use crate::lock::Locked;
use crate::object::{CacheFlags, Constructor, ObjectLayout};
use crate::options::{CacheOptions, CreateError};
use crate::record::List;
use crate::rules::Design;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::system::{Inner, Slabs};
use core::cell::Cell;
use core::ptr::{NonNull, null, null_mut};
use unfrag::Gfp;

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
pub(crate) fn free_cpus(s: &Inner, cpus: *const CpuRecord) {
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
pub(crate) fn free_nodes(s: &Inner, nodes: *const NodeRecord) {
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
