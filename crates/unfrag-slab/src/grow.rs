//! Making and discarding slabs: pages, record, objects, table entries.
//!
//! Counts are relaxed: nothing is read because of one. Who destroys a cache has it alone, by the lock of the list of caches.

use crate::cache_record::CacheRecord;
use crate::formulas::{PAGE, SLAB_HEAD, bytes};
use crate::object::{CacheFlags, set_next};
use crate::pages::PageRequest;
use crate::rules::{Design, FirstAttempt};
use crate::set::Set;
use crate::slab_record::{BlockKind, SlabRecord};
use crate::sync::Ordering;
use crate::word::{AtomicWord, Word};
use core::ptr::{NonNull, null_mut};
use lock_api::RawMutex;
use unfrag::Gfp;
use unfrag::frame::Pfn;

/// Bytes of a record that is kept apart.
fn record_bytes<R: RawMutex>(cache: &CacheRecord<R>, objects: u16) -> usize {
    match cache.design {
        Design::Slab => SLAB_HEAD as usize + 4 * usize::from(objects),
        _ => size_of::<SlabRecord<R>>(),
    }
}

/// Flags that the page allocator gets for a slab.
fn page_flags<R: RawMutex>(cache: &CacheRecord<R>, gfp: Gfp) -> Gfp {
    let mut gfp = gfp - (Gfp::ZERO | Gfp::MOVABLE | Gfp::RECLAIMABLE | Gfp::HIGHMEM);
    if cache.flags.contains(CacheFlags::RECLAIM_ACCOUNT) {
        gfp |= Gfp::RECLAIMABLE;
    }
    gfp
}

/// How SLUB asks for more than the least order; `None` if it does not. `spec: 6.2, 6.5`
fn first_attempt<R: RawMutex>(set: &Set<R>, rule: FirstAttempt, gfp: Gfp) -> Option<(Gfp, bool)> {
    let historic = (gfp | Gfp::NOWARN | Gfp::NORETRY) - Gfp::NOFAIL;
    let no_wait = historic - Gfp::DIRECT_RECLAIM;
    let no_wake = if gfp.contains(Gfp::DIRECT_RECLAIM) {
        (no_wait - Gfp::KSWAPD_RECLAIM) | Gfp::NOMEMALLOC
    } else {
        no_wait
    };
    match rule {
        FirstAttempt::Historic => Some((historic, false)),
        FirstAttempt::IfPlentyFree => {
            let (free, total) = set.memory.pages.free_and_total();
            (free > total / 8).then_some((historic, false))
        }
        FirstAttempt::NoWait => Some((no_wait, false)),
        FirstAttempt::NoWake => Some((no_wake, false)),
        FirstAttempt::FirstPassOnly => Some((no_wake, true)),
    }
}

fn block<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    gfp: Gfp,
    node: u8,
) -> Option<(Pfn, BlockKind)> {
    let gfp = page_flags(cache, gfp);
    let ask = |order: u8, gfp: Gfp, first_pass_only| {
        let gfp = if order > 0 { gfp | Gfp::COMP } else { gfp };
        let request = PageRequest {
            order,
            gfp,
            node,
            first_pass_only,
            object_bytes: cache.layout.size,
        };
        let pfn = set.memory.pages.alloc(&request)?;
        Some((pfn, BlockKind::new(order, request.mt())))
    };
    if cache.design != Design::Slub || cache.order == cache.min_order {
        return ask(cache.order, gfp, false);
    }
    let high = first_attempt(set, set.rules.slub.first_attempt, gfp)
        .and_then(|(gfp, first_pass_only)| ask(cache.order, gfp, first_pass_only));
    high.or_else(|| {
        let low = ask(cache.min_order, gfp, false);
        if low.is_some() {
            cache.order_fallbacks.fetch_add(1, Ordering::Relaxed);
        }
        low
    })
}

