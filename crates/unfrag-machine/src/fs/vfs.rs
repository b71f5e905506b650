//! All files and file systems, and the lists by which their objects are pruned.

use super::blocks::{Blocks, GROUP};
use super::dirty::Dirty;
use super::journal::Journal;
use super::loopdev::LoopDevice;
use super::node::{ENTRIES_A_BLOCK, Node, NodeId, NodeList};
use crate::block::DeviceId;
use crate::engine::Nanos;
use crate::error::Fail;
use crate::kmem::caches::CacheKind;
use crate::kmem::shrinker::Shrinker;
use crate::mm::frames::ObjectId;
use std::collections::VecDeque;
use std::rc::Rc;

/// A file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FsId(pub u8);

/// Kinds of file systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsKind {
    /// Without a journal.
    Ext2,
    /// With a journal, data before metadata (`data=ordered`).
    Ext3,
    /// In memory and swap.
    Tmpfs,
}

/// Where a file system's blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// On a range of a device.
    Disk {
        /// The device.
        device: DeviceId,
        /// Its first sector there.
        sector: u64,
    },
    /// In a file, through a loop device.
    Loop(u8),
    /// None: the file system is in memory.
    Memory,
}

/// A mounted file system.
pub struct FileSystem {
    /// Its name.
    pub name: Rc<str>,
    /// Its kind.
    pub kind: FsKind,
    /// Where its blocks are.
    pub store: Store,
    /// The allocation of its blocks.
    pub blocks: Blocks,
    /// Its device's own blocks in memory (bitmaps, inode tables, directories).
    pub device: ObjectId,
    /// Time at which the oldest dirty block of its device became dirty.
    pub device_dirty_since: Nanos,
    /// Its root directory.
    pub root: NodeId,
    /// Nodes with dirty pages, the first to be written first.
    pub dirty: VecDeque<NodeId>,
    /// Journal, for ext3.
    pub journal: Option<Journal>,
}

/// Properties of a new file system.
#[derive(Clone, Debug)]
pub struct FsConfig {
    /// Its name.
    pub name: Rc<str>,
    /// Its kind.
    pub kind: FsKind,
    /// Where its blocks are.
    pub store: Store,
    /// Its size, in pages.
    pub pages: u32,
}

/// All files and file systems.
#[derive(Default)]
pub struct Vfs {
    pub(crate) nodes: Vec<Node>,
    pub(super) vacant: Vec<u32>,
    pub(crate) systems: Vec<FileSystem>,
    pub(crate) loops: Vec<LoopDevice>,
    pub(crate) lists: Lists,
    /// Counts of dirty pages.
    pub dirty: Dirty,
}

pub(crate) struct Lists {
    pub dentries: NodeList,
    pub inodes: NodeList,
    pub dentry_shrinker: Shrinker,
    pub inode_shrinker: Shrinker,
}

impl Default for Lists {
    fn default() -> Self {
        Lists {
            dentries: NodeList::EMPTY,
            inodes: NodeList::EMPTY,
            dentry_shrinker: Shrinker::default(),
            inode_shrinker: Shrinker::default(),
        }
    }
}

impl Vfs {
    /// A node.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// A node.
    #[inline]
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    /// A file system.
    #[inline]
    pub fn system(&self, id: u8) -> &FileSystem {
        &self.systems[usize::from(id)]
    }

    /// A file system.
    #[inline]
    pub fn system_mut(&mut self, id: u8) -> &mut FileSystem {
        &mut self.systems[usize::from(id)]
    }

    /// File systems.
    pub fn systems(&self) -> &[FileSystem] {
        &self.systems
    }

    /// Lengths of the lists of unused dentries and unused inodes.
    pub fn unused(&self) -> (u32, u32) {
        (self.lists.dentries.len, self.lists.inodes.len)
    }

