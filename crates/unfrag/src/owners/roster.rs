//! [`Roster`]: the owners that can be asked for frames, each a number, and whose turn it is.
//!
//! Invariant: a number is free, an owner's, or one of an owner that has left and of whom blocks may be out. Only a free one is
//! given to somebody.

use super::error::OwnersError;
use super::owned::OwnerId;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Most owners.
pub const MAX_OWNERS: usize = 1 << 16;

/// A number is free.
const FREE: u64 = 0;
/// It is an owner's, who is asked.
const THERE: u64 = 1 << 62;
/// Its owner has left.
const LEFT: u64 = 1 << 63;
/// Times in a row that the owner was asked and gave nothing.
const VAIN: u64 = 0xff;
/// From there on: rounds until it is asked again, 0 and 1 for the next one.
const WAIT: u32 = 8;
/// Rounds of which one asks an owner that never gives anything, as a power of two.
const MOST_SHIFT: u64 = 4;

const fn wait(word: u64) -> u64 {
    (word & !(THERE | LEFT)) >> WAIT
}

/// The owners that can be asked for frames. A word for each that there may be, up to [`MAX_OWNERS`].
///
/// They are asked in turn: the one first that was asked the longest ago. An owner that gave nothing twice in a row is passed
/// over in the next round, then in 3, 7 and 15, until it gives something; but a request that would fail asks everybody.
#[derive(Debug)]
pub struct Roster<W> {
    words: W,
    /// Numbers from there on were never an owner's.
    end: AtomicU32,
    /// All numbers below are taken: a hint.
    free_from: AtomicU32,
    /// Whose turn it is.
    hand: AtomicU32,
}

// Orderings: `end`, `free_from` and `hand` are hints, which order nothing. An owner's word is acquired by who asks it, so
// that what was written of the owner before it was added is seen; that pairs with `add`.
impl<W: AsRef<[AtomicU64]>> Roster<W> {
    /// A roster in words that are zeros: nobody is there.
    pub const fn new(words: W) -> Roster<W> {
        Roster {
            words,
            end: AtomicU32::new(0),
            free_from: AtomicU32::new(0),
            hand: AtomicU32::new(0),
        }
    }

    fn words(&self) -> &[AtomicU64] {
        let words = self.words.as_ref();
        &words[..words.len().min(MAX_OWNERS)]
    }

    fn word(&self, id: OwnerId) -> Result<&AtomicU64, OwnersError> {
        let word = self.words().get(usize::from(id.0));
        word.ok_or(OwnersError::NoSuchOwner(id))
    }

    /// Adds an owner, which may be asked from now on. Returns its number.
    ///
    /// # Errors
    /// [`OwnersError::Full`].
    pub fn add(&self) -> Result<OwnerId, OwnersError> {
        let from = self.free_from.load(Relaxed) as usize;
        let free = self.take_free(from).or_else(|| self.take_free(0));
        let at = free.ok_or(OwnersError::Full)? as u32;
        self.free_from.store(at + 1, Relaxed);
        self.end.fetch_max(at + 1, Relaxed);
        Ok(OwnerId(at as u16))
    }

    fn take_free(&self, from: usize) -> Option<usize> {
        let rest = self.words().iter().enumerate().skip(from);
        // Pairs with `is_there` and `pass`; and with `release`, as a number has one owner at a time.
        let take = |w: &AtomicU64| w.compare_exchange(FREE, THERE, AcqRel, Relaxed).is_ok();
        let mut free = rest.filter(|(_, w)| w.load(Relaxed) == FREE);
        free.find(|(_, w)| take(w)).map(|(at, _)| at)
    }

    /// Whether an owner with this number is there.
    #[inline]
    pub fn is_there(&self, id: OwnerId) -> bool {
        self.word(id).is_ok_and(|w| w.load(Acquire) & THERE != 0)
    }

    /// How many owners are there.
    pub fn len(&self) -> usize {
        self.numbers().filter(|&id| self.is_there(id)).count()
    }

    /// Whether none is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An owner leaves: it is not asked any more, but for what a [`Reclaim`](super::Reclaim) has named already. Its number is
    /// nobody's, and is given to nobody, until it is [released](Self::release).
    ///
    /// # Errors
    /// [`OwnersError::NoSuchOwner`].
    pub fn remove(&self, id: OwnerId) -> Result<(), OwnersError> {
        let leave = |w: u64| (w & THERE != 0).then_some(LEFT);
        // Pairs with `add`, and with `release`.
        let left = self.word(id)?.fetch_update(AcqRel, Relaxed, leave);
        left.map_or(Err(OwnersError::NoSuchOwner(id)), |_| Ok(()))
    }

    /// No block of an owner that left is out any more: its number may be another one's.
    ///
    /// # Errors
    /// [`OwnersError::StillThere`], if it has not been removed; [`OwnersError::NoSuchOwner`].
    pub fn release(&self, id: OwnerId) -> Result<(), OwnersError> {
        // Pairs with `add`.
        match self.word(id)?.compare_exchange(LEFT, FREE, AcqRel, Relaxed) {
            Ok(_) => {
                self.free_from.fetch_min(id.0.into(), Relaxed);
                Ok(())
            }
            Err(FREE) => Err(OwnersError::NoSuchOwner(id)),
            Err(_) => Err(OwnersError::StillThere(id)),
        }
    }

    /// Numbers that were an owner's at some time.
    pub(super) fn numbers(&self) -> impl Iterator<Item = OwnerId> + use<W> {
        (0..self.end.load(Relaxed)).map(|at| OwnerId(at as u16))
    }

    /// Begins a round: those who gave nothing wait for one round less. Returns how many will be asked.
    pub(super) fn begin_round(&self) -> usize {
        let due = self.numbers().filter(|&id| {
            let pass = |w: u64| (wait(w) > 0).then(|| w - (1 << WAIT));
            let Ok(word) = self.word(id) else {
                return false;
            };
            // A number that stands for itself.
            let _ = word.fetch_update(Relaxed, Relaxed, pass);
            self.is_due(id)
        });
        due.count()
    }

    /// Whether an owner is there and does not wait.
    pub(super) fn is_due(&self, id: OwnerId) -> bool {
        let due = |w: u64| w & THERE != 0 && wait(w) == 0;
        self.word(id).is_ok_and(|w| due(w.load(Acquire)))
    }

    /// The number whose turn it is, of those below `end`.
    pub(super) fn hand(&self) -> u32 {
        self.hand.load(Relaxed)
    }

    /// An owner has its turn: the next one is the one behind it.
    pub(super) fn asks(&self, id: OwnerId) {
        self.hand.store(u32::from(id.0) + 1, Relaxed);
    }

    /// What came of a question.
    pub(super) fn answered(&self, id: OwnerId, gave: bool) {
        let answer = |w: u64| {
            let vain = if gave { 0 } else { (w & VAIN) + 1 };
            let vain = vain.min(MOST_SHIFT + 1);
            let wait = if vain > 0 { 1 << (vain - 1) } else { 0 };
            (w & THERE != 0).then_some(THERE | wait << WAIT | vain)
        };
        if let Ok(word) = self.word(id) {
            // Numbers that stand for themselves. That the owner left meanwhile is no error.
            let _ = word.fetch_update(Relaxed, Relaxed, answer);
        }
    }
}
