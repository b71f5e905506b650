//! [`Evacuator`]: makes whole free blocks, by moving what is in the blocks that are the cheapest to empty.
//!
//! Invariant: a block that is set apart belongs to one evacuator, which ends the setting apart at the latest when it is
//! dropped; a [`Place`] that nobody uses is free again when it is dropped.

use crate::frame::{MigrateType, Order, Pfn};
use crate::maps::{GiveError, LARGEST_ORDER};
use crate::memory::Memory;
use crate::memory::apart::Apart;
use crate::moves::place::Place;
use lock_api::RawMutex;

/// What an [`Evacuator`] needs, or that it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Move {
    /// What is at this frame should move. If somebody owns it who can move it, take a place for it with
    /// [`Evacuator::place`], move it, and say so with [`Evacuator::moved`]; else it stays.
    Frame(Pfn),
    /// There are as many whole free blocks as were wanted, or no more copies are allowed, or no block is left to empty.
    Done,
}

/// Makes whole free blocks while others allocate. It is a value with a [`step`](Self::step): owners are called, and
/// frames are copied, by the caller, with nothing locked.
///
/// The block with the fewest frames in use goes first; places are taken from the fullest blocks. A block with a frame that
/// stays is left alone until all others have been tried.
///
/// Its block is set apart while it works on it: nobody gets a frame of it. When the evacuator is dropped, at whatever
/// moment, the block is used again.
#[must_use = "it does nothing unless it is stepped"]
pub struct Evacuator<'s, 'm, R: RawMutex> {
    shared: &'s Memory<'m, R>,
    wanted: u32,
    copies: u32,
    most: u32,
    apart: Option<Apart>,
    at: u32,
    /// The frame at `at` was named, and nobody has said as yet what became of it.
    is_asked: bool,
    gained: u32,
    copied: u32,
    left: u32,
}

impl<'s, 'm, R: RawMutex> Evacuator<'s, 'm, R> {
    /// One that makes `wanted` whole free blocks more with at most `copies` copies of frames, each from a block of which
    /// at most `most` frames are in use.
    pub fn new(
        shared: &'s Memory<'m, R>,
        wanted: u32,
        copies: u32,
        most: u32,
    ) -> Evacuator<'s, 'm, R> {
        Evacuator {
            shared,
            wanted,
            copies,
            most,
            apart: None,
            at: 0,
            is_asked: false,
            gained: 0,
            copied: 0,
            left: 0,
        }
    }

    /// Continues until something should move, or until it is done. What the last step named, and [`moved`](Self::moved)
    /// was not told of, stays: nobody owns it, it is pinned, or there is no place for it.
    pub fn step(&mut self) -> Move {
        if core::mem::take(&mut self.is_asked) {
            self.end();
        }
        while self.gained < self.wanted {
            let Some(apart) = &self.apart else {
                let room = self.most.min(self.copies.saturating_sub(self.copied));
                self.apart = self.shared.set_apart(room);
                self.at = 0;
                if self.apart.is_none() {
                    break;
                }
                continue;
            };
            match self.shared.next_in_use(apart, self.at) {
                Some(at) => {
                    self.at = at;
                    self.is_asked = true;
                    return Move::Frame(apart.frame(at, self.shared));
                }
                None => self.end(),
            }
        }
        Move::Done
    }

    /// The block of an order at `from`, which the last step named, has a new place. Its old one is free from now on.
    ///
    /// # Errors
    /// [`GiveError`], if the last step did not name `from`, if no block of this order begins there, or if some of it was
    /// not in use: it was freed meanwhile, which its owner should have prevented. It goes on behind the block all the same.
    ///
    /// # Safety
    /// Nobody uses the `2^order` frames from `from` on any more, and nobody will free them: the caller owned all of them.
    #[allow(unsafe_code, reason = "a promise of the caller, and no operation")]
    pub unsafe fn moved(&mut self, from: Pfn, order: Order) -> Result<(), GiveError> {
        let is_asked = |a: &&Apart| self.is_asked && a.frame(self.at, self.shared) == from;
        let is_named = self.apart.as_ref().filter(is_asked).is_some();
        if !is_named || order > LARGEST_ORDER {
            return Err(self.shared.no_block(from));
        }
        self.is_asked = false;
        self.copied = self.copied.saturating_add(order.frames());
        self.at += order.frames();
        self.shared.give_back(from, order, MigrateType::Movable)
    }

    /// The frame that [`step`](Self::step) will name after this one, if all before it move: the next one in use in the
    /// same block. So a host can prepare several moves, and flush translations once for all of them.
    pub fn after(&self, frame: Pfn) -> Option<Pfn> {
        let apart = self.apart.as_ref()?;
        let at = frame.0.checked_sub(apart.frame(0, self.shared).0)?;
        let next = u32::try_from(at).ok()?.checked_add(1)?;
        let next = self.shared.next_in_use(apart, next)?;
        Some(apart.frame(next, self.shared))
    }

    /// A place for what should move: a free block of an order, for the caller to copy to, out of a block that is in use in
    /// part. `None`, if it would have to be out of a whole free block.
    pub fn place(&self, order: Order) -> Option<Place<'s, 'm, R>> {
        let shard = self.apart.as_ref()?.shard;
        let pfn = self.shared.take_beside(order, shard)?;
        Some(Place::new(self.shared, pfn, order))
    }

    fn end(&mut self) {
        if let Some(apart) = self.apart.take() {
            if self.shared.end_apart(&apart) {
                self.gained += 1;
            } else {
                self.left += 1;
            }
        }
    }

    /// Whole free blocks that it made.
    pub fn gained(&self) -> u32 {
        self.gained
    }

    /// Frames that were copied.
    pub fn copied(&self) -> u32 {
        self.copied
    }

    /// Blocks that it left alone, since something in them stays.
    pub fn left(&self) -> u32 {
        self.left
    }
}

impl<R: RawMutex> Drop for Evacuator<'_, '_, R> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<R: RawMutex> core::fmt::Debug for Evacuator<'_, '_, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let mut out = f.debug_struct("Evacuator");
        out.field("wanted", &self.wanted)
            .field("gained", &self.gained)
            .field("copied", &self.copied)
            .field("left", &self.left);
        out.finish_non_exhaustive()
    }
}
