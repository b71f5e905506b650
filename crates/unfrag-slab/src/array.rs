//! SLAB: arrays of pointers to free objects, one a CPU, one shared by the CPUs of a node, and for
//! each remote node one of objects to be sent there; behind them each node's lists of partial, full
//! and free slabs. `spec: 6.1`
//!
//! Invariant: an object in an array counts as in use by its slab. A slab is on the list of its node
//! that its word says: free (none out), full (all out) or partial; its node's lock guards both.

use crate::array_cache::{Array, ArrayCache};
use crate::fault::FaultKind;
use crate::grow::{discard, new_slab};
use crate::lock::Locked;
use crate::word::Word;
use crate::work::Work;
use crate::{cache_record::NodeLists, cache_record::NodeRecord};
use crate::{list::List, slab_record::SlabRecord};
use lock_api::RawMutex;
use unfrag::Gfp;

/// Batch of an array that was not used since the last run of the reaper.
const UNTOUCHED_BATCH: u32 = 16;

fn cpu_array<R: RawMutex>(work: &Work<R>) -> Option<Array> {
    // SAFETY: the CPU alone uses its array.
    #[allow(unsafe_code)]
    unsafe {
        Array::new(work.cpu.array.get())
    }
}

fn shared_array(lists: &NodeLists) -> Option<Array> {
    // SAFETY: the caller has the content of the lock that guards it.
    #[allow(unsafe_code)]
    unsafe {
        Array::new(lists.shared)
    }
}

fn alien<'a, R: RawMutex>(
    work: &Work<'a, R>,
    from: u8,
    to: u8,
) -> Option<&'a Locked<*mut ArrayCache, R>> {
    let aliens = work.cache.node(from).aliens;
    // SAFETY: where there are alien arrays, there is one for each node.
    #[allow(unsafe_code)]
    (!aliens.is_null()).then(|| unsafe { &*aliens.add(to.into()) })
}

/// An object from the CPU's array, which is filled if it is empty.
pub(crate) fn alloc<R: RawMutex>(work: &Work<R>, gfp: Gfp) -> Option<*mut u8> {
    let mut ac = cpu_array(work)?;
    if let Some(object) = ac.pop() {
        work.cpu.alloc_fast.add(1);
        return Some(object);
    }
    work.cpu.alloc_slow.add(1);
    let node = work.cpu.node.get();
    loop {
        if refill(work, &mut ac, node) {
            return ac.pop();
        }
        let Some(id) = new_slab(work.set, work.cache, gfp, node) else {
            return any_node(work, node);
        };
        // The pages may be of another node than the one asked for.
        let got = add_free_slab(work, id);
        if got != node
            && let Some(object) = one_of(work, got)
        {
            return Some(object);
        }
        // Another CPU may have emptied the new slab already; then the loop runs again.
    }
}

/// An object of any node's slabs, past the arrays.
pub(crate) fn alloc_without_cpu<R: RawMutex>(work: &Work<R>, gfp: Gfp) -> Option<*mut u8> {
    // After a failure, for what was freed meanwhile.
    any_node(work, 0)
        .or_else(|| of_node(work, gfp, 0))
        .or_else(|| any_node(work, 0))
}

/// An object of a given node, past the array.
pub(crate) fn alloc_on<R: RawMutex>(work: &Work<R>, gfp: Gfp, node: u8) -> Option<*mut u8> {
    work.cpu.alloc_slow.add(1);
    of_node(work, gfp, node)
}

/// An object of a node's slabs, else of a new slab.
fn of_node<R: RawMutex>(work: &Work<R>, gfp: Gfp, node: u8) -> Option<*mut u8> {
    let mut from = node;
    loop {
        if let Some(object) = one_of(work, from) {
            return Some(object);
        }
        from = add_free_slab(work, new_slab(work.set, work.cache, gfp, node)?);
    }
}

fn any_node<R: RawMutex>(work: &Work<R>, first: u8) -> Option<*mut u8> {
    one_of(work, first).or_else(|| (0..work.set.nodes).find_map(|n| one_of(work, n)))
}

fn one_of<R: RawMutex>(work: &Work<R>, node: u8) -> Option<*mut u8> {
    let mut lists = work.cache.node(node).lists.lock();
    take_from_slabs(work, &mut lists)
}

/// Puts a new slab on its node's list. Returns the node.
fn add_free_slab<R: RawMutex>(work: &Work<R>, id: u32) -> u8 {
    let slab = work.map().slab(id);
    let node = slab.node;
    let mut lists = work.cache.node(node).lists.lock();
    lists.free.push_back(work.map(), id);
    lists.free_objects += u64::from(slab.objects);
    node
}

/// Moves up to a batch into the CPU's array: from the shared array, else from slabs.
fn refill<R: RawMutex>(work: &Work<R>, ac: &mut Array, node: u8) -> bool {
    let batch = match ac.is_touched() {
        true => work.cache.arrays.batch,
        false => work.cache.arrays.batch.min(UNTOUCHED_BATCH),
    };
    let mut lists = work.cache.node(node).lists.lock();
    lists.touched = true;
    if let Some(mut shared) = shared_array(&lists) {
        while ac.avail() < batch
            && let Some(object) = shared.pop()
        {
            ac.push(object);
        }
    }
    if ac.avail() == 0 {
        while ac.avail() < batch
            && let Some(object) = take_from_slabs(work, &mut lists)
        {
            ac.push(object);
        }
    }
    ac.avail() > 0
}

