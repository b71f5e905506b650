//! SLQB: each CPU has a free list, slabs of its own, a list of objects that belong to one other CPU,
//! and a queue onto which other CPUs splice such lists. `spec: 6.3`
//!
//! A slab belongs to the CPU that asked for it until it goes. Its word (chain and count) and its
//! place on the CPU's list are changed under the lock of that list, which its CPU takes only when it
//! refills or flushes.
//!
//! Invariant: a slab is on its CPU's list exactly if its chain is not empty; one whose objects are all
//! back goes at once.

use crate::cache_record::CpuRecord;
use crate::grow::{discard, new_slab, start};
use crate::object::{next, set_next};
use crate::sync::Ordering;
use crate::word::{Slot, Word};
use crate::work::Work;
use crate::{list::List, slab_record::SlabRecord};
use core::ptr::null_mut;
use lock_api::RawMutex;
use unfrag::Gfp;

/// Puts objects on the CPU's free list.
pub(crate) fn refill<R: RawMutex>(work: &Work<R>, gfp: Gfp) -> bool {
    claim_remote(work);
    if !work.cpu.head.get().is_null() || take_partial(work) {
        return true;
    }
    let Some(id) = new_slab(work.set, work.cache, gfp, work.cpu.node.get()) else {
        claim_remote(work);
        return !work.cpu.head.get().is_null();
    };
    let slab = work.map().slab(id);
    // Relaxed: who frees an object of the slab elsewhere got it from this CPU, and the owner with it.
    slab.owner.store(work.cpu.tag.get(), Ordering::Relaxed);
    take_all(work, slab);
    true
}

/// One object of a node's slab, past the free list.
pub(crate) fn alloc_on<R: RawMutex>(work: &Work<R>, gfp: Gfp, node: u8) -> Option<*mut u8> {
    work.cpu.alloc_slow.add(1);
    let mut own = work.cpu.own_slabs.lock();
    let near = own
        .iter(work.map())
        .find(|id| work.map().slab(*id).node == node);
    if let Some(id) = near {
        return Some(take_one(work, &mut own, id));
    }
    drop(own);
    new_slab_of_one(work, gfp, node)
}

/// One object of any slab, past the free lists. A new slab belongs to the first CPU.
pub(crate) fn alloc_without_cpu<R: RawMutex>(work: &Work<R>, gfp: Gfp) -> Option<*mut u8> {
    let one_of = |own: &CpuRecord<R>| {
        let mut own = own.own_slabs.lock();
        own.first().map(|id| take_one(work, &mut own, id))
    };
    let of_any = || work.cache.all_cpus().find_map(one_of);
    // After a failure, for what was freed meanwhile.
    of_any()
        .or_else(|| new_slab_of_one(work, gfp, work.cpu.node.get()))
        .or_else(of_any)
}

/// Makes a slab of the CPU, and takes one object of it.
fn new_slab_of_one<R: RawMutex>(work: &Work<R>, gfp: Gfp, node: u8) -> Option<*mut u8> {
    let id = new_slab(work.set, work.cache, gfp, node)?;
    let slab = work.map().slab(id);
    // Relaxed: the lock below publishes it.
    slab.owner.store(work.cpu.tag.get(), Ordering::Relaxed);
    let mut own = work.cpu.own_slabs.lock();
    own.push_back(work.map(), id);
    Some(take_one(work, &mut own, id))
}

/// Takes the first object of a slab on a CPU's list, which the caller has locked.
fn take_one<R: RawMutex>(work: &Work<R>, list: &mut List, id: u32) -> *mut u8 {
    let slab = work.map().slab(id);
    let w = slab.word.load();
    let object = object_at(work, slab, w.head());
    // SAFETY: the lock is held, and the object heads the slab's chain.
    #[allow(unsafe_code)]
    let following = unsafe { next(object, work.cache.next_at()) };
    let head = slot_of(work, slab, following);
    slab.word.store(Word::new(head, w.inuse() + 1, true));
    if head == 0 {
        list.remove(work.map(), id);
    }
    object
}

