//! SLUB: each CPU owns one slab, whose free objects it chains up; every slab has its own free chain
//! besides, in its word, to which any CPU may free with one compare-and-swap. `spec: 6.2`
//!
//! Where a slab is:
//! - *frozen*: the CPU's slab, or one of the CPU's partial slabs; on no list of a node;
//! - *partial*, not frozen, with a free object: on its node's list;
//! - *full*, not frozen, without one: on no list, until an object of it is freed.
//!
//! Invariant: a change of a word that is not frozen, by which the slab goes on or off its node's list, is made
//! under that node's lock. All other changes need no lock.

use crate::cache_record::NodeLists;
use crate::fault::FaultKind;
use crate::grow::{discard, new_slab, start};
use crate::list::List;
use crate::object::{next, set_next};
use crate::slab_record::SlabRecord;
use crate::sync::Ordering;
use crate::word::{Slot, Word};
use crate::work::Work;
use core::ptr::{NonNull, null_mut};
use lock_api::RawMutex;
use unfrag::Gfp;

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

/// Puts a chain on the CPU after its own ran out, or is of another node than the one asked for.
pub(crate) fn refill<R: RawMutex>(work: &Work<R>, gfp: Gfp, node: Option<u8>) -> bool {
    if let Some(id) = work.current() {
        let elsewhere = node.is_some_and(|n| n != work.map().slab(id).node);
        if elsewhere || !work.cpu.head.get().is_null() {
            deactivate(work);
        } else if reload_or_release(work, id) {
            return true;
        }
    }
    while let Some(id) = pop_partial(work) {
        if node.is_none_or(|n| n == work.map().slab(id).node) {
            adopt(work, id);
            return true;
        }
        thaw(work, id);
    }
    let near = node.unwrap_or(work.cpu.node.get());
    if from_node(work, near) {
        return true;
    }
    if let Some(id) = new_slab(work.set, work.cache, gfp, near) {
        adopt(work, id);
        return true;
    }
    node.is_none() && (0..work.set.nodes).any(|n| n != near && from_node(work, n))
}

/// Takes the objects that were freed into the CPU's slab meanwhile. If there are none, the slab is full, and the
/// CPU gives it up.
fn reload_or_release<R: RawMutex>(work: &Work<R>, id: u32) -> bool {
    let slab = work.map().slab(id);
    // Before the word: another CPU that sees the slab thawed may take it. The release of the word orders it.
    slab.owner.store(0, Ordering::Relaxed);
    work.cpu.slab.set(0);
    let full = |w: Word| (w.head() == 0).then(|| w.with_frozen(false));
    if slab.word.change(full).is_ok() {
        return false;
    }
    adopt(work, id);
    true
}

/// Makes a frozen slab the CPU's and takes its free objects.
fn adopt<R: RawMutex>(work: &Work<R>, id: u32) {
    let slab = work.map().slab(id);
    let took = slab.word.change(|w| Some(w.taken(slab.objects)));
    let Ok((old, _)) = took else {
        unreachable!("this change is never refused")
    };
    take_chain(work, id, old);
}

fn take_chain<R: RawMutex>(work: &Work<R>, id: u32, old: Word) {
    let slab = work.map().slab(id);
    debug_assert!(old.head() != 0, "a slab without a free object was adopted");
    work.cpu.slab.set(id);
    // Relaxed: only this CPU compares it with its own tag.
    slab.owner.store(work.cpu.tag.get(), Ordering::Relaxed);
    work.cpu.head.set(object_at(work, slab, old.head()));
    work.cpu.nr.set(u32::from(slab.objects - old.inuse()));
}

