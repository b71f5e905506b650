//! SLUB: each CPU owns one slab, whose free objects it chains up; every slab has its own free chain
//! besides, in its word, to which anyone may free with one compare-and-swap. `spec: linux-mm 6.2`
//!
//! Where a slab is:
//! - *frozen*: the CPU's slab, or one of the CPU's partial slabs; on no list of a node;
//! - *partial*, not frozen, with a free object: on its node's list;
//! - *full*, not frozen, without one: nowhere, until an object of it is freed.
//!
//! Invariant: whoever changes a word that is not frozen so that the slab must go on or off its node's
//! list holds that node's lock when it does; all other changes need no lock.

use crate::fault::FaultKind;
use crate::grow::{discard, new_slab, start};
use crate::object::{next, set_next};
use crate::record::Record;
use crate::sync::Ordering;
use crate::word::{Slot, Word};
use crate::work::Work;
use core::ptr::null_mut;
use unfrag::Gfp;

fn slot_of(x: &Work, r: &Record, object: *mut u8) -> Slot {
    ((object.addr() - start(x.s, r)) >> 3) as Slot + 1
}

fn object_at(x: &Work, r: &Record, slot: Slot) -> *mut u8 {
    match slot {
        0 => null_mut(),
        s => x.s.map.frame(r.frame).wrapping_add((s as usize - 1) << 3),
    }
}

/// Puts a chain on the CPU after its own ran out, or is of another node than the one asked for.
pub(crate) fn refill(x: &Work, gfp: Gfp, node: Option<u8>) -> bool {
    if let Some(id) = x.current() {
        let elsewhere = node.is_some_and(|n| n != x.s.map.record(id).node);
        if elsewhere || !x.c.head.get().is_null() {
            deactivate(x);
        } else if reload_or_let_go(x, id) {
            return true;
        }
    }
    while let Some(id) = pop_partial(x) {
        if node.is_none_or(|n| n == x.s.map.record(id).node) {
            adopt(x, id);
            return true;
        }
        thaw(x, id);
    }
    let near = node.unwrap_or(x.c.node.get());
    if from_node(x, near) {
        return true;
    }
    if let Some(id) = new_slab(x.s, x.d, gfp, near) {
        adopt(x, id);
        return true;
    }
    node.is_none() && (0..x.s.nodes).any(|n| n != near && from_node(x, n))
}

/// Takes what was freed to the CPU's slab meanwhile; if there is nothing, the slab is full, and no
/// longer the CPU's.
fn reload_or_let_go(x: &Work, id: u32) -> bool {
    let r = x.s.map.record(id);
    // Before the word: whoever sees it thawed may make it his own.
    r.owner.store(0, Ordering::Relaxed);
    x.c.slab.set(0);
    let full = |w: Word| (w.head() == 0).then(|| w.with_frozen(false));
    if r.word.change(full).is_ok() {
        return false;
    }
    adopt(x, id);
    true
}

/// Makes a frozen slab the CPU's and takes its free objects.
fn adopt(x: &Work, id: u32) {
    let r = x.s.map.record(id);
    let took = r.word.change(|w| Some(w.taken(r.objects)));
    let Ok((old, _)) = took else {
        unreachable!("this change is never refused")
    };
    take_chain(x, id, old);
}

fn take_chain(x: &Work, id: u32, old: Word) {
    let r = x.s.map.record(id);
    debug_assert!(old.head() != 0, "a slab without a free object was adopted");
    x.c.slab.set(id);
    r.owner.store(x.c.tag.get(), Ordering::Relaxed);
    x.c.head.set(object_at(x, r, old.head()));
    x.c.nr.set(u32::from(r.objects - old.inuse()));
}

/// Takes a partial slab of a node, and more for the CPU's own list.
fn from_node(x: &Work, node: u8) -> bool {
    let mut lists = x.d.node(node).lists.lock();
    let Some(id) = lists.partial.pop_front(&x.s.map) else {
        return false;
    };
    let r = x.s.map.record(id);
    let took = r.word.change(|w| Some(w.taken(r.objects)));
    let Ok((old, _)) = took else {
        unreachable!("this change is never refused")
    };
    take_chain(x, id, old);
    while x.c.partial_nr.get() < x.d.cpu_partial / 2
        && let Some(more) = lists.partial.pop_front(&x.s.map)
    {
        let _ =
            x.s.map
                .record(more)
                .word
                .change(|w| Some(w.with_frozen(true)));
        push_partial(x, more);
    }
    true
}

fn pop_partial(x: &Work) -> Option<u32> {
    let id = x.c.partial.get();
    (id != 0).then(|| {
        x.c.partial.set(x.s.map.record(id).next());
        x.c.partial_nr.set(x.c.partial_nr.get() - 1);
        id
    })
}

fn push_partial(x: &Work, id: u32) {
    x.s.map.record(id).set_next(x.c.partial.get());
    x.c.partial.set(id);
    x.c.partial_nr.set(x.c.partial_nr.get() + 1);
}

