//! Who holds each frame of a heap's window: half a byte a frame.
//!
//! Frames of a heap serve as slabs, as runs for what is large, and as pages of a kind of use. A frame that is given back by
//! its number is compared with this record, so that no wrong number frees a slab, or what another interface handed out.
//!
//! Invariant: a frame that is free, or of a slab, has no holder here.

/// Who holds a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// Who asked for so many bytes that no slab serves them. A run is given back as a whole.
    Run,
    /// Who asked for pages of a kind of use, of which there are seven at most. Parts are given back as well.
    #[cfg_attr(not(feature = "ax-allocator"), allow(dead_code))]
    Pages(u8),
}

/// Codes: nobody, the first frame of a run, its other frames; pages of a kind follow.
const NOBODY: u8 = 0;
const RUN: u8 = 1;
const RUN_GOES_ON: u8 = 2;
const PAGES: u8 = 3;

impl Holder {
    /// The code of frame `n` of what it holds.
    fn code(self, n: usize) -> u8 {
        match self {
            Holder::Run if n == 0 => RUN,
            Holder::Run => RUN_GOES_ON,
            Holder::Pages(kind) => PAGES + kind,
        }
    }
}

/// The record of a window.
pub(crate) struct Holders(&'static mut [u8]);

impl Holders {
    /// Bytes for so many frames.
    pub const fn bytes(frames: usize) -> usize {
        frames.div_ceil(2)
    }

    /// A record in zeroed memory of so many [`bytes`](Self::bytes): nobody holds a frame.
    pub fn new(zeroed: &'static mut [u8]) -> Holders {
        Holders(zeroed)
    }

    fn code(&self, frame: usize) -> u8 {
        let both = self.0.get(frame / 2).copied().unwrap_or(NOBODY);
        both >> (4 * (frame % 2)) & 0xf
    }

    fn set_code(&mut self, frame: usize, code: u8) {
        if let Some(both) = self.0.get_mut(frame / 2) {
            let shift = 4 * (frame % 2);
            *both = *both & !(0xf << shift) | code << shift;
        }
    }

    /// Whether the holder has all of these frames, and a run no frame behind them.
    pub fn has(&self, first: usize, frames: usize, holder: Holder) -> bool {
        let Some(end) = first.checked_add(frames) else {
            return false;
        };
        let is_whole = holder != Holder::Run || self.code(end) != RUN_GOES_ON;
        end <= 2 * self.0.len()
            && is_whole
            && (0..frames).all(|n| self.code(first + n) == holder.code(n))
    }

    /// The holder gets these frames.
    pub fn set(&mut self, first: usize, frames: usize, holder: Holder) {
        (0..frames).for_each(|n| self.set_code(first + n, holder.code(n)));
    }

    /// Nobody holds these frames any more.
    pub fn clear(&mut self, first: usize, frames: usize) {
        (0..frames).for_each(|n| self.set_code(first + n, NOBODY));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn each_frame_has_one_holder_and_a_run_is_whole() {
        let mut of = Holders::new(std::vec![0; Holders::bytes(21)].leak());
        let (table, cache) = (Holder::Pages(3), Holder::Pages(12));
        of.set(3, 5, Holder::Run);
        of.set(8, 2, Holder::Run);
        of.set(10, 4, table);
        of.set(14, 1, cache);
        let held = [(3, 5, Holder::Run), (8, 2, Holder::Run), (10, 4, table)];
        for (first, frames, holder) in held {
            assert!(of.has(first, frames, holder));
            for other in [Holder::Run, table, cache] {
                assert_eq!(of.has(first, frames, other), other == holder);
            }
        }
        let wrong = [
            (3, 4),
            (3, 6),
            (4, 4),
            (2, 6),
            (9, 1),
            (0, usize::MAX),
            (usize::MAX, 2),
        ];
        for (first, frames) in wrong {
            assert!(
                !of.has(first, frames, Holder::Run),
                "{frames} from {first} on"
            );
        }
        assert!(of.has(11, 2, table) && !of.has(11, 4, table));
        assert!(of.has(14, 1, cache) && !of.has(20, 100, cache));
        of.clear(3, 5);
        assert!(!of.has(3, 5, Holder::Run) && of.has(8, 2, Holder::Run));
    }
}
