//! [`Totals`]: how many frames of a node are free, and how few may be left.
//!
//! Invariant: no more frames are counted as free than are free in the maps. Who takes some reserves them here first, and who
//! gives some back counts them last. So the marks hold however many take at a time.

use super::config::Marks;
use crate::frame::Order;
use core::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

/// How few free frames a request may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floor {
    /// The min watermark.
    Min,
    Zero,
}

/// What all CPUs write, alone on its cache lines.
#[repr(align(128))]
struct Line(AtomicI64);

/// The free frames of all shards of a node, and its watermarks.
pub(crate) struct Totals {
    free: Line,
    min: AtomicI64,
    low: AtomicI64,
    high: AtomicI64,
    short: AtomicBool,
}

/// A watermark as it is compared.
const fn mark(frames: u64) -> i64 {
    if frames > i64::MAX as u64 {
        i64::MAX
    } else {
        frames as i64
    }
}

// Orderings: the numbers stand for themselves, so all of them are relaxed. What is done to a frame before it is freed
// reaches who takes it through the lock of its shard.
impl Totals {
    pub const fn new(marks: Marks) -> Totals {
        Totals {
            free: Line(AtomicI64::new(0)),
            min: AtomicI64::new(mark(marks.min)),
            low: AtomicI64::new(mark(marks.low)),
            high: AtomicI64::new(mark(marks.high)),
            short: AtomicBool::new(false),
        }
    }

    pub fn set_marks(&self, marks: Marks) {
        self.min.store(mark(marks.min), Relaxed);
        self.low.store(mark(marks.low), Relaxed);
        self.high.store(mark(marks.high), Relaxed);
    }

    pub fn marks(&self) -> Marks {
        let of = |mark: &AtomicI64| mark.load(Relaxed).max(0) as u64;
        Marks {
            min: of(&self.min),
            low: of(&self.low),
            high: of(&self.high),
        }
    }

    /// Free frames, those not counted that somebody is about to take, or has just given back.
    pub fn free(&self) -> u64 {
        self.free.0.load(Relaxed).max(0) as u64
    }

    /// Reserves up to `wanted` blocks, as many as leave `floor`: they may be taken now. Returns how many.
    #[inline]
    pub fn reserve(&self, wanted: usize, order: Order, floor: Floor) -> usize {
        let min = self.min.load(Relaxed);
        let low = self.low.load(Relaxed).max(min);
        let floor = match floor {
            Floor::Min => min,
            Floor::Zero => 0,
        };
        let mut free = self.free.0.load(Relaxed);
        loop {
            let all = free - ((wanted as i64) << order.0);
            if all < low && !self.short.load(Relaxed) {
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

    /// Reserves so many frames, if they leave `floor`. Nothing has changed otherwise, for however short a time.
    pub fn reserve_all(&self, frames: u64, floor: Floor) -> bool {
        let frames = mark(frames);
        let min = self.min.load(Relaxed);
        let low = self.low.load(Relaxed).max(min);
        let floor = match floor {
            Floor::Min => min,
            Floor::Zero => 0,
        };
        let may = |free: i64| {
            if free.saturating_sub(frames) < low {
                self.short.store(true, Relaxed);
            }
            let left = free.saturating_sub(frames);
            (frames == 0 || left >= floor).then_some(left)
        };
        self.free.0.fetch_update(Relaxed, Relaxed, may).is_ok()
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
