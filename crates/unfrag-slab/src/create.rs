//! Creation of caches: merging with an existing one, or building.
//!
//! Invariant: the list of caches is not locked while the records of a cache are allocated.

use crate::cache::KmemCache;
use crate::destroy::free_records;
use crate::options::{CacheOptions, CreateError};
use crate::plan::Plan;
use crate::set::{CacheList, Set};
use crate::sync::Ordering;
use crate::system::Slabs;
use lock_api::RawMutex;

impl<R: RawMutex> Slabs<'_, R> {
    /// Makes a cache, or with SLUB takes one with which it can share slabs: of the same properties,
    /// without constructor and checks, and larger by less than a word. `spec: 6.2`
    ///
    /// # Errors
    /// [`CreateError`], if the options are invalid or there is no memory.
    pub fn create<'s>(
        &'s self,
        options: &CacheOptions<'_>,
    ) -> Result<KmemCache<'s, R>, CreateError> {
        let set = self.set();
        let plan = Plan::new(set, options)?;
        let found = shared(set, &plan, &set.caches.lock());
        if let Some(cache) = found {
            return Ok(cache);
        }
        let new = plan.build(set).ok_or(CreateError::NoMemory)?;
        let mut list = set.caches.lock();
        // Another CPU may have made such a cache meanwhile.
        if let Some(cache) = shared(set, &plan, &list) {
            drop(list);
            // SAFETY: the new one is on no list, and nobody has it.
            #[allow(unsafe_code)]
            unsafe {
                free_records(set, new);
            }
            return Ok(cache);
        }
        list.link(new);
        Ok(KmemCache::new(set, new))
    }
}

/// A handle to a cache of the list that serves as well.
fn shared<'s, R: RawMutex>(
    set: &'s Set<R>,
    plan: &Plan,
    list: &CacheList<R>,
) -> Option<KmemCache<'s, R>> {
    // SAFETY: caches on the list live.
    #[allow(unsafe_code)]
    let cache = list
        .iter()
        .find(|c| plan.merges_with(set, unsafe { c.as_ref() }))?;
    // SAFETY: as above.
    #[allow(unsafe_code)]
    let handles = &unsafe { cache.as_ref() }.handles;
    // Relaxed: the list's lock, which the caller holds, orders what handles do.
    handles.fetch_add(1, Ordering::Relaxed);
    Some(KmemCache::new(set, cache))
}