fn slot_of<R: RawMutex>(work: &Work<R>, slab: &SlabRecord<R>, object: *mut u8) -> Slot {
    if object.is_null() {
        return 0;
    }
    ((object.addr() - start(work.set, slab)) >> 3) as Slot + 1
}

fn object_at<R: RawMutex>(work: &Work<R>, slab: &SlabRecord<R>, slot: Slot) -> *mut u8 {
    match slot {
        0 => null_mut(),
        s => work
            .map()
            .frame(slab.frame)
            .wrapping_add((s as usize - 1) << 3),
    }
}

/// Takes all free objects of a slab; the free list must be empty, and the slab on no list.
fn take_all<R: RawMutex>(work: &Work<R>, slab: &SlabRecord<R>) {
    let w = slab.word.load();
    slab.word.store(w.taken(slab.objects));
    work.cpu.head.set(object_at(work, slab, w.head()));
    work.cpu.nr.set(u32::from(slab.objects - w.inuse()));
}

fn take_partial<R: RawMutex>(work: &Work<R>) -> bool {
    let mut own = work.cpu.own_slabs.lock();
    let is_near = |id: &u32| work.map().slab(*id).node == work.cpu.node.get();
    let near = match work.set.nodes {
        1 => None,
        _ => own.iter(work.map()).find(is_near),
    };
    let Some(id) = near.or(own.first()) else {
        return false;
    };
    own.remove(work.map(), id);
    take_all(work, work.map().slab(id));
    true
}

/// Takes what other CPUs freed; the free list must be empty or hold few.
#[allow(unsafe_code)]
fn claim_remote<R: RawMutex>(work: &Work<R>) {
    // Relaxed: a request is served late or early, never wrongly; the queue's own word says what there is.
    work.cpu.claim_requested.store(0, Ordering::Relaxed);
    let Some((place, n)) = work.cpu.remote.take() else {
        return;
    };
    let first = work.map().at(place);
    let before = work.cpu.head.get();
    if !before.is_null() {
        let mut last = first;
        // SAFETY: the list is ours since it was taken; it has `n` objects.
        unsafe {
            for _ in 1..n {
                last = next(last, work.cache.next_at());
            }
            set_next(last, work.cache.next_at(), before);
        }
    }
    work.cpu.head.set(first);
    work.cpu.nr.set(work.cpu.nr.get() + n);
    overflow(work);
}

/// Gives batches back to their slabs while the free list is above its mark.
#[cold]
#[inline(never)]
pub(crate) fn overflow<R: RawMutex>(work: &Work<R>) {
    while work.cpu.nr.get() > work.cache.slqb.hiwater {
        give_back(work, work.cache.slqb.freebatch);
    }
}

/// Gives `n` objects of the free list back to their slabs.
fn give_back<R: RawMutex>(work: &Work<R>, n: u32) {
    let mut gone = List::default();
    let mut own = work.cpu.own_slabs.lock();
    for _ in 0..n {
        let Some(object) = work.pop() else { break };
        put_into_slab(work, &mut own, object, &mut gone);
    }
    drop(own);
    discard_all(work, gone);
}

/// Frees an object into its slab, under the lock of the slab's CPU.
#[allow(unsafe_code)]
fn put_into_slab<R: RawMutex>(work: &Work<R>, own: &mut List, object: *mut u8, gone: &mut List) {
    let Some(id) = work.map().entry(object) else {
        unreachable!("a free object has no slab")
    };
    let slab = work.map().slab(id);
    let w = slab.word.load();
    // SAFETY: the object is free and ours; the lock guards the slab's chain.
    unsafe {
        set_next(
            object,
            work.cache.next_at(),
            object_at(work, slab, w.head()),
        )
    };
    let Some(new) = w.freed(slot_of(work, slab, object), 1) else {
        unreachable!("more objects of a slab are free than it has")
    };
    slab.word.store(new);
    if new.inuse() == 0 {
        if w.head() != 0 {
            own.remove(work.map(), id);
        }
        gone.push_back(work.map(), id);
    } else if w.head() == 0 {
        own.push_front(work.map(), id);
    }
}

