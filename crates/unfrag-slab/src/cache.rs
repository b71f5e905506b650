//! A cache of objects of one size, and its fast paths.
//!
//! A hit on allocation takes the first object of the CPU's chain; a hit on a free puts one back, if
//! its slab is that CPU's. Neither knows which design the cache has, nor uses an atomic
//! read-modify-write: the CPU's token excludes other users of its lists. All else is in `slow`.

use crate::cache_record::{CacheRecord, CpuRecord};
use crate::cpu::Cpu;
use crate::fault::{Fault, Name};
use crate::lock::SpinLock;
use crate::object::{CacheFlags, next, set_next};
use crate::rules::Design;
use crate::set::Set;
use crate::slow;
use crate::sync::Ordering;
use core::fmt;
use core::ptr::NonNull;
use lock_api::RawMutex;
use unfrag::Gfp;

/// No memory for an object: the page allocator gave no page, and no slab had a free object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoMemory;

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(
            "no memory for an object: no slab has a free one, and there is no page for a slab",
        )
    }
}

impl core::error::Error for NoMemory {}

/// A cache of objects of one size, of one of the three designs.
///
/// `R` is the lock of its set. Any number of CPUs may use it at once. Dropping it destroys it if none of its objects is in use;
/// [`destroy`](KmemCache::destroy) reports those that are.
pub struct KmemCache<'s, R: RawMutex = SpinLock> {
    /// The pointer of the record's allocation, through which it is freed.
    pub(crate) record: NonNull<CacheRecord<R>>,
    set: &'s Set<R>,
    cpus: NonNull<CpuRecord<R>>,
}

// SAFETY: what CPUs share is atomic or locked; the rest needs a CPU's token.
#[allow(unsafe_code)]
unsafe impl<R: RawMutex + Send + Sync> Send for KmemCache<'_, R> {}
// SAFETY: what CPUs share is atomic or locked; the rest needs a CPU's token.
#[allow(unsafe_code)]
unsafe impl<R: RawMutex + Send + Sync> Sync for KmemCache<'_, R> {}

