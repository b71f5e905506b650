//! Which blocks of a file system's device hold what: block groups, inode tables, and the extents of files.
//!
//! Blocks are pages. A group has 32,768 of them, the first for its bitmaps and its inode table. A directory
//! belongs to a group, and its files are placed there while there is room, as in ext2 and ext3.
//!
//! Invariant: each block of a device is free, a group's own, or in exactly one extent. Each inode number
//! belongs to one node at a time, and the lowest free one of a group is taken.

use crate::mm::bit_set::BitSet;

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
    taken: BitSet,
    total: u32,
    used: u32,
    /// Free blocks, by group. A group begins with its head, so no extent spans two groups. Empty for a file
    /// system in memory: its blocks are counted only, and its extents may overlap.
    free_in: Vec<u32>,
    /// Blocks with content: written in the run, or holding data before it. Others need no reading.
    written: BitSet,
    inodes: BitSet,
    /// Inodes in use, by group, and a number below which none of the group is free.
    used_inodes: Vec<(u32, u32)>,
    next_group: u32,
}

impl Blocks {
    /// An empty device.
    pub fn new(total: u32) -> Blocks {
        let mut b = Blocks::in_groups(total, total.div_ceil(GROUP).max(1));
        for g in 0..b.used_inodes.len() as u32 {
            let size = GROUP.min(total.saturating_sub(g * GROUP));
            let head = GROUP_HEAD.min(size);
            for i in 0..head {
                b.taken.set(g * GROUP + i, true);
            }
            b.used += head;
            b.free_in.push(size - head);
        }
        b
    }

    /// The blocks of a file system in memory: counted, without positions.
    pub fn in_memory(total: u32) -> Blocks {
        Blocks::in_groups(total, 1)
    }

    fn in_groups(total: u32, groups: u32) -> Blocks {
        Blocks {
            taken: BitSet::default(),
            total,
            used: 0,
            free_in: vec![],
            written: BitSet::default(),
            inodes: BitSet::default(),
            used_inodes: (0..groups).map(|g| (0, g * GROUP_INODES)).collect(),
            next_group: 0,
        }
    }

    /// Blocks that files may still take.
    pub fn free(&self) -> u32 {
        self.total - self.used
    }

    /// Allocates `n` blocks, from `goal` on and contiguous where possible; `None` if fewer are free.
    pub fn alloc(&mut self, n: u32, goal: u32) -> Option<Vec<Extent>> {
        if n > self.free() {
            return None;
        }
        self.used += n;
        if self.free_in.is_empty() {
            return Some(vec![Extent {
                start: goal,
                len: n,
            }]);
        }
        let mut out = vec![];
        let mut left = n;
        let mut at = goal.min(self.total);
        while left > 0 {
            if self.free_in.get((at / GROUP) as usize) == Some(&0) {
                at = (at / GROUP + 1) * GROUP;
                continue;
            }
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
            self.free_in[(at / GROUP) as usize] -= len;
            out.push(Extent { start: at, len });
            left -= len;
            at += len;
        }
        Some(out)
    }

    /// Frees blocks.
    pub fn release(&mut self, extent: Extent) {
        self.used -= extent.len;
        let Some(free) = self.free_in.get_mut((extent.start / GROUP) as usize) else {
            return;
        };
        *free += extent.len;
        for b in extent.start..extent.start + extent.len {
            let was = self.taken.set(b, false);
            debug_assert!(was, "block {b} is given back twice");
            self.written.set(b, false);
        }
    }

    /// The group for a new directory. Directories of the root are spread over the groups; others stay in
    /// their parent's group while it has room for inodes.
    pub fn group_for(&mut self, parent: Option<u32>) -> u32 {
        let groups = self.used_inodes.len() as u32;
        let has_room = |g: u32| self.used_inodes[g as usize].0 < GROUP_INODES * 3 / 4;
        let first = match parent {
            Some(g) if has_room(g) => return g,
            Some(g) => (g + 1) % groups,
            None => (self.next_group + 1) % groups,
        };
        let mut from_first = (0..groups).map(|i| (first + i) % groups);
        let found = from_first.find(|g| has_room(*g)).unwrap_or(first);
        if parent.is_none() {
            self.next_group = first;
        }
        found
    }

