//! The record of a slab, and lists of slabs.
//!
//! A record is 48 bytes: in the slab itself for SLAB's small objects, in the bootstrap cache
//! otherwise. `next` and `prev` belong to the list that the slab is on, and are changed under that
//! list's lock (or by the CPU that holds the slab).

use crate::desc::Desc;
use crate::formulas::SLAB_HEAD;
use crate::pages::DirectMap;
use crate::sync::AtomicUsize;
use crate::word::AtomicWord;
use core::cell::Cell;

/// A slab.
#[repr(C)]
pub(crate) struct Record {
    /// Tag of the CPU record whose chain takes what is freed into this slab at once; 0 for none.
    pub owner: AtomicUsize,
    /// Free chain, objects out, frozen.
    pub word: AtomicWord,
    /// Its cache.
    pub desc: *const Desc,
    next: Cell<u32>,
    prev: Cell<u32>,
    /// First object.
    pub first: *mut u8,
    /// First frame, counted from the start of the window.
    pub frame: u32,
    /// Objects.
    pub objects: u16,
    /// Order of its block.
    pub order: u8,
    /// Node of its frames.
    pub node: u8,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Record>() == SLAB_HEAD as usize);

impl Record {
    /// A record on no list.
    pub fn new(
        word: AtomicWord,
        desc: *const Desc,
        first: *mut u8,
        (frame, order, node): (u32, u8, u8),
        objects: u16,
    ) -> Record {
        Record {
            owner: AtomicUsize::new(0),
            word,
            desc,
            next: Cell::new(0),
            prev: Cell::new(0),
            first,
            frame,
            objects,
            order,
            node,
        }
    }
    /// Number of the object at `p`, if one begins there.
    pub fn index(&self, p: *const u8, size: u32) -> Option<u32> {
        let off = p.addr().checked_sub(self.first.addr())?;
        let (i, rest) = (off / size as usize, off % size as usize);
        (rest == 0 && i < usize::from(self.objects)).then_some(i as u32)
    }
    /// SLAB's index of what follows object `i` on the free chain.
    pub fn bufctl(&self, i: u32) -> *mut u32 {
        let base: *mut u32 = (&raw const *self).cast_mut().cast();
        base.wrapping_add(SLAB_HEAD as usize / 4 + i as usize)
    }
    /// Its cache.
    pub fn desc(&self) -> &Desc {
        // SAFETY: a cache outlives its slabs.
        #[allow(unsafe_code)]
        unsafe {
            &*self.desc
        }
    }
    /// What follows it, on a list of a CPU alone.
    pub fn next(&self) -> u32 {
        self.next.get()
    }
    /// Links it into a list of a CPU alone.
    pub fn set_next(&self, id: u32) {
        self.next.set(id);
    }
}

/// A list of slabs, by number of their records.
#[derive(Clone, Copy, Default)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    /// Slabs on it.
    pub nr: u32,
}

impl List {
    pub fn first(&self) -> Option<u32> {
        (self.head != 0).then_some(self.head)
    }
    pub fn push_front(&mut self, map: &DirectMap, id: u32) {
        let r = map.record(id);
        r.prev.set(0);
        r.next.set(self.head);
        match self.head {
            0 => self.tail = id,
            head => map.record(head).prev.set(id),
        }
        self.head = id;
        self.nr += 1;
    }
    pub fn push_back(&mut self, map: &DirectMap, id: u32) {
        let r = map.record(id);
        r.next.set(0);
        r.prev.set(self.tail);
        match self.tail {
            0 => self.head = id,
            tail => map.record(tail).next.set(id),
        }
        self.tail = id;
        self.nr += 1;
    }
    pub fn remove(&mut self, map: &DirectMap, id: u32) {
        let r = map.record(id);
        let (prev, next) = (r.prev.get(), r.next.get());
        match prev {
            0 => self.head = next,
            p => map.record(p).next.set(next),
        }
        match next {
            0 => self.tail = prev,
            n => map.record(n).prev.set(prev),
        }
        self.nr -= 1;
    }
    pub fn pop_front(&mut self, map: &DirectMap) -> Option<u32> {
        let id = self.first()?;
        self.remove(map, id);
        Some(id)
    }
    /// The slabs, which the closure may not move.
    pub fn iter<'a>(&self, map: &'a DirectMap) -> impl Iterator<Item = u32> + 'a {
        let mut at = self.head;
        core::iter::from_fn(move || {
            let id = at;
            (id != 0).then(|| {
                at = map.record(id).next.get();
                id
            })
        })
    }
    /// Moves those that `wanted` names to another list.
    pub fn split_off(&mut self, map: &DirectMap, wanted: impl Fn(&Record) -> bool) -> List {
        let mut out = List::default();
        let mut at = self.head;
        while at != 0 {
            let r = map.record(at);
            let next = r.next.get();
            if wanted(r) {
                self.remove(map, at);
                out.push_back(map, at);
            }
            at = next;
        }
        out
    }
}
