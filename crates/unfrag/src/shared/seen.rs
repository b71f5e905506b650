//! [`Seen`]: which single frames a `Local` keeps, nearly: so that one that is freed twice is found at once.
//!
//! Invariant: the count of a place is that of the kept frames that share it. So a frame whose count is 0 is not kept; of any
//! other it is seen by looking through the arrays.

/// Places: frames share one if their numbers have the same lowest bits, so neighbours do not.
const PLACES: usize = 2048;

/// How many of the frames that share a place are kept. It wraps where 256 are, of the 384 that can be: then one of them could
/// be freed twice unseen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen([u8; PLACES]);

impl Seen {
    pub const NONE: Seen = Seen([0; PLACES]);

    #[inline(always)]
    fn count(&mut self, frame: u32) -> &mut u8 {
        &mut self.0[frame as usize % PLACES]
    }

    /// Whether the frame may be kept already.
    #[inline]
    pub fn may_have(&mut self, frame: u32) -> bool {
        *self.count(frame) != 0
    }

    #[inline]
    pub fn add(&mut self, frame: u32) {
        let count = self.count(frame);
        *count = count.wrapping_add(1);
    }

    #[inline]
    pub fn remove(&mut self, frame: u32) {
        let count = self.count(frame);
        *count = count.wrapping_sub(1);
    }
}
