//! Which frames were handed out since the system gave them: the others read as zeros. And which of them were seen free.
//!
//! Invariant: a frame without a bit reads as zeros, or is not mapped. A frame that was seen free was not handed out since.

use super::ground::system_memory;

/// Two bits for each frame: it was handed out, and it was seen free since.
pub(super) struct Touched {
    words: &'static mut [[u64; 2]],
}

impl Touched {
    /// Bits for so many frames, none of them set.
    pub fn new(frames: u32) -> Option<Touched> {
        let words = frames.div_ceil(64) as usize;
        let at = system_memory(words * size_of::<[u64; 2]>())?.cast::<[u64; 2]>();
        // SAFETY: new memory of the system, that long, all zeros, for as long as the process lives.
        let words = unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), words) };
        Some(Touched { words })
    }

    /// Calls `f` with each word of some frames, and the bits of them there.
    fn each(&mut self, first: u32, frames: u32, mut f: impl FnMut(&mut [u64; 2], u64)) {
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
        self.each(first, frames, |[handed_out, seen], bits| {
            before |= *handed_out & bits;
            *handed_out |= bits;
            *seen &= !bits;
        });
        before == 0
    }

    /// The system has the memory of frames back.
    pub fn clear(&mut self, first: u32, frames: u32) {
        self.each(first, frames, |words, bits| {
            words.iter_mut().for_each(|word| *word &= !bits);
        });
    }

    /// Free frames are looked at. Whether they have memory of the system, and were free when they were last looked at.
    pub fn is_idle(&mut self, first: u32, frames: u32) -> bool {
        let (mut memory, mut fresh) = (0, 0);
        self.each(first, frames, |[handed_out, seen], bits| {
            memory |= *handed_out & bits;
            fresh |= *handed_out & !*seen & bits;
            *seen |= *handed_out & bits;
        });
        memory != 0 && fresh == 0
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

    #[test]
    fn frames_are_idle_if_they_are_seen_free_twice_and_have_memory() {
        let mut touched = Touched::new(1000).expect("memory");
        assert!(
            !touched.is_idle(64, 4) && !touched.is_idle(64, 4),
            "no memory"
        );
        touched.set(62, 4);
        assert!(!touched.is_idle(62, 4) && touched.is_idle(62, 4));
        // Handed out meanwhile.
        touched.set(65, 1);
        assert!(!touched.is_idle(62, 4) && touched.is_idle(62, 4));
        touched.clear(62, 4);
        assert!(!touched.is_idle(62, 4) && !touched.is_idle(62, 4));
    }
}
