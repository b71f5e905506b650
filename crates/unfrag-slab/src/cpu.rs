//! The token of a CPU: the right to use that CPU's lists.
//!
//! A [`Cpu`] is claimed once, and can be moved between threads but not shared, so a reference
//! to it gives access to that CPU's lists without an atomic operation. A process gives each thread
//! one; the simulated machine holds all of them and uses that of the CPU it is on.

use crate::lock::SpinLock;
use crate::map::DirectMap;
use crate::set::Set;
use core::cell::Cell;
use core::marker::PhantomData;
use lock_api::RawMutex;

/// Why there is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuError {
    /// There is no such CPU.
    NoSuchCpu(u16),
    /// Its token is claimed already.
    Taken(u16),
    /// The tokens of all CPUs are claimed.
    AllTaken,
}

impl core::fmt::Display for CpuError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            CpuError::NoSuchCpu(c) => write!(f, "there is no CPU {c}; see SlabConfig::cpus"),
            CpuError::Taken(c) => write!(f, "the token of CPU {c} is out; drop it first"),
            CpuError::AllTaken => f.write_str("the tokens of all CPUs are out; drop one first"),
        }
    }
}

impl core::error::Error for CpuError {}

/// The token of a CPU of one set of caches. Dropping it lets another thread be that CPU; what the
/// CPU's lists hold stays there.
pub struct Cpu<'s, R: RawMutex = SpinLock> {
    set: &'s Set<R>,
    pub(crate) map: DirectMap<R>,
    id: u16,
    not_sync: PhantomData<Cell<()>>,
}

// SAFETY: the token may move to another thread, which is that CPU from then on.
#[allow(unsafe_code)]
unsafe impl<R: RawMutex + Send + Sync> Send for Cpu<'_, R> {}

impl<'s, R: RawMutex> Cpu<'s, R> {
    pub(crate) fn claim(set: &'s Set<R>, id: u16) -> Result<Cpu<'s, R>, CpuError> {
        if id >= set.cpus {
            return Err(CpuError::NoSuchCpu(id));
        }
        if !set.claim(id) {
            return Err(CpuError::Taken(id));
        }
        Ok(Cpu {
            set,
            map: *set.map(),
            id,
            not_sync: PhantomData,
        })
    }
    /// Its number.
    #[inline]
    pub fn id(&self) -> u16 {
        self.id
    }
    /// Its node.
    pub fn node(&self) -> u8 {
        (self.set.node_of_cpu)(self.id)
    }
    /// Checks that it is a token of this set.
    ///
    /// # Panics
    /// If it is one of another.
    #[inline(always)]
    pub(crate) fn check_set(&self, set: &Set<R>) {
        if !core::ptr::eq(self.set, set) {
            foreign_cpu();
        }
    }
    #[inline(always)]
    pub(crate) fn set(&self) -> &'s Set<R> {
        self.set
    }
}

impl<R: RawMutex> Drop for Cpu<'_, R> {
    fn drop(&mut self) {
        self.set.release(self.id);
    }
}

impl<R: RawMutex> core::fmt::Debug for Cpu<'_, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        write!(f, "Cpu({})", self.id)
    }
}

#[cold]
#[inline(never)]
fn foreign_cpu() -> ! {
    panic!("the CPU's token belongs to another set of slab caches")
}
