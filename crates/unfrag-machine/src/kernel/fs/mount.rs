//! Mounted file systems, and the users of their nodes.

use crate::fs::blocks::Blocks;
use crate::fs::node::dentry_links;
use crate::fs::vfs::FileSystem;
use crate::fs::{FsConfig, FsId, FsKind, Node, NodeId};
use crate::kernel::Sim;
use crate::mm::frames::ObjectId;
use crate::mm::object::ObjectKind;
use std::collections::VecDeque;

impl Sim {
    /// Mounts an empty file system. Its root directory is always in memory.
    pub fn mount(&mut self, config: &FsConfig) -> FsId {
        let kernel = self.kernel();
        let id = kernel.vfs.systems.len() as u8;
        let device = kernel.objects.create(ObjectKind::Device(id.into()));
        let mut root = Node::new(id, true, NodeId(0), 0);
        root.pins = 1;
        let root = kernel.vfs.insert(root);
        kernel.vfs.node_mut(root).parent = root;
        kernel.vfs.systems.push(FileSystem {
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
        self.kernel_ref().vfs.system(fs.0).root
    }

    /// Pins a node: it stays in memory.
    pub fn pin(&mut self, node: NodeId) {
        let vfs = &mut self.kernel().vfs;
        vfs.node_mut(node).pins += 1;
        vfs.lists
            .dentries
            .remove(&mut vfs.nodes, node, dentry_links);
    }

    /// Unpins a node. Without pins and name it is deleted.
    pub fn unpin(&mut self, node: NodeId) {
        let vfs = &mut self.kernel().vfs;
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
        let kernel = self.kernel();
        if let Some(object) = kernel.vfs.node(node).object {
            return object;
        }
        let fs = kernel.vfs.node(node).fs;
        let kind = match kernel.vfs.system(fs).kind {
            FsKind::Tmpfs => ObjectKind::Shmem(node.0),
            _ => ObjectKind::File(node.0),
        };
        let object = kernel.objects.create(kind);
        kernel.vfs.node_mut(node).object = Some(object);
        object
    }
}
