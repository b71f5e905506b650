//! Files: names and inodes, page cache with readahead, writing with limits, flushers, journal, tmpfs,
//! loop devices.
//!
//! - [`node`]: files and directories. [`blocks`]: where they lie. [`tree`]: many of them at once.
//! - [`lookup`]: from a name to an inode in memory, and back out of memory. [`create`]: new files,
//!   and their end.
//! - [`cache`]: pages of files in memory. [`read`]: reading and readahead. [`mod@write`]: writing, and
//!   when a writer is held back. [`writeback`]: what is written when, and by whom. [`shmem`]: tmpfs.
//! - [`loopdev`]: a file system in a file. [`journal`]: commits of ext3.
//!
//! [`Vfs`] is the state. `spec: linux-mm 4.5, 6.4, 8.5, 8.6`

pub mod blocks;
pub mod cache;
pub mod create;
pub mod journal;
pub mod lookup;
pub mod loopdev;
pub mod node;
pub mod read;
pub mod shmem;
#[cfg(test)]
mod tests;
pub mod tree;
pub mod write;
pub mod writeback;

use crate::block::DeviceId;
use crate::kmem::caches;
use crate::kmem::shrinker::Shrinker;
use crate::mm::frames::ObjectId;
use crate::mm::object::Kind as ObjectKind;
use crate::{Nanos, Sim};
use blocks::Blocks;
use journal::Journal;
use loopdev::LoopDevice;
pub use node::{Node, NodeId};
use node::{NodeList, dentry_links, inode_links};
pub use read::Readahead;
use std::collections::VecDeque;
use std::rc::Rc;
use writeback::Dirty;

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
    /// On a stretch of a disk.
    Disk {
        /// The device.
        device: DeviceId,
        /// Its first sector there.
        sector: u64,
    },
    /// In a file, by way of a loop device.
    Loop(u8),
    /// Nowhere: pages are all there is.
    Memory,
}

/// A file system at work.
pub struct FileSystem {
    /// Its name.
    pub name: Rc<str>,
    /// Its kind.
    pub kind: FsKind,
    /// Where its blocks are.
    pub store: Store,
    /// Which block holds what.
    pub blocks: Blocks,
    /// Its device's own blocks in memory (bitmaps, inode tables, directories).
    pub device: ObjectId,
    /// The oldest dirty block of its device became dirty then.
    pub device_dirty_since: Nanos,
    /// Its root directory.
    pub root: NodeId,
    /// Nodes with dirty pages, the first to be written first.
    pub dirty: VecDeque<NodeId>,
    /// Journal, for ext3.
    pub journal: Option<Journal>,
}

/// What a new file system is.
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

/// All files, and what is known of them.
#[derive(Default)]
pub struct Vfs {
    pub(crate) nodes: Vec<Node>,
    vacant: Vec<u32>,
    pub(crate) systems: Vec<FileSystem>,
    pub(crate) loops: Vec<LoopDevice>,
    lists: Lists,
    /// Dirty pages and who writes them.
    pub dirty: Dirty,
}

struct Lists {
    dentries: NodeList,
    inodes: NodeList,
    dentry_shrinker: Shrinker,
    inode_shrinker: Shrinker,
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

    /// Nodes with a dentry that nothing pins, and with an inode alone.
    pub fn unused(&self) -> (u32, u32) {
        (self.lists.dentries.len, self.lists.inodes.len)
    }

    fn insert(&mut self, node: Node) -> NodeId {
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

    /// A new node in a directory, on disk alone.
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

    /// A node without a name any more.
    fn unlink_from_parent(&mut self, id: NodeId) {
        let n = self.node_mut(id);
        n.linked = false;
        let (parent, at) = (n.parent, n.position as usize);
        let siblings = &mut self.node_mut(parent).children;
        siblings.swap_remove(at);
        if let Some(&moved) = siblings.get(at) {
            self.node_mut(moved).position = at as u32;
        }
    }

    /// The node's number may be used for another one.
    fn forget(&mut self, id: NodeId) {
        let n = self.node_mut(id);
        debug_assert!(n.object.is_none() && n.dentry.is_none() && n.inode.is_none());
        n.extents = vec![];
        n.children = vec![];
        self.vacant.push(id.0);
    }
}

impl FsKind {
    /// Cache of its inodes.
    pub fn inode_cache(self) -> caches::Kind {
        match self {
            FsKind::Ext2 => caches::Kind::Ext2Inode,
            FsKind::Ext3 => caches::Kind::Ext3Inode,
            FsKind::Tmpfs => caches::Kind::ShmemInode,
        }
    }
}

impl Sim {
    /// Mounts an empty file system. Its root directory is always in memory.
    pub fn mount(&mut self, config: &FsConfig) -> FsId {
        let mem = self.mem();
        let id = mem.vfs.systems.len() as u8;
        let device = mem.objects.create(ObjectKind::Device(id.into()));
        let mut root = Node::new(id, true, NodeId(0), 0);
        root.pins = 1;
        let root = mem.vfs.insert(root);
        mem.vfs.node_mut(root).parent = root;
        mem.vfs.systems.push(FileSystem {
            name: config.name.clone(),
            kind: config.kind,
            store: config.store,
            blocks: match config.kind {
                FsKind::Tmpfs => Blocks::in_memory(config.pages),
                _ => Blocks::new(config.pages),
            },
            device,
            device_dirty_since: 0,
            root,
            dirty: VecDeque::new(),
            journal: None,
        });
        if config.kind == FsKind::Ext3 {
            self.start_journal(id, config.pages);
        }
        FsId(id)
    }

