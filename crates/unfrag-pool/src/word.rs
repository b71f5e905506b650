//! The word of a movable block: where it is, how many hold it there, and whether it is being moved.
//!
//! Invariant: while it is being moved nobody holds it; while somebody holds it, it does not begin to move. loom checks it.

use crate::sync::{AtomicU64, Ordering};

/// The frame in the upper half, then the bit, then the holds.
const FRAME_SHIFT: u32 = 32;
const MOVING: u64 = 1 << 31;
#[cfg(test)]
const HOLDS: u64 = MOVING - 1;

/// Where a movable block is.
#[derive(Debug)]
pub(crate) struct Place(AtomicU64);

impl Place {
    pub fn new(frame: u32) -> Place {
        Place(AtomicU64::new(u64::from(frame) << FRAME_SHIFT))
    }

    /// Another block has the word from now on. Nobody holds it.
    pub fn reset(&self, frame: u32) {
        // Pairs with `hold` and `begin_move`: whoever finds the block here sees that its frames are no longer another one's.
        self.0
            .store(u64::from(frame) << FRAME_SHIFT, Ordering::Release);
    }

    /// Holds the block where it is, and says where; `None` while it is being moved.
    #[inline]
    pub fn hold(&self) -> Option<u32> {
        // Pairs with `end_move`: what was copied to the new place is seen there.
        let was = self.0.fetch_add(1, Ordering::Acquire);
        if was & MOVING == 0 {
            return Some((was >> FRAME_SHIFT) as u32);
        }
        // Nothing was read or written under this hold.
        self.0.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// Lets go of it.
    #[inline]
    pub fn release(&self) {
        // Pairs with `begin_move`: what was written under the hold is copied, and what was read is not overwritten before.
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Whether somebody holds it.
    #[cfg(test)]
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) & HOLDS != 0
    }

    /// Begins to move the block from a frame; false, if it is elsewhere, held, or being moved.
    pub fn begin_move(&self, from: u32) -> bool {
        let here = u64::from(from) << FRAME_SHIFT;
        // Pairs with `release` of the last hold. If it fails, nothing is touched.
        let began =
            self.0
                .compare_exchange(here, here | MOVING, Ordering::Acquire, Ordering::Relaxed);
        began.is_ok()
    }

    /// Ends the move: the block is at `to`. Those who tried to hold it meanwhile are not disturbed.
    pub fn end_move(&self, from: u32, to: u32) {
        let by = u64::from(to.wrapping_sub(from)) << FRAME_SHIFT;
        // Pairs with `hold`.
        self.0.fetch_add(by.wrapping_sub(MOVING), Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_is_held_does_not_move() {
        let p = Place::new(7);
        assert_eq!(p.hold(), Some(7));
        assert!(p.is_held() && !p.begin_move(7));
        p.release();
        assert!(!p.is_held() && !p.begin_move(8) && p.begin_move(7));
        assert!(!p.begin_move(7), "it is being moved already");
        assert_eq!(p.hold(), None);
        p.end_move(7, 3);
        assert_eq!(p.hold(), Some(3));
        p.release();
        assert!(p.begin_move(3));
        p.end_move(3, u32::MAX);
        assert_eq!(p.hold(), Some(u32::MAX));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;

    /// Two hold and one moves: nobody reads an old place, and what was copied is what was there.
    #[test]
    fn what_is_held_stays_where_it_is() {
        loom::model(|| {
            let place = Arc::new(Place::new(0));
            // What is at each frame: 1 where the block is, 2 where it was.
            let at = Arc::new([AtomicUsize::new(1), AtomicUsize::new(0)]);
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    let (place, at) = (place.clone(), at.clone());
                    loom::thread::spawn(move || {
                        if let Some(frame) = place.hold() {
                            assert_eq!(at[frame as usize].load(Ordering::Relaxed), 1);
                            place.release();
                        }
                    })
                })
                .collect();
            if place.begin_move(0) {
                at[1].store(at[0].load(Ordering::Relaxed), Ordering::Relaxed);
                place.end_move(0, 1);
                // Its old place is another one's; who read it before has let go.
                at[0].store(2, Ordering::Relaxed);
            }
            for r in readers {
                r.join().expect("no panic");
            }
            assert!(!place.is_held());
        });
    }
}