impl<'s, R: RawMutex> KmemCache<'s, R> {
    /// A handle to a cache of the set.
    pub(crate) fn new(set: &'s Set<R>, record: NonNull<CacheRecord<R>>) -> KmemCache<'s, R> {
        // SAFETY: the caller's record lives, and counts this handle.
        #[allow(unsafe_code)]
        let cpus = unsafe { record.as_ref() }.cpus.cast_mut();
        KmemCache {
            record,
            set,
            cpus: NonNull::new(cpus).unwrap_or(NonNull::dangling()),
        }
    }

    #[inline(always)]
    pub(crate) fn record(&self) -> &CacheRecord<R> {
        // SAFETY: the descriptor lives as long as a handle does.
        #[allow(unsafe_code)]
        unsafe {
            self.record.as_ref()
        }
    }

    #[inline(always)]
    fn cpu_record(&self, cpu: &Cpu<'_, R>) -> &CpuRecord<R> {
        cpu.check_set(self.set);
        // SAFETY: a set's tokens have numbers below its number of CPUs, and a cache has a record for
        // each.
        #[allow(unsafe_code)]
        unsafe {
            self.cpus.add(cpu.id().into()).as_ref()
        }
    }

    /// Allocates an object. With [`Gfp::ZERO`] it is zeroed.
    ///
    /// # Errors
    /// If there is no memory for it.
    ///
    /// # Panics
    /// If the token is one of another set of caches.
    #[inline]
    #[allow(unsafe_code)]
    pub fn alloc(&self, cpu: &Cpu<'_, R>, gfp: Gfp) -> Result<NonNull<u8>, NoMemory> {
        let own = self.cpu_record(cpu);
        let object = match NonNull::new(own.head.get()) {
            Some(object) => {
                // SAFETY: the chain is the CPU's, which is the caller.
                own.head
                    .set(unsafe { next(object.as_ptr(), own.next_at.get()) });
                own.nr.set(own.nr.get().wrapping_sub(1));
                own.alloc_fast.add(1);
                object
            }
            None => self.alloc_slow(own, gfp, None)?,
        };
        if gfp.contains(Gfp::ZERO) {
            // SAFETY: the object is new and that long.
            unsafe { object.write_bytes(0, self.object_size()) };
        }
        Ok(object)
    }

    /// Allocates an object from a slab of a node. Without [`Gfp::THISNODE`] one of another node may
    /// do.
    ///
    /// # Errors
    /// If there is no memory for it, or no such node.
    ///
    /// # Panics
    /// As [`alloc`](KmemCache::alloc).
    #[allow(unsafe_code)]
    pub fn alloc_on(&self, cpu: &Cpu<'_, R>, gfp: Gfp, node: u8) -> Result<NonNull<u8>, NoMemory> {
        let own = self.cpu_record(cpu);
        let got = self.alloc_slow(own, gfp, Some(node));
        let object = match got {
            Err(NoMemory) if !gfp.contains(Gfp::THISNODE) && node < self.set.nodes => {
                self.alloc_slow(own, gfp, None)?
            }
            got => got?,
        };
        if gfp.contains(Gfp::ZERO) {
            // SAFETY: the object is new and that long.
            unsafe { object.write_bytes(0, self.object_size()) };
        }
        Ok(object)
    }

    #[inline]
    fn alloc_slow(
        &self,
        cpu: &CpuRecord<R>,
        gfp: Gfp,
        node: Option<u8>,
    ) -> Result<NonNull<u8>, NoMemory> {
        slow::alloc(self.set, self.record(), cpu, gfp, node)
            .and_then(NonNull::new)
            .ok_or(NoMemory)
    }

    /// Frees an object.
    ///
    /// # Errors
    /// In a checked cache, what is wrong with the object or with the call; the object then stays as
    /// it is. Other caches detect only objects of other caches.
    ///
    /// # Safety
    /// The object came from this cache, was not freed since, and is not used any more. (In a
    /// checked cache a call that breaks the first two of these is harmless, and answered.)
    ///
    /// # Panics
    /// As [`alloc`](KmemCache::alloc).
    #[inline]
    #[allow(unsafe_code)]
    pub unsafe fn free(&self, cpu: &Cpu<'_, R>, object: NonNull<u8>) -> Result<(), Fault> {
        let own = self.cpu_record(cpu);
        let object = object.as_ptr();
        if let Some(id) = cpu.map.entry(object)
            // Relaxed: only this CPU makes a slab its own or gives it up, so it reads what it wrote.
            && cpu.map.slab(id).owner.load(Ordering::Relaxed) == core::ptr::from_ref(own).addr()
        {
            // SAFETY: the caller gives the object up, and it is one of a slab of this CPU.
            unsafe { put(self.set, self.record(), own, object) };
            return Ok(());
        }
        slow::free(self.set, self.record(), Some(own), object)
    }

    /// Frees an object of any cache with these flags; false if it is none, or not of a slab of this CPU.
    ///
    /// # Safety
    /// As [`free`](KmemCache::free), for the cache that the object came from.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) unsafe fn free_of_any(
        cpu: &Cpu<'_, R>,
        object: NonNull<u8>,
        flags: CacheFlags,
    ) -> bool {
        let object = object.as_ptr();
        let Some(id) = cpu.map.entry(object) else {
            return false;
        };
        let slab = cpu.map.slab(id);
        if slab.cache.is_null() {
            return false;
        }
        let cache = slab.cache();
        // SAFETY: a cache of the token's set has a record for each of its CPUs.
        let own = unsafe { &*cache.cpus.add(cpu.id().into()) };
        // Relaxed: as in `free`.
        let is_own = slab.owner.load(Ordering::Relaxed) == core::ptr::from_ref(own).addr();
        let hit = is_own && cache.flags.contains(flags);
        if hit {
            // SAFETY: as in `free`.
            unsafe { put(cpu.set(), cache, own, object) };
        }
        hit
    }

    /// Allocates an object without a CPU's token, for a caller that has none: an interrupt, a thread beyond the number of
    /// CPUs. It comes from a slab of a node, under that node's lock; no lock is held while a new slab is made. So it is
    /// slower than [`alloc`](KmemCache::alloc).
    ///
    /// # Errors
    /// If there is no memory for it. Objects on the lists of CPUs are not looked at.
    #[allow(unsafe_code)]
    pub fn alloc_without_cpu(&self, gfp: Gfp) -> Result<NonNull<u8>, NoMemory> {
        let object = slow::alloc_without_cpu(self.set, self.record(), gfp);
        let object = object.and_then(NonNull::new).ok_or(NoMemory)?;
        if gfp.contains(Gfp::ZERO) {
            // SAFETY: the object is new and that long.
            unsafe { object.write_bytes(0, self.object_size()) };
        }
        Ok(object)
    }

    /// Frees an object without a CPU's token: it goes back to its slab, under a lock.
    ///
    /// # Errors
    /// As [`free`](KmemCache::free).
    ///
    /// # Safety
    /// As [`free`](KmemCache::free).
    #[allow(unsafe_code)]
    pub unsafe fn free_without_cpu(&self, object: NonNull<u8>) -> Result<(), Fault> {
        slow::free(self.set, self.record(), None, object.as_ptr())
    }