/// Makes a slab whose objects are all free and on its chain, frozen, on no list. Returns its number.
#[allow(unsafe_code)]
pub(crate) fn new_slab<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    gfp: Gfp,
    node: u8,
) -> Option<u32> {
    let (pfn, kind) = block(set, cache, gfp, node)?;
    let order = kind.order();
    let frame = (pfn.0 - set.map().first.0) as u32;
    let start = set.map().frame(frame);
    let objects = if order == cache.order {
        cache.objects
    } else {
        cache.min_objects
    };
    let colour = match cache.colours {
        0 | 1 => 0,
        n => cache.colour_next.fetch_add(1, Ordering::Relaxed) % n * cache.colour_step,
    };
    let on_slab = cache.design == Design::Slab && !cache.off_slab();
    let at = if on_slab {
        start.wrapping_add(colour as usize)
    } else {
        match set
            .memory
            .alloc_record(record_bytes(cache, objects), gfp, node)
        {
            Some(at) => at.as_ptr(),
            None => {
                // SAFETY: allocated above.
                unsafe { set.memory.pages.free(pfn, order, kind.mt()) };
                return None;
            }
        }
    };
    let lead = colour + cache.head + cache.layout.lead;
    let first = start.wrapping_add(lead as usize);
    debug_assert!(
        lead - cache.layout.lead + u32::from(objects) * cache.layout.size <= bytes(order),
        "objects end beyond their slab"
    );
    let place_of = set.map().place(first) - set.map().place(start) + 1;
    let head = match cache.design {
        Design::Slab => 1,
        _ => place_of as u32,
    };
    let word = AtomicWord::new(Word::new(head, 0, true));
    let node = set.memory.pages.node_of(pfn).min(set.nodes - 1);
    let record = SlabRecord::new(word, cache, first, (frame, kind, node), objects);
    // SAFETY: the place is ours, large enough and aligned: in the slab at a multiple of 64 bytes, or
    // in the bootstrap cache.
    unsafe { at.cast::<SlabRecord<R>>().write(record) };
    let id = set.map().id_of(at);
    chain_objects(set, cache, id);
    set.map().set_entries(frame, order, id);
    let n = cache.node(node);
    n.slabs.fetch_add(1, Ordering::Relaxed);
    n.objects.fetch_add(objects.into(), Ordering::Relaxed);
    cache.slabs_of[usize::from(order)].fetch_add(1, Ordering::Relaxed);
    set.slab_pages.fetch_add(1 << order, Ordering::Relaxed);
    Some(id)
}

/// Makes the objects of a new slab ready and chains them in the order of their addresses.
#[allow(unsafe_code)]
fn chain_objects<R: RawMutex>(set: &Set<R>, cache: &CacheRecord<R>, id: u32) {
    let slab = set.map().slab(id);
    let size = cache.layout.size as usize;
    let last = u32::from(slab.objects) - 1;
    let mut object = slab.first;
    for i in 0..=last {
        let following = object.wrapping_add(size);
        if cache.is_checked() {
            crate::debug::on_new(cache, object);
        }
        if let (Some(ctor), Some(object)) = (cache.ctor, NonNull::new(object)) {
            // SAFETY: the object is new, nobody has it, and it has room for the object's size; who made the cache
            // promised the rest.
            #[allow(unsafe_code)]
            unsafe {
                ctor(object);
            }
        }
        // SAFETY: the object lies in the slab, which is not published yet; the link and the index table
        // have room for it by the layout.
        unsafe {
            if cache.design == Design::Slab {
                let next = if i == last { 0 } else { i + 2 };
                set.map().bufctl(id, i).write(next);
            } else {
                let to = if i == last { null_mut() } else { following };
                set_next(object, cache.next_at(), to);
            }
        }
        object = following;
    }
}

/// Returns a slab without an object in use, which is on no list and has no owner.
#[allow(unsafe_code)]
pub(crate) fn discard<R: RawMutex>(set: &Set<R>, cache: &CacheRecord<R>, id: u32) {
    let slab = set.map().slab(id);
    debug_assert_eq!(
        slab.word.load().inuse(),
        0,
        "a slab goes with objects in use"
    );
    let (frame, kind) = (slab.frame, slab.kind);
    let order = kind.order();
    set.map().set_entries(frame, order, 0);
    let n = cache.node(slab.node);
    n.slabs.fetch_sub(1, Ordering::Relaxed);
    n.objects.fetch_sub(slab.objects.into(), Ordering::Relaxed);
    cache.slabs_of[usize::from(order)].fetch_sub(1, Ordering::Relaxed);
    set.slab_pages.fetch_sub(1 << order, Ordering::Relaxed);
    if cache.design != Design::Slab || cache.off_slab() {
        let bytes = record_bytes(cache, slab.objects);
        if let Some(at) = NonNull::new(set.map().by_id(id)) {
            // SAFETY: allocated by `new_slab` with that size; the table and the lists forgot it.
            unsafe { set.memory.free_record(at, bytes) };
        }
    }
    let first = Pfn(set.map().first.0 + u64::from(frame));
    // SAFETY: the block was allocated by `new_slab` for this slab, none of whose objects is in use.
    unsafe { set.memory.pages.free(first, order, kind.mt()) };
}

/// Start of a slab.
#[inline]
pub(crate) fn start<R: RawMutex>(set: &Set<R>, slab: &SlabRecord<R>) -> usize {
    set.map().base.addr() + slab.frame as usize * PAGE as usize
}
