//! SLAB: arrays of pointers to free objects, one a CPU, one shared by the CPUs of a node, and for
//! each remote node one of objects to be sent there; behind them each node's lists of partial, full
//! and free slabs. `spec: linux-mm 6.1`
//!
//! Invariant: an object in an array counts as in use by its slab. A slab is on the list of its node
//! that its word says: free (none out), full (all out) or partial; its node's lock guards both.

use crate::array_cache::{Array, ArrayCache};
use crate::fault::FaultKind;
use crate::grow::{discard, new_slab};
use crate::lock::Locked;
use crate::record::{List, Record};
use crate::word::Word;
use crate::work::Work;
use crate::{desc::NodeLists, desc::NodeRecord};
use unfrag::Gfp;

/// Objects that an array gets that was not used since the reaper came by.
const UNTOUCHED_BATCH: u32 = 16;

fn cpu_array(x: &Work) -> Option<Array> {
    // SAFETY: whoever is the CPU may use its array.
    #[allow(unsafe_code)]
    unsafe {
        Array::new(x.c.array.get())
    }
}

fn shared_array(lists: &NodeLists) -> Option<Array> {
    // SAFETY: the caller holds the lock that guards it, for he has its content.
    #[allow(unsafe_code)]
    unsafe {
        Array::new(lists.shared)
    }
}

fn alien<'a>(x: &Work<'a>, from: u8, to: u8) -> Option<&'a Locked<*mut ArrayCache>> {
    let aliens = x.d.node(from).aliens;
    // SAFETY: if there are any there is one a node.
    #[allow(unsafe_code)]
    (!aliens.is_null()).then(|| unsafe { &*aliens.add(to.into()) })
}

/// An object from the CPU's array, which is filled if it is empty.
pub(crate) fn alloc(x: &Work, gfp: Gfp) -> Option<*mut u8> {
    let mut ac = cpu_array(x)?;
    if let Some(object) = ac.pop() {
        x.c.alloc_fast.add(1);
        return Some(object);
    }
    x.c.alloc_slow.add(1);
    let node = x.c.node.get();
    loop {
        if refill(x, &mut ac, node) {
            return ac.pop();
        }
        let Some(id) = new_slab(x.s, x.d, gfp, node) else {
            return any_node(x, node);
        };
        // The pages may be of another node than the one asked for.
        let got = add_free_slab(x, id);
        if got != node
            && let Some(object) = one_of(x, got)
        {
            return Some(object);
        }
        // Another CPU may have emptied the new slab already: then once more.
    }
}

/// An object of a given node, past the array.
pub(crate) fn alloc_on(x: &Work, gfp: Gfp, node: u8) -> Option<*mut u8> {
    x.c.alloc_slow.add(1);
    let mut from = node;
    loop {
        if let Some(object) = one_of(x, from) {
            return Some(object);
        }
        from = add_free_slab(x, new_slab(x.s, x.d, gfp, node)?);
    }
}

fn any_node(x: &Work, first: u8) -> Option<*mut u8> {
    one_of(x, first).or_else(|| (0..x.s.nodes).find_map(|n| one_of(x, n)))
}

fn one_of(x: &Work, node: u8) -> Option<*mut u8> {
    let mut lists = x.d.node(node).lists.lock();
    take_from_slabs(x, &mut lists)
}

/// Puts a new slab on its node's list; answers the node.
fn add_free_slab(x: &Work, id: u32) -> u8 {
    let r = x.s.map.record(id);
    let node = r.node;
    let mut lists = x.d.node(node).lists.lock();
    lists.free.push_back(&x.s.map, id);
    lists.free_objects += u64::from(r.objects);
    node
}

/// Moves up to a batch into the CPU's array: from the shared array, else from slabs.
fn refill(x: &Work, ac: &mut Array, node: u8) -> bool {
    let batch = match ac.is_touched() {
        true => x.d.arrays.batch,
        false => x.d.arrays.batch.min(UNTOUCHED_BATCH),
    };
    let mut lists = x.d.node(node).lists.lock();
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
            && let Some(object) = take_from_slabs(x, &mut lists)
        {
            ac.push(object);
        }
    }
    ac.avail() > 0
}

