//! Creation of caches: merging with an existing one, or building.

use crate::cache::KmemCache;
use crate::options::{CacheOptions, CreateError};
use crate::plan::Plan;
use crate::sync::Ordering;
use crate::system::Slabs;

impl<'p> Slabs<'p> {
    /// Makes a cache, or with SLUB takes one with which it can share slabs: of the same properties,
    /// without constructor and checks, and larger by less than a word. `spec: 6.2`
    ///
    /// # Errors
    /// [`CreateError`], if the options are invalid or there is no memory.
    pub fn create<'s>(&'s self, options: &CacheOptions<'_>) -> Result<KmemCache<'s>, CreateError> {
        let set = self.set();
        let plan = Plan::new(set, options)?;
        let mut list = set.caches.lock();
        let mut at = list.0;
        while !at.is_null() {
            // SAFETY: caches on the list live.
            #[allow(unsafe_code)]
            let cache = unsafe { &*at };
            if plan.merges_with(set, cache) {
                cache.handles.fetch_add(1, Ordering::Relaxed);
                return Ok(KmemCache::new(set, cache));
            }
            at = cache.next.get();
        }
        let cache = plan.build(set).ok_or(CreateError::NoMemory)?;
        cache.next.set(list.0);
        list.0 = cache;
        Ok(KmemCache::new(set, cache))
    }
}
