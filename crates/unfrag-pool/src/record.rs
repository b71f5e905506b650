//! Who owns a frame: a word for each frame of the pool, which is zero for those that nobody can move.
//!
//! Invariant: the first frame of a block that an owner has names the owner, its tag, and the order; no other word does.
//!
//! A word says all by itself, and is only a hint: whether the block is there is known by the word of its handle, or by the
//! value that its owner has. So no order between a word and other memory is needed. That a new block's word is not seen
//! after the block has gone follows from how frames change hands: through a lock of their shard, or on one thread.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use unfrag::Order;

/// The owner of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Number of the owner.
    pub owner: u16,
    /// What the owner calls the block.
    pub tag: u32,
    pub order: Order,
}

impl Record {
    fn word(self) -> u64 {
        let order = u64::from(self.order.0) + 1;
        order << 48 | u64::from(self.owner) << 32 | u64::from(self.tag)
    }

    fn of(word: u64) -> Option<Record> {
        let order = (word >> 48).checked_sub(1)? as u8;
        Some(Record {
            owner: (word >> 32) as u16,
            tag: word as u32,
            order: Order(order),
        })
    }
}

/// The words of all frames. Those that nobody has written take no memory.
pub(crate) struct Records(Box<[AtomicU64]>);

impl Records {
    pub fn new(frames: u32) -> Records {
        let words = Box::into_raw(vec![0_u64; frames as usize].into_boxed_slice());
        // SAFETY: an atomic word has the layout of a word, and the box owns them.
        Records(unsafe { Box::from_raw(words as *mut [AtomicU64]) })
    }

    pub fn of(&self, frame: u32) -> Option<Record> {
        Record::of(self.0.get(frame as usize)?.load(Relaxed))
    }

    pub fn set(&self, frame: u32, record: Record) {
        if let Some(word) = self.0.get(frame as usize) {
            word.store(record.word(), Relaxed);
        }
    }

    /// Nobody owns the block any more. Returns who did.
    pub fn clear(&self, frame: u32) -> Option<Record> {
        Record::of(self.0.get(frame as usize)?.swap(0, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let records = Records::new(4);
        assert_eq!(records.of(2), None);
        let r = Record {
            owner: u16::MAX,
            tag: u32::MAX,
            order: Order(18),
        };
        records.set(2, r);
        assert_eq!(records.of(2), Some(r));
        assert_eq!((records.clear(2), records.clear(2)), (Some(r), None));
    }
}
