//! Which frames were handed out since the system gave them: the others read as zeros.
//!
//! Invariant: a frame without a bit reads as zeros, or is not mapped.

use super::ground::system_memory;

/// A bit for each frame.
pub(super) struct Touched {
    words: &'static mut [u64],
}

impl Touched {
    /// Bits for so many frames, none of them set.
    pub fn new(frames: u32) -> Option<Touched> {
        let words = frames.div_ceil(64) as usize;
        let at = system_memory(words * size_of::<u64>())?.cast::<u64>();
        // SAFETY: new memory of the system, that long, all zeros, for as long as the process lives.
        let words = unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), words) };
        Some(Touched { words })
    }

    /// Calls `f` with each word of some frames, and the bits of them there.
    fn each(&mut self, first: u32, frames: u32, mut f: impl FnMut(&mut u64, u64)) {
        let (mut at, end) = (first as usize, first as usize + frames as usize);
        while at < end {
            let count = (64 - at % 64).min(end - at);
            let bits = (u64::MAX >> (64 - count)) << (at % 64);
            f(&mut self.words[at / 64], bits);
            at += count;
        }
    }

    /// Frames are handed out. Whether all of them read as zeros.
    pub fn set(&mut self, first: u32, frames: u32) -> bool {
        let mut before = 0;
        self.each(first, frames, |word, bits| {
            before |= *word & bits;
            *word |= bits;
        });
        before == 0
    }

    /// The system has the memory of frames back.
    pub fn clear(&mut self, first: u32, frames: u32) {
        self.each(first, frames, |word, bits| *word &= !bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_zeros_until_they_are_handed_out_and_when_the_system_had_them_back() {
        let mut touched = Touched::new(1000).expect("memory");
        assert!(touched.set(60, 300));
        assert!(!touched.set(60, 1) && !touched.set(359, 10) && !touched.set(0, 1000));
        touched.clear(100, 128);
        assert!(!touched.set(99, 2) && touched.set(101, 127) && !touched.set(228, 1));
        touched.clear(0, 1000);
        assert!(touched.set(0, 1000));
    }
}
