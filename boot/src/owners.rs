//! Who has a frame: a word for each frame, so that a frame leads to whoever can move it.
//!
//! Invariant: a frame names its owner while the owner holds it and it may be moved; the owner's lock guards the change.

use crate::memory_map::MemoryMap;
use crate::once::Once;
use core::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use unfrag::Pfn;

/// An owner of movable frames, and its name for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A page of an address space: the number of the space, and the number of the page in it.
    Space(u16, u32),
    /// A page of the page cache: its number.
    Cache(u32),
}

impl Owner {
    fn word(self) -> u64 {
        match self {
            Owner::Space(id, page) => 1 << 63 | u64::from(id) << 32 | u64::from(page),
            Owner::Cache(page) => 1 << 62 | u64::from(page),
        }
    }

    fn of(word: u64) -> Option<Owner> {
        match word >> 62 {
            2 => Some(Owner::Space((word >> 32) as u16, word as u32)),
            1 => Some(Owner::Cache(word as u32)),
            _ => None,
        }
    }
}

static TABLE: Once<&'static [AtomicU64]> = Once::new();

/// Carves the table out of the map.
pub fn init(map: &mut MemoryMap, from: u64) {
    let frames = map.end() as usize;
    // SAFETY: Zeros are words of nobody.
    TABLE.set(unsafe { map.carve(from, frames) });
}

/// Frames that may have an owner: all from 0 up to this one.
pub fn frames() -> u64 {
    TABLE.get().len() as u64
}

/// The owner of a frame.
pub fn of(pfn: Pfn) -> Option<Owner> {
    Owner::of(TABLE.get().get(pfn.0 as usize)?.load(Acquire))
}

/// The frame is this owner's, or nobody's.
pub fn set(pfn: Pfn, owner: Option<Owner>) {
    let word = owner.map_or(0, Owner::word);
    TABLE.get()[pfn.0 as usize].store(word, Release);
}