/// Takes a partial slab of a node, and more for the CPU's own list.
fn from_node<R: RawMutex>(work: &Work<R>, node: u8) -> bool {
    let mut lists = work.cache.node(node).lists.lock();
    let Some(id) = lists.partial.pop_front(work.map()) else {
        return false;
    };
    let slab = work.map().slab(id);
    let took = slab.word.change(|w| Some(w.taken(slab.objects)));
    let Ok((old, _)) = took else {
        unreachable!("this change is never refused")
    };
    take_chain(work, id, old);
    while work.cpu.partial_nr.get() < work.cache.cpu_partial / 2
        && let Some(more) = lists.partial.pop_front(work.map())
    {
        let _ = work
            .map()
            .slab(more)
            .word
            .change(|w| Some(w.with_frozen(true)));
        push_partial(work, more);
    }
    true
}

/// One object, past the lists of CPUs: of a partial slab of a node, else of a new one.
pub(crate) fn alloc_without_cpu<R: RawMutex>(work: &Work<R>, gfp: Gfp) -> Option<*mut u8> {
    let of_any = || (0..work.set.nodes).find_map(|n| one_of(work, n));
    if let Some(object) = of_any() {
        return Some(object);
    }
    let Some(id) = new_slab(work.set, work.cache, gfp, 0) else {
        // Something may have been freed meanwhile.
        return of_any();
    };
    let (object, _) = take_one(work, id);
    thaw(work, id);
    Some(object)
}

/// Takes one object of a node's partial slab.
fn one_of<R: RawMutex>(work: &Work<R>, node: u8) -> Option<*mut u8> {
    let mut lists = work.cache.node(node).lists.lock();
    // It leaves the list first: whoever frees an object of a full slab takes that to be on no list.
    let id = lists.partial.pop_front(work.map())?;
    let (object, new) = take_one(work, id);
    if new.head() != 0 {
        lists.partial.push_front(work.map(), id);
    }
    Some(object)
}

/// Takes the first object off the chain of a slab, which has one. Nobody else takes from it meanwhile: it is frozen and the
/// caller's, or the caller has the lock of its node. So the link that is read stays as it is while the object is first.
fn take_one<R: RawMutex>(work: &Work<R>, id: u32) -> (*mut u8, Word) {
    let slab = work.map().slab(id);
    let mut object = null_mut();
    let took = slab.word.change(|w| {
        object = object_at(work, slab, w.head());
        // SAFETY: the object is free, and on the chain until the word changes.
        #[allow(unsafe_code)]
        let following = unsafe { next(object, work.cache.next_at()) };
        let head = slot_of(work, slab, following);
        Some(Word::new(head, w.inuse() + 1, w.is_frozen()))
    });
    let Ok((_, new)) = took else {
        unreachable!("this change is never refused")
    };
    (object, new)
}

/// Several objects, past the lists of CPUs: of a node's partial slabs, and if they have none, of a new one. Returns how many, and
/// a free object whose link somebody overwrote, if one was seen.
pub(crate) fn alloc_some_without_cpu<R: RawMutex>(
    work: &Work<R>,
    gfp: Gfp,
    into: &mut [NonNull<u8>],
) -> (usize, Option<NonNull<u8>>) {
    let of_any = |into: &mut [NonNull<u8>]| {
        let mut all = (0, None);
        for node in 0..work.set.nodes {
            let (count, spoilt) = some_of(work, node, &mut into[all.0..]);
            all = (all.0 + count, all.1.or(spoilt));
        }
        all
    };
    let got = of_any(into);
    if got != (0, None) || into.is_empty() {
        return got;
    }
    let Some(id) = new_slab(work.set, work.cache, gfp, 0) else {
        // Something may have been freed meanwhile.
        return of_any(into);
    };
    let (count, spoilt, _) = take_some(work, id, into);
    thaw(work, id);
    (count, spoilt)
}

