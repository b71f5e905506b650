//! Options of a new cache, and the reasons why it is refused.

use crate::object::{CacheFlags, Constructor};
use crate::rules::Design;
use core::fmt;

/// Options of a new cache. Start with [`CacheOptions::new`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CacheOptions<'n> {
    /// Name, 1 to 31 bytes.
    pub name: &'n str,
    /// Bytes of an object; at least 1.
    pub size: usize,
    /// Alignment in bytes, a power of two up to a page; 8 at least.
    pub align: usize,
    /// Properties.
    pub flags: CacheFlags,
    /// Makes a new object ready; see [`ctor`](CacheOptions::ctor).
    pub(crate) ctor: Option<Constructor>,
    /// Design; `None` takes that of the rules.
    pub design: Option<Design>,
}

impl<'n> CacheOptions<'n> {
    /// A cache without properties.
    pub const fn new(name: &'n str, size: usize) -> CacheOptions<'n> {
        CacheOptions {
            name,
            size,
            align: 8,
            flags: CacheFlags::empty(),
            ctor: None,
            design: None,
        }
    }
    /// Of another design than the rules say.
    #[must_use]
    pub const fn design(mut self, design: Design) -> CacheOptions<'n> {
        self.design = Some(design);
        self
    }
    /// With properties.
    #[must_use]
    pub const fn flags(mut self, flags: CacheFlags) -> CacheOptions<'n> {
        self.flags = flags;
        self
    }
    /// With objects at multiples of so many bytes, a power of two up to a page.
    #[must_use]
    pub const fn align(mut self, align: usize) -> CacheOptions<'n> {
        self.align = align;
        self
    }
    /// With objects that are made ready when their slab is made.
    ///
    /// # Safety
    /// The constructor writes to its object alone, leaves it as every user of the cache expects it, and does not use a
    /// cache of the set with a CPU's token: its caller is in the midst of using one.
    #[must_use]
    #[allow(unsafe_code)]
    pub const unsafe fn ctor(mut self, ctor: Constructor) -> CacheOptions<'n> {
        self.ctor = Some(ctor);
        self
    }
}

/// Why a cache was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreateError {
    /// The name is empty, longer than 31 bytes, or has control characters.
    Name,
    /// An object has no byte, or does not fit the largest block (4 MiB) with what belongs to it.
    Size(usize),
    /// The alignment is no power of two, or above a page.
    Align(usize),
    /// No page for the cache's records.
    NoMemory,
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CreateError::Name => {
                f.write_str("the name of a slab cache has 1 to 31 bytes and no control characters")
            }
            CreateError::Size(n) => write!(
                f,
                "slab objects of {n} bytes: they must have 1 byte at least, and fit 4 MiB with \
                 their red zones"
            ),
            CreateError::Align(n) => write!(
                f,
                "slab objects aligned to {n} bytes: it must be a power of two up to 4096"
            ),
            CreateError::NoMemory => f.write_str("no page for the records of a slab cache"),
        }
    }
}

impl core::error::Error for CreateError {}
