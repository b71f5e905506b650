//! kmalloc: one cache for each of a series of sizes, and whole pages above the largest.
//! `spec: 6.1, 6.2`
//!
//! Which sizes there are is a question of the series ([`Sizes`]). The count of pages is relaxed, as in `grow`.

use crate::cache::{KmemCache, NoMemory};
use crate::cpu::Cpu;
use crate::destroy::DestroyError;
use crate::fault::{Fault, FaultKind, Name};
use crate::formulas::{PAGE, order_for};
use crate::lock::SpinLock;
use crate::object::CacheFlags;
use crate::options::{CacheOptions, CreateError};
use crate::pages::PageRequest;
use crate::rules::Design;
use crate::sizes::{MOST_SIZES, Sizes};
use crate::slab_record::{BlockKind, SlabRecord};
use crate::sync::Ordering;
use crate::system::Slabs;
use crate::word::{AtomicWord, Word};
use core::fmt::Write;
use core::ptr::{NonNull, null};
use lock_api::RawMutex;
use unfrag::Gfp;
use unfrag::frame::{MAX_ORDER, Pfn};

/// The name of a kmalloc cache.
struct ShortName {
    bytes: [u8; 16],
    len: usize,
}

impl Write for ShortName {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.len + text.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(core::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl ShortName {
    /// `size-192` with SLAB, else `kmalloc-192`, `kmalloc-1k`, `kmalloc-1280`.
    fn name(design: Design, size: u32) -> ShortName {
        let mut name = ShortName {
            bytes: [0; 16],
            len: 0,
        };
        let written = match (design, size) {
            (Design::Slab, size) => write!(name, "size-{size}"),
            (_, 1024..) if size.is_multiple_of(1024) => write!(name, "kmalloc-{}k", size / 1024),
            (_, size) => write!(name, "kmalloc-{size}"),
        };
        debug_assert!(written.is_ok(), "the longest name fits");
        name
    }
    fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).unwrap_or("kmalloc")
    }
}

/// The caches of all sizes, for memory that is asked for by size and freed by address.
pub struct Kmalloc<'s, R: RawMutex = SpinLock> {
    caches: [Option<KmemCache<'s, R>>; MOST_SIZES],
    design: Design,
    sizes: Sizes,
    slabs: &'s Slabs<'s, R>,
}