/// Takes objects of a node's partial slabs, those of the first slab first.
fn some_of<R: RawMutex>(
    work: &Work<R>,
    node: u8,
    into: &mut [NonNull<u8>],
) -> (usize, Option<NonNull<u8>>) {
    let mut lists = work.cache.node(node).lists.lock();
    let mut count = 0;
    while count < into.len()
        && let Some(id) = lists.partial.pop_front(work.map())
    {
        let (some, spoilt, new) = take_some(work, id, &mut into[count..]);
        count += some;
        if new.head() != 0 {
            lists.partial.push_front(work.map(), id);
        }
        if spoilt.is_some() {
            return (count, spoilt);
        }
    }
    (count, None)
}

/// Takes objects off the start of a slab's chain, which nobody else takes from, as with [`take_one`]. A chain ends where the link
/// of an object leads to no object of the slab, since somebody wrote to it: the object is named, and what may lie behind it
/// counts as in use for ever.
fn take_some<R: RawMutex>(
    work: &Work<R>,
    id: u32,
    into: &mut [NonNull<u8>],
) -> (usize, Option<NonNull<u8>>, Word) {
    let slab = work.map().slab(id);
    let mut count = 0;
    let mut spoilt = None;
    let took = slab.word.change(|w| {
        (count, spoilt) = (0, None);
        let mut at = object_at(work, slab, w.head());
        while count < into.len()
            && let Some(object) = NonNull::new(at)
        {
            into[count] = object;
            count += 1;
            // SAFETY: the object is free, and on the chain until the word changes.
            #[allow(unsafe_code)]
            let following = unsafe { next(at, work.cache.next_at()) };
            at = following;
            if !at.is_null() && slab.index(at, work.cache.layout.size).is_none() {
                spoilt = Some(object);
                return Some(Word::new(0, slab.objects, w.is_frozen()));
            }
        }
        let inuse = w.inuse() + count as u16;
        Some(Word::new(slot_of(work, slab, at), inuse, w.is_frozen()))
    });
    let Ok((_, new)) = took else {
        unreachable!("this change is never refused")
    };
    (count, spoilt, new)
}

/// Frees several objects into their slabs, with one hold of the lock of each node that they come from in turn. Answers with the
/// first address that is no object in use, as far as can be seen.
pub(crate) fn free_bulk_without_cpu<R: RawMutex>(
    work: &Work<R>,
    objects: &[NonNull<u8>],
) -> Result<(), (NonNull<u8>, FaultKind)> {
    let mut done = Ok(());
    let mut gone = List::default();
    let mut rest = objects;
    while let Some((object, _)) = rest.split_first() {
        let Some(id) = slab_of(work, *object) else {
            done = done.and(Err((*object, FaultKind::NotAnObject)));
            rest = &rest[1..];
            continue;
        };
        let node = work.map().slab(id).node;
        let mut lists = work.cache.node(node).lists.lock();
        while let Some((object, _)) = rest.split_first()
            && let Some(id) = slab_of(work, *object)
            && work.map().slab(id).node == node
        {
            let same = rest
                .iter()
                .skip(1)
                .take_while(|o| slab_of(work, **o) == Some(id));
            let (of_slab, others) = rest.split_at(1 + same.count());
            rest = others;
            let freed = free_of_slab(work, &mut lists, &mut gone, id, of_slab);
            done = done.and(freed.map_err(|kind| (*object, kind)));
        }
    }
    while let Some(id) = gone.pop_front(work.map()) {
        discard(work.set, work.cache, id);
    }
    done
}

/// The slab of an object; `None` if no object of this cache begins there.
fn slab_of<R: RawMutex>(work: &Work<R>, object: NonNull<u8>) -> Option<u32> {
    let id = work.map().entry(object.as_ptr())?;
    let slab = work.map().slab(id);
    let is_own = core::ptr::eq(slab.cache, work.cache);
    let begins = || {
        slab.index(object.as_ptr(), work.cache.layout.size)
            .is_some()
    };
    (is_own && begins()).then_some(id)
}