/// Takes an object of a partial slab, else of a free one.
fn take_from_slabs(x: &Work, lists: &mut NodeLists) -> Option<*mut u8> {
    let map = &x.s.map;
    let from_free = lists.partial.first().is_none();
    let id = lists.partial.first().or(lists.free.first())?;
    let r = map.record(id);
    let w = r.word.load();
    let i = w.head() - 1;
    // SAFETY: the node's lock guards the slab's index table.
    #[allow(unsafe_code)]
    let following = unsafe { r.bufctl(i).read() };
    let new = Word::new(following, w.inuse() + 1, true);
    r.word.store(new);
    lists.free_objects -= 1;
    let full = new.inuse() == r.objects;
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
    Some(r.first.wrapping_add(i as usize * x.d.layout.size as usize))
}

/// Free objects that a node keeps in slabs. `spec: linux-mm 6.1`
fn free_limit(x: &Work) -> u64 {
    (1 + u64::from(x.s.cpus)) * u64::from(x.d.arrays.batch) + u64::from(x.d.objects)
}

/// Frees an object into its slab, under its node's lock. A slab above the limit goes to `gone`.
fn put_into_slab(x: &Work, lists: &mut NodeLists, object: *mut u8, gone: &mut List) -> bool {
    let map = &x.s.map;
    let Some((id, r)) = slab_of(x, object) else {
        return false;
    };
    let w = r.word.load();
    let Some(i) = r.index(object, x.d.layout.size) else {
        return false;
    };
    let Some(new) = w.freed(i + 1, 1) else {
        return false;
    };
    // SAFETY: the node's lock guards the slab's index table.
    #[allow(unsafe_code)]
    unsafe {
        r.bufctl(i).write(w.head());
    }
    r.word.store(new);
    lists.free_objects += 1;
    match w.head() == 0 {
        true => lists.full.remove(map, id),
        false => lists.partial.remove(map, id),
    }
    if new.inuse() > 0 {
        lists.partial.push_back(map, id);
    } else if lists.free_objects > free_limit(x) {
        lists.free_objects -= u64::from(r.objects);
        gone.push_back(map, id);
    } else {
        lists.free.push_back(map, id);
    }
    true
}

fn slab_of<'a>(x: &Work<'a>, object: *mut u8) -> Option<(u32, &'a Record)> {
    let id = x.s.map.entry(object)?;
    Some((id, x.s.map.record(id)))
}

fn discard_all(x: &Work, mut gone: List) {
    while let Some(id) = gone.pop_front(&x.s.map) {
        discard(x.s, x.d, id);
    }
}

/// Frees an object.
pub(crate) fn free(x: &Work, id: u32, object: *mut u8) -> Result<(), FaultKind> {
    let r = x.s.map.record(id);
    let node = x.c.node.get();
    if !x.has_cpu {
        return free_into(x, r.node, object);
    }
    if r.node != node {
        x.c.free_slow.add(1);
        return free_alien(x, node, r.node, object);
    }
    let Some(mut ac) = cpu_array(x) else {
        return free_into(x, r.node, object);
    };
    if ac.push(object) {
        x.c.free_fast.add(1);
        return Ok(());
    }
    x.c.free_slow.add(1);
    flush_batch(x, &mut ac, node);
    ac.push(object);
    Ok(())
}

fn free_into(x: &Work, node: u8, object: *mut u8) -> Result<(), FaultKind> {
    let mut gone = List::default();
    let mut lists = x.d.node(node).lists.lock();
    let done = put_into_slab(x, &mut lists, object, &mut gone);
    drop(lists);
    discard_all(x, gone);
    if done {
        Ok(())
    } else {
        Err(FaultKind::DoubleFree)
    }
}

fn free_alien(x: &Work, from: u8, to: u8, object: *mut u8) -> Result<(), FaultKind> {
    let Some(alien) = alien(x, from, to) else {
        return free_into(x, to, object);
    };
    let guard = alien.lock();
    // SAFETY: the lock guards it.
    #[allow(unsafe_code)]
    let array = unsafe { Array::new(*guard) };
    let Some(mut array) = array else {
        drop(guard);
        return free_into(x, to, object);
    };
    if array.avail() == array.limit() {
        drain_into(x, &mut array, u32::MAX, to);
    }
    array.push(object);
    Ok(())
}