/// Gives a frozen slab, whose objects are all in its word, back to its node.
fn thaw(x: &Work, id: u32) {
    give_back(x, id, null_mut(), null_mut(), 0);
}

/// Gives the CPU's slab back with the CPU's chain.
#[allow(unsafe_code)]
fn deactivate(x: &Work) {
    let Some(id) = x.current() else { return };
    x.c.slab.set(0);
    x.s.map.record(id).owner.store(0, Ordering::Relaxed);
    let first = x.c.head.replace(null_mut());
    x.c.nr.set(0);
    let (mut last, mut n) = (first, u16::from(!first.is_null()));
    while n > 0 {
        // SAFETY: the chain was the CPU's and ends with null.
        let following = unsafe { next(last, x.d.next_at()) };
        if following.is_null() {
            break;
        }
        last = following;
        n += 1;
    }
    give_back(x, id, first, last, n);
}

/// Thaws a slab, with `n` objects of the CPU's chain spliced before its own.
#[allow(unsafe_code)]
fn give_back(x: &Work, id: u32, first: *mut u8, last: *mut u8, n: u16) {
    let r = x.s.map.record(id);
    let mut lists = x.d.node(r.node).lists.lock();
    let done = r.word.change(|w| {
        if n == 0 {
            return Some(w.with_frozen(false));
        }
        // SAFETY: the chain is the caller's, and `last` ends it.
        unsafe { set_next(last, x.d.next_at(), object_at(x, r, w.head())) };
        Some(w.freed(slot_of(x, r, first), n)?.with_frozen(false))
    });
    let Ok((_, new)) = done else {
        unreachable!("a CPU's chain has more objects than its slab gave it")
    };
    if new.inuse() == 0 && lists.partial.nr >= x.d.min_partial {
        drop(lists);
        discard(x.s, x.d, id);
    } else if new.head() == 0 {
        // Full: on no list.
    } else if n > 0 && new.inuse() > 0 {
        lists.partial.push_front(&x.s.map, id);
    } else {
        lists.partial.push_back(&x.s.map, id);
    }
}

/// Frees an object whose slab is not the CPU's own.
#[allow(unsafe_code)]
pub(crate) fn free_slow(x: &Work, id: u32, object: *mut u8) -> Result<(), FaultKind> {
    let r = x.s.map.record(id);
    if x.has_cpu && r.owner.load(Ordering::Relaxed) == x.c.tag.get() {
        x.push(object);
        return Ok(());
    }
    let slot = slot_of(x, r, object);
    loop {
        let w = r.word.load();
        // SAFETY: the object is the caller's until the word below says otherwise.
        unsafe { set_next(object, x.d.next_at(), object_at(x, r, w.head())) };
        let Some(new) = w.freed(slot, 1) else {
            return Err(FaultKind::DoubleFree);
        };
        let was_full = w.head() == 0;
        let freeze = was_full && new.inuse() > 0 && x.d.cpu_partial > 0 && x.has_cpu;
        if w.is_frozen() || (new.inuse() > 0 && !was_full) {
            if r.word.replace(w, new) {
                return Ok(());
            }
        } else if freeze {
            if r.word.replace(w, new.with_frozen(true)) {
                keep_partial(x, id);
                return Ok(());
            }
        } else if change_listed(x, id, w, new) {
            return Ok(());
        }
    }
}

/// A free that puts a slab on its node's list or takes it off; false if the word has changed.
fn change_listed(x: &Work, id: u32, w: Word, new: Word) -> bool {
    let r = x.s.map.record(id);
    let mut lists = x.d.node(r.node).lists.lock();
    if !r.word.replace(w, new) {
        return false;
    }
    let was_full = w.head() == 0;
    let keep = x.s.rules.slub.keep_empty && lists.partial.nr < x.d.min_partial;
    if new.inuse() == 0 && !keep {
        if !was_full {
            lists.partial.remove(&x.s.map, id);
        }
        drop(lists);
        discard(x.s, x.d, id);
    } else if was_full {
        lists.partial.push_back(&x.s.map, id);
    }
    true
}

/// Puts a slab that a free froze on the CPU's partial list; a list that is full goes to the nodes.
fn keep_partial(x: &Work, id: u32) {
    if x.c.partial_nr.get() >= x.d.cpu_partial {
        drain_partial(x);
    }
    push_partial(x, id);
}

fn drain_partial(x: &Work) {
    while let Some(id) = pop_partial(x) {
        thaw(x, id);
    }
}

/// Gives all that the CPU has back to the nodes.
pub(crate) fn flush(x: &Work) {
    deactivate(x);
    drain_partial(x);
}

/// Returns the empty slabs of a node.
pub(crate) fn shrink_node(x: &Work, node: u8) {
    let mut lists = x.d.node(node).lists.lock();
    let mut empty = lists
        .partial
        .split_off(&x.s.map, |r| r.word.load().inuse() == 0);
    drop(lists);
    while let Some(id) = empty.pop_front(&x.s.map) {
        discard(x.s, x.d, id);
    }
}
