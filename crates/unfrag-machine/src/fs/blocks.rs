//! Which blocks of a file system's device hold what: block groups, inode tables, and the extents of
//! files.
//!
//! Blocks are pages. A group has 32,768 of them, the first for its bitmaps and its inode table. A
//! directory belongs to a group, and its files lie there while there is room, as ext2 and ext3 do it.
//!
//! Invariant: each block is free, a group's own, or in exactly one extent.

use crate::mm::bits::BitVec;

/// Blocks of a group: 128 MiB.
pub const GROUP: u32 = 32_768;
/// Inodes of a block of an inode table: 128 bytes each.
pub const INODES_A_BLOCK: u32 = 32;
/// Blocks of a group's inode table.
pub const TABLE_BLOCKS: u32 = 256;
/// Blocks of a group that hold no file: bitmaps and inode table.
pub const GROUP_HEAD: u32 = 2 + TABLE_BLOCKS;
/// Inodes of a group.
pub const GROUP_INODES: u32 = TABLE_BLOCKS * INODES_A_BLOCK;

/// Consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block.
    pub start: u32,
    /// Blocks.
    pub len: u32,
}

/// The blocks of a device.
#[derive(Clone, Debug)]
pub struct Blocks {
    taken: BitVec,
    total: u32,
    used: u32,
    /// Blocks that were written once (or held data before the run): others need no reading.
    written: BitVec,
    /// Inodes handed out, by group.
    inodes: Vec<u32>,
    next_group: u32,
}

impl Blocks {
    /// An empty device of so many blocks.
    pub fn new(total: u32) -> Blocks {
        let groups = total.div_ceil(GROUP).max(1);
        let mut b = Blocks {
            taken: BitVec::default(),
            total,
            used: 0,
            written: BitVec::default(),
            inodes: vec![0; groups as usize],
            next_group: 0,
        };
        for g in 0..groups {
            for i in 0..GROUP_HEAD.min(total.saturating_sub(g * GROUP)) {
                b.taken.set(g * GROUP + i, true);
                b.used += 1;
            }
        }
        b
    }

    /// Blocks that files may still take.
    pub fn free(&self) -> u32 {
        self.total - self.used
    }

    /// Takes `n` blocks, from `goal` on and together if that can be; `None` if so many are not free.
    pub fn alloc(&mut self, n: u32, goal: u32) -> Option<Vec<Extent>> {
        if n > self.free() {
            return None;
        }
        let mut out = vec![];
        let mut left = n;
        let mut at = goal.min(self.total);
        while left > 0 {
            at = self.taken.next_clear(at);
            if at >= self.total {
                at = 0;
                continue;
            }
            let end = self.taken.next(at).unwrap_or(self.total).min(self.total);
            let len = left.min(end - at);
            for b in at..at + len {
                self.taken.set(b, true);
            }
            out.push(Extent { start: at, len });
            left -= len;
            at += len;
        }
        self.used += n;
        Some(out)
    }

    /// Gives blocks back.
    pub fn release(&mut self, extent: Extent) {
        for b in extent.start..extent.start + extent.len {
            let was = self.taken.set(b, false);
            debug_assert!(was, "block {b} is given back twice");
            self.written.set(b, false);
        }
        self.used -= extent.len;
    }

    /// The group for a new directory: those of the root are spread, others stay with their parent
    /// while it has room for inodes.
    pub fn group_for(&mut self, parent: Option<u32>) -> u32 {
        let groups = self.inodes.len() as u32;
        let first = match parent {
            Some(g) if self.inodes[g as usize] < GROUP_INODES * 3 / 4 => return g,
            Some(g) => (g + 1) % groups,
            None => {
                self.next_group = (self.next_group + 1) % groups;
                self.next_group
            }
        };
        let has_room = |g: &u32| self.inodes[*g as usize] < GROUP_INODES * 3 / 4;
        (0..groups)
            .map(|i| (first + i) % groups)
            .find(has_room)
            .unwrap_or(first)
    }

    /// A new inode of a group: its number, by which its block in the table is known. Numbers are not
    /// used again; beyond a group's table they wrap within it.
    pub fn inode(&mut self, group: u32) -> u32 {
        let n = &mut self.inodes[group as usize];
        *n += 1;
        group * GROUP_INODES + (*n - 1) % GROUP_INODES
    }

    /// Block of an inode table that holds an inode.
    pub fn inode_block(number: u32) -> u32 {
        let (group, i) = (number / GROUP_INODES, number % GROUP_INODES);
        group * GROUP + 2 + i / INODES_A_BLOCK
    }

    /// Block bitmap (0) or inode bitmap (1) of the group of a block.
    pub fn bitmap_block(block: u32, inodes: bool) -> u32 {
        block / GROUP * GROUP + u32::from(inodes)
    }

    /// Whether a block has to be read before its content is known.
    pub fn is_written(&self, block: u32) -> bool {
        self.written.get(block)
    }

    /// A block's content is on the device from now on.
    pub fn set_written(&mut self, block: u32) {
        self.written.set(block, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lies_together_behind_its_groups_tables() {
        let mut b = Blocks::new(3 * GROUP);
        let e = b.alloc(1000, GROUP).unwrap();
        assert_eq!(
            e,
            [Extent {
                start: GROUP + GROUP_HEAD,
                len: 1000
            }]
        );
        let next = b.alloc(8, GROUP).unwrap();
        assert_eq!(next[0].start, e[0].start + 1000);
    }

    #[test]
    fn all_blocks_can_be_taken_once_and_given_back() {
        let mut b = Blocks::new(GROUP + 5000);
        let free = b.free();
        let all = b.alloc(free, 70_000).unwrap();
        assert_eq!((b.free(), b.alloc(1, 0)), (0, None));
        assert_eq!(all.iter().map(|e| e.len).sum::<u32>(), free);
        for e in all {
            b.release(e);
        }
        assert_eq!(b.free(), free);
    }

    #[test]
    fn inodes_of_a_directory_share_blocks_of_its_groups_table() {
        let mut b = Blocks::new(2 * GROUP);
        let first = b.inode(1);
        assert_eq!(Blocks::inode_block(first), GROUP + 2);
        for _ in 1..INODES_A_BLOCK {
            assert_eq!(Blocks::inode_block(b.inode(1)), GROUP + 2);
        }
        assert_eq!(Blocks::inode_block(b.inode(1)), GROUP + 3);
        assert_eq!(Blocks::bitmap_block(GROUP + 9, true), GROUP + 1);
    }

    #[test]
    fn directories_of_the_root_are_spread_over_groups() {
        let mut b = Blocks::new(4 * GROUP);
        let a = b.group_for(None);
        assert_ne!(a, b.group_for(None));
        assert_eq!(b.group_for(Some(a)), a);
    }
}