/// Frees objects of one slab, whose node's lists the caller has locked. A slab that goes is put on a list of such.
fn free_of_slab<R: RawMutex>(
    work: &Work<R>,
    lists: &mut NodeLists,
    gone: &mut List,
    id: u32,
    objects: &[NonNull<u8>],
) -> Result<(), FaultKind> {
    let slab = work.map().slab(id);
    let next_at = work.cache.next_at();
    let (Some(first), Some(last)) = (objects.first(), objects.last()) else {
        return Ok(());
    };
    for pair in objects.windows(2) {
        // SAFETY: the objects are the caller's until the word below says otherwise.
        #[allow(unsafe_code)]
        unsafe {
            set_next(pair[0].as_ptr(), next_at, pair[1].as_ptr());
        }
    }
    let changed = slab.word.change(|w| {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        unsafe {
            set_next(last.as_ptr(), next_at, object_at(work, slab, w.head()));
        }
        w.freed(slot_of(work, slab, first.as_ptr()), objects.len() as u16)
    });
    let Ok((old, new)) = changed else {
        return Err(FaultKind::DoubleFree);
    };
    // A slab that a CPU holds is on no list.
    if old.is_frozen() {
        return Ok(());
    }
    let was_full = old.head() == 0;
    let keep = work.set.rules.slub.keep_empty && lists.partial.nr < work.cache.min_partial;
    if new.inuse() == 0 && !keep {
        if !was_full {
            lists.partial.remove(work.map(), id);
        }
        gone.push_back(work.map(), id);
    } else if was_full {
        // The fullest is asked first, so that others may become empty.
        lists.partial.push_front(work.map(), id);
    }
    Ok(())
}

fn pop_partial<R: RawMutex>(work: &Work<R>) -> Option<u32> {
    let id = work.cpu.partial.get();
    (id != 0).then(|| {
        work.cpu.partial.set(work.map().links(id).next());
        work.cpu.partial_nr.set(work.cpu.partial_nr.get() - 1);
        id
    })
}

fn push_partial<R: RawMutex>(work: &Work<R>, id: u32) {
    work.map().links(id).set_next(work.cpu.partial.get());
    work.cpu.partial.set(id);
    work.cpu.partial_nr.set(work.cpu.partial_nr.get() + 1);
}

/// Gives a frozen slab, whose objects are all in its word, back to its node.
fn thaw<R: RawMutex>(work: &Work<R>, id: u32) {
    give_back(work, id, null_mut(), null_mut(), 0);
}

/// Gives the CPU's slab back with the CPU's chain.
#[allow(unsafe_code)]
fn deactivate<R: RawMutex>(work: &Work<R>) {
    let Some(id) = work.current() else { return };
    work.cpu.slab.set(0);
    // Relaxed: as in `reload_or_release`.
    work.map().slab(id).owner.store(0, Ordering::Relaxed);
    let first = work.cpu.head.replace(null_mut());
    work.cpu.nr.set(0);
    let (mut last, mut n) = (first, u16::from(!first.is_null()));
    while n > 0 {
        // SAFETY: the chain was the CPU's and ends with null.
        let following = unsafe { next(last, work.cache.next_at()) };
        if following.is_null() {
            break;
        }
        last = following;
        n += 1;
    }
    give_back(work, id, first, last, n);
}

/// Thaws a slab, with `n` objects of the CPU's chain spliced before its own.
#[allow(unsafe_code)]
fn give_back<R: RawMutex>(work: &Work<R>, id: u32, first: *mut u8, last: *mut u8, n: u16) {
    let slab = work.map().slab(id);
    let mut lists = work.cache.node(slab.node).lists.lock();
    let done = slab.word.change(|w| {
        if n == 0 {
            return Some(w.with_frozen(false));
        }
        // SAFETY: the chain is the caller's, and `last` ends it.
        unsafe { set_next(last, work.cache.next_at(), object_at(work, slab, w.head())) };
        Some(w.freed(slot_of(work, slab, first), n)?.with_frozen(false))
    });
    let Ok((_, new)) = done else {
        unreachable!("a CPU's chain has more objects than its slab gave it")
    };
    if new.inuse() == 0 && lists.partial.nr >= work.cache.min_partial {
        drop(lists);
        discard(work.set, work.cache, id);
    } else if new.head() == 0 {
        // Full: on no list.
    } else if n > 0 && new.inuse() > 0 {
        lists.partial.push_front(work.map(), id);
    } else {
        lists.partial.push_back(work.map(), id);
    }
}

