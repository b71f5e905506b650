//! The word of a slab: where its free chain begins, how many of its objects are out, and whether a
//! CPU holds it. One word, so that SLUB changes all three with one compare-and-swap.
//!
//! Each transition is a pure function `Word -> Option<Word>`; `None` means an error of the caller (an
//! object freed twice). A chain is only ever pushed to or taken as a whole, so a word that comes
//! back to an old value (ABA) is harmless: the link that a pusher wrote beneath it still fits.
//!
//! Invariant: `inuse` + length of the chain = objects of the slab. Checked under loom by the tests
//! below. SLAB and SLQB keep the same word behind a lock.

use crate::sync::Ordering;
use crate::sync::model::AtomicU64;

/// Place of an object in its slab, from 1; 0 is none.
pub(crate) type Slot = u32;

/// Value of a slab's word: first free slot (24 bits), objects out (16), frozen (1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    const HEAD: u64 = (1 << 24) - 1;
    const INUSE: u32 = 24;
    const FROZEN: u64 = 1 << 40;

    #[inline]
    pub const fn new(head: Slot, inuse: u16, frozen: bool) -> Word {
        let frozen = if frozen { Self::FROZEN } else { 0 };
        Word(head as u64 & Self::HEAD | (inuse as u64) << Self::INUSE | frozen)
    }
    /// First free object; 0 if none is free.
    #[inline]
    pub const fn head(self) -> Slot {
        (self.0 & Self::HEAD) as Slot
    }
    /// Objects that are in use or on a CPU's chain.
    #[inline]
    pub const fn inuse(self) -> u16 {
        (self.0 >> Self::INUSE) as u16
    }
    /// Whether a CPU holds the slab, so that it is on no list of its node.
    #[inline]
    pub const fn is_frozen(self) -> bool {
        self.0 & Self::FROZEN != 0
    }
    /// `n` objects whose chain begins at `first` come back.
    #[inline]
    pub const fn freed(self, first: Slot, n: u16) -> Option<Word> {
        match self.inuse().checked_sub(n) {
            Some(inuse) => Some(Word::new(first, inuse, self.is_frozen())),
            None => None,
        }
    }
    /// All free objects go to a CPU, which holds the slab from now on.
    #[inline]
    pub const fn taken(self, objects: u16) -> Word {
        Word::new(0, objects, true)
    }
    /// With the frozen bit set or cleared.
    #[inline]
    pub const fn with_frozen(self, frozen: bool) -> Word {
        Word::new(self.head(), self.inuse(), frozen)
    }
}

/// A slab's word in memory.
pub(crate) struct AtomicWord(AtomicU64);

