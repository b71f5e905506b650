//! SLQB: each CPU has a free list, slabs of its own, a list of objects that belong to one other CPU,
//! and a queue onto which other CPUs splice such lists. `spec: linux-mm 6.3`
//!
//! A slab belongs to the CPU that asked for it until it goes. Its word (chain and count) and its
//! place on the CPU's list are changed under the lock of that list, which its CPU takes only when it
//! refills or flushes.
//!
//! Invariant: a slab is on its CPU's list exactly if its chain is not empty; one whose objects are all
//! back goes at once.

use crate::desc::CpuRecord;
use crate::grow::{discard, new_slab, start};
use crate::object::{next, set_next};
use crate::record::{List, Record};
use crate::sync::Ordering;
use crate::word::{Slot, Word};
use crate::work::Work;
use core::ptr::null_mut;
use unfrag::Gfp;

/// Puts objects on the CPU's free list.
pub(crate) fn refill(x: &Work, gfp: Gfp) -> bool {
    claim_remote(x);
    if !x.c.head.get().is_null() || take_partial(x) {
        return true;
    }
    let Some(id) = new_slab(x.s, x.d, gfp, x.c.node.get()) else {
        claim_remote(x);
        return !x.c.head.get().is_null();
    };
    let r = x.s.map.record(id);
    r.owner.store(x.c.tag.get(), Ordering::Relaxed);
    take_all(x, r);
    true
}

/// One object of a node's slab, past the free list.
pub(crate) fn alloc_on(x: &Work, gfp: Gfp, node: u8) -> Option<*mut u8> {
    let one_of = |list: &mut List, id: u32| {
        let r = x.s.map.record(id);
        let w = r.word.load();
        let object = object_at(x, r, w.head());
        // SAFETY: the lock is held, and the object heads the slab's chain.
        #[allow(unsafe_code)]
        let following = unsafe { next(object, x.d.next_at()) };
        let head = slot_of(x, r, following);
        r.word.store(Word::new(head, w.inuse() + 1, true));
        if head == 0 {
            list.remove(&x.s.map, id);
        }
        object
    };
    let mut own = x.c.own.lock();
    let near = own
        .iter(&x.s.map)
        .find(|id| x.s.map.record(*id).node == node);
    if let Some(id) = near {
        return Some(one_of(&mut own, id));
    }
    drop(own);
    let id = new_slab(x.s, x.d, gfp, node)?;
    let r = x.s.map.record(id);
    r.owner.store(x.c.tag.get(), Ordering::Relaxed);
    let mut own = x.c.own.lock();
    own.push_back(&x.s.map, id);
    Some(one_of(&mut own, id))
}

fn slot_of(x: &Work, r: &Record, object: *mut u8) -> Slot {
    if object.is_null() {
        return 0;
    }
    ((object.addr() - start(x.s, r)) >> 3) as Slot + 1
}

fn object_at(x: &Work, r: &Record, slot: Slot) -> *mut u8 {
    match slot {
        0 => null_mut(),
        s => x.s.map.frame(r.frame).wrapping_add((s as usize - 1) << 3),
    }
}

/// Takes all free objects of a slab; the free list must be empty, and the slab on no list.
fn take_all(x: &Work, r: &Record) {
    let w = r.word.load();
    r.word.store(w.taken(r.objects));
    x.c.head.set(object_at(x, r, w.head()));
    x.c.nr.set(u32::from(r.objects - w.inuse()));
}

fn take_partial(x: &Work) -> bool {
    let mut own = x.c.own.lock();
    let is_near = |id: &u32| x.s.map.record(*id).node == x.c.node.get();
    let near = match x.s.nodes {
        1 => None,
        _ => own.iter(&x.s.map).find(is_near),
    };
    let Some(id) = near.or(own.first()) else {
        return false;
    };
    own.remove(&x.s.map, id);
    take_all(x, x.s.map.record(id));
    true
}

/// Takes what other CPUs freed; the free list must be empty or hold few.
#[allow(unsafe_code)]
fn claim_remote(x: &Work) {
    x.c.check.store(0, Ordering::Relaxed);
    let Some((place, n)) = x.c.remote.take() else {
        return;
    };
    let first = x.s.map.at(place);
    let before = x.c.head.get();
    if !before.is_null() {
        let mut last = first;
        // SAFETY: the list is ours since it was taken; it has `n` objects.
        unsafe {
            for _ in 1..n {
                last = next(last, x.d.next_at());
            }
            set_next(last, x.d.next_at(), before);
        }
    }
    x.c.head.set(first);
    x.c.nr.set(x.c.nr.get() + n);
    overflow(x);
}

/// Gives batches back to their slabs while the free list is above its mark.
#[cold]
#[inline(never)]
pub(crate) fn overflow(x: &Work) {
    while x.c.nr.get() > x.d.slqb.hiwater {
        give_back(x, x.d.slqb.freebatch);
    }
}