/// Frees an object whose slab is not the CPU's own.
#[allow(unsafe_code)]
pub(crate) fn free_slow<R: RawMutex>(
    work: &Work<R>,
    id: u32,
    object: *mut u8,
) -> Result<(), FaultKind> {
    let slab = work.map().slab(id);
    // Relaxed: only this CPU sets it to its own tag, or takes that away.
    if work.has_cpu && slab.owner.load(Ordering::Relaxed) == work.cpu.tag.get() {
        work.push(object);
        return Ok(());
    }
    let slot = slot_of(work, slab, object);
    loop {
        let w = slab.word.load();
        // SAFETY: the object is the caller's until the word below says otherwise.
        unsafe {
            set_next(
                object,
                work.cache.next_at(),
                object_at(work, slab, w.head()),
            )
        };
        let Some(new) = w.freed(slot, 1) else {
            return Err(FaultKind::DoubleFree);
        };
        let was_full = w.head() == 0;
        let freeze = was_full && new.inuse() > 0 && work.cache.cpu_partial > 0 && work.has_cpu;
        if w.is_frozen() || (new.inuse() > 0 && !was_full) {
            if slab.word.replace(w, new) {
                return Ok(());
            }
        } else if freeze {
            if slab.word.replace(w, new.with_frozen(true)) {
                keep_partial(work, id);
                return Ok(());
            }
        } else if change_listed(work, id, w, new) {
            return Ok(());
        }
    }
}

/// A free that puts a slab on its node's list or takes it off; false if the word has changed.
fn change_listed<R: RawMutex>(work: &Work<R>, id: u32, w: Word, new: Word) -> bool {
    let slab = work.map().slab(id);
    let mut lists = work.cache.node(slab.node).lists.lock();
    if !slab.word.replace(w, new) {
        return false;
    }
    let was_full = w.head() == 0;
    let keep = work.set.rules.slub.keep_empty && lists.partial.nr < work.cache.min_partial;
    if new.inuse() == 0 && !keep {
        if !was_full {
            lists.partial.remove(work.map(), id);
        }
        drop(lists);
        discard(work.set, work.cache, id);
    } else if was_full {
        lists.partial.push_back(work.map(), id);
    }
    true
}

/// Puts a slab that a free froze on the CPU's partial list; a list that is full goes to the nodes.
fn keep_partial<R: RawMutex>(work: &Work<R>, id: u32) {
    if work.cpu.partial_nr.get() >= work.cache.cpu_partial {
        drain_partial(work);
    }
    push_partial(work, id);
}

fn drain_partial<R: RawMutex>(work: &Work<R>) {
    while let Some(id) = pop_partial(work) {
        thaw(work, id);
    }
}

/// Gives the CPU's slab and its partial slabs back to the nodes.
pub(crate) fn flush<R: RawMutex>(work: &Work<R>) {
    deactivate(work);
    drain_partial(work);
}

/// Returns the empty slabs of a node.
pub(crate) fn shrink_node<R: RawMutex>(work: &Work<R>, node: u8) {
    let mut lists = work.cache.node(node).lists.lock();
    let map = work.map();
    let is_empty = |id| map.slab(id).word.load().inuse() == 0;
    let mut empty = lists.partial.split_off(map, is_empty);
    drop(lists);
    while let Some(id) = empty.pop_front(work.map()) {
        discard(work.set, work.cache, id);
    }
}
