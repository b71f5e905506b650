//! Faults: misuses of a cache's memory, with the names of cache and object.

use core::fmt;

/// Most bytes of a cache's name.
pub const MAX_NAME: usize = 31;

/// Name of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    bytes: [u8; MAX_NAME],
    len: u8,
}

impl Name {
    /// A name of 1 to 31 bytes without control characters; `None` for any other.
    pub fn new(name: &str) -> Option<Name> {
        let fits = (1..=MAX_NAME).contains(&name.len()) && !name.chars().any(char::is_control);
        fits.then(|| {
            let mut bytes = [0; MAX_NAME];
            bytes[..name.len()].copy_from_slice(name.as_bytes());
            Name {
                bytes,
                len: name.len() as u8,
            }
        })
    }
    /// As text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or("?")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// What is wrong with an object, or with the call that frees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The address is in no slab.
    NotInASlab,
    /// The object belongs to another cache.
    OtherCache(Name),
    /// No object of the cache begins at the address.
    NotAnObject,
    /// The object is free already.
    DoubleFree,
    /// The word before the object was overwritten.
    RedZoneBefore,
    /// The word behind the object was overwritten.
    RedZoneBehind,
    /// The free object was written to, first at this byte of it.
    WrittenAfterFree(u32),
    /// The word that says whether the object is free was overwritten.
    State,
    /// The link of the free object to the next one was overwritten.
    Link,
}

/// A misuse of a cache's memory. It is reported to [`Pages::fault`](crate::Pages::fault) when it is found, and
/// returned to the caller that frees the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The cache that noticed.
    pub cache: Name,
    /// Address of the object.
    pub object: usize,
    /// What is wrong.
    pub kind: FaultKind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Fault {
            cache,
            object,
            kind,
        } = self;
        write!(f, "slab cache {cache}, object {object:#x}: ")?;
        match kind {
            FaultKind::NotInASlab => f.write_str("it is in no slab of these caches"),
            FaultKind::OtherCache(other) => {
                write!(f, "it belongs to the cache {other}; free it there")
            }
            FaultKind::NotAnObject => f.write_str("no object of this cache begins there"),
            FaultKind::DoubleFree => f.write_str("it is freed, but was free already"),
            FaultKind::RedZoneBefore => f.write_str("someone wrote before its beginning"),
            FaultKind::RedZoneBehind => f.write_str("someone wrote beyond its end"),
            FaultKind::WrittenAfterFree(at) => {
                write!(f, "someone wrote to it after it was freed, at byte {at}")
            }
            FaultKind::Link => {
                f.write_str("someone wrote to it when it was free, over its link to the next")
            }
            FaultKind::State => f.write_str("someone overwrote the word that says if it is free"),
        }
    }
}

impl core::error::Error for Fault {}
