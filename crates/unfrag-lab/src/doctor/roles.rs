//! What each page frame of a zone is to compaction, in half a byte.
//!
//! Invariant: a frame has one role. A folio is a start and the tails after it; most pageblocks of a large host have
//! frames of one role only, and take no memory for them.

use super::frames::BLOCK_FRAMES;

/// What a frame is to compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Role {
    /// It stays where it is.
    Fixed,
    /// On a buddy list.
    Free,
    /// Without flags: on a per-CPU list, or the kernel's.
    Unflagged,
    /// A folio of clean page cache begins: it can be moved, or dropped.
    Clean,
    /// A folio of clean page cache goes on.
    CleanTail,
    /// Another folio that can be moved begins.
    Movable,
    /// Such a one that cannot be split: dirty, with private data of its file system.
    MovableWhole,
    /// A folio that may not be reclaimed begins.
    Unevictable,
    /// Such a one that cannot be split.
    UnevictableWhole,
    /// Any of these four goes on.
    Tail,
}

impl Role {
    const ALL: [Role; 10] = [
        Role::Fixed,
        Role::Free,
        Role::Unflagged,
        Role::Clean,
        Role::CleanTail,
        Role::Movable,
        Role::MovableWhole,
        Role::Unevictable,
        Role::UnevictableWhole,
        Role::Tail,
    ];

    fn of(code: u8) -> Role {
        Role::ALL[usize::from(code & 15)]
    }

    /// Whether a folio goes on here.
    pub(super) fn is_tail(self) -> bool {
        matches!(self, Role::CleanTail | Role::Tail)
    }
}

/// Roles of the frames of a pageblock, two a byte.
type Packed = [u8; BLOCK_FRAMES / 2];

/// The roles of a zone's frames, by pageblock.
#[derive(Clone, Debug, Default)]
pub(super) struct Roles {
    /// For each block the one role of all its frames, or [`MIXED`] and the index into `mixed`.
    blocks: Vec<u32>,
    mixed: Vec<Packed>,
}

/// The lowest number that stands for a block with several roles.
const MIXED: u32 = 16;

impl Roles {
    /// Room for so many pageblocks; what is not used takes no memory.
    pub(super) fn with_capacity(blocks: usize) -> Roles {
        Roles {
            blocks: Vec::with_capacity(blocks),
            mixed: Vec::with_capacity(blocks),
        }
    }

    /// Adds a pageblock.
    pub(super) fn push(&mut self, roles: &[Role; BLOCK_FRAMES]) {
        if roles.iter().all(|r| *r == roles[0]) {
            self.blocks.push(roles[0] as u32);
            return;
        }
        self.blocks.push(MIXED + self.mixed.len() as u32);
        let mut packed = [0; BLOCK_FRAMES / 2];
        for (byte, pair) in packed.iter_mut().zip(roles.as_chunks::<2>().0) {
            *byte = pair[0] as u8 | (pair[1] as u8) << 4;
        }
        self.mixed.push(packed);
    }

    /// Role of the frame with this index.
    #[inline]
    pub(super) fn of(&self, frame: usize) -> Role {
        let (block, at) = (frame / BLOCK_FRAMES, frame % BLOCK_FRAMES);
        match self.blocks.get(block) {
            None => Role::Fixed,
            Some(&one) if one < MIXED => Role::of(one as u8),
            Some(&index) => {
                let byte = self.mixed[(index - MIXED) as usize][at / 2];
                Role::of(byte >> (4 * (at & 1)))
            }
        }
    }

    /// The one role that all frames of a pageblock have.
    pub(super) fn uniform(&self, block: usize) -> Option<Role> {
        let one = *self.blocks.get(block)?;
        (one < MIXED).then(|| Role::of(one as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_come_back() {
        let mixed: [Role; BLOCK_FRAMES] = std::array::from_fn(|i| Role::ALL[i * 7 % 10]);
        let mut roles = Roles::with_capacity(3);
        roles.push(&[Role::Free; BLOCK_FRAMES]);
        roles.push(&mixed);
        assert_eq!(
            (roles.uniform(0), roles.uniform(1)),
            (Some(Role::Free), None)
        );
        assert_eq!(roles.of(5), Role::Free);
        for (i, role) in mixed.iter().enumerate() {
            assert_eq!(roles.of(BLOCK_FRAMES + i), *role, "{i}");
        }
        assert_eq!(roles.of(2 * BLOCK_FRAMES), Role::Fixed, "beyond the end");
    }
}
