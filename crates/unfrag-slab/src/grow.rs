//! New slabs, and slabs that go: pages, record, objects, table entries.

use crate::desc::Desc;
use crate::formulas::{PAGE, SLAB_HEAD, bytes};
use crate::object::{CacheFlags, set_next};
use crate::pages::PageRequest;
use crate::record::Record;
use crate::rules::{Design, FirstAttempt};
use crate::sync::Ordering;
use crate::system::Inner;
use crate::word::{AtomicWord, Word};
use core::ptr::{NonNull, null_mut};
use unfrag::Gfp;
use unfrag::frame::Pfn;

/// Bytes of a record that is kept apart.
fn record_bytes(d: &Desc, objects: u16) -> usize {
    match d.design {
        Design::Slab => SLAB_HEAD as usize + 4 * usize::from(objects),
        _ => size_of::<Record>(),
    }
}

/// Flags that the page allocator gets for a slab.
fn page_flags(d: &Desc, gfp: Gfp) -> Gfp {
    let mut gfp = gfp - (Gfp::ZERO | Gfp::MOVABLE | Gfp::RECLAIMABLE | Gfp::HIGHMEM);
    if d.flags.contains(CacheFlags::RECLAIM_ACCOUNT) {
        gfp |= Gfp::RECLAIMABLE;
    }
    gfp
}

/// How SLUB asks for more than the least order; `None` if it does not. `spec: linux-mm 6.2, 6.5`
fn first_attempt(s: &Inner, rule: FirstAttempt, gfp: Gfp) -> Option<(Gfp, bool)> {
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
            let (free, total) = s.pages.free_and_total();
            (free > total / 8).then_some((historic, false))
        }
        FirstAttempt::NoWait => Some((no_wait, false)),
        FirstAttempt::NoWake => Some((no_wake, false)),
        FirstAttempt::FirstPassOnly => Some((no_wake, true)),
    }
}

fn block(s: &Inner, d: &Desc, gfp: Gfp, node: u8) -> Option<(Pfn, u8)> {
    let gfp = page_flags(d, gfp);
    let ask = |order: u8, gfp: Gfp, first_pass_only| {
        let gfp = if order > 0 { gfp | Gfp::COMP } else { gfp };
        let request = PageRequest {
            order,
            gfp,
            node,
            first_pass_only,
        };
        s.pages.alloc(&request).map(|pfn| (pfn, order))
    };
    if d.design != Design::Slub || d.order == d.min_order {
        return ask(d.order, gfp, false);
    }
    let high = first_attempt(s, s.rules.slub.first_attempt, gfp)
        .and_then(|(gfp, first_pass_only)| ask(d.order, gfp, first_pass_only));
    high.or_else(|| {
        let low = ask(d.min_order, gfp, false);
        if low.is_some() {
            d.order_fallbacks.fetch_add(1, Ordering::Relaxed);
        }
        low
    })
}

/// Makes a slab whose objects are all free and on its chain, frozen, on no list; answers its number.
#[allow(unsafe_code)]
pub(crate) fn new_slab(s: &Inner, d: &Desc, gfp: Gfp, node: u8) -> Option<u32> {
    let (pfn, order) = block(s, d, gfp, node)?;
    let frame = (pfn.0 - s.map.first.0) as u32;
    let start = s.map.frame(frame);
    let objects = if order == d.order {
        d.objects
    } else {
        d.min_objects
    };
    let colour = match d.colours {
        0 | 1 => 0,
        n => d.colour_next.fetch_add(1, Ordering::Relaxed) % n * d.colour_step,
    };
    let on_slab = d.design == Design::Slab && !d.off_slab();
    let at = if on_slab {
        start.wrapping_add(colour as usize)
    } else {
        match s.boot_alloc(record_bytes(d, objects), gfp, node) {
            Some(at) => at.as_ptr(),
            None => {
                s.pages.free(pfn, order);
                return None;
            }
        }
    };
    let lead = colour + d.head + d.layout.lead;
    let first = start.wrapping_add(lead as usize);
    debug_assert!(
        lead - d.layout.lead + u32::from(objects) * d.layout.size <= bytes(order),
        "objects end beyond their slab"
    );
    let place_of = s.map.place(first) - s.map.place(start) + 1;
    let head = match d.design {
        Design::Slab => 1,
        _ => place_of as u32,
    };
    let word = AtomicWord::new(Word::new(head, 0, true));
    let node = s.pages.node_of(pfn).min(s.nodes - 1);
    let record = Record::new(word, d, first, (frame, order, node), objects);
    // SAFETY: the place is ours, large enough and aligned: in the slab at a multiple of 64 bytes, or
    // in the bootstrap cache.
    unsafe { at.cast::<Record>().write(record) };
    let id = s.map.id_of(at);
    chain_objects(d, s.map.record(id));
    s.map.set_entries(frame, order, id);
    let n = d.node(node);
    n.slabs.fetch_add(1, Ordering::Relaxed);
    n.objects.fetch_add(objects.into(), Ordering::Relaxed);
    d.slabs_of[usize::from(order)].fetch_add(1, Ordering::Relaxed);
    s.slab_pages.fetch_add(1 << order, Ordering::Relaxed);
    Some(id)
}

/// Makes the objects of a new slab ready and chains them in the order of their addresses.
#[allow(unsafe_code)]
fn chain_objects(d: &Desc, r: &Record) {
    let size = d.layout.size as usize;
    let last = u32::from(r.objects) - 1;
    let mut object = r.first;
    for i in 0..=last {
        let following = object.wrapping_add(size);
        if d.is_checked() {
            crate::debug::on_new(d, object);
        }
        if let (Some(ctor), Some(object)) = (d.ctor, NonNull::new(object)) {
            ctor(object);
        }
        // SAFETY: the object lies in the slab, which nobody knows yet; the link and the index table
        // have room for it by the layout.
        unsafe {
            if d.design == Design::Slab {
                r.bufctl(i).write(if i == last { 0 } else { i + 2 });
            } else {
                let to = if i == last { null_mut() } else { following };
                set_next(object, d.next_at(), to);
            }
        }
        object = following;
    }
}

/// Returns a slab without an object in use, which is on no list and has no owner.
#[allow(unsafe_code)]
pub(crate) fn discard(s: &Inner, d: &Desc, id: u32) {
    let r = s.map.record(id);
    debug_assert_eq!(r.word.load().inuse(), 0, "a slab goes with objects in use");
    let (frame, order) = (r.frame, r.order);
    s.map.set_entries(frame, order, 0);
    let n = d.node(r.node);
    n.slabs.fetch_sub(1, Ordering::Relaxed);
    n.objects.fetch_sub(r.objects.into(), Ordering::Relaxed);
    d.slabs_of[usize::from(order)].fetch_sub(1, Ordering::Relaxed);
    s.slab_pages.fetch_sub(1 << order, Ordering::Relaxed);
    if d.design != Design::Slab || d.off_slab() {
        let bytes = record_bytes(d, r.objects);
        if let Some(at) = NonNull::new(s.map.by_id(id)) {
            // SAFETY: allocated by `new_slab` with that size; the table and the lists forgot it.
            unsafe { s.boot_free(at, bytes) };
        }
    }
    s.pages.free(Pfn(s.map.first.0 + u64::from(frame)), order);
}

/// Start of a slab.
#[inline]
pub(crate) fn start(s: &Inner, r: &Record) -> usize {
    s.map.base.addr() + r.frame as usize * PAGE as usize
}
