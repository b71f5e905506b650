//! The slab caches of the simulated kernel: how many objects share which pages, and when pages come
//! and go.
//!
//! A cache has the order and objects that the slab crate's own [`formulas`](unfrag_slab::formulas) give,
//! and keeps its free objects as one of the three designs does: `slub`, `slab` (per-CPU arrays),
//! `slqb`. No memory stands behind the pages: an object is known by the slab that it is in, which is
//! all that its page's fate depends on. So an operation takes some nanoseconds, and growing is apart
//! from taking ([`Kmem::take`], [`Kmem::add_slab`]), because the page for it may have to be waited
//! for.
//!
//! - `list`: lists of slabs. `slub`, `slab`, `slqb`: the designs.
//! - [`caches`]: the kernel's caches and the sizes of their objects.
//! - [`grow`]: pages for new slabs, from the allocator, blocking or not.
//! - [`shrinker`]: caches of objects that reclaim may ask for.
//!
//! Its tests hold it against the caches of [`unfrag_slab`], which have memory, and say where it differs.
//!
//! Invariant: the objects of a slab are in use, free on it, or free with a CPU (or a node); a slab
//! is on the list that its `place` names; its pages go back when none of its objects is in use or
//! with a CPU, as its design says. [`Kmem::validate`]. `spec: linux-mm 6.1-6.5`

#[cfg(test)]
mod against_slabs;
pub mod caches;
pub mod grow;
mod list;
pub mod shrinker;
mod slab;
mod slqb;
mod slub;
#[cfg(test)]
mod tests;

use serde::Serialize;
use std::num::NonZeroU32;
use unfrag_slab::formulas::{PAGE, fls, order_and_objects};
use unfrag_slab::{Design, Rules};

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheId(pub(crate) u16);

/// An object: the number of the slab that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obj(NonZeroU32);

impl Obj {
    /// The number by which a frame remembers it.
    pub(crate) fn raw(self) -> u32 {
        self.0.get()
    }
    /// The object of that number.
    pub(crate) fn from_raw(raw: u32) -> Option<Obj> {
        NonZeroU32::new(raw).map(Obj)
    }
}

/// Where a slab is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It does not exist.
    Vacant,
    /// No free object; on no list.
    Full,
    /// On the list of slabs with some free objects.
    Partial,
    /// SLAB: on the list of slabs with no object in use.
    Free,
    /// SLUB: a CPU's own.
    Cpu,
    /// SLUB: among a CPU's partial slabs.
    CpuPartial,
}

#[derive(Clone, Copy, Debug)]
struct SlabRec {
    /// Its first frame.
    pfn: u32,
    prev: u32,
    next: u32,
    cache: u16,
    /// Objects.
    objects: u16,
    /// Of them, free on the slab itself.
    free: u16,
    order: u8,
    place: Place,
    /// SLQB: the CPU that made it.
    cpu: u8,
}

/// Counts of a cache since the start. `spec: linux-mm 6.4`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheStat {
    /// Allocations from what the CPU holds.
    pub alloc_fast: u64,
    /// Other allocations.
    pub alloc_slow: u64,
    /// Frees to what the CPU holds.
    pub free_fast: u64,
    /// Other frees.
    pub free_slow: u64,
    /// Slabs that were made.
    pub grown: u64,
    /// Of them, at the least order because the better one was not to be had.
    pub fallbacks: u64,
    /// Slabs given back.
    pub shrunk: u64,
}

enum State {
    Slab(slab::SlabCache),
    Slub(slub::SlubCache),
    Slqb(slqb::SlqbCache),
}

/// What is the same for all designs.
struct Common {
    name: &'static str,
    size: u32,
    reclaimable: bool,
    order: u8,
    min_order: u8,
    slabs: u64,
    pages: u64,
    in_use: u64,
    stat: CacheStat,
}

struct Cache {
    common: Common,
    state: State,
}

/// Slab records and the pages that are to go.
struct Arena {
    slabs: Vec<SlabRec>,
    vacant: Vec<u32>,
    freed: Vec<(u32, u8)>,
}

impl Arena {
    /// Gives a slab's pages back.
    fn discard(&mut self, common: &mut Common, s: u32) {
        let r = &mut self.slabs[s as usize];
        debug_assert!(r.free == r.objects, "a slab in use is discarded");
        r.place = Place::Vacant;
        self.freed.push((r.pfn, r.order));
        common.slabs -= 1;
        common.pages -= 1 << r.order;
        common.stat.shrunk += 1;
        self.vacant.push(s);
    }
}

/// A cache as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheView {
    /// Its name.
    pub name: &'static str,
    /// Bytes of an object.
    pub size: u32,
    /// Order of its slabs.
    pub order: u8,
    /// Slabs.
    pub slabs: u64,
    /// Their pages.
    pub pages: u64,
    /// Objects in use.
    pub in_use: u64,
    /// Counts.
    pub stat: CacheStat,
}