/// Takes an object of a partial slab, else of a free one.
fn take_from_slabs<R: RawMutex>(work: &Work<R>, lists: &mut NodeLists) -> Option<*mut u8> {
    let map = work.map();
    let from_free = lists.partial.first().is_none();
    let id = lists.partial.first().or(lists.free.first())?;
    let slab = map.slab(id);
    let w = slab.word.load();
    let i = w.head() - 1;
    // SAFETY: the node's lock guards the slab's index table.
    #[allow(unsafe_code)]
    let following = unsafe { map.bufctl(id, i).read() };
    let new = Word::new(following, w.inuse() + 1, true);
    slab.word.store(new);
    lists.free_objects -= 1;
    let full = new.inuse() == slab.objects;
    if from_free || full {
        match from_free {
            true => lists.free.remove(map, id),
            false => lists.partial.remove(map, id),
        }
        match full {
            true => lists.full.push_back(map, id),
            false => lists.partial.push_front(map, id),
        }
    }
    Some(
        slab.first
            .wrapping_add(i as usize * work.cache.layout.size as usize),
    )
}

/// Free objects that a node keeps in slabs. `spec: 6.1`
fn free_limit<R: RawMutex>(work: &Work<R>) -> u64 {
    (1 + u64::from(work.set.cpus)) * u64::from(work.cache.arrays.batch)
        + u64::from(work.cache.objects)
}

/// Frees an object into its slab, under its node's lock. A slab above the limit goes to `gone`.
fn put_into_slab<R: RawMutex>(
    work: &Work<R>,
    lists: &mut NodeLists,
    object: *mut u8,
    gone: &mut List,
) -> bool {
    let map = work.map();
    let Some((id, slab)) = slab_of(work, object) else {
        return false;
    };
    let w = slab.word.load();
    let Some(i) = slab.index(object, work.cache.layout.size) else {
        return false;
    };
    let Some(new) = w.freed(i + 1, 1) else {
        return false;
    };
    // SAFETY: the node's lock guards the slab's index table.
    #[allow(unsafe_code)]
    unsafe {
        map.bufctl(id, i).write(w.head());
    }
    slab.word.store(new);
    lists.free_objects += 1;
    match w.head() == 0 {
        true => lists.full.remove(map, id),
        false => lists.partial.remove(map, id),
    }
    if new.inuse() > 0 {
        lists.partial.push_back(map, id);
    } else if lists.free_objects > free_limit(work) {
        lists.free_objects -= u64::from(slab.objects);
        gone.push_back(map, id);
    } else {
        lists.free.push_back(map, id);
    }
    true
}

fn slab_of<'a, R: RawMutex>(
    work: &Work<'a, R>,
    object: *mut u8,
) -> Option<(u32, &'a SlabRecord<R>)> {
    let id = work.map().entry(object)?;
    Some((id, work.map().slab(id)))
}

fn discard_all<R: RawMutex>(work: &Work<R>, mut gone: List) {
    while let Some(id) = gone.pop_front(work.map()) {
        discard(work.set, work.cache, id);
    }
}

/// Frees an object.
pub(crate) fn free<R: RawMutex>(work: &Work<R>, id: u32, object: *mut u8) -> Result<(), FaultKind> {
    let slab = work.map().slab(id);
    let node = work.cpu.node.get();
    if !work.has_cpu {
        return free_into(work, slab.node, object);
    }
    if slab.node != node {
        work.cpu.free_slow.add(1);
        return free_alien(work, node, slab.node, object);
    }
    let Some(mut ac) = cpu_array(work) else {
        return free_into(work, slab.node, object);
    };
    if ac.push(object) {
        work.cpu.free_fast.add(1);
        return Ok(());
    }
    work.cpu.free_slow.add(1);
    flush_batch(work, &mut ac, node);
    ac.push(object);
    Ok(())
}

fn free_into<R: RawMutex>(work: &Work<R>, node: u8, object: *mut u8) -> Result<(), FaultKind> {
    let mut gone = List::default();
    let mut lists = work.cache.node(node).lists.lock();
    let done = put_into_slab(work, &mut lists, object, &mut gone);
    drop(lists);
    discard_all(work, gone);
    if done {
        Ok(())
    } else {
        Err(FaultKind::DoubleFree)
    }
}

fn free_alien<R: RawMutex>(
    work: &Work<R>,
    from: u8,
    to: u8,
    object: *mut u8,
) -> Result<(), FaultKind> {
    let Some(alien) = alien(work, from, to) else {
        return free_into(work, to, object);
    };
    let guard = alien.lock();
    // SAFETY: the lock guards it.
    #[allow(unsafe_code)]
    let array = unsafe { Array::new(*guard) };
    let Some(mut array) = array else {
        drop(guard);
        return free_into(work, to, object);
    };
    let mut gone = List::default();
    if array.avail() == array.limit() {
        put_cold(work, &mut array, u32::MAX, to, &mut gone);
    }
    array.push(object);
    drop(guard);
    discard_all(work, gone);
    Ok(())
}

