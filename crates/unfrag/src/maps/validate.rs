//! Every invariant of an engine.

use super::block::{BINS, CLASSES};
use super::engine::{Engine, GIGABYTE};
use super::map::Map;
use super::sizes::{FRAMES, TYPES};
use super::tables::Entries;
use crate::frame::Pfn;

/// Which block breaks an invariant, by the number of its first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// Its counts are not those of its map.
    Count(Pfn),
    /// Which of its frames are no memory is not what its counts say, or one of them is free.
    Absent(Pfn),
    /// It is in the wrong bin, or in none, or in two.
    Bin(Pfn),
    /// The map of its gigabyte, or its counts, are wrong.
    Gigabyte(Pfn),
    /// The counts of the whole engine are wrong.
    Total,
}

impl core::fmt::Display for Broken {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let (what, at) = match self {
            Broken::Count(at) => ("the counts of the block", at),
            Broken::Absent(at) => ("the absent frames of the block", at),
            Broken::Bin(at) => ("the bin and type of the block", at),
            Broken::Gigabyte(at) => ("the whole free blocks of the gigabyte", at),
            Broken::Total => return f.write_str("the totals are not the sums of the blocks"),
        };
        write!(f, "{what} at frame {:#x} are not what its map says", at.0)
    }
}

impl core::error::Error for Broken {}

impl<'m, D: Entries<'m>> Engine<'m, D> {
    /// Checks every invariant.
    ///
    /// # Errors
    /// [`Broken`], for the first one that does not hold.
    pub fn validate(&mut self) -> Result<(), Broken> {
        self.validate_absent()?;
        let (mut free, mut whole, mut binned, mut kept) = (0, 0, 0, 0);
        for (g, tables) in self.of.all() {
            if !tables.has_right_credits() {
                return Err(Broken::Count(self.frame(g * GIGABYTE)));
            }
        }
        for (i, b, map) in self.of.blocks() {
            let at = self.frame(i * FRAMES);
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
            kept += u64::from(if b.is_binned() && b.is_kept() {
                b.free()
            } else {
                0
            });
            let belongs = b.free() > 0 && !b.is_whole() && !b.is_apart();
            let stays = b.stays().map(|(at, _)| at);
            let is_known = stays.is_none_or(|at| b.is_intact() || !map.is_free(at));
            if b.is_binned() != belongs || !is_known {
                return Err(Broken::Bin(at));
            }
        }
        for class in 0..CLASSES {
            for bin in 0..BINS {
                for i in self.bins.of(&self.of, class, bin) {
                    let b = self.of.block(i);
                    let has_own = b.used(b.mt()) > 0 || b.in_use() == 0;
                    let is_here = b.bin() == Some(bin) && b.may_stay(b.free());
                    if b.class() != class || !is_here || !has_own || binned == 0 {
                        return Err(Broken::Bin(self.frame(i * FRAMES)));
                    }
                    binned -= 1;
                }
                let is_filled = self.bins.filled(class) >> bin & 1 == 1;
                if is_filled != self.bins.of(&self.of, class, bin).next().is_some() {
                    return Err(Broken::Bin(self.start()));
                }
            }
        }
        let totals = (self.free_frames(), self.whole_blocks(), self.bins.kept());
        if binned != 0 || (free, whole, kept) != totals {
            return Err(Broken::Total);
        }
        self.validate_gigabytes()
    }

    /// Each block that is partly memory has a map of its own, and no other map has a bit.
    fn validate_absent(&self) -> Result<(), Broken> {
        let (mut partial, mut present) = (0, 0);
        for (i, b, own) in self.of.blocks() {
            let at = self.frame(i * FRAMES);
            let has_map = (1..FRAMES).contains(&b.absent());
            let map = b
                .partial()
                .and_then(|map| self.of.of(i / FRAMES).absent.get(map));
            let is_right = match map {
                // Two blocks with one map would both have its count, but there are as many maps with bits as blocks.
                Some(map) => map.count() == b.absent() && !map.meets(own),
                None => b.partial().is_none(),
            };
            if !is_right || has_map != map.is_some() {
                return Err(Broken::Absent(at));
            }
            partial += usize::from(has_map);
            present += u64::from(FRAMES - b.absent());
        }
        let maps = self.of.all().flat_map(|(_, tables)| &tables.absent);
        let maps = maps.filter(|map| **map != Map::EMPTY);
        if maps.count() != partial || present != self.present() {
            return Err(Broken::Total);
        }
        Ok(())
    }

    fn validate_gigabytes(&mut self) -> Result<(), Broken> {
        let mut left = 0;
        for (g, tables) in self.of.all() {
            let tainted = tables.blocks().filter(|(b, _)| b.is_tainted()).count();
            let is_whole = || tables.blocks().map(|(b, _)| b.is_whole());
            let own = &tables.whole;
            let is_right = (0..)
                .zip(is_whole())
                .all(|(i, is)| own.whole.is_free(i) == is);
            let is_right =
                is_right && (0..FRAMES).all(|i| !own.reported.is_free(i) || own.whole.is_free(i));
            let counts = (usize::from(own.free), usize::from(own.tainted));
            if !is_right || counts != (is_whole().filter(|&w| w).count(), tainted) {
                return Err(Broken::Gigabyte(self.frame(g * GIGABYTE)));
            }
            left += usize::from(own.free > 0);
        }
        let start = self.start().0;
        let gigabytes = self.gigabytes();
        for (bin, g) in gigabytes.binned() {
            if gigabytes.bin_of(g) != Some(bin) || left == 0 {
                return Err(Broken::Gigabyte(Pfn(start + u64::from(g * GIGABYTE))));
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
