//! Every invariant of an engine.

use super::block::{BINS, Block, CLASSES};
use super::engine::Engine;
use super::map::Map;
use super::sizes::{FRAMES, TYPES};

/// Which block breaks an invariant, by the number of its first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// Its counts are not those of its map.
    Count(u32),
    /// Which of its frames are no memory is not what its counts say, or one of them is free.
    Absent(u32),
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
        self.validate_absent()?;
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
            free += u64::from(if b.is_apart() { 0 } else { b.free() });
            whole += u32::from(b.is_whole());
            binned += u32::from(b.is_binned());
            let belongs = b.free() > 0 && !b.is_whole() && !b.is_apart();
            let stays = b.stays().map(|(at, _)| at);
            let is_known = stays.is_none_or(|at| b.is_intact() || !map.is_free(at));
            if b.is_binned() != belongs || !is_known {
                return Err(Broken::Bin(at));
            }
        }
        for class in 0..CLASSES {
            for bin in 0..BINS {
                for i in self.bins().of(self.blocks, class, bin) {
                    let b = &self.blocks[i as usize];
                    let has_own = b.used(b.mt()) > 0 || b.in_use() == 0;
                    let is_here = b.bin() == Some(bin) && b.may_stay(b.free());
                    if b.class() != class || !is_here || !has_own || binned == 0 {
                        return Err(Broken::Bin(i * FRAMES));
                    }
                    binned -= 1;
                }
                let is_filled = self.bins().filled(class) >> bin & 1 == 1;
                if is_filled != self.bins().of(self.blocks, class, bin).next().is_some() {
                    return Err(Broken::Bin(0));
                }
            }
        }
        if binned != 0 || (free, whole) != (self.free_frames(), self.whole_blocks()) {
            return Err(Broken::Total);
        }
        self.validate_gigabytes()
    }

    /// Each block that is partly memory has a map of its own, and no other map has a bit.
    fn validate_absent(&self) -> Result<(), Broken> {
        let (mut partial, mut present) = (0, 0);
        for (i, b) in (0..).zip(self.blocks.iter()) {
            let at = i * FRAMES;
            let has_map = (1..FRAMES).contains(&b.absent());
            let map = b.partial().and_then(|map| self.absent.get(map));
            let is_right = match map {
                // Two blocks with one map would both have its count, but there are as many maps with bits as blocks.
                Some(map) => map.count() == b.absent() && !map.meets(&self.maps[i as usize]),
                None => b.partial().is_none(),
            };
            if !is_right || has_map != map.is_some() {
                return Err(Broken::Absent(at));
            }
            partial += usize::from(has_map);
            present += u64::from(FRAMES - b.absent());
        }
        let maps = self.absent.iter().filter(|map| **map != Map::EMPTY);
        if maps.count() != partial || present != self.present() {
            return Err(Broken::Total);
        }
        Ok(())
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
