//! Caches go, and give memory back: destruction, and `shrink`.
//!
//! Invariant: a cache is emptied without its CPUs' tokens only by whoever gives up its last handle,
//! under the lock of the list of caches, which lets nobody merge with it meanwhile.

use crate::cache::KmemCache;
use crate::cpu::Cpu;
use crate::create::{free_cpus, free_nodes};
use crate::desc::Desc;
use crate::slow;
use crate::stat;
use crate::sync::Ordering;
use crate::system::Inner;
use core::fmt;
use core::ptr::NonNull;

/// Why a cache stays.
pub struct DestroyError<'s> {
    /// The cache, as it was.
    pub cache: KmemCache<'s>,
    /// Objects in use.
    pub live: u64,
}

impl fmt::Display for DestroyError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (name, n) = (self.cache.name(), self.live);
        let are = if n == 1 { "object is" } else { "objects are" };
        write!(
            f,
            "slab cache {name}: {n} {are} still in use; free all of them before the cache is destroyed"
        )
    }
}

impl fmt::Debug for DestroyError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for DestroyError<'_> {}

/// What [`KmemCache::shrink`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrunk {
    /// Pages returned.
    pub pages: u64,
    /// CPUs whose lists could not be emptied now, because their token is out: they are asked to do
    /// it at their next slow path or [`Cpu::reap`].
    pub asked: u16,
}

/// Empties all lists of a cache that the caller has alone, and returns its empty slabs.
fn empty(d: &Desc) {
    slow::release_quarantine(d);
    // Twice, for one CPU's flush may queue objects for another.
    for _ in 0..2 {
        for c in d.all_cpus() {
            slow::flush_cpu(d, c);
        }
    }
    slow::shrink_nodes(d);
}

/// Takes a cache without slabs apart.
///
/// # Safety
/// Nobody uses it any more, and it is on no list.
#[allow(unsafe_code)]
unsafe fn take_apart(s: &Inner, d: *const Desc) {
    // SAFETY: it lives until the last line.
    let (cpus, nodes) = unsafe { ((*d).cpus, (*d).nodes) };
    free_cpus(s, cpus);
    free_nodes(s, nodes);
    if let Some(at) = NonNull::new(d.cast_mut().cast::<u8>()) {
        // SAFETY: allocated with that size.
        unsafe { s.boot_free(at, size_of::<Desc>()) };
    }
}

/// Gives a handle up. The cache goes with its last one, unless objects are in use: then the answer
/// is how many.
fn let_go(s: &Inner, desc: NonNull<Desc>, even_if_live: bool) -> Result<(), u64> {
    let mut list = s.caches.lock();
    // SAFETY: the handle keeps it.
    #[allow(unsafe_code)]
    let d = unsafe { desc.as_ref() };
    if d.handles.load(Ordering::Acquire) > 1 {
        d.handles.fetch_sub(1, Ordering::Release);
        return Ok(());
    }
    // The last handle is the caller's, who gives it up, and the list's lock lets nobody merge with
    // the cache: it is his alone.
    empty(d);
    let live = stat::live_objects(d);
    if live > 0 {
        if even_if_live {
            d.handles.store(0, Ordering::Relaxed);
        }
        return Err(live);
    }
    unlink(&mut list.0, d);
    // SAFETY: the last handle goes, and the list forgot it.
    #[allow(unsafe_code)]
    unsafe {
        take_apart(s, d);
    }
    Ok(())
}

fn unlink(head: &mut *const Desc, d: &Desc) {
    if core::ptr::eq(*head, d) {
        *head = d.next.get();
        return;
    }
    let mut at = *head;
    while !at.is_null() {
        // SAFETY: caches on the list live.
        #[allow(unsafe_code)]
        let before = unsafe { &*at };
        if core::ptr::eq(before.next.get(), d) {
            before.next.set(d.next.get());
            return;
        }
        at = before.next.get();
    }
}

/// Takes the caches apart whose handles are gone and whose objects came back since.
pub(crate) fn drop_all(s: &Inner) {
    let mut list = s.caches.lock();
    let mut at = list.0;
    while !at.is_null() {
        // SAFETY: caches on the list live.
        #[allow(unsafe_code)]
        let d = unsafe { &*at };
        at = d.next.get();
        empty(d);
        if stat::live_objects(d) == 0 {
            unlink(&mut list.0, d);
            // SAFETY: the set goes, so that nobody has a handle.
            #[allow(unsafe_code)]
            unsafe {
                take_apart(s, d);
            }
        }
    }
}

impl<'s> KmemCache<'s> {
    /// Destroys the cache and returns its pages; one that others share stays for them.
    ///
    /// # Errors
    /// If objects are still in use: how many, and the cache again.
    pub fn destroy(self) -> Result<(), DestroyError<'s>> {
        let (s, desc) = (self.inner(), self.desc);
        match let_go(s, desc, false) {
            Ok(()) => {
                core::mem::forget(self);
                Ok(())
            }
            Err(live) => Err(DestroyError { cache: self, live }),
        }
    }

    /// Returns the pages of all empty slabs. The lists of `cpu`, and of all CPUs whose token is not
    /// out, are emptied first; other CPUs are asked to empty theirs.
    pub fn shrink(&self, cpu: &Cpu<'_>) -> Shrunk {
        let (s, d) = (self.inner(), self.desc());
        assert!(
            core::ptr::eq(cpu.inner(), s),
            "the CPU's token belongs to another set"
        );
        let before = stat::slab_pages(d);
        let mut asked = 0;
        for _ in 0..2 {
            asked = 0;
            for id in 0..s.cpus {
                let own = id == cpu.id();
                if own || s.borrow(id) {
                    slow::flush_cpu(d, d.cpu(id));
                    if !own {
                        s.release(id);
                    }
                } else {
                    d.cpu(id).drain.store(1, Ordering::Relaxed);
                    asked += 1;
                }
            }
        }
        slow::shrink_nodes(d);
        Shrunk {
            pages: before.saturating_sub(stat::slab_pages(d)),
            asked,
        }
    }
}

impl Drop for KmemCache<'_> {
    /// What [`destroy`](KmemCache::destroy) does; a cache with objects in use stays, without a
    /// handle, until the set goes.
    fn drop(&mut self) {
        let _ = let_go(self.inner(), self.desc, true);
    }
}
