//! Path lookup: from a name to an inode in memory. `spec: 6.4`
//!
//! A directory's entries and the inode tables are in blocks of the device, which are read into its cache.

use crate::error::Fail;
use crate::fs::node::ENTRIES_A_BLOCK;
use crate::fs::{FsKind, NodeId};
use crate::kernel::mm::Who;
use crate::kernel::{Cx, Sim};
use crate::kmem::Obj;
use crate::kmem::caches::CacheKind;

impl Sim {
    /// Block of a directory that holds a child's entry.
    pub(crate) fn entry_block(&self, node: NodeId) -> Option<u32> {
        let vfs = &self.kernel_ref().vfs;
        let n = vfs.node(node);
        let (block, _) = vfs.node(n.parent).block(n.position / ENTRIES_A_BLOCK)?;
        Some(block)
    }

    /// Block of the inode table that holds a node's inode.
    pub(crate) fn inode_block(&self, node: NodeId) -> u32 {
        let vfs = &self.kernel_ref().vfs;
        let n = vfs.node(node);
        vfs.system(n.fs).blocks.inode_block(n.number)
    }

    fn has_dentry(&self, node: NodeId) -> bool {
        let vfs = &self.kernel_ref().vfs;
        let n = vfs.node(node);
        n.dentry.is_some() || vfs.system(n.fs).root == node
    }
}

impl Cx<'_> {
    /// Looks a node up by its path and pins it: afterwards its dentry and inode are in memory. The
    /// caller unpins it.
    ///
    /// # Errors
    /// [`Fail::NoMemory`], [`Fail::Io`], [`Fail::Killed`]; it is not pinned then.
    pub fn lookup(&mut self, who: Who, node: NodeId) -> Result<(), Fail> {
        self.with(|sim| {
            let kernel = sim.kernel();
            kernel.owed += kernel.config.costs.syscall;
            sim.pin(node);
        });
        // The name is in a buffer of its own during the call.
        let done = match self.kmem_kind(who, CacheKind::NamesCache) {
            Ok(name) => {
                let done = self.walk(who, node);
                self.with(|sim| sim.kmem_free(name));
                done
            }
            Err(e) => Err(e),
        };
        if done.is_err() {
            self.with(|sim| sim.unpin(node));
        }
        self.pay_if_much();
        done
    }

    fn walk(&mut self, who: Who, node: NodeId) -> Result<(), Fail> {
        let missing = self.with(|sim| {
            let mut path = vec![];
            let mut at = node;
            while !sim.has_dentry(at) {
                path.push(at);
                at = sim.kernel_ref().vfs.node(at).parent;
            }
            let kernel = sim.kernel();
            let found = kernel.vfs.node_mut(node);
            found.referenced = true;
            kernel.owed += kernel.config.costs.path_component * u64::from(found.depth);
            path
        });
        for &n in missing.iter().rev() {
            self.instantiate(who, n)?;
        }
        Ok(())
    }

    /// Brings a node into memory whose parent is cached.
    fn instantiate(&mut self, who: Who, node: NodeId) -> Result<(), Fail> {
        if let Some(block) = self.with(|sim| sim.entry_block(node)) {
            let fs = self.with(|sim| sim.kernel_ref().vfs.node(node).fs);
            self.device_block(who, fs, block, false)?;
        }
        self.bring_inode(who, node)?;
        let dentry = self.kmem_kind(who, CacheKind::Dentry)?;
        self.with(|sim| {
            // Another task may have been faster.
            if sim.kernel_ref().vfs.node(node).dentry.is_some() {
                sim.kmem_free(dentry);
            } else {
                sim.set_dentry(node, dentry);
            }
        });
        Ok(())
    }

    /// Brings a node's inode into memory.
    fn bring_inode(&mut self, who: Who, node: NodeId) -> Result<(), Fail> {
        if self.with(|sim| sim.is_cached(node)) {
            return Ok(());
        }
        let (fs, kind, block) = self.with(|sim| {
            let vfs = &sim.kernel_ref().vfs;
            let fs = vfs.node(node).fs;
            (fs, vfs.system(fs).kind, sim.inode_block(node))
        });
        let inode = self.kmem_kind(who, kind.inode_cache())?;
        if kind != FsKind::Tmpfs
            && let Err(e) = self.device_block(who, fs, block, false)
        {
            self.with(|sim| sim.kmem_free(inode));
            return Err(e);
        }
        self.with(|sim| {
            if sim.is_cached(node) {
                sim.kmem_free(inode);
            } else {
                sim.kernel().vfs.node_mut(node).inode = Some(inode);
            }
        });
        Ok(())
    }
}

impl Sim {
    /// Sets a node's dentry, which pins its parent's.
    pub(crate) fn set_dentry(&mut self, node: NodeId, dentry: Obj) {
        self.unlist_inode(node);
        let n = self.kernel().vfs.node_mut(node);
        n.dentry = Some(dentry);
        let parent = n.parent;
        self.pin(parent);
    }
}