impl<'s, R: RawMutex> Kmalloc<'s, R> {
    /// Makes the caches, of a design and with properties.
    ///
    /// # Errors
    /// If there is no memory for their records.
    pub fn new(
        slabs: &'s Slabs<'s, R>,
        design: Design,
        flags: CacheFlags,
    ) -> Result<Kmalloc<'s, R>, CreateError> {
        Kmalloc::with_sizes(slabs, design, flags, Sizes::Kernel(design))
    }

    /// As [`new`](Kmalloc::new), of another series of sizes.
    ///
    /// # Errors
    /// As [`new`](Kmalloc::new).
    pub fn with_sizes(
        slabs: &'s Slabs<'s, R>,
        design: Design,
        flags: CacheFlags,
        sizes: Sizes,
    ) -> Result<Kmalloc<'s, R>, CreateError> {
        let mut caches = [const { None }; MOST_SIZES];
        for (at, place) in caches.iter_mut().enumerate() {
            let size = sizes.at(at);
            if size == 0 {
                continue;
            }
            let name = ShortName::name(design, size);
            let options = CacheOptions {
                name: name.as_str(),
                size: size as usize,
                align: sizes.align(size) as usize,
                flags: flags | CacheFlags::KMALLOC,
                ctor: None,
                design: Some(design),
            };
            *place = Some(slabs.create(&options)?);
        }
        Ok(Kmalloc {
            caches,
            design,
            sizes,
            slabs,
        })
    }

    /// Their design.
    pub fn design(&self) -> Design {
        self.design
    }

    /// Their series of sizes.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The cache that serves `size` bytes; `None` if whole pages do.
    #[inline]
    pub fn cache(&self, size: usize) -> Option<&KmemCache<'s, R>> {
        self.caches.get(self.sizes.position(size)?)?.as_ref()
    }

    /// Memory for `size` bytes at a multiple of 8.
    ///
    /// # Errors
    /// If there is no memory, or `size` is above 4 MiB.
    ///
    /// # Panics
    /// If the token is one of another set of caches.
    #[inline]
    pub fn alloc(&self, cpu: &Cpu<'_, R>, size: usize, gfp: Gfp) -> Result<NonNull<u8>, NoMemory> {
        match self.cache(size) {
            Some(cache) => cache.alloc(cpu, gfp),
            None => self.alloc_pages(size, gfp, cpu.node()),
        }
    }

    /// The same without a CPU's token, as [`KmemCache::alloc_without_cpu`].
    ///
    /// # Errors
    /// As [`alloc`](Kmalloc::alloc).
    pub fn alloc_without_cpu(&self, size: usize, gfp: Gfp) -> Result<NonNull<u8>, NoMemory> {
        match self.cache(size) {
            Some(cache) => cache.alloc_without_cpu(gfp),
            None => self.alloc_pages(size, gfp, 0),
        }
    }

    /// Frees what [`alloc`](Kmalloc::alloc) gave.
    ///
    /// # Errors
    /// If the address is none of these; with checked caches also if the memory was misused.
    ///
    /// # Safety
    /// The memory came from here, was not freed since, and is not used any more.
    ///
    /// # Panics
    /// As [`alloc`](Kmalloc::alloc).
    #[allow(unsafe_code)]
    #[inline]
    pub unsafe fn free(&self, cpu: &Cpu<'_, R>, memory: NonNull<u8>) -> Result<(), Fault> {
        // SAFETY: as the caller says.
        match unsafe { KmemCache::free_of_any(cpu, memory, CacheFlags::KMALLOC) } {
            true => Ok(()),
            // SAFETY: as the caller says.
            false => unsafe { self.free_slow(cpu, memory) },
        }
    }

    /// # Safety
    /// As [`free`](Kmalloc::free).
    #[allow(unsafe_code)]
    unsafe fn free_slow(&self, cpu: &Cpu<'_, R>, memory: NonNull<u8>) -> Result<(), Fault> {
        // SAFETY: as the caller says.
        match unsafe { self.find(memory)? } {
            // SAFETY: as the caller says.
            Some(cache) => unsafe { cache.free(cpu, memory) },
            None => self.free_pages(memory),
        }
    }

    /// The same without a CPU's token, as [`KmemCache::free_without_cpu`].
    ///
    /// # Errors
    /// As [`free`](Kmalloc::free).
    ///
    /// # Safety
    /// As [`free`](Kmalloc::free).
    #[allow(unsafe_code)]
    pub unsafe fn free_without_cpu(&self, memory: NonNull<u8>) -> Result<(), Fault> {
        // SAFETY: as the caller says.
        match unsafe { self.find(memory)? } {
            // SAFETY: as the caller says.
            Some(cache) => unsafe { cache.free_without_cpu(memory) },
            None => self.free_pages(memory),
        }
    }

    /// Bytes that may be used of what [`alloc`](Kmalloc::alloc) gave.
    ///
    /// # Errors
    /// If the address is none of these.
    ///
    /// # Safety
    /// The memory is in use, or in no slab of these caches: what is given back meanwhile cannot be looked at.
    #[allow(unsafe_code)]
    pub unsafe fn usable_size(&self, memory: NonNull<u8>) -> Result<usize, Fault> {
        // SAFETY: as the caller says.
        if let Some(cache) = unsafe { self.find(memory)? } {
            return Ok(cache.object_size());
        }
        let set = self.slabs.set();
        let id = set.map().entry(memory.as_ptr());
        Ok(id.map_or(0, |id| (PAGE as usize) << set.map().slab(id).kind.order()))
    }

    fn fault(&self, memory: NonNull<u8>, kind: FaultKind) -> Fault {
        let cache = Name::new("kmalloc").unwrap_or_else(|| unreachable!("a good name"));
        let fault = Fault {
            cache,
            object: memory.addr().get(),
            kind,
        };
        self.slabs.set().memory.pages.fault(&fault);
        fault
    }

    /// The cache of an address; `None` if it begins whole pages.
    ///
    /// # Safety
    /// The slab of the address, if it has one, does not go meanwhile.
    #[allow(unsafe_code)]
    unsafe fn find(&self, memory: NonNull<u8>) -> Result<Option<&KmemCache<'s, R>>, Fault> {
        let set = self.slabs.set();
        let Some(id) = set.map().entry(memory.as_ptr()) else {
            return Err(self.fault(memory, FaultKind::NotInASlab));
        };
        let slab = set.map().slab(id);
        if slab.cache.is_null() {
            let begins = slab.first == memory.as_ptr();
            return match begins {
                true => Ok(None),
                false => Err(self.fault(memory, FaultKind::NotAnObject)),
            };
        }
        let cache = self.cache(slab.cache().object_size as usize);
        match cache {
            Some(cache) if core::ptr::eq(cache.record(), slab.cache) => Ok(Some(cache)),
            _ => Err(self.fault(memory, FaultKind::OtherCache(slab.cache().name))),
        }
    }

    /// Whole pages, with a record that says how many.
    #[allow(unsafe_code)]
    pub(crate) fn alloc_pages(
        &self,
        size: usize,
        gfp: Gfp,
        node: u8,
    ) -> Result<NonNull<u8>, NoMemory> {
        let set = self.slabs.set();
        let order = order_for(size as u64);
        if order > MAX_ORDER {
            return Err(NoMemory);
        }
        let request = PageRequest {
            order,
            // An address that somebody holds does not move.
            gfp: (gfp - (Gfp::ZERO | Gfp::MOVABLE | Gfp::HIGHMEM)) | Gfp::COMP,
            node,
            first_pass_only: false,
            object_bytes: 0,
        };
        let pfn = set.memory.pages.alloc(&request).ok_or(NoMemory)?;
        let Some(at) = set
            .memory
            .alloc_record(size_of::<SlabRecord<R>>(), gfp, node)
        else {
            // SAFETY: allocated above.
            unsafe { set.memory.pages.free(pfn, order, request.mt()) };
            return Err(NoMemory);
        };
        let frame = (pfn.0 - set.map().first.0) as u32;
        let start = set.map().frame(frame);
        let word = AtomicWord::new(Word::new(0, 1, true));
        let kind = BlockKind::new(order, request.mt());
        let record = SlabRecord::new(word, null(), start, (frame, kind, node), 1);
        // SAFETY: the place is ours, large enough and aligned; the pages are ours too.
        unsafe {
            at.cast::<SlabRecord<R>>().write(record);
            if gfp.contains(Gfp::ZERO) {
                start.write_bytes(0, (PAGE as usize) << order);
            }
        }
        set.map()
            .set_entries(frame, order, set.map().id_of(at.as_ptr()));
        set.slab_pages.fetch_add(1 << order, Ordering::Relaxed);
        NonNull::new(start).ok_or(NoMemory)
    }

    #[allow(unsafe_code)]
    fn free_pages(&self, memory: NonNull<u8>) -> Result<(), Fault> {
        let set = self.slabs.set();
        let Some(id) = set.map().entry(memory.as_ptr()) else {
            return Err(self.fault(memory, FaultKind::NotInASlab));
        };
        let slab = set.map().slab(id);
        let (frame, kind) = (slab.frame, slab.kind);
        let order = kind.order();
        set.map().set_entries(frame, order, 0);
        set.slab_pages.fetch_sub(1 << order, Ordering::Relaxed);
        if let Some(at) = NonNull::new(set.map().by_id(id)) {
            // SAFETY: allocated by `alloc_pages` with that size; the table forgot it.
            unsafe { set.memory.free_record(at, size_of::<SlabRecord<R>>()) };
        }
        let first = Pfn(set.map().first.0 + u64::from(frame));
        // SAFETY: the block was allocated by `alloc_pages` for this memory, which the caller gives up.
        unsafe { set.memory.pages.free(first, order, kind.mt()) };
        Ok(())
    }

    /// Returns the pages of all empty slabs, as [`KmemCache::shrink`] does.
    pub fn shrink(&self, cpu: &Cpu<'_, R>) -> u64 {
        let caches = self.caches.iter().flatten();
        caches.map(|c| c.shrink(cpu).pages).sum()
    }

    /// Destroys the caches.
    ///
    /// # Errors
    /// If objects of one are still in use; whole pages are not looked at.
    pub fn destroy(self) -> Result<(), DestroyError<'s, R>> {
        for cache in self.caches.into_iter().flatten() {
            cache.destroy()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_kernels() {
        let name = |design, n| std::string::String::from(ShortName::name(design, n).as_str());
        assert_eq!(name(Design::Slub, 192), "kmalloc-192");
        assert_eq!(name(Design::Slub, 8192), "kmalloc-8k");
        assert_eq!(name(Design::Slab, 131_072), "size-131072");
    }
}
