//! [`Evacuator`]: makes whole free blocks, by moving what is in the blocks that are the cheapest to empty.

use super::memory::{Apart, Shared};
use crate::frame::{MigrateType, Order, Pfn};
use crate::maps::GiveError;
use lock_api::RawMutex;

/// What an [`Evacuator`] needs, or that it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Move {
    /// What is at this frame should move. If somebody owns it who can move it, take a place for it with
    /// [`Evacuator::place`], move it, and say so; else answer that it stays.
    Frame(Pfn),
    /// There are as many whole free blocks as were wanted, or no more copies are allowed, or no block is left to empty.
    Done,
}

/// What became of a frame that should move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moved {
    /// The first answer.
    Go,
    /// The block of an order that begins there has a new place. Its old one is free from now on.
    Away(Order),
    /// It stays: nobody owns it, it is pinned, or there is no place for it.
    Stays,
}

/// Makes whole free blocks while others allocate. It is a value with a [`step`](Self::step): owners are called, and
/// frames are copied, by the caller, with nothing locked.
///
/// The block with the fewest frames in use goes first; places are taken from the fullest blocks. A block with a frame that
/// stays is left alone until all others have been tried.
#[derive(Debug)]
pub struct Evacuator {
    wanted: u32,
    copies: u32,
    most: u32,
    apart: Option<Apart>,
    at: u32,
    gained: u32,
    copied: u32,
    left: u32,
}

impl Evacuator {
    /// One that makes `wanted` whole free blocks more with at most `copies` copies of frames, each from a block of which
    /// at most `most` frames are in use.
    pub fn new(wanted: u32, copies: u32, most: u32) -> Evacuator {
        Evacuator {
            wanted,
            copies,
            most,
            apart: None,
            at: 0,
            gained: 0,
            copied: 0,
            left: 0,
        }
    }

    /// Continues until something should move, or until it is done. `answer` is what became of the last frame.
    ///
    /// # Errors
    /// [`GiveError`], if the old place of what has moved was not in use: it was freed meanwhile, which its owner should
    /// have prevented.
    pub fn step<R: RawMutex>(
        &mut self,
        shared: &Shared<'_, R>,
        answer: Moved,
    ) -> Result<Move, GiveError> {
        let mut result = Ok(());
        match (answer, &self.apart) {
            (Moved::Away(order), Some(apart)) => {
                self.copied += order.frames();
                let from = apart.frame(self.at, shared);
                result = shared.give_one(from, order, MigrateType::Movable);
                self.at += order.frames();
            }
            (Moved::Stays, Some(_)) => self.end(shared),
            _ => {}
        }
        result?;
        while self.gained < self.wanted {
            let Some(apart) = &self.apart else {
                let room = self.most.min(self.copies.saturating_sub(self.copied));
                self.apart = shared.set_apart(room);
                self.at = 0;
                if self.apart.is_none() {
                    break;
                }
                continue;
            };
            match shared.next_in_use(apart, self.at) {
                Some(at) => {
                    self.at = at;
                    return Ok(Move::Frame(apart.frame(at, shared)));
                }
                None => self.end(shared),
            }
        }
        Ok(Move::Done)
    }

    /// The frame that [`step`](Self::step) will ask for after this one, if all before it move: the next one in use in the
    /// same block. So a host can prepare several moves, and flush translations once for all of them.
    pub fn after<R: RawMutex>(&self, shared: &Shared<'_, R>, frame: Pfn) -> Option<Pfn> {
        let apart = self.apart.as_ref()?;
        let at = frame.0.checked_sub(apart.frame(0, shared).0)?;
        let next = shared.next_in_use(apart, u32::try_from(at).ok()?.checked_add(1)?)?;
        Some(apart.frame(next, shared))
    }

    /// A place for what should move: the first frame of a free block of an order, for the caller to copy to, out of a
    /// block that is in use in part. `None`, if it would have to be out of a whole free block. It is in use from now on; a
    /// caller that does not need it after all gives it back with [`put_back`](Self::put_back).
    pub fn place<R: RawMutex>(&self, shared: &Shared<'_, R>, order: Order) -> Option<Pfn> {
        let shard = self.apart.as_ref()?.shard;
        shared.take_beside(order, shard)
    }

    /// Gives a place back.
    ///
    /// # Errors
    /// [`GiveError`], if it is none.
    pub fn put_back<R: RawMutex>(
        &self,
        shared: &Shared<'_, R>,
        place: Pfn,
        order: Order,
    ) -> Result<(), GiveError> {
        shared.give_one(place, order, MigrateType::Movable)
    }

    fn end<R: RawMutex>(&mut self, shared: &Shared<'_, R>) {
        if let Some(apart) = self.apart.take() {
            if shared.end_apart(&apart) {
                self.gained += 1;
            } else {
                self.left += 1;
            }
        }
    }

    /// Stops before it is done: a block that is half empty is used again.
    pub fn abort<R: RawMutex>(&mut self, shared: &Shared<'_, R>) {
        self.end(shared);
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
