//! Shrinkers of the dentry and inode caches. `spec: 4.1`

use crate::fs::NodeId;
use crate::fs::node::{dentry_links, inode_links};
use crate::kernel::Sim;

impl Sim {
    /// Shrinks the caches in proportion to what reclaim has scanned; returns how many objects were freed. `spec: 4.1`
    pub(crate) fn shrink_caches(&mut self, scanned: u64, lru_pages: u64) -> u64 {
        let lists = &mut self.kernel().vfs.lists;
        let n = lists.dentries.len.into();
        let dentries = lists.dentry_shrinker.ask(scanned, lru_pages, n);
        let n = lists.inodes.len.into();
        let inodes = lists.inode_shrinker.ask(scanned, lru_pages, n);
        self.kernel().counters.slabs_scanned += dentries + inodes;
        let freed = self.prune_dentries(dentries) + self.prune_inodes(inodes);
        self.free_pending();
        freed
    }

    fn prune_dentries(&mut self, scan: u64) -> u64 {
        let mut freed = 0;
        for _ in 0..scan {
            let kernel = self.kernel();
            kernel.owed += kernel.config.costs.shrink_object;
            let vfs = &mut kernel.vfs;
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
            let kernel = self.kernel();
            kernel.owed += kernel.config.costs.shrink_object;
            let vfs = &mut kernel.vfs;
            let Some(id) = vfs.lists.inodes.last() else {
                break;
            };
            vfs.lists.inodes.remove(&mut vfs.nodes, id, inode_links);
            if self.invalidate(id) {
                self.drop_inode(id);
                freed += 1;
            } else {
                let vfs = &mut self.kernel().vfs;
                vfs.lists.inodes.push_front(&mut vfs.nodes, id, inode_links);
            }
        }
        freed
    }

    /// Frees an unused dentry; its inode stays on the list of unused inodes.
    fn drop_dentry(&mut self, id: NodeId) {
        let n = self.kernel().vfs.node_mut(id);
        let (dentry, parent) = (n.dentry.take(), n.parent);
        if let Some(obj) = dentry {
            self.kmem_free_late(obj);
        }
        let vfs = &mut self.kernel().vfs;
        vfs.lists.inodes.push_front(&mut vfs.nodes, id, inode_links);
        self.unpin(parent);
    }

    /// Frees an inode without dentry and pages.
    fn drop_inode(&mut self, id: NodeId) {
        let kernel = self.kernel();
        let n = kernel.vfs.node_mut(id);
        let (inode, object) = (n.inode.take(), n.object.take());
        if let Some(object) = object {
            kernel.objects.remove(object);
        }
        if let Some(obj) = inode {
            self.kmem_free(obj);
        }
    }
}