/// A full array: the coldest batch goes to the shared array as far as that has room, else to slabs.
fn flush_batch(x: &Work, ac: &mut Array, node: u8) {
    let batch = x.d.arrays.batch;
    let mut gone = List::default();
    let mut lists = x.d.node(node).lists.lock();
    let room = shared_array(&lists).map_or(0, |s| s.limit() - s.avail());
    if let Some(mut shared) = shared_array(&lists).filter(|_| room > 0) {
        ac.take_cold(batch.min(room), |o| {
            shared.push(o);
        });
    } else {
        ac.take_cold(batch, |o| {
            put_into_slab(x, &mut lists, o, &mut gone);
        });
    }
    drop(lists);
    discard_all(x, gone);
}

fn drain_into(x: &Work, array: &mut Array, n: u32, node: u8) {
    let mut gone = List::default();
    let mut lists = x.d.node(node).lists.lock();
    array.take_cold(n, |o| {
        put_into_slab(x, &mut lists, o, &mut gone);
    });
    drop(lists);
    discard_all(x, gone);
}

fn drain_aliens(x: &Work, from: u8) {
    for to in 0..x.s.nodes {
        let Some(alien) = alien(x, from, to) else {
            return;
        };
        let guard = alien.lock();
        // SAFETY: the lock guards it.
        #[allow(unsafe_code)]
        if let Some(mut array) = unsafe { Array::new(*guard) } {
            drain_into(x, &mut array, u32::MAX, to);
        }
    }
}

fn drain_shared(x: &Work, n: &NodeRecord, count: u32) {
    let mut gone = List::default();
    let mut lists = n.lists.lock();
    if let Some(mut shared) = shared_array(&lists) {
        shared.take_cold(count, |o| {
            put_into_slab(x, &mut lists, o, &mut gone);
        });
    }
    drop(lists);
    discard_all(x, gone);
}

/// Gives all that the CPU has back to the slabs.
pub(crate) fn flush(x: &Work) {
    if let Some(mut ac) = cpu_array(x) {
        drain_into(x, &mut ac, u32::MAX, x.c.node.get());
    }
}

/// Empties the arrays of all nodes and returns the free slabs.
pub(crate) fn shrink(x: &Work) {
    for node in 0..x.s.nodes {
        drain_aliens(x, node);
        drain_shared(x, x.d.node(node), u32::MAX);
    }
    for node in 0..x.s.nodes {
        free_slabs(x, node, u32::MAX);
    }
}

/// Returns up to `most` free slabs of a node.
fn free_slabs(x: &Work, node: u8, most: u32) {
    let mut gone = List::default();
    let mut lists = x.d.node(node).lists.lock();
    while gone.nr < most
        && let Some(id) = lists.free.pop_front(&x.s.map)
    {
        lists.free_objects -= u64::from(x.s.map.record(id).objects);
        gone.push_back(&x.s.map, id);
    }
    drop(lists);
    discard_all(x, gone);
}

/// What the reaper does for a CPU every 2 s: a fifth of an array that was not used goes to the slabs.
pub(crate) fn reap_cpu(x: &Work) {
    drain_aliens(x, x.c.node.get());
    if let Some(mut ac) = cpu_array(x)
        && !ac.untouch()
    {
        drain_into(x, &mut ac, x.d.arrays.limit.div_ceil(5), x.c.node.get());
    }
}

/// What it does for a node every 4 s: a fifth of the shared array, and of the free slabs unless some
/// were asked for.
pub(crate) fn reap_node(x: &Work, node: u8) {
    let n = x.d.node(node);
    let shared_limit = {
        let lists = n.lists.lock();
        shared_array(&lists).map_or(0, |s| s.limit())
    };
    drain_shared(x, n, shared_limit.div_ceil(5));
    let touched = core::mem::replace(&mut n.lists.lock().touched, false);
    if !touched {
        let most = free_limit(x).div_ceil(5 * u64::from(x.d.objects));
        free_slabs(x, node, most as u32);
    }
}

/// Objects on a node's shared array.
pub(crate) fn shared_avail(lists: &NodeLists) -> u64 {
    shared_array(lists).map_or(0, |s| s.avail().into())
}
