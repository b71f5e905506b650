//! The plan of a new cache: the values that follow from its options, and the making of its records.

use crate::array_cache::{free_aliens, free_array, new_aliens, new_array};
use crate::cache_record::{CacheRecord, CpuRecord, NodeLists, NodeRecord, Quarantine};
use crate::fault::Name;
use crate::formulas::{
    ArrayLimits, BUFCTL, LINE, MAX_OBJECTS, OFF_SLAB, array_limits, bytes, order_for, slab_fit,
    slab_order, slqb_limits, slqb_order, slub_cpu_partial_slabs, slub_min_partial, slub_order,
};
use crate::list::List;
use crate::lock::Locked;
use crate::object::{CacheFlags, Constructor, ObjectLayout};
use crate::options::{CacheOptions, CreateError};
use crate::rules::Design;
use crate::set::Set;
use crate::sync::{AtomicU32, AtomicU64};
use core::cell::Cell;
use core::ptr::{NonNull, null, null_mut};
use lock_api::RawMutex;
use unfrag::Gfp;

/// The values of a new cache that follow from its options and the rules.
pub(crate) struct Plan {
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
    pub fn new<R: RawMutex>(set: &Set<R>, options: &CacheOptions<'_>) -> Result<Plan, CreateError> {
        let name = Name::new(options.name).ok_or(CreateError::Name)?;
        if !options.align.is_power_of_two() || options.align > 4096 {
            return Err(CreateError::Align(options.align));
        }
        let bad_size = CreateError::Size(options.size);
        let size = u32::try_from(options.size).map_err(|_| bad_size)?;
        if size == 0 || size > 4 << 20 {
            return Err(bad_size);
        }
        let design = options.design.unwrap_or(set.rules.design);
        let (flags, ctor) = (options.flags, options.ctor.is_some());
        let layout =
            ObjectLayout::new(size, options.align as u32, flags, ctor, design).ok_or(bad_size)?;
        let reclaimable = flags.contains(CacheFlags::RECLAIM_ACCOUNT);
        let order = match design {
            Design::Slab => slab_order(layout.size, layout.align, reclaimable, set.large_memory),
            Design::Slub => slub_order(layout.size, set.cpus.into(), &set.rules.slub),
            Design::Slqb => slqb_order(layout.size, &set.rules.slqb),
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
            ctor: options.ctor,
            object_size: size,
            layout,
            order,
            min_order,
        })
    }

    /// Whether an existing cache serves as well, so that both share their slabs.
    pub fn merges_with<R: RawMutex>(&self, set: &Set<R>, cache: &CacheRecord<R>) -> bool {
        let never = CacheFlags::DEBUG | CacheFlags::NO_MERGE;
        let (mine, its) = (self.layout.size, cache.layout.size);
        set.rules.merge
            && self.design == Design::Slub
            && cache.design == Design::Slub
            && !self.flags.intersects(never)
            && !cache.flags.intersects(never)
            && self.ctor.is_none()
            && cache.ctor.is_none()
            && self.flags.contains(CacheFlags::RECLAIM_ACCOUNT)
                == cache.flags.contains(CacheFlags::RECLAIM_ACCOUNT)
            && its >= mine
            && its.is_multiple_of(self.layout.align)
            && its - mine < 8
    }

    /// Makes the records of the cache in the bootstrap cache; the pointer is that of the allocation. `None` if there is no
    /// memory.
    #[allow(unsafe_code)]
    pub fn build<R: RawMutex>(&self, set: &Set<R>) -> Option<NonNull<CacheRecord<R>>> {
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
        let cpus = self.records_of_cpus(set)?;
        let Some(nodes) = self.records_of_nodes(set) else {
            free_cpus(set, cpus);
            return None;
        };
        let Some(at) = set
            .memory
            .alloc_record(size_of::<CacheRecord<R>>(), Gfp::KERNEL, 0)
        else {
            free_cpus(set, cpus);
            free_nodes(set, nodes);
            return None;
        };
        let desc = CacheRecord {
            cpu_count: set.cpus,
            node_count: set.nodes,
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
            min_partial: slub_min_partial(size, set.rules.slub.min_partial_of_half),
            cpu_partial: match set.rules.slub.cpu_partial {
                true if !self.flags.intersects(CacheFlags::DEBUG) => {
                    slub_cpu_partial_slabs(size, objects)
                }
                _ => 0,
            },
            arrays: self.arrays(set),
            slqb: slqb_limits(size),
            handles: AtomicU32::new(1),
            slabs_of: [const { AtomicU32::new(0) }; _],
            order_fallbacks: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            quarantine: Locked::new(Quarantine(null_mut())),
            alloc_apart: AtomicU64::new(0),
            free_apart: AtomicU64::new(0),
            kept: AtomicU32::new(0),
            next: Cell::new(null_mut()),
            born: Cell::new(0),
        };
        let at = at.cast::<CacheRecord<R>>();
        // SAFETY: the record is large enough, aligned to 64 bytes, and ours; it lives until the
        // cache goes.
        let cache = unsafe {
            at.write(desc);
            at.as_ref()
        };
        let checked = usize::from(cache.is_checked());
        for c in cache.all_cpus() {
            c.tag.set(core::ptr::from_ref(c).addr() | checked);
        }
        Some(at)
    }

    fn arrays<R: RawMutex>(&self, set: &Set<R>) -> ArrayLimits {
        array_limits(self.layout.size, set.cpus.into())
    }

    #[allow(unsafe_code)]
    fn records_of_cpus<R: RawMutex>(&self, set: &Set<R>) -> Option<*const CpuRecord<R>> {
        let cpus = usize::from(set.cpus);
        let at = set
            .memory
            .alloc_record(cpus * size_of::<CpuRecord<R>>(), Gfp::KERNEL, 0)?;
        let at = at.cast::<CpuRecord<R>>();
        let hiwater = match self.design {
            Design::Slqb => slqb_limits(self.layout.size).hiwater,
            _ => u32::MAX,
        };
        let mut whole = true;
        for cpu in 0..set.cpus {
            let node = (set.node_of_cpu)(cpu);
            let array = match self.design {
                Design::Slab => new_array(&set.memory, self.arrays(set).limit, node),
                _ => Some(null_mut()),
            };
            whole &= array.is_some();
            let next_at = self.layout.next_at as usize;
            let c = CpuRecord::new(node, hiwater, next_at, array.unwrap_or(null_mut()));
            // SAFETY: there is room for one a CPU.
            unsafe { at.add(cpu.into()).write(c) };
        }
        if !whole {
            free_cpus(set, at.as_ptr());
        }
        whole.then_some(at.as_ptr().cast_const())
    }

    #[allow(unsafe_code)]
    fn records_of_nodes<R: RawMutex>(&self, set: &Set<R>) -> Option<*const NodeRecord<R>> {
        let nodes = usize::from(set.nodes);
        let at = set
            .memory
            .alloc_record(nodes * size_of::<NodeRecord<R>>(), Gfp::KERNEL, 0)?;
        let at = at.cast::<NodeRecord<R>>();
        let limits = self.arrays(set);
        let slab = self.design == Design::Slab;
        for node in 0..set.nodes {
            let shared = match slab && limits.shared > 0 {
                true => {
                    new_array(&set.memory, limits.shared * limits.batch, node).unwrap_or(null_mut())
                }
                false => null_mut(),
            };
            let aliens = match slab && set.nodes > 1 {
                true => new_aliens(&set.memory, set.nodes, node).unwrap_or(null()),
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
pub(crate) fn free_cpus<R: RawMutex>(set: &Set<R>, cpus: *const CpuRecord<R>) {
    let Some(at) = NonNull::new(cpus.cast_mut()) else {
        return;
    };
    for cpu in 0..usize::from(set.cpus) {
        // SAFETY: there is one a CPU, and the cache is not used any more.
        free_array(&set.memory, unsafe { at.add(cpu).as_ref() }.array.get());
    }
    // SAFETY: allocated with that size.
    unsafe {
        set.memory
            .free_record(at.cast(), usize::from(set.cpus) * size_of::<CpuRecord<R>>())
    };
}

#[allow(unsafe_code)]
pub(crate) fn free_nodes<R: RawMutex>(set: &Set<R>, nodes: *const NodeRecord<R>) {
    let Some(at) = NonNull::new(nodes.cast_mut()) else {
        return;
    };
    for node in 0..usize::from(set.nodes) {
        // SAFETY: there is one a node, and the cache is not used any more.
        let n = unsafe { at.add(node).as_ref() };
        let shared = n.lists.lock().shared;
        free_array(&set.memory, shared);
        free_aliens(&set.memory, set.nodes, n.aliens);
    }
    // SAFETY: allocated with that size.
    unsafe {
        set.memory.free_record(
            at.cast(),
            usize::from(set.nodes) * size_of::<NodeRecord<R>>(),
        )
    };
}
