//! What the evacuator knows of a pageblock, packed in one word: its free frames, and for how long it is left alone.

/// Free frames of a pageblock on buddy lists, and the mark of one that could not be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRoom {
    /// Frames on buddy lists.
    pub free: u16,
    /// Times in a row that it could not be emptied, at most [`MAX_SHIFT`].
    shift: u8,
    /// The run that found so last, modulo [`RUNS`].
    since: u16,
}

const FREE_BITS: u32 = 14;
const SHIFT_BITS: u32 = 3;
/// Runs are counted modulo this.
const RUNS: u16 = 1 << (32 - FREE_BITS - SHIFT_BITS);
/// A pageblock that stays is left alone for at most `2^` this many runs.
const MAX_SHIFT: u8 = 6;

const _: () = assert!((MAX_SHIFT as u32) < 1 << SHIFT_BITS);

impl BlockRoom {
    #[inline]
    pub const fn from_word(word: u32) -> BlockRoom {
        BlockRoom {
            free: (word & ((1 << FREE_BITS) - 1)) as u16,
            shift: (word >> FREE_BITS) as u8 & ((1 << SHIFT_BITS) - 1),
            since: (word >> (FREE_BITS + SHIFT_BITS)) as u16,
        }
    }

    #[inline]
    pub const fn word(self) -> u32 {
        self.free as u32
            | (self.shift as u32) << FREE_BITS
            | (self.since as u32) << (FREE_BITS + SHIFT_BITS)
    }

    /// After frames were freed, or taken.
    #[inline]
    #[must_use]
    pub const fn counted(self, frames: u32, freed: bool) -> BlockRoom {
        let free = if freed {
            self.free + frames as u16
        } else {
            self.free - frames as u16
        };
        BlockRoom { free, ..self }
    }

    /// It could not be emptied in run `run`: it is left alone for twice as many runs as the last time.
    #[must_use]
    pub const fn stayed(self, run: u16) -> BlockRoom {
        let shift = if self.shift < MAX_SHIFT {
            self.shift + 1
        } else {
            MAX_SHIFT
        };
        BlockRoom {
            shift,
            since: run % RUNS,
            ..self
        }
    }

    /// It was emptied.
    #[must_use]
    pub const fn emptied(self) -> BlockRoom {
        BlockRoom {
            shift: 0,
            since: 0,
            ..self
        }
    }

    /// Whether it is left alone in run `run`; `hard`: only if it stayed in this very run.
    pub const fn is_left_alone(self, run: u16, hard: bool) -> bool {
        let age = (run % RUNS).wrapping_sub(self.since) % RUNS;
        self.shift > 0 && age < if hard { 1 } else { 1 << self.shift }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of the largest pageblock order is counted beside its mark.
    #[test]
    fn the_fields_do_not_touch() {
        let full = BlockRoom::from_word(0).counted(8192, true);
        let marked = (0..9).fold(full, |r, _| r.stayed(RUNS - 1));
        assert_eq!(BlockRoom::from_word(marked.word()), marked);
        assert_eq!((marked.free, marked.shift), (8192, MAX_SHIFT));
        assert_eq!(marked.counted(8192, false).free, 0);
        assert_eq!(marked.emptied(), full);
    }

    #[test]
    fn a_block_that_stays_is_left_alone_for_twice_as_many_runs_each_time() {
        let mut room = BlockRoom::from_word(0);
        assert!(!room.is_left_alone(7, false));
        let mut run = RUNS - 3;
        for pause in [2, 4, 8, 16, 32, 64, 64] {
            room = room.stayed(run);
            let alone = (0..200).take_while(|i| room.is_left_alone((run + i) % RUNS, false));
            assert_eq!(alone.count(), pause);
            assert!(room.is_left_alone(run, true));
            assert!(!room.is_left_alone((run + 1) % RUNS, true));
            run = (run + pause as u16) % RUNS;
        }
    }
}