/// Gives `n` objects of the free list back to their slabs.
fn give_back(x: &Work, n: u32) {
    let mut gone = List::default();
    let mut own = x.c.own.lock();
    for _ in 0..n {
        let Some(object) = x.pop() else { break };
        put_into_slab(x, &mut own, object, &mut gone);
    }
    drop(own);
    discard_all(x, gone);
}

/// Frees an object into its slab, under the lock of the slab's CPU.
#[allow(unsafe_code)]
fn put_into_slab(x: &Work, own: &mut List, object: *mut u8, gone: &mut List) {
    let Some(id) = x.s.map.entry(object) else {
        unreachable!("a free object has no slab")
    };
    let r = x.s.map.record(id);
    let w = r.word.load();
    // SAFETY: the object is free and ours; the lock guards the slab's chain.
    unsafe { set_next(object, x.d.next_at(), object_at(x, r, w.head())) };
    let Some(new) = w.freed(slot_of(x, r, object), 1) else {
        unreachable!("more objects of a slab are free than it has")
    };
    r.word.store(new);
    if new.inuse() == 0 {
        if w.head() != 0 {
            own.remove(&x.s.map, id);
        }
        gone.push_back(&x.s.map, id);
    } else if w.head() == 0 {
        own.push_front(&x.s.map, id);
    }
}

fn discard_all(x: &Work, mut gone: List) {
    while let Some(id) = gone.pop_front(&x.s.map) {
        discard(x.s, x.d, id);
    }
}

/// Frees an object that is not of this CPU's slabs.
pub(crate) fn free_slow(x: &Work, id: u32, object: *mut u8) {
    let owner = x.s.map.record(id).owner.load(Ordering::Relaxed);
    if !x.has_cpu {
        let target = target(x, owner);
        splice(x, target, object, object, 1);
        return;
    }
    if owner == x.c.tag.get() {
        x.push(object);
        overflow(x);
        return;
    }
    let l = &x.c.rlist;
    if l.nr.get() > 0 && l.target.get() != owner {
        flush_rlist(x);
    }
    // SAFETY: the object was freed to this CPU.
    #[allow(unsafe_code)]
    unsafe {
        set_next(object, x.d.next_at(), l.head.get());
    }
    if l.nr.get() == 0 {
        l.tail.set(object);
        l.target.set(owner);
    }
    l.head.set(object);
    l.nr.set(l.nr.get() + 1);
    if l.nr.get() >= x.d.slqb.freebatch {
        flush_rlist(x);
    }
    if x.c.check.load(Ordering::Relaxed) != 0 {
        claim_remote(x);
    }
}

/// Record of the CPU that a slab's owner names.
fn target<'a>(x: &Work<'a>, owner: usize) -> &'a CpuRecord {
    // SAFETY: SLQB's slabs have an owner from the start to the end: the record of a CPU, which lives
    // as long as the cache.
    #[allow(unsafe_code)]
    unsafe {
        &*x.s.map.base.with_addr(owner & !1).cast::<CpuRecord>()
    }
}

/// Sends the remote list to its CPU.
fn flush_rlist(x: &Work) {
    let l = &x.c.rlist;
    let n = l.nr.replace(0);
    if n == 0 {
        return;
    }
    let head = l.head.replace(null_mut());
    let tail = l.tail.replace(null_mut());
    splice(x, target(x, l.target.replace(0)), head, tail, n);
}

/// Splices a list of `n` objects onto a CPU's queue, or, if that is long, into their slabs.
#[allow(unsafe_code)]
fn splice(x: &Work, target: &CpuRecord, head: *mut u8, tail: *mut u8, n: u32) {
    let limits = x.d.slqb;
    let before = target.remote.len();
    if before <= limits.hiwater / 2 {
        let link = |place| {
            // SAFETY: the list is ours until the queue has it.
            unsafe { set_next(tail, x.d.next_at(), x.s.map.at(place)) };
        };
        if let Some(after) = target.remote.splice(x.s.map.place(head), n, link) {
            if after >= limits.freebatch && after - n < limits.freebatch {
                target.check.store(1, Ordering::Relaxed);
            }
            return;
        }
    }
    let mut gone = List::default();
    let mut own = target.own.lock();
    let mut at = head;
    for _ in 0..n {
        // SAFETY: the list is ours and has `n` objects.
        let following = unsafe { next(at, x.d.next_at()) };
        put_into_slab(x, &mut own, at, &mut gone);
        at = following;
    }
    drop(own);
    discard_all(x, gone);
}

/// Gives all that the CPU has back to the slabs.
pub(crate) fn flush(x: &Work) {
    flush_rlist(x);
    claim_remote(x);
    give_back(x, u32::MAX);
}

/// What the 3-second trim does: sends the remote list, claims the queue, returns a batch.
pub(crate) fn trim(x: &Work) {
    flush_rlist(x);
    claim_remote(x);
    give_back(x, x.d.slqb.freebatch);
}
