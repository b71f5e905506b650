//! Creating and unlinking files and directories.

use crate::error::Fail;
use crate::fs::blocks::Blocks;
use crate::fs::node::{ENTRIES_A_BLOCK, dentry_links, inode_links};
use crate::fs::{FsKind, NodeId};
use crate::kernel::mm::Who;
use crate::kernel::{Cx, Sim};
use crate::kmem::caches::CacheKind;

impl Cx<'_> {
    /// Creates an empty file or directory in a directory, and pins it. The directory must be pinned.
    ///
    /// # Errors
    /// [`Fail::NoMemory`], [`Fail::NoSpace`], [`Fail::Io`], [`Fail::Killed`]; nothing is left then.
    pub fn create_node(&mut self, who: Who, dir: NodeId, is_dir: bool) -> Result<NodeId, Fail> {
        self.with(|sim| {
            let kernel = sim.kernel();
            kernel.owed += kernel.config.costs.syscall + kernel.config.costs.path_component;
        });
        let (fs, kind) = self.with(|sim| {
            let vfs = &sim.kernel_ref().vfs;
            let fs = vfs.node(dir).fs;
            (fs, vfs.system(fs).kind)
        });
        let name = self.kmem_kind(who, CacheKind::NamesCache)?;
        let made = self.make_node(who, dir, is_dir, fs, kind);
        self.with(|sim| sim.kmem_free(name));
        self.pay_if_much();
        made
    }

    fn make_node(
        &mut self,
        who: Who,
        dir: NodeId,
        is_dir: bool,
        fs: u8,
        kind: FsKind,
    ) -> Result<NodeId, Fail> {
        let inode = self.kmem_kind(who, kind.inode_cache())?;
        let dentry = match self.kmem_kind(who, CacheKind::Dentry) {
            Ok(d) => d,
            Err(e) => {
                self.with(|sim| sim.kmem_free(inode));
                return Err(e);
            }
        };
        let node = self.with(|sim| {
            let node = sim.kernel().vfs.add_node(dir, is_dir);
            sim.kernel().vfs.node_mut(node).inode = Some(inode);
            sim.set_dentry(node, dentry);
            sim.pin(node);
            // Without a disk, the name itself holds the node in memory.
            if kind == FsKind::Tmpfs {
                sim.pin(node);
            }
            node
        });
        if kind == FsKind::Tmpfs {
            return Ok(node);
        }
        let changed = self.note_change(who, node, fs, kind, is_dir);
        if let Err(e) = changed {
            self.remove_node(who, node);
            self.with(|sim| sim.unpin(node));
            return Err(e);
        }
        Ok(node)
    }

    /// Marks the blocks that a new or vanished name changes: the directory's, the inode's, bitmaps.
    fn note_change(
        &mut self,
        who: Who,
        node: NodeId,
        fs: u8,
        kind: FsKind,
        is_dir: bool,
    ) -> Result<(), Fail> {
        self.grow_directory(node)?;
        if is_dir {
            self.give_blocks(node, 1)?;
        }
        if kind == FsKind::Ext3 {
            self.kmem_pass(who, CacheKind::JournalHandle)?;
        }
        let blocks = self.with(|sim| {
            let inode = sim.inode_block(node);
            let bitmap = Blocks::bitmap_block(inode, true);
            [sim.entry_block(node), Some(inode), Some(bitmap)]
        });
        for block in blocks.into_iter().flatten() {
            self.device_block(who, fs, block, true)?;
        }
        Ok(())
    }

    /// The directory of a node gets a block for the node's entry.
    fn grow_directory(&mut self, node: NodeId) -> Result<(), Fail> {
        let (dir, need) = self.with(|sim| {
            let n = sim.kernel_ref().vfs.node(node);
            (n.parent, n.position / ENTRIES_A_BLOCK + 1)
        });
        self.fill_blocks(dir, need).map(|_| ())
    }

    /// Gives a node `n` more blocks.
    pub(crate) fn give_blocks(&mut self, node: NodeId, n: u32) -> Result<(), Fail> {
        let given = self.with(|sim| sim.kernel().vfs.give_blocks(node, n));
        given.ok_or(Fail::NoSpace)
    }

    /// Gives a node the blocks that it lacks to have `n`; returns how many those were.
    pub(crate) fn fill_blocks(&mut self, node: NodeId, n: u32) -> Result<u32, Fail> {
        let given = self.with(|sim| sim.kernel().vfs.fill_blocks(node, n));
        given.ok_or(Fail::NoSpace)
    }

    /// Unlinks a node. It is deleted at once, or with its last user.
    pub fn remove_node(&mut self, who: Who, node: NodeId) {
        let (fs, kind, entry) = self.with(|sim| {
            let kernel = sim.kernel();
            kernel.owed += kernel.config.costs.syscall + kernel.config.costs.path_component;
            let fs = kernel.vfs.node(node).fs;
            let kind = kernel.vfs.system(fs).kind;
            (fs, kind, sim.entry_block(node))
        });
        self.with(|sim| {
            sim.pin(node);
            sim.kernel().vfs.unlink_from_parent(node);
            if kind == FsKind::Tmpfs {
                sim.unpin(node);
            }
            sim.unpin(node);
        });
        if kind == FsKind::Ext3 {
            // Without a handle the change is still made.
            let _ = self.kmem_pass(who, CacheKind::JournalHandle);
        }
        if let Some(block) = entry {
            let _ = self.device_block(who, fs, block, true);
        }
        self.pay_if_much();
    }
}

impl Sim {
    /// Deletes a node without name and users: its pages, blocks and inode.
    pub(super) fn delete_node(&mut self, node: NodeId) {
        self.truncate_pages(node, 0);
        let kernel = self.kernel();
        let vfs = &mut kernel.vfs;
        vfs.lists
            .dentries
            .remove(&mut vfs.nodes, node, dentry_links);
        vfs.lists.inodes.remove(&mut vfs.nodes, node, inode_links);
        let n = vfs.node_mut(node);
        let (fs, parent, number) = (n.fs, n.parent, n.number);
        let (dentry, inode, object) = (n.dentry.take(), n.inode.take(), n.object.take());
        let extents = std::mem::take(&mut n.extents);
        // The dirty list skips its entry.
        n.on_dirty_list = false;
        if std::mem::take(&mut vfs.node_mut(node).in_transaction)
            && let Some(j) = &mut vfs.system_mut(fs).journal
        {
            j.forget(node);
        }
        let blocks = &mut vfs.system_mut(fs).blocks;
        extents.into_iter().for_each(|e| blocks.release(e));
        blocks.release_inode(number);
        if let Some(object) = object {
            kernel.objects.remove(object);
        }
        let had_dentry = dentry.is_some();
        if let Some(obj) = dentry {
            self.kmem_free_late(obj);
        }
        if let Some(obj) = inode {
            self.kmem_free(obj);
        }
        self.kernel().vfs.forget(node);
        if had_dentry {
            self.unpin(parent);
        }
    }
}
