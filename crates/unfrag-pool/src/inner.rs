//! What all users of a pool share, and the paths of an allocation and a free.

use crate::daemons::Bells;
use crate::events::Events;
use crate::memory::Memory;
use crate::movable::Handles;
use crate::owner::Owner;
use crate::record::Records;
use crate::space::{FRAME_BYTES, Space};
use crate::threads;
use parking_lot::{Condvar, Mutex, RwLock};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use unfrag::{AllocError, MigrateType, Order};

/// What a pool was told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How long an allocation waits for others to give frames back.
    pub patience: Duration,
    /// Whole free blocks of 2 MiB that kcompactd keeps ready.
    pub keep_huge: u32,
}

/// What all users of a pool share.
pub(crate) struct Inner {
    pub memory: Arc<Memory>,
    pub space: Space,
    pub records: Records,
    pub handles: Handles,
    pub owners: RwLock<Vec<Arc<dyn Owner>>>,
    pub settings: Settings,
    pub events: Events,
    pub bells: Bells,
    /// One compaction at a time.
    pub compacting: Mutex<()>,
    pub stops: AtomicBool,
    /// Allocations that wait for frames.
    waiters: AtomicU32,
    freed: (Mutex<()>, Condvar),
    /// For those who have this for as long as they like.
    pub me: Weak<Inner>,
}

/// Frames that a direct reclaim asks for in addition to those that are missing.
const RECLAIM_BATCH: usize = 32;
/// Rounds of reclaim and compaction with progress, before an allocation waits all the same.
const ROUNDS: u32 = 16;
/// A waiting allocation looks again after this, whether it was woken or not.
const LOOK: Duration = Duration::from_millis(5);

impl Inner {
    pub fn new(memory: Memory, space: Space, settings: Settings) -> Arc<Inner> {
        let numbers = memory.numbers();
        Arc::new_cyclic(|me| Inner {
            memory: Arc::new(memory),
            space,
            records: Records::new(numbers),
            handles: Handles::new(),
            owners: RwLock::default(),
            settings,
            events: Events::default(),
            bells: Bells::default(),
            compacting: Mutex::default(),
            stops: AtomicBool::new(false),
            waiters: AtomicU32::new(0),
            freed: (Mutex::default(), Condvar::new()),
            me: me.clone(),
        })
    }

    /// Takes a block, if there is one now.
    #[inline]
    pub fn try_alloc(&self, order: Order, mt: MigrateType) -> Result<u32, AllocError> {
        let got = threads::alloc(&self.memory, order, mt);
        if got.is_err() || self.memory.nodes.iter().any(|n| n.shared.is_short()) {
            self.wake(order, got.err());
        }
        got
    }

    /// Wakes the daemon that can help.
    #[cold]
    fn wake(&self, order: Order, failed: Option<AllocError>) {
        let mut short = false;
        for node in &self.memory.nodes {
            short |= node.shared.take_short();
        }
        if short || failed == Some(AllocError::Short) {
            self.bells.kswapd.ring();
        }
        if failed == Some(AllocError::Fragmented) {
            let blocks = order.frames().div_ceil(Order::HUGE.frames());
            self.bells.want_blocks(blocks);
        }
    }

    /// Takes a block. If there is none, it reclaims and compacts, and waits for others to give frames back.
    pub fn alloc(&self, order: Order, mt: MigrateType) -> Result<u32, AllocError> {
        match self.try_alloc(order, mt) {
            Err(AllocError::Short | AllocError::Fragmented) => self.alloc_slow(order, mt),
            done => done,
        }
    }

    #[cold]
    fn alloc_slow(&self, order: Order, mt: MigrateType) -> Result<u32, AllocError> {
        self.events.allocstall.add(1);
        let deadline = Instant::now() + self.settings.patience;
        let mut rounds = 0;
        loop {
            let why = match self.try_alloc(order, mt) {
                Err(why @ (AllocError::Short | AllocError::Fragmented)) => why,
                done => return done,
            };
            let progress = if why == AllocError::Fragmented {
                self.compact_for(order)
            } else {
                let wanted = order.frames() as usize + RECLAIM_BATCH;
                self.reclaim(wanted, &self.events.pgsteal_direct) > 0
            };
            rounds += 1;
            if progress && rounds % ROUNDS != 0 {
                continue;
            }
            if Instant::now() >= deadline {
                return Err(why);
            }
            self.wait_for_frames();
        }
    }

    fn compact_for(&self, order: Order) -> bool {
        if order > Order::HUGE {
            // Emptying single blocks makes no run of them.
            return false;
        }
        self.events.compact_stall.add(1);
        let gained = self.compact(1, crate::compact::DIRECT) > 0;
        let outcome = if gained {
            &self.events.compact_success
        } else {
            &self.events.compact_fail
        };
        outcome.add(1);
        gained
    }

    /// Has owners let go of frames. Returns how many they gave back.
    pub fn reclaim(&self, frames: usize, count: &crate::events::Counter) -> usize {
        let owners: Vec<Arc<dyn Owner>> = self.owners.read().clone();
        let mut got = 0;
        for (i, owner) in owners.iter().enumerate() {
            let fair = frames.saturating_sub(got).div_ceil(owners.len() - i);
            got += owner.reclaim(fair);
            if got >= frames {
                break;
            }
        }
        // What this thread keeps of it is for all.
        threads::flush(&self.memory);
        count.add(got as u64);
        got
    }

    fn wait_for_frames(&self) {
        self.waiters.fetch_add(1, Relaxed);
        let mut lock = self.freed.0.lock();
        self.freed.1.wait_for(&mut lock, LOOK);
        drop(lock);
        self.waiters.fetch_sub(1, Relaxed);
    }

    /// Gives a block back.
    #[inline]
    pub fn free(&self, frame: u32, order: Order, mt: MigrateType) {
        threads::free(&self.memory, frame, order, mt);
        if self.waiters.load(Relaxed) > 0 {
            self.wake_waiters();
        }
    }

    #[cold]
    fn wake_waiters(&self) {
        threads::flush(&self.memory);
        self.freed.1.notify_all();
    }

    /// The bytes of a block.
    ///
    /// # Safety
    /// The caller has the block, it does not move meanwhile, and nobody writes to it.
    #[inline]
    #[allow(unsafe_code)]
    pub unsafe fn bytes(&self, frame: u32, order: Order) -> &[u8] {
        let at = self.space.at(frame);
        // SAFETY: usable memory, as the caller has the block.
        unsafe { std::slice::from_raw_parts(at.as_ptr(), FRAME_BYTES << order.0) }
    }

    /// The bytes of a block, to write to.
    ///
    /// # Safety
    /// The caller alone has the block, and it does not move meanwhile.
    #[inline]
    #[allow(unsafe_code, clippy::mut_from_ref)]
    pub unsafe fn bytes_mut(&self, frame: u32, order: Order) -> &mut [u8] {
        let at = self.space.at(frame);
        // SAFETY: usable memory, as the caller has the block.
        unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), FRAME_BYTES << order.0) }
    }
}
