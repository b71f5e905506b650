//! [`Ahead`]: how often whole free blocks are made ahead of demand, where nothing comes of it.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Looks of which one is a try at least, as a power of two.
const MOST_SHIFT: u32 = 6;

/// When somebody who makes whole blocks ahead of demand should try again.
pub(crate) struct Ahead {
    /// Looks since the last try.
    looks: AtomicU32,
    /// So many of them, as a power of two, are passed over.
    shift: AtomicU32,
}

// Orderings: numbers that stand for themselves. A look that two threads count as one changes nothing.
impl Ahead {
    pub const fn new() -> Ahead {
        Ahead {
            looks: AtomicU32::new(0),
            shift: AtomicU32::new(0),
        }
    }

    /// Counts a look. True, if it is time to try.
    pub fn is_due(&self) -> bool {
        let looks = self.looks.load(Relaxed).saturating_add(1);
        let is_due = looks >= 1 << self.shift.load(Relaxed).min(MOST_SHIFT);
        self.looks.store(if is_due { 0 } else { looks }, Relaxed);
        is_due
    }

    /// What came of a try.
    pub fn tried(&self, gained: bool) {
        let shift = self.shift.load(Relaxed);
        let shift = if gained {
            0
        } else {
            (shift + 1).min(MOST_SHIFT)
        };
        self.shift.store(shift, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each try in vain doubles the looks that are passed over; one that gains something ends that.
    #[test]
    fn tries_in_vain_are_made_more_seldom() {
        let ahead = Ahead::new();
        let looks = |ahead: &Ahead| 1 + (0..200).take_while(|_| !ahead.is_due()).count();
        for passed in [1, 2, 4, 8, 16, 32, 64, 64, 64] {
            assert_eq!(looks(&ahead), passed);
            ahead.tried(false);
        }
        ahead.tried(true);
        assert_eq!([looks(&ahead), looks(&ahead)], [1, 1]);
    }
}
