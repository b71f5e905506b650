//! [`Owners`]: a word for each frame, which says whose the block is that begins there.
//!
//! Invariant: a word is zero, for nobody, or names an owner, what the owner calls the block, and the block's order.
//!
//! A word says all by itself, and is a hint: that the block is there still, only its owner knows, under whatever guards what
//! it has.

use super::error::OwnersError;
use super::owned::{NOBODY, Owned, OwnerId};
use crate::frame::{Order, Pfn};
use crate::maps::LARGEST_ORDER;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// A word for each frame from one on. For memory with large holes take one for each part.
///
/// Any number of CPUs may use it at a time. Wrong arguments get an error, and change nothing.
#[derive(Debug)]
pub struct Owners<W> {
    start: Pfn,
    words: W,
}

impl<W: AsRef<[AtomicU64]>> Owners<W> {
    /// Words for the frames from `start` on, as many as there are words. They are zeros: nobody has a frame.
    pub const fn new(start: Pfn, words: W) -> Owners<W> {
        Owners { start, words }
    }

    /// The first frame that has a word.
    pub fn start(&self) -> Pfn {
        self.start
    }

    /// How many frames have a word.
    pub fn frames(&self) -> u64 {
        self.words.as_ref().len() as u64
    }

    /// The word of a frame, and how many there are from it on.
    #[inline]
    fn from(&self, pfn: Pfn) -> Option<(&AtomicU64, u64)> {
        let at = pfn.0.checked_sub(self.start.0)?;
        let words = self.words.as_ref();
        let word = words.get(usize::try_from(at).ok()?)?;
        Some((word, words.len() as u64 - at))
    }

    /// The word of a block that can be where it is said to be.
    #[inline]
    fn block(&self, pfn: Pfn, order: Order) -> Result<&AtomicU64, OwnersError> {
        let (word, left) = self.from(pfn).ok_or(OwnersError::NoWord(pfn))?;
        let is_block = order <= LARGEST_ORDER
            && pfn.0.is_multiple_of(order.frames().into())
            && left >= u64::from(order.frames());
        is_block.then_some(word).ok_or(OwnersError::NotABlock(pfn))
    }

    /// Whose the block is that begins at a frame; `None`, if it is nobody's, or if the frame has no word.
    #[inline]
    pub fn get(&self, pfn: Pfn) -> Option<Owned> {
        // Pairs with `set`, `replace` and `moved`: what the owner wrote of the block before is seen by who reads its name.
        Owned::of(self.from(pfn)?.0.load(Acquire))
    }

    /// The block at a frame is somebody's from now on, whoever had it.
    ///
    /// # Errors
    /// [`OwnersError::NoWord`], [`OwnersError::NotABlock`].
    #[inline]
    pub fn set(&self, pfn: Pfn, owned: Owned) -> Result<(), OwnersError> {
        // Pairs with `get`.
        self.block(pfn, owned.order)?.store(owned.word(), Release);
        Ok(())
    }

    /// Nobody has the block at a frame any more. Returns who had it. Say so before the block is freed: from then on the word
    /// is for who takes it next.
    #[inline]
    pub fn clear(&self, pfn: Pfn) -> Option<Owned> {
        // Pairs with `set`, `replace` and `moved` as `get` does, and with those of the next owner.
        Owned::of(self.from(pfn)?.0.swap(NOBODY, AcqRel))
    }

    /// As [`clear`](Self::clear), for its owner alone, who need not hear that it had it: a store, and no exchange.
    #[inline]
    pub fn forget(&self, pfn: Pfn) {
        if let Some((word, _)) = self.from(pfn) {
            // Pairs with `get`; the next owner has the frame by way of the memory, which orders the two.
            word.store(NOBODY, Release);
        }
    }

    /// The block at a frame goes from one to another, either of whom may be nobody.
    ///
    /// # Errors
    /// [`OwnersError::Another`], if it is not of whom the caller says; [`OwnersError::NoWord`], [`OwnersError::NotABlock`].
    pub fn replace(
        &self,
        pfn: Pfn,
        was: Option<Owned>,
        is: Option<Owned>,
    ) -> Result<(), OwnersError> {
        let order = |o: Option<Owned>| o.map_or(Order::ZERO, |o| o.order);
        self.block(pfn, order(was))?;
        let word = self.block(pfn, order(is))?;
        let [was, is] = [was, is].map(|o| o.map_or(NOBODY, Owned::word));
        // Pairs with `get`, and as `get` does with whoever wrote what was there.
        match word.compare_exchange(was, is, AcqRel, Acquire) {
            Ok(_) => Ok(()),
            Err(found) => Err(OwnersError::Another(pfn, Owned::of(found))),
        }
    }

    /// A block has moved: its word goes from one frame to another, where nobody is. The new word is there before the old one
    /// goes, so that who looks for the block finds it.
    ///
    /// # Errors
    /// [`OwnersError::Another`], if `from` is not as the caller says, or if `to` is somebody's; [`OwnersError::NoWord`],
    /// [`OwnersError::NotABlock`].
    pub fn moved(&self, from: Pfn, to: Pfn, owned: Owned) -> Result<(), OwnersError> {
        self.block(from, owned.order)?;
        if from == to {
            // Else it would find there what it has just written.
            return Err(OwnersError::Another(to, self.get(to)));
        }
        self.replace(to, None, Some(owned))?;
        let gone = self.replace(from, Some(owned), None);
        if gone.is_err() {
            // The new place is the caller's, so it is as it was left, unless the caller breaks its own word.
            let _ = self.replace(to, Some(owned), None);
        }
        gone
    }

    /// The blocks that an owner has, in the order of their addresses. It reads all words.
    pub fn blocks_of(&self, owner: OwnerId) -> impl Iterator<Item = (Pfn, Owned)> {
        let words = self.words.as_ref().iter().enumerate();
        words.filter_map(move |(i, word)| {
            // Pairs as in `get`.
            let owned = Owned::of(word.load(Acquire)).filter(|o| o.owner == owner)?;
            Some((Pfn(self.start.0.wrapping_add(i as u64)), owned))
        })
    }
}
