//! A growing set of small numbers.

/// A set of numbers below its length, one bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    /// Whether it holds `i`.
    #[inline]
    pub fn get(&self, i: u32) -> bool {
        let w = self.words.get(i as usize / 64);
        w.is_some_and(|w| w >> (i % 64) & 1 == 1)
    }

    /// Adds or removes `i`; true if that changed something.
    #[inline]
    pub fn set(&mut self, i: u32, on: bool) -> bool {
        let at = i as usize / 64;
        if at >= self.words.len() {
            if !on {
                return false;
            }
            self.words.resize(at + 1, 0);
        }
        let mask = 1u64 << (i % 64);
        let was = self.words[at] & mask != 0;
        if on {
            self.words[at] |= mask;
        } else {
            self.words[at] &= !mask;
        }
        was != on
    }

    /// The smallest element from `i` on.
    pub fn next(&self, i: u32) -> Option<u32> {
        self.first(i, 0)
    }

    /// The smallest number from `i` on that it does not hold.
    pub fn next_clear(&self, i: u32) -> u32 {
        let end = self.words.len() as u32 * 64;
        self.first(i, u64::MAX).unwrap_or(i.max(end))
    }

    /// The first bit from `i` on that differs from those of `all`, among the words that there are.
    #[inline(always)]
    fn first(&self, i: u32, all: u64) -> Option<u32> {
        let at = i as usize / 64;
        let first = (self.words.get(at)? ^ all) & (u64::MAX << (i % 64));
        if first != 0 {
            return Some(at as u32 * 64 + first.trailing_zeros());
        }
        let rest = self.words[at + 1..].iter().position(|w| *w != all)?;
        let at = at + 1 + rest;
        Some(at as u32 * 64 + (self.words[at] ^ all).trailing_zeros())
    }

    /// The smallest multiple of 64 from `i` on from which `words` times 64 numbers are missing.
    pub fn next_clear_words(&self, i: u32, words: usize, end: u32) -> Option<u32> {
        let mut at = (i as usize).div_ceil(64);
        let last = end as usize / 64;
        let mut run = 0;
        while at < last {
            run = if self.words.get(at).is_none_or(|w| *w == 0) {
                run + 1
            } else {
                0
            };
            at += 1;
            if run == words {
                return Some(((at - words) * 64) as u32);
            }
        }
        None
    }

    /// Its elements.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let i = self.next(at)?;
            at = i + 1;
            Some(i)
        })
    }

    /// Number of elements.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|w| w.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_in_order() {
        let mut b = BitSet::default();
        for i in [3, 64, 200] {
            assert!(b.set(i, true));
            assert!(!b.set(i, true));
        }
        assert_eq!(b.iter().collect::<Vec<_>>(), [3, 64, 200]);
        assert_eq!((b.next(65), b.next(201), b.count()), (Some(200), None, 3));
        assert_eq!(
            (b.next_clear(3), b.next_clear(64), b.next_clear(900)),
            (4, 65, 900)
        );
        assert!(b.set(64, false) && !b.get(64));
        assert!(!b.set(9_999, false));
    }

    #[test]
    fn runs_of_missing_words_are_aligned_and_within_the_end() {
        let mut b = BitSet::default();
        b.set(70, true);
        assert_eq!(b.next_clear_words(0, 1, 1024), Some(0));
        assert_eq!(b.next_clear_words(0, 4, 1024), Some(128));
        assert_eq!(b.next_clear_words(0, 4, 128 + 255), None);
        assert_eq!(b.next_clear_words(129, 4, 1024), Some(192));
    }
}
