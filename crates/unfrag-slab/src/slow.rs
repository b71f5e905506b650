//! Where a hit ends: the slow paths, by design, with the checks of checked caches around them.

use crate::desc::{CpuRecord, Desc};
use crate::fault::{Fault, FaultKind};
use crate::reap::Due;
use crate::rules::Design;
use crate::sync::Ordering;
use crate::work::Work;
use crate::{array, debug, slqb, slub};
use unfrag::Gfp;

fn fault(d: &Desc, object: *const u8, kind: FaultKind) -> Fault {
    let fault = Fault {
        cache: d.name,
        object: object.addr(),
        kind,
    };
    d.faults.fetch_add(1, Ordering::Relaxed);
    d.inner().pages.fault(&fault);
    fault
}

fn work<'a>(d: &'a Desc, c: &'a CpuRecord) -> Work<'a> {
    Work {
        s: d.inner(),
        d,
        c,
        has_cpu: true,
    }
}

/// An object when the CPU's chain is empty, or must come from a given node.
#[cold]
#[inline(never)]
pub(crate) fn alloc(d: &Desc, c: &CpuRecord, gfp: Gfp, node: Option<u8>) -> Option<*mut u8> {
    let x = work(d, c);
    let node = match node {
        Some(n) if n >= x.s.nodes => return None,
        Some(n) if n == c.node.get() && x.s.nodes == 1 => None,
        n => n,
    };
    if c.drain.load(Ordering::Relaxed) != 0 {
        c.drain.store(0, Ordering::Relaxed);
        flush(&x);
    }
    loop {
        x.open();
        let got = take(&x, gfp, node);
        x.close();
        let object = got?;
        if !d.is_checked() {
            return Some(object);
        }
        match debug::on_alloc(d, object) {
            Ok(()) => return Some(object),
            // Nobody gets an object that somebody else writes to.
            Err(kind) => {
                fault(d, object, kind);
                let mut q = d.quarantine.lock();
                q.0 = debug::quarantine(d, object, q.0);
            }
        }
    }
}

fn take(x: &Work, gfp: Gfp, node: Option<u8>) -> Option<*mut u8> {
    let c = x.c;
    match (x.d.design, node) {
        (Design::Slab, None) => return array::alloc(x, gfp),
        (Design::Slab, Some(n)) => return array::alloc_on(x, gfp, n),
        (Design::Slqb, Some(n)) => {
            c.alloc_slow.add(1);
            return slqb::alloc_on(x, gfp, n);
        }
        (Design::Slub, Some(n)) if x.current().is_some_and(|id| x.s.map.record(id).node == n) => {}
        (Design::Slub, Some(n)) => {
            c.alloc_slow.add(1);
            return slub::refill(x, gfp, Some(n)).then(|| x.pop()).flatten();
        }
        _ => {}
    }
    // A checked cache comes by here with a chain.
    if let Some(object) = x.pop() {
        c.alloc_fast.add(1);
        return Some(object);
    }
    c.alloc_slow.add(1);
    let filled = match x.d.design {
        Design::Slqb => slqb::refill(x, gfp),
        _ => slub::refill(x, gfp, node),
    };
    filled.then(|| x.pop()).flatten()
}

/// Frees an object that is not of a slab of this CPU, or of a checked cache. Without a CPU, the
/// object goes to its slab.
#[cold]
#[inline(never)]
pub(crate) fn free(d: &Desc, c: Option<&CpuRecord>, object: *mut u8) -> Result<(), Fault> {
    let s = d.inner();
    let Some(id) = s.map.entry(object) else {
        return Err(fault(d, object, FaultKind::NotInASlab));
    };
    let r = s.map.record(id);
    if r.desc.is_null() {
        return Err(fault(d, object, FaultKind::NotAnObject));
    }
    if !core::ptr::eq(r.desc, d) {
        return Err(fault(d, object, FaultKind::OtherCache(r.desc().name)));
    }
    if d.is_checked() {
        let begins = r.index(object, d.layout.size).is_some();
        let checked = match begins {
            true => debug::on_free(d, object),
            false => Err(FaultKind::NotAnObject),
        };
        checked.map_err(|kind| fault(d, object, kind))?;
    }
    let x = Work {
        s,
        d,
        c: c.unwrap_or_else(|| d.cpu(0)),
        has_cpu: c.is_some(),
    };
    if x.has_cpu {
        x.open();
        count_free(&x, id);
    }
    let done = put(&x, id, object);
    if x.has_cpu {
        x.close();
    }
    done.map_err(|kind| fault(d, object, kind))
}

