//! The slow paths, by design, with the checks of checked caches around them.

use crate::cache_record::{CacheRecord, CpuRecord};
use crate::due::Due;
use crate::fault::{Fault, FaultKind};
use crate::rules::Design;
use crate::set::Set;
use crate::sync::Ordering;
use crate::work::Work;
use crate::{array, debug, slqb, slub};
use core::ptr::NonNull;
use lock_api::RawMutex;
use unfrag::Gfp;

fn fault<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    object: *const u8,
    kind: FaultKind,
) -> Fault {
    let fault = Fault {
        cache: cache.name,
        object: object.addr(),
        kind,
    };
    // Relaxed: nothing is read because of a count.
    cache.faults.fetch_add(1, Ordering::Relaxed);
    set.memory.pages.fault(&fault);
    fault
}

/// An object when the CPU's chain is empty, or must come from a given node.
#[cold]
#[inline(never)]
pub(crate) fn alloc<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    cpu: &CpuRecord<R>,
    gfp: Gfp,
    node: Option<u8>,
) -> Option<*mut u8> {
    let work = Work::new(set, cache, cpu);
    let node = match node {
        Some(n) if n >= work.set.nodes => return None,
        Some(n) if n == cpu.node.get() && work.set.nodes == 1 => None,
        n => n,
    };
    // Relaxed: a request is served late or early, never wrongly.
    if cpu.drain_requested.load(Ordering::Relaxed) != 0 {
        cpu.drain_requested.store(0, Ordering::Relaxed);
        flush(&work);
    }
    checked(set, cache, || {
        work.open();
        let got = take(&work, gfp, node);
        work.close();
        got
    })
}

/// An object for a caller without a CPU.
#[cold]
#[inline(never)]
pub(crate) fn alloc_without_cpu<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    gfp: Gfp,
) -> Option<*mut u8> {
    let work = Work::without_cpu(set, cache);
    // Relaxed: nothing is read because of a count.
    cache.alloc_apart.fetch_add(1, Ordering::Relaxed);
    checked(set, cache, || match cache.design {
        Design::Slab => array::alloc_without_cpu(&work, gfp),
        Design::Slub => slub::alloc_without_cpu(&work, gfp),
        Design::Slqb => slqb::alloc_without_cpu(&work, gfp),
    })
}

/// Several objects for a caller without a CPU; returns how many. A free object that was written to is reported, and not handed
/// out.
#[cold]
#[inline(never)]
pub(crate) fn alloc_some_without_cpu<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    gfp: Gfp,
    into: &mut [NonNull<u8>],
) -> usize {
    if cache.design != Design::Slub || cache.is_checked() {
        let mut count = 0;
        while count < into.len()
            && let Some(object) = alloc_without_cpu(set, cache, gfp).and_then(NonNull::new)
        {
            into[count] = object;
            count += 1;
        }
        return count;
    }
    let work = Work::without_cpu(set, cache);
    let count = loop {
        let (count, spoilt) = slub::alloc_some_without_cpu(&work, gfp, into);
        let Some(object) = spoilt else { break count };
        fault(set, cache, object.as_ptr(), FaultKind::Link);
        // It is the last one. Its slab counts as full by now, so that this ends.
        if count > 1 {
            break count - 1;
        }
    };
    // Relaxed: nothing is read because of a count.
    cache.alloc_apart.fetch_add(count as u64, Ordering::Relaxed);
    count
}

/// Frees several objects for a caller without a CPU. Answers with the first fault.
#[cold]
#[inline(never)]
pub(crate) fn free_bulk_without_cpu<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    objects: &[NonNull<u8>],
) -> Result<(), Fault> {
    if cache.design != Design::Slub || cache.is_checked() {
        let mut done = Ok(());
        for object in objects {
            let freed = free(set, cache, None, object.as_ptr());
            done = done.and(freed);
        }
        return done;
    }
    let freed = slub::free_bulk_without_cpu(&Work::without_cpu(set, cache), objects);
    // Relaxed: as above.
    let count = objects.len() as u64;
    cache.free_apart.fetch_add(count, Ordering::Relaxed);
    freed.map_err(|(object, kind)| fault(set, cache, object.as_ptr(), kind))
}

/// The first object of those that `take` gives that is as it should be. One that was written to after its free is not
/// handed out.
fn checked<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    mut take: impl FnMut() -> Option<*mut u8>,
) -> Option<*mut u8> {
    loop {
        let object = take()?;
        if !cache.is_checked() {
            return Some(object);
        }
        match debug::on_alloc(cache, object) {
            Ok(()) => return Some(object),
            Err(kind) => {
                fault(set, cache, object, kind);
                let mut quarantine = cache.quarantine.lock();
                quarantine.0 = debug::quarantine(cache, object, quarantine.0);
            }
        }
    }
}

fn take<R: RawMutex>(work: &Work<R>, gfp: Gfp, node: Option<u8>) -> Option<*mut u8> {
    let cpu = work.cpu;
    match (work.cache.design, node) {
        (Design::Slab, None) => return array::alloc(work, gfp),
        (Design::Slab, Some(n)) => return array::alloc_on(work, gfp, n),
        (Design::Slqb, Some(n)) => {
            return slqb::alloc_on(work, gfp, n);
        }
        (Design::Slub, Some(n))
            if work
                .current()
                .is_some_and(|id| work.map().slab(id).node == n) => {}
        (Design::Slub, Some(n)) => {
            cpu.alloc_slow.add(1);
            return slub::refill(work, gfp, Some(n))
                .then(|| work.pop())
                .flatten();
        }
        _ => {}
    }
    // In a checked cache the chain may have objects here.
    if let Some(object) = work.pop() {
        cpu.alloc_fast.add(1);
        return Some(object);
    }
    cpu.alloc_slow.add(1);
    let filled = match work.cache.design {
        Design::Slqb => slqb::refill(work, gfp),
        _ => slub::refill(work, gfp, node),
    };
    filled.then(|| work.pop()).flatten()
}

