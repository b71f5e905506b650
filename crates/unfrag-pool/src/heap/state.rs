//! The state of the heap, made at the first request, in memory of its own, for as long as the process lives.

use super::big::Big;
use super::depot::Depot;
use super::fork;
use super::fronts::Fronts;
use super::ground::leak;
use super::pages::HeapPages;
use super::store::Store;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use unfrag_slab::{CacheFlags, Design, Kmalloc, Rules, Sizes, SlabConfig, Slabs, SlubRules};

/// All of the heap.
pub(super) struct State {
    pub fronts: Fronts,
    pub store: Store,
    pub big: Big,
}

static STATE: AtomicPtr<State> = AtomicPtr::new(null_mut());

/// Nobody has begun to make the state; somebody has; it cannot be made.
const NOT_BEGUN: u32 = 0;
const BEGUN: u32 = 1;
const FAILED: u32 = 2;
static PROGRESS: AtomicU32 = AtomicU32::new(NOT_BEGUN);

impl State {
    /// The state; `None` if the system has no memory for it.
    #[inline(always)]
    pub fn get() -> Option<&'static State> {
        // Pairs with the store in `make`: who finds the state finds it complete.
        // SAFETY: it is null, or what `make` leaked.
        match unsafe { STATE.load(Ordering::Acquire).as_ref() } {
            Some(state) => Some(state),
            None => State::make(),
        }
    }

    #[cold]
    #[inline(never)]
    fn make() -> Option<&'static State> {
        // The state itself is found through `STATE`, so this word orders nothing: one of all threads begins.
        let begun =
            PROGRESS.compare_exchange(NOT_BEGUN, BEGUN, Ordering::Relaxed, Ordering::Relaxed);
        if begun.is_ok() {
            match State::new().and_then(leak) {
                Some(state) => {
                    fork::guard(&state.fronts, &state.store, &state.big);
                    // Pairs with the loads here and in `get`.
                    STATE.store(std::ptr::from_ref(state).cast_mut(), Ordering::Release);
                    fork::watch();
                }
                None => PROGRESS.store(FAILED, Ordering::Relaxed),
            }
        }
        loop {
            // SAFETY: as in `get`.
            if let Some(state) = unsafe { STATE.load(Ordering::Acquire).as_ref() } {
                return Some(state);
            }
            if PROGRESS.load(Ordering::Relaxed) == FAILED {
                return None;
            }
            std::thread::yield_now();
        }
    }

    /// Gives up what this thread and the depot keep, and has empty slabs give their pages back.
    pub fn shrink(&'static self) {
        if let Some(front) = self.fronts.own(&self.store) {
            front.empty();
        }
        self.store.give_up_shared();
    }

    fn new() -> Option<State> {
        let pages = leak(HeapPages::new()?)?;
        let slub = SlubRules::V6.min_objects(4).max_order(3);
        let rules = Rules::MODERN.slub(slub);
        let config = SlabConfig::new(1).rules(rules);
        // SAFETY: the table is new memory of the system, and the caches alone use it.
        let slabs = unsafe { Slabs::with_new_table(pages, pages.slab_table(), &config) };
        let slabs: &'static Slabs<'static> = leak(slabs.ok()?)?;
        let flags = CacheFlags::empty();
        let sizes = Kmalloc::with_sizes(slabs, Design::Slub, flags, Sizes::Fine);
        Some(State {
            fronts: Fronts::new(),
            store: Store {
                secret: pages.secret,
                depot: Depot::new()?,
                pages,
                slabs,
                sizes: sizes.ok()?,
                cpu: Mutex::new(slabs.cpu(0).ok()?),
            },
            big: Big::new(),
        })
    }
}