/// Makes room in a full array: the coldest batch goes to the shared array as far as that has room, else to
/// slabs.
fn flush_batch<R: RawMutex>(work: &Work<R>, ac: &mut Array, node: u8) {
    let batch = work.cache.arrays.batch;
    let mut gone = List::default();
    let mut lists = work.cache.node(node).lists.lock();
    let room = shared_array(&lists).map_or(0, |s| s.limit() - s.avail());
    if let Some(mut shared) = shared_array(&lists).filter(|_| room > 0) {
        ac.take_cold(batch.min(room), |o| {
            shared.push(o);
        });
    } else {
        ac.take_cold(batch, |o| {
            put_into_slab(work, &mut lists, o, &mut gone);
        });
    }
    drop(lists);
    discard_all(work, gone);
}

fn drain_into<R: RawMutex>(work: &Work<R>, array: &mut Array, n: u32, node: u8) {
    let mut gone = List::default();
    put_cold(work, array, n, node, &mut gone);
    discard_all(work, gone);
}

/// Frees the coldest objects of an array into slabs of a node; slabs above the limit go to `gone`.
fn put_cold<R: RawMutex>(work: &Work<R>, array: &mut Array, n: u32, node: u8, gone: &mut List) {
    let mut lists = work.cache.node(node).lists.lock();
    array.take_cold(n, |o| {
        put_into_slab(work, &mut lists, o, gone);
    });
}

fn drain_aliens<R: RawMutex>(work: &Work<R>, from: u8) {
    for to in 0..work.set.nodes {
        let Some(alien) = alien(work, from, to) else {
            return;
        };
        let mut gone = List::default();
        let guard = alien.lock();
        // SAFETY: the lock guards it.
        #[allow(unsafe_code)]
        if let Some(mut array) = unsafe { Array::new(*guard) } {
            put_cold(work, &mut array, u32::MAX, to, &mut gone);
        }
        drop(guard);
        discard_all(work, gone);
    }
}

fn drain_shared<R: RawMutex>(work: &Work<R>, n: &NodeRecord<R>, count: u32) {
    let mut gone = List::default();
    let mut lists = n.lists.lock();
    if let Some(mut shared) = shared_array(&lists) {
        shared.take_cold(count, |o| {
            put_into_slab(work, &mut lists, o, &mut gone);
        });
    }
    drop(lists);
    discard_all(work, gone);
}

/// Frees the objects of the CPU's array into their slabs.
pub(crate) fn flush<R: RawMutex>(work: &Work<R>) {
    if let Some(mut ac) = cpu_array(work) {
        drain_into(work, &mut ac, u32::MAX, work.cpu.node.get());
    }
}

/// Empties the arrays of all nodes and returns the free slabs.
pub(crate) fn shrink<R: RawMutex>(work: &Work<R>) {
    for node in 0..work.set.nodes {
        drain_aliens(work, node);
        drain_shared(work, work.cache.node(node), u32::MAX);
    }
    for node in 0..work.set.nodes {
        free_slabs(work, node, u32::MAX);
    }
}

/// Returns up to `most` free slabs of a node.
fn free_slabs<R: RawMutex>(work: &Work<R>, node: u8, most: u32) {
    let mut gone = List::default();
    let mut lists = work.cache.node(node).lists.lock();
    while gone.nr < most
        && let Some(id) = lists.free.pop_front(work.map())
    {
        lists.free_objects -= u64::from(work.map().slab(id).objects);
        gone.push_back(work.map(), id);
    }
    drop(lists);
    discard_all(work, gone);
}

/// The reaper for a CPU, every 2 s: frees a fifth of an array that was not used into the slabs.
pub(crate) fn reap_cpu<R: RawMutex>(work: &Work<R>) {
    drain_aliens(work, work.cpu.node.get());
    if let Some(mut ac) = cpu_array(work)
        && !ac.untouch()
    {
        drain_into(
            work,
            &mut ac,
            work.cache.arrays.limit.div_ceil(5),
            work.cpu.node.get(),
        );
    }
}

/// The reaper for a node, every 4 s: frees a fifth of the shared array, and of the free slabs unless objects
/// were taken since the last run.
pub(crate) fn reap_node<R: RawMutex>(work: &Work<R>, node: u8) {
    let n = work.cache.node(node);
    let shared_limit = {
        let lists = n.lists.lock();
        shared_array(&lists).map_or(0, |s| s.limit())
    };
    drain_shared(work, n, shared_limit.div_ceil(5));
    let touched = core::mem::replace(&mut n.lists.lock().touched, false);
    if !touched {
        let most = free_limit(work).div_ceil(5 * u64::from(work.cache.objects));
        free_slabs(work, node, most as u32);
    }
}

/// Objects on a node's shared array.
pub(crate) fn shared_avail(lists: &NodeLists) -> u64 {
    shared_array(lists).map_or(0, |s| s.avail().into())
}