/// Frees an object that is not of a slab of this CPU, or of a checked cache. Without a CPU, the
/// object goes to its slab.
#[cold]
#[inline(never)]
pub(crate) fn free<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    cpu: Option<&CpuRecord<R>>,
    object: *mut u8,
) -> Result<(), Fault> {
    let Some(id) = set.map().entry(object) else {
        return Err(fault(set, cache, object, FaultKind::NotInASlab));
    };
    let slab = set.map().slab(id);
    if slab.cache.is_null() {
        return Err(fault(set, cache, object, FaultKind::NotAnObject));
    }
    if !core::ptr::eq(slab.cache, cache) {
        return Err(fault(
            set,
            cache,
            object,
            FaultKind::OtherCache(slab.cache().name),
        ));
    }
    if cache.is_checked() {
        let begins = slab.index(object, cache.layout.size).is_some();
        let checked = match begins {
            true => debug::on_free(cache, object),
            false => Err(FaultKind::NotAnObject),
        };
        checked.map_err(|kind| fault(set, cache, object, kind))?;
    }
    let work = match cpu {
        Some(cpu) => Work::new(set, cache, cpu),
        None => Work::without_cpu(set, cache),
    };
    if work.has_cpu {
        work.open();
        count_free(&work, id);
    } else {
        // Relaxed: nothing is read because of a count.
        cache.free_apart.fetch_add(1, Ordering::Relaxed);
    }
    let done = put(&work, id, object);
    if work.has_cpu {
        work.close();
    }
    done.map_err(|kind| fault(set, cache, object, kind))
}

fn put<R: RawMutex>(work: &Work<R>, id: u32, object: *mut u8) -> Result<(), FaultKind> {
    match work.cache.design {
        Design::Slab => array::free(work, id, object),
        Design::Slub => slub::free_slow(work, id, object),
        Design::Slqb => {
            slqb::free_slow(work, id, object);
            Ok(())
        }
    }
}

/// Frees the objects in quarantine of a cache that is destroyed.
pub(crate) fn release_quarantine<R: RawMutex>(set: &Set<R>, cache: &CacheRecord<R>) {
    let work = Work::without_cpu(set, cache);
    loop {
        let mut quarantine = cache.quarantine.lock();
        let object = quarantine.0;
        if object.is_null() {
            return;
        }
        quarantine.0 = debug::unquarantine(set.map(), cache, object);
        drop(quarantine);
        if let Some(id) = work.map().entry(object) {
            let freed = put(&work, id, object);
            debug_assert!(freed.is_ok(), "an object in quarantine is out of its slab");
        }
    }
}

/// Counts a free: as fast where a cache without checks would take the fast path. SLAB counts by itself.
fn count_free<R: RawMutex>(work: &Work<R>, id: u32) {
    if work.cache.design == Design::Slab {
        return;
    }
    // Relaxed: only for a count.
    let owner = work.map().slab(id).owner.load(Ordering::Relaxed);
    match owner == work.cpu.tag.get() {
        true => work.cpu.free_fast.add(1),
        false => work.cpu.free_slow.add(1),
    }
}

/// Shortens a chain that has grown beyond its limit.
#[cold]
#[inline(never)]
pub(crate) fn overflow<R: RawMutex>(set: &Set<R>, cache: &CacheRecord<R>, cpu: &CpuRecord<R>) {
    slqb::overflow(&Work::new(set, cache, cpu));
}

/// Empties a CPU's lists.
pub(crate) fn flush_cpu<R: RawMutex>(set: &Set<R>, cache: &CacheRecord<R>, cpu: &CpuRecord<R>) {
    let work = Work::new(set, cache, cpu);
    // Relaxed: as in `alloc`.
    cpu.drain_requested.store(0, Ordering::Relaxed);
    flush(&work);
}

fn flush<R: RawMutex>(work: &Work<R>) {
    work.open();
    match work.cache.design {
        Design::Slab => array::flush(work),
        Design::Slub => slub::flush(work),
        Design::Slqb => slqb::flush(work),
    }
    work.close();
}

/// Returns the empty slabs of all nodes.
pub(crate) fn shrink_nodes<R: RawMutex>(set: &Set<R>, cache: &CacheRecord<R>) {
    let work = Work::without_cpu(set, cache);
    match cache.design {
        Design::Slab => array::shrink(&work),
        Design::Slub => (0..work.set.nodes).for_each(|n| slub::shrink_node(&work, n)),
        // SLQB frees empty slabs at once.
        Design::Slqb => {}
    }
}

/// What a CPU's periodic work does to a cache: the reaper's share, or the trim.
pub(crate) fn reap_cpu<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    cpu: &CpuRecord<R>,
    due: Due,
    node: Option<u8>,
) {
    let work = Work::new(set, cache, cpu);
    work.open();
    // Relaxed: as in `alloc`.
    if cpu.drain_requested.load(Ordering::Relaxed) != 0 {
        cpu.drain_requested.store(0, Ordering::Relaxed);
        match cache.design {
            Design::Slab => array::flush(&work),
            Design::Slub => slub::flush(&work),
            Design::Slqb => slqb::flush(&work),
        }
    }
    match cache.design {
        Design::Slab => {
            if due.reap_cpu {
                array::reap_cpu(&work);
            }
            if let Some(n) = node {
                array::reap_node(&work, n);
            }
        }
        Design::Slub => {}
        Design::Slqb if due.trim => slqb::trim(&work),
        Design::Slqb => {}
    }
    work.close();
}
