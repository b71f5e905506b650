//! Lists of slabs, linked through their records.
//!
//! A record begins with its [`Links`], and lists use nothing else of it. The links belong to the list that the slab is on, and are changed under that list's
//! lock (or by the CPU that holds the slab).

use crate::map::DirectMap;
use core::cell::Cell;
use lock_api::RawMutex;

/// Neighbours of a slab on its list, by number of their records; 0 is none.
#[derive(Default)]
pub(crate) struct Links {
    next: Cell<u32>,
    prev: Cell<u32>,
}

impl Links {
    /// What follows it, on a list of a CPU alone.
    pub fn next(&self) -> u32 {
        self.next.get()
    }
    /// Sets what follows it, on a list of a CPU alone.
    pub fn set_next(&self, id: u32) {
        self.next.set(id);
    }
}

impl<R: RawMutex> DirectMap<R> {
    /// Links of a slab.
    #[inline]
    pub fn links(&self, id: u32) -> &Links {
        // SAFETY: an id comes from the table or from a list, which name live records alone, and a
        // record begins with its links.
        #[allow(unsafe_code)]
        unsafe {
            &*self.by_id(id).cast()
        }
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
    pub fn push_front<R: RawMutex>(&mut self, map: &DirectMap<R>, id: u32) {
        let links = map.links(id);
        links.prev.set(0);
        links.next.set(self.head);
        match self.head {
            0 => self.tail = id,
            head => map.links(head).prev.set(id),
        }
        self.head = id;
        self.nr += 1;
    }
    pub fn push_back<R: RawMutex>(&mut self, map: &DirectMap<R>, id: u32) {
        let links = map.links(id);
        links.next.set(0);
        links.prev.set(self.tail);
        match self.tail {
            0 => self.head = id,
            tail => map.links(tail).next.set(id),
        }
        self.tail = id;
        self.nr += 1;
    }
    pub fn remove<R: RawMutex>(&mut self, map: &DirectMap<R>, id: u32) {
        let links = map.links(id);
        let (prev, next) = (links.prev.get(), links.next.get());
        match prev {
            0 => self.head = next,
            p => map.links(p).next.set(next),
        }
        match next {
            0 => self.tail = prev,
            n => map.links(n).prev.set(prev),
        }
        self.nr -= 1;
    }
    pub fn pop_front<R: RawMutex>(&mut self, map: &DirectMap<R>) -> Option<u32> {
        let id = self.first()?;
        self.remove(map, id);
        Some(id)
    }
    /// The slabs from the front. They must not move while this is used.
    pub fn iter<'a, R: RawMutex>(&self, map: &'a DirectMap<R>) -> impl Iterator<Item = u32> + 'a {
        let mut at = self.head;
        core::iter::from_fn(move || {
            let id = at;
            (id != 0).then(|| {
                at = map.links(id).next();
                id
            })
        })
    }
    /// Moves those that `wanted` names to another list.
    pub fn split_off<R: RawMutex>(
        &mut self,
        map: &DirectMap<R>,
        wanted: impl Fn(u32) -> bool,
    ) -> List {
        let mut out = List::default();
        let mut at = self.head;
        while at != 0 {
            let next = map.links(at).next();
            if wanted(at) {
                self.remove(map, at);
                out.push_back(map, at);
            }
            at = next;
        }
        out
    }
}