fn discard_all<R: RawMutex>(work: &Work<R>, mut gone: List) {
    while let Some(id) = gone.pop_front(work.map()) {
        discard(work.set, work.cache, id);
    }
}

/// Frees an object that is not of this CPU's slabs.
pub(crate) fn free_slow<R: RawMutex>(work: &Work<R>, id: u32, object: *mut u8) {
    // Relaxed: set before the first object of the slab was handed out, and not changed until the slab goes.
    let owner = work.map().slab(id).owner.load(Ordering::Relaxed);
    if !work.has_cpu {
        let target = target(work, owner);
        splice(work, target, object, object, 1);
        return;
    }
    if owner == work.cpu.tag.get() {
        work.push(object);
        overflow(work);
        return;
    }
    let list = &work.cpu.remote_list;
    if list.nr.get() > 0 && list.target.get() != owner {
        flush_remote_list(work);
    }
    // SAFETY: the object was freed to this CPU.
    #[allow(unsafe_code)]
    unsafe {
        set_next(object, work.cache.next_at(), list.head.get());
    }
    if list.nr.get() == 0 {
        list.tail.set(object);
        list.target.set(owner);
    }
    list.head.set(object);
    list.nr.set(list.nr.get() + 1);
    if list.nr.get() >= work.cache.slqb.freebatch {
        flush_remote_list(work);
    }
    // Relaxed: as in `claim_remote`.
    if work.cpu.claim_requested.load(Ordering::Relaxed) != 0 {
        claim_remote(work);
    }
}

/// Record of the CPU that a slab's owner names.
fn target<'a, R: RawMutex>(work: &Work<'a, R>, owner: usize) -> &'a CpuRecord<R> {
    // SAFETY: SLQB's slabs have an owner from the start to the end: the record of a CPU, which lives
    // as long as the cache.
    #[allow(unsafe_code)]
    unsafe {
        &*work.map().base.with_addr(owner & !1).cast::<CpuRecord<R>>()
    }
}

/// Sends the remote list to its CPU.
fn flush_remote_list<R: RawMutex>(work: &Work<R>) {
    let list = &work.cpu.remote_list;
    let n = list.nr.replace(0);
    if n == 0 {
        return;
    }
    let head = list.head.replace(null_mut());
    let tail = list.tail.replace(null_mut());
    splice(work, target(work, list.target.replace(0)), head, tail, n);
}

/// Splices a list of `n` objects onto a CPU's queue, or, if that is long, into their slabs.
#[allow(unsafe_code)]
fn splice<R: RawMutex>(
    work: &Work<R>,
    target: &CpuRecord<R>,
    head: *mut u8,
    tail: *mut u8,
    n: u32,
) {
    let limits = work.cache.slqb;
    let before = target.remote.len();
    if before <= limits.hiwater / 2 {
        let link = |place| {
            // SAFETY: the list is ours until the queue has it.
            unsafe { set_next(tail, work.cache.next_at(), work.map().at(place)) };
        };
        if let Some(after) = target.remote.splice(work.map().place(head), n, link) {
            if after >= limits.freebatch && after - n < limits.freebatch {
                // Relaxed: as in `claim_remote`.
                target.claim_requested.store(1, Ordering::Relaxed);
            }
            return;
        }
    }
    let mut gone = List::default();
    let mut own = target.own_slabs.lock();
    let mut at = head;
    for _ in 0..n {
        // SAFETY: the list is ours and has `n` objects.
        let following = unsafe { next(at, work.cache.next_at()) };
        put_into_slab(work, &mut own, at, &mut gone);
        at = following;
    }
    drop(own);
    discard_all(work, gone);
}

/// Frees all objects of the CPU's lists into their slabs.
pub(crate) fn flush<R: RawMutex>(work: &Work<R>) {
    flush_remote_list(work);
    claim_remote(work);
    give_back(work, u32::MAX);
}

/// The trim, every 3 s: sends the remote list, claims the queue, returns a batch.
pub(crate) fn trim<R: RawMutex>(work: &Work<R>) {
    flush_remote_list(work);
    claim_remote(work);
    give_back(work, work.cache.slqb.freebatch);
}