    /// Allocates an inode in a group, or in another one if the group is full; returns its number.
    pub fn inode(&mut self, group: u32) -> u32 {
        let groups = self.used_inodes.len() as u32;
        let full = |g: u32| self.used_inodes[g as usize].0 >= GROUP_INODES;
        let group = (0..groups)
            .map(|i| (group + i) % groups)
            .find(|g| !full(*g));
        let Some(group) = group else {
            // More inodes than the tables hold: the numbers beyond share blocks of the tables.
            let number = self.inodes.next_clear(groups * GROUP_INODES);
            self.inodes.set(number, true);
            return number;
        };
        let (used, lowest) = &mut self.used_inodes[group as usize];
        let number = self.inodes.next_clear(*lowest);
        (*used, *lowest) = (*used + 1, number + 1);
        self.inodes.set(number, true);
        number
    }

    /// Frees an inode number.
    pub fn release_inode(&mut self, number: u32) {
        let was = self.inodes.set(number, false);
        debug_assert!(was, "inode {number} is given back twice");
        if let Some((used, lowest)) = self.used_inodes.get_mut((number / GROUP_INODES) as usize) {
            (*used, *lowest) = (*used - 1, number.min(*lowest));
        }
    }

    /// Block of an inode table that holds an inode.
    pub fn inode_block(&self, number: u32) -> u32 {
        let groups = self.used_inodes.len() as u32;
        let (group, i) = (number / GROUP_INODES % groups, number % GROUP_INODES);
        group * GROUP + 2 + i / INODES_A_BLOCK
    }

    /// Block bitmap (0) or inode bitmap (1) of the group of a block.
    pub fn bitmap_block(block: u32, inodes: bool) -> u32 {
        block / GROUP * GROUP + u32::from(inodes)
    }

    /// Whether a block has content, so that it has to be read.
    pub fn is_written(&self, block: u32) -> bool {
        self.written.get(block)
    }

    /// Marks a block as having content.
    pub fn set_written(&mut self, block: u32) {
        self.written.set(block, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_contiguous_behind_the_group_head() {
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
    fn full_groups_are_skipped_cyclically() {
        let mut b = Blocks::new(2 * GROUP + 300);
        let in_groups = b.alloc(2 * (GROUP - GROUP_HEAD), 0).unwrap();
        let last = 2 * GROUP + GROUP_HEAD;
        let place = |start, len| Some(vec![Extent { start, len }]);
        assert_eq!(b.alloc(40, 0), place(last, 40));
        b.release(Extent { start: 700, len: 5 });
        let parts = b.alloc(3, GROUP).unwrap();
        assert_eq!((parts[0].len, parts[1].len), (2, 1));
        assert_eq!(b.alloc(4, last), place(701, 4));
        assert_eq!((b.free(), in_groups.len()), (0, 2));
    }

    #[test]
    fn blocks_in_memory_are_counted_only() {
        let mut b = Blocks::in_memory(100);
        let e = b.alloc(60, 7).unwrap();
        assert_eq!((e.len(), b.free(), b.alloc(41, 0)), (1, 40, None));
        assert!(b.alloc(40, 0).is_some());
        b.release(e[0]);
        assert_eq!(b.free(), 60);
    }

    #[test]
    fn inodes_of_a_directory_share_blocks_of_its_groups_table() {
        let mut b = Blocks::new(2 * GROUP);
        let all: Vec<u32> = (0..=INODES_A_BLOCK).map(|_| b.inode(1)).collect();
        let blocks = all.iter().map(|i| b.inode_block(*i));
        let last = blocks.clone().next_back();
        assert!(blocks.take(all.len() - 1).all(|block| block == GROUP + 2));
        assert_eq!(last, Some(GROUP + 3));
        assert_eq!(Blocks::bitmap_block(GROUP + 9, true), GROUP + 1);
    }

    #[test]
    fn inode_numbers_are_reused_and_overflow_to_other_groups() {
        let mut b = Blocks::new(2 * GROUP);
        let all: Vec<u32> = (0..2 * GROUP_INODES + 3).map(|_| b.inode(1)).collect();
        let distinct: std::collections::BTreeSet<u32> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!((all[0], all[GROUP_INODES as usize]), (GROUP_INODES, 0));
        assert!(all.iter().all(|i| b.inode_block(*i) < 2 * GROUP));
        assert_eq!(b.group_for(Some(1)), 0, "none has room");
        for &i in &all {
            b.release_inode(i);
        }
        assert_eq!((b.group_for(Some(1)), b.inode(1)), (1, GROUP_INODES));
    }

    #[test]
    fn directories_of_the_root_are_spread_over_groups() {
        let mut b = Blocks::new(4 * GROUP);
        let a = b.group_for(None);
        assert_ne!(a, b.group_for(None));
        assert_eq!(b.group_for(Some(a)), a);
    }
}