impl AtomicWord {
    pub fn new(word: Word) -> AtomicWord {
        AtomicWord(AtomicU64::new(word.0))
    }
    #[inline]
    pub fn load(&self) -> Word {
        // Acquire: pairs with the release in `store` and in `replace`, so that the links of the chain are there.
        Word(self.0.load(Ordering::Acquire))
    }
    /// Stores a word that only the caller may change.
    #[inline]
    pub fn store(&self, word: Word) {
        // Pairs with the acquire in `load` and in `replace`.
        self.0.store(word.0, Ordering::Release);
    }
    #[inline]
    pub fn replace(&self, old: Word, new: Word) -> bool {
        // Release: who takes the chain with an acquire, here or in `load`, sees the links written before. Acquire: who takes
        // it here sees those of the others. After a failure the word is loaded anew.
        self.0
            .compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
    /// Changes the word by a transition, which may run several times; returns the word before and
    /// after, or the word that the transition refused.
    #[inline]
    pub fn change(
        &self,
        mut transition: impl FnMut(Word) -> Option<Word>,
    ) -> Result<(Word, Word), Word> {
        loop {
            let old = self.load();
            let new = transition(old).ok_or(old)?;
            if self.replace(old, new) {
                return Ok((old, new));
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_word_do_not_touch() {
        let w = Word::new(Word::HEAD as Slot, u16::MAX, true);
        assert_eq!(
            (w.head(), w.inuse(), w.is_frozen()),
            (0xff_ffff, u16::MAX, true)
        );
        let w = Word::new(0, u16::MAX, false);
        assert_eq!((w.head(), w.inuse(), w.is_frozen()), (0, u16::MAX, false));
        assert_eq!(w.taken(7), Word::new(0, 7, true));
        assert_eq!(w.with_frozen(true).with_frozen(false), w);
    }

    #[test]
    fn a_free_beyond_what_is_out_is_refused() {
        assert_eq!(Word::new(3, 0, false).freed(1, 1), None);
        assert_eq!(Word::new(3, 2, true).freed(1, 3), None);
        assert_eq!(
            Word::new(3, 2, true).freed(1, 2),
            Some(Word::new(1, 0, true))
        );
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;
    use std::vec;
    use std::vec::Vec;

    /// A slab of four objects whose links are cells of their own.
    struct Slab {
        word: AtomicWord,
        next: [AtomicU32; 5],
    }

    impl Slab {
        fn new(word: Word) -> Arc<Slab> {
            Arc::new(Slab {
                word: AtomicWord::new(word),
                next: std::array::from_fn(|_| AtomicU32::new(0)),
            })
        }
        fn free(&self, slot: Slot) -> (Word, Word) {
            let done = self.word.change(|w| {
                self.next[slot as usize].store(w.head(), Ordering::Relaxed);
                w.freed(slot, 1)
            });
            done.expect("freed once")
        }
        fn chain(&self, mut slot: Slot) -> Vec<Slot> {
            let mut all = vec![];
            while slot != 0 {
                all.push(slot);
                slot = self.next[slot as usize].load(Ordering::Relaxed);
            }
            all
        }
        fn take(&self) -> Vec<Slot> {
            let (old, _) = self.word.change(|w| Some(w.taken(4))).expect("always");
            self.chain(old.head())
        }
    }

    #[test]
    fn loom_no_freed_object_is_lost_or_doubled_while_the_owner_takes() {
        // Four threads' worth of steps: interleavings with up to three preemptions.
        let mut bounded = loom::model::Builder::new();
        bounded.preemption_bound = Some(3);
        bounded.check(|| {
            let slab = Slab::new(Word::new(0, 4, true));
            let others: Vec<_> = [[1, 2], [3, 0]]
                .into_iter()
                .map(|slots| {
                    let slab = slab.clone();
                    thread::spawn(move || {
                        slots.into_iter().filter(|s| *s != 0).for_each(|s| {
                            slab.free(s);
                        });
                    })
                })
                .collect();
            let mut got = slab.take();
            others.into_iter().for_each(|t| t.join().expect("no panic"));
            let left = slab.word.load();
            let rest = slab.take();
            assert_eq!(4 - usize::from(left.inuse()), rest.len());
            got.extend(rest);
            got.sort_unstable();
            assert_eq!(got, [1, 2, 3]);
        });
    }

    #[test]
    fn loom_one_free_sees_full_and_one_sees_empty() {
        loom::model(|| {
            let slab = Slab::new(Word::new(0, 2, false));
            let other = {
                let slab = slab.clone();
                thread::spawn(move || slab.free(1))
            };
            let mine = slab.free(2);
            let theirs = other.join().expect("no panic");
            let both = [mine, theirs];
            assert_eq!(both.iter().filter(|(old, _)| old.head() == 0).count(), 1);
            assert_eq!(both.iter().filter(|(_, new)| new.inuse() == 0).count(), 1);
        });
    }

    #[test]
    fn loom_a_slab_thaws_or_is_taken_but_not_both() {
        loom::model(|| {
            let slab = Slab::new(Word::new(0, 4, true));
            let other = {
                let slab = slab.clone();
                thread::spawn(move || slab.free(1))
            };
            // The owner lets go only while nothing is free.
            let thawed = slab
                .word
                .change(|w| (w.head() == 0).then(|| w.with_frozen(false)))
                .is_ok();
            let (old, new) = other.join().expect("no panic");
            assert_eq!(old.is_frozen(), new.is_frozen());
            assert_eq!(slab.word.load().is_frozen(), !thawed);
            assert_eq!(
                thawed,
                !old.is_frozen(),
                "who frees knows whether to put it on a list"
            );
        });
    }
}
