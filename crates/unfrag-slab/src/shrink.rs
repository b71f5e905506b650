//! Shrinkers: owners of objects that can be freed register here, and reclaim asks them to.
//! `spec: 4.1`
//!
//! Each call adds `4 × scanned / seeks × objects / (lru_pages + 1)` to what the shrinker still has to
//! scan, capped at twice its objects, and scans in batches of 128.

use crate::lock::Locked;
use crate::memory::Memory;
use core::ptr::{NonNull, null_mut};
use unfrag::Gfp;

/// Objects scanned at a time.
pub const SHRINK_BATCH: u64 = 128;
/// Default cost of making an object again (`DEFAULT_SEEKS`).
pub const DEFAULT_SEEKS: u32 = 2;

/// An owner of objects that can be freed when reclaim asks. It is called by
/// [`Slabs::shrink_slab`](crate::Slabs::shrink_slab) alone, with no lock of the caches held.
pub trait Shrinker: Sync {
    /// Objects that could be freed.
    fn count(&self) -> u64;
    /// Scans `n` of them and frees what can be freed. Returns how many were freed; `None` if it cannot free now.
    fn scan(&self, n: u64, gfp: Gfp) -> Option<u64>;
    /// Cost of making an object again; the higher, the fewer are freed.
    fn seeks(&self) -> u32 {
        DEFAULT_SEEKS
    }
}

/// Number of a registered shrinker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShrinkerId(u64);

/// A registered shrinker, in the bootstrap cache.
struct Entry {
    next: *mut Entry,
    id: u64,
    shrinker: &'static dyn Shrinker,
    /// Objects still to be scanned.
    pending: u64,
}

struct Registered {
    first: *mut Entry,
    count: u64,
}

// SAFETY: entries are reached under the lock alone, and shrinkers are `Sync`.
#[allow(unsafe_code)]
unsafe impl Send for Registered {}

/// All registered shrinkers.
pub(crate) struct Shrinkers(Locked<Registered>);

/// What [`Slabs::shrink_slab`](crate::Slabs::shrink_slab) did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShrinkResult {
    /// Objects looked at.
    pub scanned: u64,
    /// Objects freed.
    pub freed: u64,
}

/// Objects that a shrinker has to scan after a pass over the LRU lists. `spec: 4.1`
pub fn shrink_target(pending: u64, scanned: u64, lru_pages: u64, objects: u64, seeks: u32) -> u64 {
    let delta = 4 * scanned / u64::from(seeks.max(1));
    let delta = u128::from(delta) * u128::from(objects) / (u128::from(lru_pages) + 1);
    let total = u128::from(pending) + delta;
    total.min(2 * u128::from(objects)) as u64
}

impl Shrinkers {
    pub fn new() -> Shrinkers {
        Shrinkers(Locked::new(Registered {
            first: null_mut(),
            count: 0,
        }))
    }

    /// Its lock.
    pub fn raw_lock(&self) -> &Locked<impl Sized> {
        &self.0
    }

    /// Forgets all.
    pub fn clear(&self, memory: &Memory) {
        let mut all = self.0.lock();
        while let Some(at) = NonNull::new(all.first) {
            // SAFETY: entries on the list live; this one leaves it.
            #[allow(unsafe_code)]
            unsafe {
                all.first = at.as_ref().next;
                memory.free_record(at.cast(), size_of::<Entry>());
            }
        }
    }

    /// The shrinker after the one with number `after`, the youngest first, and what it has to scan.
    fn after(&self, after: Option<u64>) -> Option<(u64, &'static dyn Shrinker, u64)> {
        let all = self.0.lock();
        let mut at = all.first;
        // SAFETY: entries on the list live.
        #[allow(unsafe_code)]
        while let Some(e) = unsafe { at.as_ref() } {
            if after.is_none_or(|a| e.id < a) {
                return Some((e.id, e.shrinker, e.pending));
            }
            at = e.next;
        }
        None
    }

    fn set_pending(&self, id: u64, pending: u64) {
        let all = self.0.lock();
        let mut at = all.first;
        // SAFETY: entries on the list live, and the lock is held.
        #[allow(unsafe_code)]
        while let Some(e) = unsafe { at.as_mut() } {
            if e.id == id {
                e.pending = pending;
                return;
            }
            at = e.next;
        }
    }

    /// Registers a shrinker; `None` if there is no memory for its record.
    #[allow(unsafe_code)]
    pub fn register(&self, memory: &Memory, shrinker: &'static dyn Shrinker) -> Option<ShrinkerId> {
        let at = memory.alloc_record(size_of::<Entry>(), Gfp::KERNEL, 0)?;
        let mut all = self.0.lock();
        all.count += 1;
        let entry = Entry {
            next: all.first,
            id: all.count,
            shrinker,
            pending: 0,
        };
        let at = at.cast::<Entry>();
        // SAFETY: the record is large enough and ours.
        unsafe { at.write(entry) };
        all.first = at.as_ptr();
        Some(ShrinkerId(all.count))
    }

    /// Forgets a shrinker; false if it is not registered.
    #[allow(unsafe_code)]
    pub fn unregister(&self, memory: &Memory, id: ShrinkerId) -> bool {
        let mut all = self.0.lock();
        let mut link: *mut *mut Entry = &raw mut all.first;
        // SAFETY: links lead to entries that live, under the lock.
        unsafe {
            while let Some(at) = NonNull::new(*link) {
                if at.as_ref().id == id.0 {
                    *link = at.as_ref().next;
                    memory.free_record(at.cast(), size_of::<Entry>());
                    return true;
                }
                link = &raw mut (*at.as_ptr()).next;
            }
        }
        false
    }

    /// Asks every shrinker for its share.
    pub fn shrink(&self, scanned: u64, lru_pages: u64, gfp: Gfp) -> ShrinkResult {
        let mut done = ShrinkResult::default();
        let mut last = None;
        while let Some((id, shrinker, pending)) = self.after(last) {
            last = Some(id);
            let objects = shrinker.count();
            let seeks = shrinker.seeks();
            let mut total = shrink_target(pending, scanned, lru_pages, objects, seeks);
            while total >= SHRINK_BATCH {
                let Some(freed) = shrinker.scan(SHRINK_BATCH, gfp) else {
                    break;
                };
                total -= SHRINK_BATCH;
                done.scanned += SHRINK_BATCH;
                done.freed += freed;
            }
            self.set_pending(id, total);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: 4.1`
    #[test]
    fn share_of_a_shrinker() {
        // 4 × 1000 / 2 × 500 / (9999 + 1) = 100.
        assert_eq!(shrink_target(0, 1000, 9999, 500, 2), 100);
        assert_eq!(
            shrink_target(30, 1000, 9999, 500, 2),
            130,
            "what is pending adds up"
        );
        assert_eq!(
            shrink_target(0, 1 << 40, 0, 500, 2),
            1000,
            "capped at twice the objects"
        );
        assert_eq!(shrink_target(5, 0, 100, 0, 2), 0);
    }
}
