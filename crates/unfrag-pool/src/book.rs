//! The book of the blocks that callers have by address, in debug builds.
//!
//! Invariant: the entry of the first frame of such a block is its order plus one; all others are 0.
//!
//! Whoever frees a block has its address from whoever took it, which orders the two; an entry orders nothing else.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use unfrag::Order;
use unfrag::maps::LARGEST_ORDER;

/// The orders of the blocks that are out, plus one, at the first frame of each. Only debug builds have entries.
pub(crate) struct Book(Box<[AtomicU8]>);

impl Book {
    pub fn new(frames: u32) -> Book {
        let entries = if cfg!(debug_assertions) {
            frames as usize
        } else {
            0
        };
        let bytes = Box::into_raw(vec![0_u8; entries].into_boxed_slice());
        // SAFETY: an atomic byte has the layout of a byte, and the box owns them.
        Book(unsafe { Box::from_raw(bytes as *mut [AtomicU8]) })
    }

    pub fn take(&self, frame: u32, order: Order) {
        if let Some(entry) = self.0.get(frame as usize) {
            entry.store(order.0 + 1, Relaxed);
        }
    }

    /// The block that holds a frame behind its first one: its first frame and its order.
    fn block_around(&self, frame: u32) -> Option<(u32, u8)> {
        let orders = 1..=LARGEST_ORDER.0;
        let mut heads = orders.map(|o| (frame & !((1 << o) - 1), o));
        heads
            .find(|&(head, o)| self.0[head as usize].load(Relaxed) > o)
            .map(|(head, _)| (head, self.0[head as usize].load(Relaxed) - 1))
    }

    /// The block goes back.
    ///
    /// # Panics
    /// If it is not out at this order.
    #[track_caller]
    pub fn give(&self, frame: u32, order: Order) {
        let Some(entry) = self.0.get(frame as usize) else {
            return;
        };
        match entry.swap(0, Relaxed) {
            0 => match self.block_around(frame) {
                Some((head, order)) => panic!(
                    "misuse of free_raw: frame {frame:#x} is inside of the block of order {order} at frame {head:#x}"
                ),
                None => panic!(
                    "misuse of free_raw: frame {frame:#x} is freed twice, or was never allocated"
                ),
            },
            was if was != order.0 + 1 => panic!(
                "misuse of free_raw: the block at frame {frame:#x} was allocated at order {} and is freed at order {}",
                was - 1,
                order.0
            ),
            _ => {}
        }
    }
}