    /// Allocates up to as many objects as `into` has places, without a CPU's token: with SLUB what slabs of a node have, under one
    /// hold of that node's lock, and only if they have nothing, objects of one new slab. Returns how many there are; 0 if there is no
    /// memory for one. SLUB looks at the link of each object, and reports a [fault](crate::Pages::fault) where somebody wrote over one when
    /// it was free. For whoever keeps free objects before the cache.
    #[allow(unsafe_code)]
    pub fn alloc_some_without_cpu(&self, gfp: Gfp, into: &mut [NonNull<u8>]) -> usize {
        let count = slow::alloc_some_without_cpu(self.set, self.record(), gfp, into);
        if gfp.contains(Gfp::ZERO) {
            for object in &into[..count] {
                // SAFETY: the object is new and that long.
                unsafe { object.write_bytes(0, self.object_size()) };
            }
        }
        count
    }

    /// Frees several objects without a CPU's token: with SLUB under one hold of the lock of their node.
    ///
    /// # Errors
    /// For the first address at which no object of this cache begins, or which is freed twice as far as can be seen; the others are
    /// freed all the same.
    ///
    /// # Safety
    /// As [`free`](KmemCache::free), for each.
    #[allow(unsafe_code)]
    pub unsafe fn free_bulk_without_cpu(&self, objects: &[NonNull<u8>]) -> Result<(), Fault> {
        slow::free_bulk_without_cpu(self.set, self.record(), objects)
    }

    /// Allocates as many objects as `into` has places: all of them or none.
    ///
    /// # Errors
    /// If there is no memory for one; those allocated before it are freed again.
    ///
    /// # Panics
    /// As [`alloc`](KmemCache::alloc).
    #[allow(unsafe_code)]
    pub fn alloc_bulk(
        &self,
        cpu: &Cpu<'_, R>,
        gfp: Gfp,
        into: &mut [NonNull<u8>],
    ) -> Result<(), NoMemory> {
        for i in 0..into.len() {
            match self.alloc(cpu, gfp) {
                Ok(object) => into[i] = object,
                Err(NoMemory) => {
                    for object in &into[..i] {
                        // SAFETY: allocated above, and not published.
                        let freed = unsafe { self.free(cpu, *object) };
                        debug_assert!(freed.is_ok(), "an object just allocated is whole");
                    }
                    return Err(NoMemory);
                }
            }
        }
        Ok(())
    }

    /// Frees several objects.
    ///
    /// # Errors
    /// As [`free`](KmemCache::free), for the first object that has one; the others are freed all the
    /// same.
    ///
    /// # Safety
    /// As [`free`](KmemCache::free), for each.
    ///
    /// # Panics
    /// As [`alloc`](KmemCache::alloc).
    #[allow(unsafe_code)]
    pub unsafe fn free_bulk(&self, cpu: &Cpu<'_, R>, objects: &[NonNull<u8>]) -> Result<(), Fault> {
        let mut done = Ok(());
        for object in objects {
            // SAFETY: as the caller says.
            let freed = unsafe { self.free(cpu, *object) };
            done = done.and(freed);
        }
        done
    }

    pub(crate) fn set(&self) -> &'s Set<R> {
        self.set
    }

    /// Its name; the name of the oldest if several caches share their slabs.
    pub fn name(&self) -> Name {
        self.record().name
    }

    /// Its design.
    pub fn design(&self) -> Design {
        self.record().design
    }

    /// Bytes of an object that its user sees.
    pub fn object_size(&self) -> usize {
        self.record().object_size as usize
    }

    /// Bytes of which the address of each object is a multiple.
    pub fn align(&self) -> usize {
        self.record().layout.align as usize
    }

    /// Whether it shares its slabs with another cache.
    pub fn is_merged(&self) -> bool {
        // Relaxed: a count for whoever asks.
        self.record().handles.load(Ordering::Relaxed) > 1
    }

    /// Whether the objects are checked.
    pub fn is_checked(&self) -> bool {
        self.record().is_checked()
    }
}

impl<R: RawMutex> fmt::Debug for KmemCache<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "KmemCache({}, {})", self.name(), self.design())
    }
}

/// Puts an object on the CPU's chain.
///
/// # Safety
/// The caller is that CPU, gives the object up, and its slab is one of this CPU's.
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn put<R: RawMutex>(
    set: &Set<R>,
    cache: &CacheRecord<R>,
    own: &CpuRecord<R>,
    object: *mut u8,
) {
    // SAFETY: as the caller says.
    unsafe { set_next(object, own.next_at.get(), own.head.get()) };
    own.head.set(object);
    let nr = own.nr.get().wrapping_add(1);
    own.nr.set(nr);
    own.free_fast.add(1);
    if nr > own.hiwater.get() {
        slow::overflow(set, cache, own);
    }
}
