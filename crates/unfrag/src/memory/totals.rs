//! [`Totals`]: how many frames are free, and how few may be left.
//!
//! Invariant: no more frames are counted as free than are free in the maps. Who takes some reserves them here first, and who
//! gives some back counts them last. So the marks hold however many take at a time.

use crate::frame::Order;
use crate::memory::config::MemoryConfig;
use core::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

/// How few free frames a request may leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Floor {
    /// The min watermark.
    Min,
    Zero,
}

/// What all CPUs write, alone on its cache line.
#[repr(align(128))]
struct Line(AtomicI64);

/// The free frames of all shards, and the watermarks.
pub(crate) struct Totals {
    free: Line,
    min: i64,
    low: i64,
    short: AtomicBool,
}

// Orderings: the numbers stand for themselves, so all of them are relaxed. What is done to a frame before it is freed
// reaches who takes it through the lock of its shard.
impl Totals {
    pub fn new(config: &MemoryConfig) -> Totals {
        let mark = |frames: u64| i64::try_from(frames).unwrap_or(i64::MAX);
        Totals {
            free: Line(AtomicI64::new(0)),
            min: mark(config.min),
            low: mark(config.low.max(config.min)),
            short: AtomicBool::new(false),
        }
    }

    /// Free frames, those not counted that somebody is about to take, or has just given back.
    pub fn free(&self) -> u64 {
        self.free.0.load(Relaxed).max(0) as u64
    }

    /// Reserves up to `wanted` blocks, as many as leave `floor`: they may be taken now. Returns how many.
    #[inline]
    pub fn reserve(&self, wanted: usize, order: Order, floor: Floor) -> usize {
        let floor = match floor {
            Floor::Min => self.min,
            Floor::Zero => 0,
        };
        let mut free = self.free.0.load(Relaxed);
        loop {
            let all = free - ((wanted as i64) << order.0);
            if all < self.low && !self.short.load(Relaxed) {
                self.short.store(true, Relaxed);
            }
            let room = (free - floor).max(0) >> order.0;
            let granted = wanted.min(usize::try_from(room).unwrap_or(usize::MAX));
            if granted == 0 {
                return 0;
            }
            let left = free - ((granted as i64) << order.0);
            match self
                .free
                .0
                .compare_exchange_weak(free, left, Relaxed, Relaxed)
            {
                Ok(_) => return granted,
                Err(now) => free = now,
            }
        }
    }

    /// Counts blocks as free that were reserved and not taken, or that were given back.
    #[inline]
    pub fn add(&self, blocks: usize, order: Order) {
        if blocks > 0 {
            self.add_frames((blocks as u64) << order.0);
        }
    }

    #[inline]
    pub fn add_frames(&self, frames: u64) {
        self.free.0.fetch_add(frames as i64, Relaxed);
    }

    #[inline]
    pub fn is_short(&self) -> bool {
        self.short.load(Relaxed)
    }

    pub fn take_short(&self) -> bool {
        self.short.swap(false, Relaxed)
    }
}
