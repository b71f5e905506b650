//! Memory at a moment, for those who look on: blocks, counters, waits; of a pool that runs, of a replay, of this host.
//!
//! - [`directory`]: from the files of a directory, such as a pool writes.
//! - [`replayed`]: from the model of a replay.
//! - [`text`]: a view as text, with what happened since the one before.
//! - [`show`]: the numbers and their rates, for JSON.
//!
//! Invariant: a rate is a difference of two views of the same source by the time between them.

pub mod directory;
pub mod replayed;
pub mod show;
pub mod text;

use std::collections::BTreeMap;

/// What is in use in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// No memory.
    Absent,
    /// Nothing: all of it is free.
    Free,
    /// Frames that can be moved.
    Movable,
    /// Reclaimable frames, and maybe movable ones.
    Reclaimable,
    /// Unmovable frames, and maybe others.
    Unmovable,
}

/// A block of 2 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// What is in use.
    pub kind: Kind,
    /// How much of it, in eighths, 0 to 8.
    pub eighths: u8,
}

impl Cell {
    /// A block without memory.
    pub const ABSENT: Cell = Cell {
        kind: Kind::Absent,
        eighths: 0,
    };

    /// Of a block with so many free frames, and so many in use of each type: unmovable, movable, reclaimable.
    pub fn of(free: u32, [unmovable, movable, reclaimable]: [u32; 3]) -> Cell {
        let used = unmovable + movable + reclaimable;
        if free + used == 0 {
            return Cell::ABSENT;
        }
        let kind = match (unmovable, reclaimable, used) {
            (_, _, 0) => Kind::Free,
            (1.., _, _) => Kind::Unmovable,
            (_, 1.., _) => Kind::Reclaimable,
            _ => Kind::Movable,
        };
        Cell {
            kind,
            eighths: (8 * used).div_ceil(free + used) as u8,
        }
    }

    /// The two characters of a block in `unfrag_blocks`, such as `m8`; `None` if they are none.
    pub fn parse(text: &[u8]) -> Option<Cell> {
        let kind = match text {
            b"--" => return Some(Cell::ABSENT),
            b".." => {
                return Some(Cell {
                    kind: Kind::Free,
                    eighths: 0,
                });
            }
            [b'u', _] => Kind::Unmovable,
            [b'r', _] => Kind::Reclaimable,
            [b'm', _] => Kind::Movable,
            _ => return None,
        };
        let eighths = text[1].checked_sub(b'0').filter(|e| (1..=8).contains(e))?;
        Some(Cell { kind, eighths })
    }

    /// The same as text.
    pub fn letters(self) -> String {
        let letter = match self.kind {
            Kind::Absent => return "--".into(),
            Kind::Free => return "..".into(),
            Kind::Movable => 'm',
            Kind::Reclaimable => 'r',
            Kind::Unmovable => 'u',
        };
        format!("{letter}{}", self.eighths)
    }
}

/// Blocks that lie together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// Such as `Node 0, zone Normal`.
    pub name: String,
    /// Its blocks, in the order of their addresses.
    pub cells: Vec<Cell>,
}

/// Memory at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// What it is of.
    pub title: String,
    /// Seconds since some moment of the source.
    pub seconds: f64,
    /// The blocks; empty if the source does not tell.
    pub areas: Vec<Area>,
    /// Free blocks by order, of all zones.
    pub free: Vec<u64>,
    /// Frames, if the source tells.
    pub frames: Option<u64>,
    /// Counters that only grow, by name.
    pub counters: BTreeMap<String, u64>,
    /// Waits of allocations: how many took less than so many nanoseconds, and at least half of that.
    pub waits: BTreeMap<u64, u64>,
}

impl View {
    /// Free frames.
    pub fn free_frames(&self) -> u64 {
        self.free.iter().enumerate().map(|(o, n)| n << o).sum()
    }

    /// Free blocks of 2 MiB, in blocks of that size or larger.
    pub fn free_huge(&self) -> u64 {
        let large = self.free.iter().enumerate().skip(9);
        large.map(|(o, n)| n << (o - 9)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_as_it_was_written() {
        let all = [
            (Cell::of(0, [0; 3]), "--"),
            (Cell::of(512, [0; 3]), ".."),
            (Cell::of(511, [0, 1, 0]), "m1"),
            (Cell::of(0, [0, 500, 12]), "r8"),
            (Cell::of(256, [1, 255, 0]), "u4"),
        ];
        for (cell, text) in all {
            assert_eq!(cell.letters(), text);
            assert_eq!(Cell::parse(text.as_bytes()), Some(cell));
        }
        for bad in ["m9", "m0", "x1", "", "m"] {
            assert_eq!(Cell::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