/// The caches of a machine.
pub struct Kmem {
    rules: Rules,
    cpus: u32,
    caches: Vec<Cache>,
    arena: Arena,
    pages: u64,
}

impl Kmem {
    /// No caches yet, for so many CPUs.
    pub fn new(rules: Rules, cpus: usize) -> Kmem {
        let none = SlabRec {
            pfn: 0,
            prev: 0,
            next: 0,
            cache: 0,
            objects: 0,
            free: 0,
            order: 0,
            place: Place::Vacant,
            cpu: 0,
        };
        Kmem {
            rules,
            cpus: cpus as u32,
            caches: vec![],
            arena: Arena {
                slabs: vec![none],
                vacant: vec![],
                freed: vec![],
            },
            pages: 0,
        }
    }

    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// A cache for objects of `size` bytes; with SLUB perhaps one that exists. `spec: linux-mm 6.2`
    ///
    /// # Panics
    /// If an object does not fit the largest block.
    pub fn create(&mut self, name: &'static str, size: u32, reclaimable: bool) -> CacheId {
        let size = size.next_multiple_of(8);
        let design = self.rules.design;
        if design == Design::Slub && self.rules.merge {
            let alike = |c: &Cache| {
                c.common.reclaimable == reclaimable
                    && c.common.size >= size
                    && c.common.size - size < 8
            };
            if let Some(i) = self.caches.iter().position(alike) {
                return CacheId(i as u16);
            }
        }
        let Some((mut order, _)) = order_and_objects(design, size, 8, self.cpus, &self.rules)
        else {
            panic!("objects of {size} bytes fit no slab")
        };
        let min_order = least_order(design, size);
        if design == Design::Slab && reclaimable {
            // RECLAIM_ACCOUNT ends the search at once. `spec: linux-mm 6.1`
            order = min_order;
        }
        let objects = self.objects_at(size, order);
        let state = match design {
            Design::Slab => State::Slab(slab::SlabCache::new(size, self.cpus, objects)),
            Design::Slub => {
                State::Slub(slub::SlubCache::new(size, objects, self.cpus, &self.rules))
            }
            Design::Slqb => State::Slqb(slqb::SlqbCache::new(size, self.cpus)),
        };
        self.caches.push(Cache {
            common: Common {
                name,
                size,
                reclaimable,
                order,
                min_order,
                slabs: 0,
                pages: 0,
                in_use: 0,
                stat: CacheStat::default(),
            },
            state,
        });
        CacheId((self.caches.len() - 1) as u16)
    }

    fn objects_at(&self, size: u32, order: u8) -> u32 {
        use unfrag_slab::formulas::{MAX_OBJECTS, OFF_SLAB, bytes, slab_fit};
        match self.rules.design {
            Design::Slab => slab_fit(size, 8, order, size >= OFF_SLAB).objects,
            _ => (bytes(order) / size).min(MAX_OBJECTS),
        }
    }

    /// Takes an object from what exists; `None` if a new slab is needed ([`Kmem::add_slab`]).
    #[inline]
    pub fn take(&mut self, cpu: usize, cache: CacheId) -> Option<Obj> {
        let Cache { common, state } = &mut self.caches[usize::from(cache.0)];
        let s = match state {
            State::Slab(c) => c.take(cpu, common, &mut self.arena),
            State::Slub(c) => c.take(cpu, common, &mut self.arena),
            State::Slqb(c) => c.take(cpu, common, &mut self.arena),
        }?;
        common.in_use += 1;
        NonZeroU32::new(s).map(Obj)
    }

    /// Gives an object back. Pages that this frees wait in [`Kmem::freed`].
    #[inline]
    pub fn give(&mut self, cpu: usize, obj: Obj) {
        let s = obj.0.get();
        let rec = &self.arena.slabs[s as usize];
        debug_assert!(
            rec.place != Place::Vacant,
            "an object of a slab that is gone"
        );
        let Cache { common, state } = &mut self.caches[usize::from(rec.cache)];
        common.in_use -= 1;
        let before = common.pages;
        match state {
            State::Slab(c) => c.give(cpu, s, common, &mut self.arena),
            State::Slub(c) => c.give(cpu, s, common, &mut self.arena),
            State::Slqb(c) => c.give(cpu, s, common, &mut self.arena),
        }
        self.pages -= before - common.pages;
    }

    /// Hands a cache the block at frame `pfn` as a new slab, made on `cpu`; the next
    /// [`take`](Kmem::take) there finds an object.
    pub fn add_slab(&mut self, cpu: usize, cache: CacheId, pfn: u32, order: u8) {
        let size = self.caches[usize::from(cache.0)].common.size;
        let objects = self.objects_at(size, order) as u16;
        debug_assert!(objects > 0);
        let rec = SlabRec {
            pfn,
            prev: 0,
            next: 0,
            cache: cache.0,
            objects,
            free: objects,
            order,
            place: Place::Full,
            cpu: cpu as u8,
        };
        let arena = &mut self.arena;
        let s = match arena.vacant.pop() {
            Some(s) => {
                arena.slabs[s as usize] = rec;
                s
            }
            None => {
                arena.slabs.push(rec);
                (arena.slabs.len() - 1) as u32
            }
        };
        let Cache { common, state } = &mut self.caches[usize::from(cache.0)];
        common.slabs += 1;
        common.pages += 1 << order;
        common.stat.grown += 1;
        if order < common.order {
            common.stat.fallbacks += 1;
        }
        self.pages += 1 << order;
        let before = common.pages;
        match state {
            State::Slab(c) => c.add(s, arena),
            State::Slub(c) => c.add(cpu, s, common, arena),
            State::Slqb(c) => c.add(cpu, s, arena),
        }
        self.pages -= before - common.pages;
    }

