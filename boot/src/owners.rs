//! Who has a frame: a word for each frame, so that a frame leads to whoever can move it; and who gives some back.
//!
//! Invariant: a frame names its owner while the owner holds it and it may be moved; the owner's lock guards the change.

use crate::memory_map::MemoryMap;
use crate::once::Once;
use core::sync::atomic::AtomicU64;
use unfrag::owners::{Owned, OwnerId, Owners, Roster};
use unfrag::{Order, Pfn};

/// An owner of movable frames, and its name for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A page of an address space: the number of the space, and the number of the page in it.
    Space(u16, u32),
    /// A page of the page cache: its number.
    Cache(u32),
}

/// The page cache. The spaces follow.
const CACHE: OwnerId = OwnerId(0);

impl Owner {
    fn owned(self) -> Owned {
        let (owner, tag) = match self {
            Owner::Space(id, page) => (OwnerId(id + 1), page),
            Owner::Cache(page) => (CACHE, page),
        };
        let order = Order(0);
        Owned { owner, order, tag }
    }

    fn of(owned: Owned) -> Owner {
        match owned.owner.0.checked_sub(1) {
            Some(id) => Owner::Space(id, owned.tag),
            None => Owner::Cache(owned.tag),
        }
    }
}

static TABLE: Once<Owners<&'static [AtomicU64]>> = Once::new();
/// Who can be asked for frames: the page cache alone.
pub static ROSTER: Roster<[AtomicU64; 1]> = Roster::new([const { AtomicU64::new(0) }]);

/// Carves the table out of the map.
pub fn init(map: &mut MemoryMap, from: u64) {
    let frames = map.end() as usize;
    // SAFETY: Zeros are words of nobody.
    let words = unsafe { map.carve(from, frames) };
    TABLE.set(Owners::new(Pfn(0), words));
    assert_eq!(ROSTER.add(), Ok(CACHE));
}

/// Frames that may have an owner: all from 0 up to this one.
pub fn frames() -> u64 {
    TABLE.get().frames()
}

/// The owner of a frame.
pub fn of(pfn: Pfn) -> Option<Owner> {
    TABLE.get().get(pfn).map(Owner::of)
}

/// The frame is this owner's from now on.
pub fn set(pfn: Pfn, owner: Owner) {
    let set = TABLE.get().set(pfn, owner.owned());
    set.expect("a frame of the machine");
}

/// Nobody has the frame any more.
pub fn clear(pfn: Pfn) {
    TABLE.get().clear(pfn);
}

/// What an owner has in a frame is in another one from now on.
pub fn moved(from: Pfn, to: Pfn, owner: Owner) {
    let moved = TABLE.get().moved(from, to, owner.owned());
    moved.expect("the owner's lock guards its frames");
}
