//! Checks the invariants of a set of caches while no CPU uses it.
//!
//! Reads are relaxed, or under the lock of what they look at. If a CPU is at work nevertheless, it may find what is not so.

use crate::cache_record::CacheRecord;
use crate::fault::Name;
use crate::formulas::PAGE;
use crate::object::next;
use crate::rules::Design;
use crate::sync::Ordering;
use crate::{list::List, slab_record::SlabRecord};
use crate::{set::Set, system::Slabs};
use core::fmt;
use lock_api::RawMutex;

/// A broken invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// The cache.
    pub cache: Name,
    /// The invariant that does not hold.
    pub what: &'static str,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "slab cache {}: {}", self.cache, self.what)
    }
}

impl core::error::Error for Broken {}

type Check = Result<(), &'static str>;

fn check(holds: bool, what: &'static str) -> Check {
    if holds { Ok(()) } else { Err(what) }
}

/// Objects on a slab's own chain, each of which must be one of the slab's.
fn chained<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    id: u32,
) -> Result<u32, &'static str> {
    let slab = set.map().slab(id);
    let (mut n, most) = (0, u32::from(slab.objects));
    let mut slot = slab.word.load().head();
    if cache.design == Design::Slab {
        while slot != 0 {
            n += 1;
            check(slot <= most && n <= most, "an index leads out of its slab")?;
            // SAFETY: the index is one of the slab's, whose list is locked.
            #[allow(unsafe_code)]
            let following = unsafe { set.map().bufctl(id, slot - 1).read() };
            slot = following;
        }
        return Ok(n);
    }
    let mut at = match slot {
        0 => core::ptr::null_mut(),
        slot => set
            .map()
            .frame(slab.frame)
            .wrapping_add((slot as usize - 1) << 3),
    };
    while !at.is_null() {
        n += 1;
        let own = slab.index(at, cache.layout.size).is_some();
        check(own && n <= most, "a free chain leads out of its slab")?;
        // SAFETY: the object is one of the slab's free ones, and no CPU is at work.
        #[allow(unsafe_code)]
        let following = unsafe { next(at, cache.next_at()) };
        at = following;
    }
    Ok(n)
}

/// Checks the slabs of a list; answers their free objects.
fn check_list<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    list: &List,
    holds: impl Fn(&SlabRecord<R>) -> bool,
) -> Result<u64, &'static str> {
    let (mut nr, mut free) = (0, 0);
    for id in list.iter(set.map()) {
        nr += 1;
        check(nr <= list.nr, "a list is longer than it says")?;
        let slab = set.map().slab(id);
        check(
            core::ptr::eq(slab.cache, cache),
            "a slab is on another cache's list",
        )?;
        check(holds(slab), "a slab is on the wrong list")?;
        let n = chained(set, cache, id)?;
        let inuse = u32::from(slab.word.load().inuse());
        check(
            n + inuse == u32::from(slab.objects),
            "a slab's counts do not add up",
        )?;
        for frame in 0..1usize << slab.kind.order() {
            let at = set
                .map()
                .frame(slab.frame)
                .wrapping_add(frame * PAGE as usize);
            check(
                set.map().entry(at) == Some(id),
                "a frame does not lead to its slab",
            )?;
        }
        free += u64::from(n);
    }
    check(nr == list.nr, "a list is shorter than it says")?;
    Ok(free)
}

fn check_cache<R: RawMutex>(set: &Set<R>, cache: &CacheRecord<R>) -> Check {
    let inuse = |slab: &SlabRecord<R>| slab.word.load().inuse();
    let (mut on_lists, mut slabs) = (0, 0);
    for node in 0..set.nodes {
        let n = cache.node(node);
        slabs += n.slabs.load(Ordering::Relaxed);
        let lists = n.lists.lock();
        let near = |slab: &SlabRecord<R>| slab.node == node;
        let free = match cache.design {
            Design::Slab => {
                let some = |slab: &SlabRecord<R>| {
                    near(slab) && inuse(slab) > 0 && inuse(slab) < slab.objects
                };
                check_list(set, cache, &lists.full, |slab| {
                    near(slab) && inuse(slab) == slab.objects
                })?;
                check_list(set, cache, &lists.partial, some)?
                    + check_list(set, cache, &lists.free, |slab| inuse(slab) == 0)?
            }
            _ => check_list(set, cache, &lists.partial, |slab| {
                near(slab) && inuse(slab) < slab.objects && !slab.word.load().is_frozen()
            })?,
        };
        if cache.design == Design::Slab {
            check(free == lists.free_objects, "free objects are miscounted")?;
        }
        on_lists += u64::from(lists.partial.nr + lists.full.nr + lists.free.nr);
    }
    for c in cache.all_cpus() {
        let own = c.own_slabs.lock();
        let tag = c.tag.get();
        check_list(set, cache, &own, |slab| {
            inuse(slab) < slab.objects && slab.owner.load(Ordering::Relaxed) == tag
        })?;
        on_lists += u64::from(own.nr);
    }
    let whole = cache.design == Design::Slab;
    check(on_lists <= slabs, "more slabs are on lists than there are")?;
    check(!whole || on_lists == slabs, "a slab is on no list")
}

impl<R: RawMutex> Slabs<'_, R> {
    /// Checks every slab of every list. No CPU may be at work on the caches meanwhile; all tokens
    /// must be with the caller, or free.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn validate(&self) -> Result<(), Broken> {
        let set = self.set();
        let mut found = Ok(());
        set.each_cache(|cache| {
            if found.is_ok() {
                found = check_cache(set, cache).map_err(|what| Broken {
                    cache: cache.name,
                    what,
                });
            }
        });
        found
    }
}
