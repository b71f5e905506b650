//! Checks what must hold of a set of caches while no CPU is at work on it.

use crate::desc::Desc;
use crate::fault::Name;
use crate::formulas::PAGE;
use crate::object::next;
use crate::record::{List, Record};
use crate::rules::Design;
use crate::sync::Ordering;
use crate::system::{Inner, Slabs};
use core::fmt;

/// What does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Of which cache.
    pub cache: Name,
    /// What.
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
fn chained(s: &Inner, d: &Desc, r: &Record) -> Result<u32, &'static str> {
    let (mut n, most) = (0, u32::from(r.objects));
    let mut slot = r.word.load().head();
    if d.design == Design::Slab {
        while slot != 0 {
            n += 1;
            check(slot <= most && n <= most, "an index leads out of its slab")?;
            // SAFETY: the index is one of the slab's, whose list is locked.
            #[allow(unsafe_code)]
            let following = unsafe { r.bufctl(slot - 1).read() };
            slot = following;
        }
        return Ok(n);
    }
    let mut at = match slot {
        0 => core::ptr::null_mut(),
        slot => s.map.frame(r.frame).wrapping_add((slot as usize - 1) << 3),
    };
    while !at.is_null() {
        n += 1;
        let own = r.index(at, d.layout.size).is_some();
        check(own && n <= most, "a free chain leads out of its slab")?;
        // SAFETY: the object is one of the slab's free ones, and no CPU is at work.
        #[allow(unsafe_code)]
        let following = unsafe { next(at, d.next_at()) };
        at = following;
    }
    Ok(n)
}

/// Checks the slabs of a list; answers their free objects.
fn list(
    s: &Inner,
    d: &Desc,
    l: &List,
    holds: impl Fn(&Record) -> bool,
) -> Result<u64, &'static str> {
    let (mut nr, mut free) = (0, 0);
    for id in l.iter(&s.map) {
        nr += 1;
        check(nr <= l.nr, "a list is longer than it says")?;
        let r = s.map.record(id);
        check(
            core::ptr::eq(r.desc, d),
            "a slab is on another cache's list",
        )?;
        check(holds(r), "a slab is on the wrong list")?;
        let n = chained(s, d, r)?;
        let inuse = u32::from(r.word.load().inuse());
        check(
            n + inuse == u32::from(r.objects),
            "a slab's counts do not add up",
        )?;
        for frame in 0..1usize << r.order {
            let at = s.map.frame(r.frame).wrapping_add(frame * PAGE as usize);
            check(
                s.map.entry(at) == Some(id),
                "a frame does not lead to its slab",
            )?;
        }
        free += u64::from(n);
    }
    check(nr == l.nr, "a list is shorter than it says")?;
    Ok(free)
}

fn cache(s: &Inner, d: &Desc) -> Check {
    let inuse = |r: &Record| r.word.load().inuse();
    let (mut on_lists, mut slabs) = (0, 0);
    for node in 0..s.nodes {
        let n = d.node(node);
        slabs += n.slabs.load(Ordering::Relaxed);
        let lists = n.lists.lock();
        let near = |r: &Record| r.node == node;
        let free = match d.design {
            Design::Slab => {
                let some = |r: &Record| near(r) && inuse(r) > 0 && inuse(r) < r.objects;
                list(s, d, &lists.full, |r| near(r) && inuse(r) == r.objects)?;
                list(s, d, &lists.partial, some)? + list(s, d, &lists.free, |r| inuse(r) == 0)?
            }
            _ => list(s, d, &lists.partial, |r| {
                near(r) && inuse(r) < r.objects && !r.word.load().is_frozen()
            })?,
        };
        if d.design == Design::Slab {
            check(free == lists.free_objects, "free objects are miscounted")?;
        }
        on_lists += u64::from(lists.partial.nr + lists.full.nr + lists.free.nr);
    }
    for c in d.all_cpus() {
        let own = c.own.lock();
        let tag = c.tag.get();
        list(s, d, &own, |r| {
            inuse(r) < r.objects && r.owner.load(Ordering::Relaxed) == tag
        })?;
        on_lists += u64::from(own.nr);
    }
    let whole = d.design == Design::Slab;
    check(on_lists <= slabs, "more slabs are on lists than there are")?;
    check(!whole || on_lists == slabs, "a slab is on no list")
}

impl Slabs<'_> {
    /// Checks every slab of every list. No CPU may be at work on the caches meanwhile; all tokens
    /// must be with the caller, or with nobody.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn validate(&self) -> Result<(), Broken> {
        let s = self.inner();
        let mut found = Ok(());
        s.each_cache(|d| {
            if found.is_ok() {
                found = cache(s, d).map_err(|what| Broken {
                    cache: d.name,
                    what,
                });
            }
        });
        found
    }
}