    /// Root directory of a file system.
    pub fn root(&self, fs: FsId) -> NodeId {
        self.mem_ref().vfs.system(fs.0).root
    }

    /// One more user of a node: it stays in memory.
    pub fn pin(&mut self, node: NodeId) {
        let vfs = &mut self.mem().vfs;
        vfs.node_mut(node).pins += 1;
        vfs.lists
            .dentries
            .remove(&mut vfs.nodes, node, dentry_links);
    }

    /// One user less.
    pub fn unpin(&mut self, node: NodeId) {
        let vfs = &mut self.mem().vfs;
        let n = vfs.node_mut(node);
        n.pins -= 1;
        if n.pins > 0 {
            return;
        }
        if !n.linked {
            self.delete_node(node);
        } else if n.dentry.is_some() {
            vfs.lists
                .dentries
                .push_front(&mut vfs.nodes, node, dentry_links);
        }
    }

    /// The page cache of a node.
    pub fn object_of(&mut self, node: NodeId) -> ObjectId {
        let mem = self.mem();
        if let Some(object) = mem.vfs.node(node).object {
            return object;
        }
        let fs = mem.vfs.node(node).fs;
        let kind = match mem.vfs.system(fs).kind {
            FsKind::Tmpfs => ObjectKind::Shmem(node.0),
            _ => ObjectKind::File(node.0),
        };
        let object = mem.objects.create(kind);
        mem.vfs.node_mut(node).object = Some(object);
        object
    }

    /// Gives pages of caches back in proportion to what reclaim has scanned; answers how many objects
    /// went. `spec: linux-mm 4.1 shrink_slab`
    pub(crate) fn shrink_caches(&mut self, scanned: u64, lru_pages: u64) -> u64 {
        let lists = &mut self.mem().vfs.lists;
        let n = lists.dentries.len.into();
        let dentries = lists.dentry_shrinker.ask(scanned, lru_pages, n);
        let n = lists.inodes.len.into();
        let inodes = lists.inode_shrinker.ask(scanned, lru_pages, n);
        self.mem().counters.slabs_scanned += dentries + inodes;
        let freed = self.prune_dentries(dentries) + self.prune_inodes(inodes);
        self.free_pending();
        freed
    }

    fn prune_dentries(&mut self, scan: u64) -> u64 {
        let mut freed = 0;
        for _ in 0..scan {
            let mem = self.mem();
            mem.owed += mem.config.costs.shrink_object;
            let vfs = &mut mem.vfs;
            let Some(id) = vfs.lists.dentries.last() else {
                break;
            };
            vfs.lists.dentries.remove(&mut vfs.nodes, id, dentry_links);
            if std::mem::take(&mut vfs.node_mut(id).referenced) {
                vfs.lists
                    .dentries
                    .push_front(&mut vfs.nodes, id, dentry_links);
                continue;
            }
            self.drop_dentry(id);
            freed += 1;
        }
        freed
    }

    fn prune_inodes(&mut self, scan: u64) -> u64 {
        let mut freed = 0;
        for _ in 0..scan {
            let mem = self.mem();
            mem.owed += mem.config.costs.shrink_object;
            let vfs = &mut mem.vfs;
            let Some(id) = vfs.lists.inodes.last() else {
                break;
            };
            vfs.lists.inodes.remove(&mut vfs.nodes, id, inode_links);
            if self.invalidate(id) {
                self.drop_inode(id);
                freed += 1;
            } else {
                let vfs = &mut self.mem().vfs;
                vfs.lists.inodes.push_front(&mut vfs.nodes, id, inode_links);
            }
        }
        freed
    }

    /// A dentry that nothing pins leaves memory; its inode stays for a while.
    fn drop_dentry(&mut self, id: NodeId) {
        let n = self.mem().vfs.node_mut(id);
        let (dentry, parent) = (n.dentry.take(), n.parent);
        if let Some(obj) = dentry {
            self.kmem_free_late(obj);
        }
        let vfs = &mut self.mem().vfs;
        vfs.lists.inodes.push_front(&mut vfs.nodes, id, inode_links);
        self.unpin(parent);
    }

    /// An inode without dentry and pages leaves memory.
    fn drop_inode(&mut self, id: NodeId) {
        let mem = self.mem();
        let n = mem.vfs.node_mut(id);
        let (inode, object) = (n.inode.take(), n.object.take());
        if let Some(object) = object {
            mem.objects.remove(object);
        }
        if let Some(obj) = inode {
            self.kmem_free(obj);
        }
    }
}
