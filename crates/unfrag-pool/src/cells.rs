//! Blocks of 2 MiB as `unfrag_blocks` writes them, two characters each, and as those who look on draw them.
//!
//! Invariant: what is written is read as it was.

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
