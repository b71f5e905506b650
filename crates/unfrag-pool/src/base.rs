//! What every block of a pool needs to exist, and to be given back.

use crate::book::Book;
use crate::handles::HANDLES;
use crate::memory::Memory;
use crate::space::{FRAME_BYTES, Space};
use crate::threads;
use crate::zeros::zeros;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use unfrag::owners::{Owners, Roster};
use unfrag::{MigrateType, Order, Pfn};

/// A waiting allocation looks again after this, whether it was woken or not.
const LOOK: Duration = Duration::from_millis(5);

/// What every block needs.
pub(crate) struct Base {
    pub memory: Arc<Memory>,
    pub space: Space,
    /// Who has a frame, that can move it.
    pub records: Owners<Box<[AtomicU64]>>,
    /// The owners that can be asked for frames; their numbers are below that of all handles.
    pub roster: Roster<Box<[AtomicU64]>>,
    /// Blocks that are out by address.
    pub book: Book,
    /// Allocations that wait for frames.
    waiters: AtomicU32,
    freed: (Mutex<()>, Condvar),
}

impl Base {
    pub fn new(memory: Memory, space: Space) -> Base {
        Base {
            records: Owners::new(Pfn(0), zeros(memory.numbers() as usize)),
            roster: Roster::new(zeros(HANDLES.0.into())),
            book: Book::new(memory.numbers()),
            memory: Arc::new(memory),
            space,
            waiters: AtomicU32::new(0),
            freed: (Mutex::default(), Condvar::new()),
        }
    }

    /// Waits for frames that others give back, for a short time.
    pub fn wait_for_frames(&self) {
        // Whoever frees a block meanwhile may miss this: the wait is short for that reason, and no order is needed.
        self.waiters.fetch_add(1, Relaxed);
        let mut lock = self.freed.0.lock();
        self.freed.1.wait_for(&mut lock, LOOK);
        drop(lock);
        self.waiters.fetch_sub(1, Relaxed);
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// The caller has the block, and nobody uses it any more.
    #[inline]
    #[allow(unsafe_code)]
    pub unsafe fn free(&self, frame: u32, order: Order, mt: MigrateType) {
        // SAFETY: as the caller says.
        unsafe { threads::free(&self.memory, frame, order, mt) };
        if self.waiters.load(Relaxed) > 0 {
            // They drain what this thread keeps of it.
            self.freed.1.notify_all();
        }
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
