//! Every invariant of an engine.

use super::block::{BINS, Block};
use super::engine::Engine;
use super::sizes::{FRAMES, TYPES};

/// Which block breaks an invariant, by the number of its first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// Its counts are not those of its map.
    Count(u32),
    /// It is in the wrong bin, or in none, or in two.
    Bin(u32),
    /// The map of its gigabyte, or its counts, are wrong.
    Gigabyte(u32),
    /// The counts of the whole engine are wrong.
    Total,
}

impl Engine<'_> {
    /// Checks every invariant.
    ///
    /// # Errors
    /// [`Broken`], for the first one that does not hold.
    pub fn validate(&mut self) -> Result<(), Broken> {
        let (mut free, mut whole, mut binned) = (0, 0, 0);
        for (i, (b, map)) in (0..).zip(self.blocks.iter().zip(self.maps.iter())) {
            let at = i * FRAMES;
            let says = if b.is_intact() { 0 } else { map.count() };
            let is_right =
                says == b.free() && (0..TYPES).map(|mt| b.used(mt)).sum::<u32>() == b.in_use();
            let is_intact = b.in_use() == FRAMES && map.count() == FRAMES;
            let is_right = is_right && (!b.is_intact() || is_intact);
            if !is_right {
                return Err(Broken::Count(at));
            }
            free += u64::from(b.free());
            whole += u32::from(b.is_whole());
            binned += u32::from(b.is_binned());
            let belongs = b.free() > 0 && !b.is_whole() && !b.is_apart();
            if b.is_binned() != belongs {
                return Err(Broken::Bin(at));
            }
        }
        for mt in 0..TYPES {
            for bin in 0..BINS {
                for i in self.bins().of(self.blocks, mt, bin) {
                    let b = &self.blocks[i as usize];
                    let has_own = b.used(mt) > 0 || b.in_use() == 0;
                    let is_here = b.bin() == Some(bin) && b.may_stay(b.free());
                    if b.mt() != mt || !is_here || !has_own || binned == 0 {
                        return Err(Broken::Bin(i * FRAMES));
                    }
                    binned -= 1;
                }
                let is_filled = self.bins().filled(mt) >> bin & 1 == 1;
                if is_filled != self.bins().of(self.blocks, mt, bin).next().is_some() {
                    return Err(Broken::Bin(0));
                }
            }
        }
        if binned != 0 || (free, whole) != (self.free_frames(), self.whole_blocks()) {
            return Err(Broken::Total);
        }
        self.validate_gigabytes()
    }

    fn validate_gigabytes(&mut self) -> Result<(), Broken> {
        let n = self.blocks.len().div_ceil(FRAMES as usize);
        for g in 0..n {
            let first = g * FRAMES as usize;
            let last = (first + FRAMES as usize).min(self.blocks.len());
            let own = &self.blocks[first..last];
            let tainted = own.iter().filter(|b| b.is_tainted()).count();
            let wrong = Broken::Gigabyte(first as u32 * FRAMES);
            let whole = own.iter().map(Block::is_whole);
            let gigabytes = &self.gigas[g];
            let is_right = (0..)
                .zip(whole.clone())
                .all(|(i, is)| gigabytes.whole.is_free(i) == is);
            let is_right = is_right
                && (0..FRAMES)
                    .all(|i| !gigabytes.reported.is_free(i) || gigabytes.whole.is_free(i));
            let counts = (usize::from(gigabytes.free), usize::from(gigabytes.tainted));
            if !is_right || counts != (whole.filter(|&w| w).count(), tainted) {
                return Err(wrong);
            }
        }
        let gigabytes = self.gigabytes();
        let mut left = (0..n).filter(|&g| gigabytes.bin_of(g).is_some()).count();
        for (bin, g) in gigabytes.binned() {
            if gigabytes.bin_of(g as usize) != Some(bin) || left == 0 {
                return Err(Broken::Gigabyte(g * FRAMES * FRAMES));
            }
            left -= 1;
        }
        if left == 0 {
            Ok(())
        } else {
            Err(Broken::Total)
        }
    }
}
