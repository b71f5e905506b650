//! Slab objects: how many of each cache a program took, and how many it kept.
//!
//! Invariant: of each cache, `taken = freed + held`.

use super::zero::is_zero;
use serde::{Deserialize, Serialize};

/// Objects of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objects {
    /// Name of the cache, as slabinfo has it where the recording holds that; else `kmalloc-` and a size for memory by size,
    /// `?-` and a size where nothing says.
    pub cache: String,
    /// Bytes of an object.
    pub object_bytes: u64,
    /// Allocated.
    pub taken: u64,
    /// Of these, freed.
    pub freed: u64,
    /// Of these, in use at the end of the recording.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held: u64,
    /// Most at one time.
    pub high_water: u64,
}

/// Leaves out caches with less than a hundredth of all objects.
pub fn keep_most(objects: &mut Vec<Objects>) {
    let all: u64 = objects.iter().map(|o| o.taken).sum();
    objects.retain(|o| o.taken >= all / 100);
}