    pub(crate) fn insert(&mut self, node: Node) -> NodeId {
        match self.vacant.pop() {
            Some(i) => {
                self.nodes[i as usize] = node;
                NodeId(i)
            }
            None => {
                self.nodes.push(node);
                NodeId((self.nodes.len() - 1) as u32)
            }
        }
    }

    /// Adds a node to a directory; it is on disk and not in memory.
    pub(crate) fn add_node(&mut self, parent: NodeId, is_dir: bool) -> NodeId {
        let fs = self.node(parent).fs;
        let parent_group = self.node(parent).group;
        let system = &mut self.systems[usize::from(fs)];
        let of_root = parent == system.root;
        let group = if is_dir {
            system.blocks.group_for((!of_root).then_some(parent_group))
        } else {
            parent_group
        };
        let number = system.blocks.inode(group);
        let mut node = Node::new(fs, is_dir, parent, number);
        node.group = group;
        node.depth = self.node(parent).depth + 1;
        node.position = self.node(parent).children.len() as u32;
        let id = self.insert(node);
        self.node_mut(parent).children.push(id);
        id
    }

    /// Removes a node from its directory.
    pub(crate) fn unlink_from_parent(&mut self, id: NodeId) {
        let n = self.node_mut(id);
        n.linked = false;
        let (parent, at) = (n.parent, n.position as usize);
        let siblings = &mut self.node_mut(parent).children;
        siblings.swap_remove(at);
        if let Some(&moved) = siblings.get(at) {
            self.node_mut(moved).position = at as u32;
        }
    }

    /// Frees the id of a node.
    pub(crate) fn forget(&mut self, id: NodeId) {
        let n = self.node_mut(id);
        debug_assert!(n.object.is_none() && n.dentry.is_none() && n.inode.is_none());
        n.extents = vec![];
        n.children = vec![];
        self.vacant.push(id.0);
    }

    /// Gives a node `n` more blocks, behind its last extent or in its group where possible.
    pub(crate) fn give_blocks(&mut self, node: NodeId, n: u32) -> Option<()> {
        let Node { fs, group, .. } = *self.node(node);
        let goal = match self.node(node).extents.last() {
            Some(e) => e.start + e.len,
            None => group * GROUP,
        };
        let more = self.system_mut(fs).blocks.alloc(n, goal)?;
        self.node_mut(node).extend(&more);
        Some(())
    }

    pub(crate) fn fill_blocks(&mut self, node: NodeId, n: u32) -> Option<u32> {
        let lacks = n.saturating_sub(self.node(node).allocated());
        if lacks > 0 {
            self.give_blocks(node, lacks)?;
        }
        Some(lacks)
    }

    pub(crate) fn lay_node(
        &mut self,
        parent: NodeId,
        is_dir: bool,
        pages: u32,
    ) -> Result<NodeId, Fail> {
        let node = self.add_node(parent, is_dir);
        let need = self.node(node).position / ENTRIES_A_BLOCK + 1;
        if self.fill_blocks(parent, need).ok_or(Fail::NoSpace)? > 0 {
            self.note_written(parent);
        }
        self.give_blocks(node, pages).ok_or(Fail::NoSpace)?;
        if !is_dir {
            self.node_mut(node).pages = pages;
        }
        self.note_written(node);
        Ok(node)
    }

    /// Marks the blocks of a node and its inode as having content.
    fn note_written(&mut self, node: NodeId) {
        let n = self.node(node);
        let (fs, number, extents) = (n.fs, n.number, n.extents.clone());
        let blocks = &mut self.system_mut(fs).blocks;
        blocks.set_written(blocks.inode_block(number));
        for e in extents {
            for b in e.start..e.start + e.len {
                blocks.set_written(b);
            }
        }
    }
}

impl FsKind {
    /// Cache of its inodes.
    pub fn inode_cache(self) -> CacheKind {
        match self {
            FsKind::Ext2 => CacheKind::Ext2Inode,
            FsKind::Ext3 => CacheKind::Ext3Inode,
            FsKind::Tmpfs => CacheKind::ShmemInode,
        }
    }
}