fn put(x: &Work, id: u32, object: *mut u8) -> Result<(), FaultKind> {
    match x.d.design {
        Design::Slab => array::free(x, id, object),
        Design::Slub => slub::free_slow(x, id, object),
        Design::Slqb => {
            slqb::free_slow(x, id, object);
            Ok(())
        }
    }
}

/// Frees what somebody wrote to, of a cache that goes.
pub(crate) fn release_quarantine(d: &Desc) {
    let x = Work {
        s: d.inner(),
        d,
        c: d.cpu(0),
        has_cpu: false,
    };
    loop {
        let mut q = d.quarantine.lock();
        let object = q.0;
        if object.is_null() {
            return;
        }
        q.0 = debug::unquarantine(d, object);
        drop(q);
        if let Some(id) = x.s.map.entry(object) {
            let freed = put(&x, id, object);
            debug_assert!(freed.is_ok(), "an object in quarantine is out of its slab");
        }
    }
}

/// Counts a free: fast where a cache without checks would have hit. SLAB counts itself.
fn count_free(x: &Work, id: u32) {
    if x.d.design == Design::Slab {
        return;
    }
    let owner = x.s.map.record(id).owner.load(Ordering::Relaxed);
    match owner == x.c.tag.get() {
        true => x.c.free_fast.add(1),
        false => x.c.free_slow.add(1),
    }
}

/// A chain that has grown beyond its mark.
#[cold]
#[inline(never)]
pub(crate) fn overflow(d: &Desc, c: &CpuRecord) {
    slqb::overflow(&work(d, c));
}

/// Empties a CPU's lists.
pub(crate) fn flush_cpu(d: &Desc, c: &CpuRecord) {
    let x = work(d, c);
    c.drain.store(0, Ordering::Relaxed);
    flush(&x);
}

fn flush(x: &Work) {
    x.open();
    match x.d.design {
        Design::Slab => array::flush(x),
        Design::Slub => slub::flush(x),
        Design::Slqb => slqb::flush(x),
    }
    x.close();
}

/// Returns the empty slabs of all nodes.
pub(crate) fn shrink_nodes(d: &Desc) {
    let x = Work {
        s: d.inner(),
        d,
        c: d.cpu(0),
        has_cpu: false,
    };
    match d.design {
        Design::Slab => array::shrink(&x),
        Design::Slub => (0..x.s.nodes).for_each(|n| slub::shrink_node(&x, n)),
        // Its empty slabs go at once.
        Design::Slqb => {}
    }
}

/// What a CPU's periodic work does to a cache: the reaper's share, or the trim.
pub(crate) fn reap_cpu(d: &Desc, c: &CpuRecord, due: Due, node: Option<u8>) {
    let x = work(d, c);
    x.open();
    if c.drain.load(Ordering::Relaxed) != 0 {
        c.drain.store(0, Ordering::Relaxed);
        match d.design {
            Design::Slab => array::flush(&x),
            Design::Slub => slub::flush(&x),
            Design::Slqb => slqb::flush(&x),
        }
    }
    match d.design {
        Design::Slab => {
            if due.reap_cpu {
                array::reap_cpu(&x);
            }
            if let Some(n) = node {
                array::reap_node(&x, n);
            }
        }
        Design::Slub => {}
        Design::Slqb if due.trim => slqb::trim(&x),
        Design::Slqb => {}
    }
    x.close();
}