    /// The work that is due on a CPU. `spec: linux-mm 6.1, 6.3`
    pub fn reap(&mut self, cpu: usize, due: unfrag_slab::Due) {
        for Cache { common, state } in &mut self.caches {
            let before = common.pages;
            match state {
                State::Slab(c) => c.reap(cpu, due, common, &mut self.arena),
                State::Slub(_) => {}
                State::Slqb(c) => {
                    if due.trim {
                        c.trim(cpu, common, &mut self.arena);
                    }
                }
            }
            self.pages -= before - common.pages;
        }
    }

    /// Whether blocks wait to be freed.
    #[inline]
    pub fn has_freed(&self) -> bool {
        !self.arena.freed.is_empty()
    }

    /// Blocks (first frame, order) that no slab uses any more, to be freed by the caller.
    #[inline]
    pub fn freed(&mut self) -> Option<(u32, u8)> {
        self.arena.freed.pop()
    }

    /// Pages of all slabs (without those that wait to be freed).
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Pages of slabs whose objects can be given back.
    pub fn reclaimable_pages(&self) -> u64 {
        let all = self.caches.iter().map(|c| &c.common);
        all.filter(|c| c.reclaimable).map(|c| c.pages).sum()
    }

    /// The caches as they are.
    pub fn views(&self) -> impl Iterator<Item = CacheView> {
        self.caches.iter().map(|Cache { common: c, .. }| CacheView {
            name: c.name,
            size: c.size,
            order: c.order,
            slabs: c.slabs,
            pages: c.pages,
            in_use: c.in_use,
            stat: c.stat,
        })
    }

    /// One cache as it is.
    pub fn view(&self, cache: CacheId) -> Option<CacheView> {
        self.views().nth(cache.0.into())
    }

    /// Each slab's first frame and order, and the name of its cache.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, u8, &'static str)> {
        let live = |r: &&SlabRec| r.place != Place::Vacant;
        let slabs = self.arena.slabs.iter().filter(live);
        slabs.map(|r| {
            (
                r.pfn,
                r.order,
                self.caches[usize::from(r.cache)].common.name,
            )
        })
    }

    /// Checks the invariant; says what is broken.
    pub fn validate(&self) -> Result<(), String> {
        let mut free = vec![0u64; self.caches.len()];
        let mut total = free.clone();
        let mut pages = free.clone();
        for r in self.arena.slabs.iter().filter(|r| r.place != Place::Vacant) {
            let c = usize::from(r.cache);
            free[c] += u64::from(r.free);
            total[c] += u64::from(r.objects);
            pages[c] += 1 << r.order;
            let fits = match r.place {
                Place::Full => r.free == 0,
                Place::Partial => r.free > 0,
                Place::Free => r.free == r.objects,
                _ => true,
            };
            if !fits {
                let name = self.caches[c].common.name;
                return Err(format!(
                    "{name}: a slab that is {:?} has {} free objects",
                    r.place, r.free
                ));
            }
        }
        for (i, Cache { common: c, state }) in self.caches.iter().enumerate() {
            let held = match state {
                State::Slab(s) => s.held(),
                State::Slub(s) => s.held(),
                State::Slqb(s) => s.held(),
            };
            if c.in_use + free[i] + held != total[i] {
                return Err(format!(
                    "{}: {} objects in use, {} free on slabs, {held} with CPUs, but {} in all",
                    c.name, c.in_use, free[i], total[i]
                ));
            }
            if c.pages != pages[i] {
                return Err(format!(
                    "{}: {} pages counted, {} there",
                    c.name, c.pages, pages[i]
                ));
            }
        }
        let sum: u64 = pages.iter().sum();
        if sum != self.pages {
            return Err(format!("{} slab pages counted, {sum} there", self.pages));
        }
        Ok(())
    }
}

/// Least order whose block holds an object, with its management data if that lies on the slab.
fn least_order(design: Design, size: u32) -> u8 {
    use unfrag_slab::formulas::{order_for, slab_fit};
    if design == Design::Slab && size < PAGE / 8 {
        debug_assert!(slab_fit(size, 8, 0, false).objects > 0);
        return 0;
    }
    debug_assert!(fls(size.into()) < 32);
    order_for(size.into())
}

impl std::fmt::Debug for Kmem {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_list().entries(self.views()).finish()
    }
}
