//! A cache of values of one type, whose handles free themselves.
//!
//! ```no_run
//! # fn with(slabs: &unfrag_slab::Slabs, cpu: &unfrag_slab::Cpu) -> Result<(), Box<dyn std::error::Error>> {
//! use unfrag::Gfp;
//! use unfrag_slab::Cache;
//!
//! let inodes: Cache<[u64; 70]> = Cache::new(slabs, "inode")?;
//! let mut inode = inodes.alloc(cpu, Gfp::KERNEL, [0; 70]).map_err(|e| e.to_string())?;
//! inode[3] = 7;
//! # Ok(()) } // Here it is freed.
//! ```

use crate::cache::{KmemCache, NoMemory};
use crate::cpu::Cpu;
use crate::destroy::DestroyError;
use crate::lock::SpinLock;
use crate::options::{CacheOptions, CreateError};
use crate::stat::CacheInfo;
use crate::system::Slabs;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use lock_api::RawMutex;
use unfrag::Gfp;

/// A cache of values of type `T`.
pub struct Cache<'s, T, R: RawMutex = SpinLock> {
    raw: KmemCache<'s, R>,
    values: PhantomData<fn() -> T>,
}

/// There was no memory for a value; it is returned.
pub struct Refused<T>(pub T);

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        NoMemory.fmt(f)
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        NoMemory.fmt(f)
    }
}

impl<T> core::error::Error for Refused<T> {}

impl<'s, T, R: RawMutex> Cache<'s, T, R> {
    /// Makes one, of the design that the rules say.
    ///
    /// # Errors
    /// As [`Slabs::create`], with the size and the alignment of `T`.
    pub fn new(slabs: &'s Slabs<'_, R>, name: &str) -> Result<Cache<'s, T, R>, CreateError> {
        Cache::with_options(slabs, &CacheOptions::new(name, 0))
    }

    /// Makes one with options, whose size, alignment and constructor do not count.
    ///
    /// # Errors
    /// As [`Slabs::create`].
    pub fn with_options(
        slabs: &'s Slabs<'_, R>,
        options: &CacheOptions<'_>,
    ) -> Result<Cache<'s, T, R>, CreateError> {
        let options = CacheOptions {
            size: size_of::<T>().max(1),
            align: align_of::<T>().max(8),
            ctor: None,
            ..*options
        };
        Ok(Cache {
            raw: slabs.create(&options)?,
            values: PhantomData,
        })
    }

    /// Puts a value into the cache.
    ///
    /// # Errors
    /// If there is no memory; the value is returned.
    ///
    /// # Panics
    /// If the token is one of another set of caches.
    #[allow(unsafe_code)]
    pub fn alloc<'a>(
        &'a self,
        cpu: &'a Cpu<'s, R>,
        gfp: Gfp,
        value: T,
    ) -> Result<Handle<'a, 's, T, R>, Refused<T>> {
        match self.raw.alloc(cpu, gfp - Gfp::ZERO) {
            Ok(at) => {
                let at = at.cast::<T>();
                // SAFETY: the object is new, large enough and aligned.
                unsafe { at.write(value) };
                Ok(Handle {
                    cache: self,
                    cpu,
                    at,
                })
            }
            Err(NoMemory) => Err(Refused(value)),
        }
    }

    /// The untyped cache.
    pub fn raw(&self) -> &KmemCache<'s, R> {
        &self.raw
    }

    /// Its counts.
    pub fn info(&self) -> CacheInfo {
        self.raw.info()
    }

    /// Destroys it. No handle is left, for handles borrow the cache; but one may have been forgotten.
    ///
    /// # Errors
    /// As [`KmemCache::destroy`].
    pub fn destroy(self) -> Result<(), DestroyError<'s, R>> {
        self.raw.destroy()
    }
}

/// A value in a cache, on the CPU that allocated it. Dropping it frees it there.
pub struct Handle<'a, 's, T, R: RawMutex = SpinLock> {
    cache: &'a Cache<'s, T, R>,
    cpu: &'a Cpu<'s, R>,
    at: NonNull<T>,
}

impl<'a, 's, T, R: RawMutex> Handle<'a, 's, T, R> {
    /// Lets go of the CPU, so that the value can go to another thread.
    pub fn pack(self) -> Parcel<'a, 's, T, R> {
        let this = ManuallyDrop::new(self);
        Parcel {
            cache: this.cache,
            at: this.at,
        }
    }
}

impl<R: RawMutex, T> Deref for Handle<'_, '_, T, R> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the value is the handle's.
        #[allow(unsafe_code)]
        unsafe {
            self.at.as_ref()
        }
    }
}

impl<R: RawMutex, T> DerefMut for Handle<'_, '_, T, R> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the value is the handle's.
        #[allow(unsafe_code)]
        unsafe {
            self.at.as_mut()
        }
    }
}

impl<R: RawMutex, T: fmt::Debug> fmt::Debug for Handle<'_, '_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<R: RawMutex, T> Drop for Handle<'_, '_, T, R> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the value and its object are the handle's, which goes. A checked cache
        // reports what is wrong to `Pages::fault`.
        unsafe {
            self.at.drop_in_place();
            let _ = self.cache.raw.free(self.cpu, self.at.cast());
        }
    }
}

/// A value in a cache, on no CPU. Dropping it frees it into its slab, which takes a lock; better to
/// [`unpack`](Parcel::unpack) it where it arrives.
pub struct Parcel<'a, 's, T, R: RawMutex = SpinLock> {
    cache: &'a Cache<'s, T, R>,
    at: NonNull<T>,
}

// SAFETY: the parcel owns the value, and the cache may be used from any thread.
#[allow(unsafe_code)]
unsafe impl<T: Send, R: RawMutex + Send + Sync> Send for Parcel<'_, '_, T, R> {}
// SAFETY: the parcel owns the value, which it lends if it is shared.
#[allow(unsafe_code)]
unsafe impl<T: Sync, R: RawMutex + Send + Sync> Sync for Parcel<'_, '_, T, R> {}

impl<'a, 's, T, R: RawMutex> Parcel<'a, 's, T, R> {
    /// Makes it a handle of this CPU.
    ///
    /// # Panics
    /// If the token is one of another set of caches. The value is then freed without a CPU.
    pub fn unpack(self, cpu: &'a Cpu<'s, R>) -> Handle<'a, 's, T, R> {
        cpu.check_set(self.cache.raw.set());
        let this = ManuallyDrop::new(self);
        Handle {
            cache: this.cache,
            cpu,
            at: this.at,
        }
    }
}

impl<R: RawMutex, T> Deref for Parcel<'_, '_, T, R> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the value is the parcel's.
        #[allow(unsafe_code)]
        unsafe {
            self.at.as_ref()
        }
    }
}

impl<R: RawMutex, T> Drop for Parcel<'_, '_, T, R> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the value and its object are the parcel's, which goes.
        unsafe {
            self.at.drop_in_place();
            let _ = self.cache.raw.free_without_cpu(self.at.cast());
        }
    }
}
