//! The caches of a machine: [`Kmem`].

use super::records::{Arena, CacheId, CacheStat, Common, Obj, SlabPlace, SlabRec};
use super::{slab, slqb, slub};
use serde::Serialize;
use std::num::NonZeroU32;
use unfrag_slab::formulas::{PAGE, fls, order_and_objects};
use unfrag_slab::{Design, Rules};

pub(super) enum DesignState {
    Slab(slab::SlabCache),
    Slub(slub::SlubCache),
    Slqb(slqb::SlqbCache),
}

pub(super) struct Cache {
    pub(super) common: Common,
    pub(super) state: DesignState,
}

/// Size and counters of a cache.
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
    pub(super) rules: Rules,
    cpus: u32,
    pub(super) caches: Vec<Cache>,
    pub(super) arena: Arena,
    pages: u64,
}

impl Kmem {
    /// An allocator without caches, for `cpus` CPUs.
    pub fn new(rules: Rules, cpus: usize) -> Kmem {
        let none = SlabRec {
            pfn: 0,
            prev: 0,
            next: 0,
            cache: 0,
            objects: 0,
            free: 0,
            order: 0,
            place: SlabPlace::Vacant,
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

    /// Creates a cache for objects of `size` bytes. SLUB may return an existing cache (merging). `spec: 6.2`
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
            // RECLAIM_ACCOUNT ends the search at once. `spec: 6.1`
            order = min_order;
        }
        let objects = self.objects_at(size, order);
        let state = match design {
            Design::Slab => DesignState::Slab(slab::SlabCache::new(size, self.cpus, objects)),
            Design::Slub => {
                DesignState::Slub(slub::SlubCache::new(size, objects, self.cpus, &self.rules))
            }
            Design::Slqb => DesignState::Slqb(slqb::SlqbCache::new(size, self.cpus)),
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
            DesignState::Slab(c) => c.take(cpu, common, &mut self.arena),
            DesignState::Slub(c) => c.take(cpu, common, &mut self.arena),
            DesignState::Slqb(c) => c.take(cpu, common, &mut self.arena),
        }?;
        common.in_use += 1;
        NonZeroU32::new(s).map(Obj)
    }

    /// Frees an object. Pages that this frees are returned by [`Kmem::freed`].
    #[inline]
    pub fn give(&mut self, cpu: usize, obj: Obj) {
        let s = obj.0.get();
        let rec = &self.arena.slabs[s as usize];
        debug_assert!(
            rec.place != SlabPlace::Vacant,
            "an object of a slab that is gone"
        );
        let Cache { common, state } = &mut self.caches[usize::from(rec.cache)];
        common.in_use -= 1;
        let before = common.pages;
        match state {
            DesignState::Slab(c) => c.give(cpu, s, common, &mut self.arena),
            DesignState::Slub(c) => c.give(cpu, s, common, &mut self.arena),
            DesignState::Slqb(c) => c.give(cpu, s, common, &mut self.arena),
        }
        self.pages -= before - common.pages;
    }

    /// Adds the block at frame `pfn` to a cache as a new slab, made on `cpu`. The next [`take`](Kmem::take)
    /// there succeeds.
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
            place: SlabPlace::Full,
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
            DesignState::Slab(c) => c.add(s, arena),
            DesignState::Slub(c) => c.add(cpu, s, common, arena),
            DesignState::Slqb(c) => c.add(cpu, s, arena),
        }
        self.pages -= before - common.pages;
    }

    /// Periodic work of a CPU. `spec: 6.1, 6.3`
    pub fn reap(&mut self, cpu: usize, due: unfrag_slab::Due) {
        for Cache { common, state } in &mut self.caches {
            let before = common.pages;
            match state {
                DesignState::Slab(c) => c.reap(cpu, due, common, &mut self.arena),
                DesignState::Slub(_) => {}
                DesignState::Slqb(c) => {
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

    /// A block (first frame, order) of a slab that was given up, to be freed by the caller.
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

    /// All caches.
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

    /// One cache.
    pub fn view(&self, cache: CacheId) -> Option<CacheView> {
        self.views().nth(cache.0.into())
    }

    /// Each slab's first frame and order, and the name of its cache.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, u8, &'static str)> {
        let live = |r: &&SlabRec| r.place != SlabPlace::Vacant;
        let slabs = self.arena.slabs.iter().filter(live);
        slabs.map(|r| {
            (
                r.pfn,
                r.order,
                self.caches[usize::from(r.cache)].common.name,
            )
        })
    }

    /// Checks the invariant; the error says what is broken.
    pub fn validate(&self) -> Result<(), String> {
        let mut free = vec![0u64; self.caches.len()];
        let mut total = free.clone();
        let mut pages = free.clone();
        for r in self
            .arena
            .slabs
            .iter()
            .filter(|r| r.place != SlabPlace::Vacant)
        {
            let c = usize::from(r.cache);
            free[c] += u64::from(r.free);
            total[c] += u64::from(r.objects);
            pages[c] += 1 << r.order;
            let fits = match r.place {
                SlabPlace::Full => r.free == 0,
                SlabPlace::Partial => r.free > 0,
                SlabPlace::Free => r.free == r.objects,
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
                DesignState::Slab(s) => s.held(),
                DesignState::Slub(s) => s.held(),
                DesignState::Slqb(s) => s.held(),
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
