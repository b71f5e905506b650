//! Nodes: the files and directories of a file system, and what of them is in memory.
//!
//! A node is a name and its inode in one (there are no hard links). It exists on disk until it is unlinked.
//! In memory it may have a *dentry*, which holds its inode, which holds its page cache. An unused dentry
//! stays on a list until it is looked up again or pruned, and so does an inode whose dentry is gone.
//! `spec: 6.4, 8.6`
//!
//! Invariant: a node with a dentry has an inode. A cached child pins its parent's dentry. A node is on the
//! dentry list exactly when it has a dentry without pins, and on the inode list when it has an inode but no
//! dentry.

use super::blocks::Extent;
use crate::engine::Nanos;
use crate::kmem::Obj;
use crate::mm::frames::ObjectId;

/// A file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// Entries of a block of a directory.
pub const ENTRIES_A_BLOCK: u32 = 100;

/// No node, in links.
pub(crate) const NIL: u32 = u32::MAX;

/// Neighbours on a list; `on` says whether it is on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Links {
    pub prev: u32,
    pub next: u32,
    pub on: bool,
}

const OFF: Links = Links {
    prev: NIL,
    next: NIL,
    on: false,
};

/// A file or directory.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its file system.
    pub fs: u8,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Whether it has a name. Without one it is deleted with its last user.
    pub linked: bool,
    /// Its directory; itself for a root.
    pub parent: NodeId,
    /// Components of its path, the root among them.
    pub depth: u32,
    /// Length, in pages.
    pub pages: u32,
    /// Its page cache.
    pub object: Option<ObjectId>,
    /// Its dentry, if cached.
    pub dentry: Option<Obj>,
    /// Its inode, if cached.
    pub inode: Option<Obj>,
    /// Opens, mappings and cached children.
    pub pins: u32,
    /// Looked up since the dentry list was last pruned.
    pub referenced: bool,
    /// Its extents.
    pub extents: Vec<Extent>,
    /// Inode number.
    pub number: u32,
    /// Group of a directory.
    pub group: u32,
    /// Entries of a directory.
    pub children: Vec<NodeId>,
    /// Position among the parent's children.
    pub position: u32,
    /// When its oldest dirty page became dirty.
    pub dirty_since: Nanos,
    /// It is on its file system's list of dirty nodes.
    pub on_dirty_list: bool,
    /// Its data have to be written before the journal's next commit (ordered data).
    pub in_transaction: bool,
    /// Page at which the next round of writeback continues.
    pub writeback_index: u32,
    pub(crate) dentry_links: Links,
    pub(crate) inode_links: Links,
}

impl Node {
    /// A node that is on disk and not in memory.
    pub fn new(fs: u8, is_dir: bool, parent: NodeId, number: u32) -> Node {
        Node {
            fs,
            is_dir,
            linked: true,
            parent,
            depth: 1,
            pages: 0,
            object: None,
            dentry: None,
            inode: None,
            pins: 0,
            referenced: false,
            extents: vec![],
            number,
            group: 0,
            children: vec![],
            position: 0,
            dirty_since: 0,
            on_dirty_list: false,
            in_transaction: false,
            writeback_index: 0,
            dentry_links: OFF,
            inode_links: OFF,
        }
    }

    /// Block of a page, and the number of contiguous pages from there on.
    pub fn block(&self, index: u32) -> Option<(u32, u32)> {
        let mut i = index;
        for e in &self.extents {
            if i < e.len {
                return Some((e.start + i, e.len - i));
            }
            i -= e.len;
        }
        None
    }

    /// Pages that have a block.
    pub fn allocated(&self) -> u32 {
        self.extents.iter().map(|e| e.len).sum()
    }

    /// Adds blocks at its end.
    pub fn extend(&mut self, more: &[Extent]) {
        for e in more {
            match self.extents.last_mut() {
                Some(last) if last.start + last.len == e.start => last.len += e.len,
                _ => self.extents.push(*e),
            }
        }
    }
}

/// A list of nodes, newest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeList {
    head: u32,
    tail: u32,
    pub len: u32,
}

impl NodeList {
    pub const EMPTY: NodeList = NodeList {
        head: NIL,
        tail: NIL,
        len: 0,
    };

    /// The oldest.
    pub fn last(&self) -> Option<NodeId> {
        (self.tail != NIL).then_some(NodeId(self.tail))
    }

    pub fn push_front(
        &mut self,
        nodes: &mut [Node],
        n: NodeId,
        links: fn(&mut Node) -> &mut Links,
    ) {
        let head = self.head;
        let l = links(&mut nodes[n.0 as usize]);
        debug_assert!(!l.on);
        *l = Links {
            prev: NIL,
            next: head,
            on: true,
        };
        match head {
            NIL => self.tail = n.0,
            h => links(&mut nodes[h as usize]).prev = n.0,
        }
        self.head = n.0;
        self.len += 1;
    }

    pub fn remove(
        &mut self,
        nodes: &mut [Node],
        n: NodeId,
        links: fn(&mut Node) -> &mut Links,
    ) -> bool {
        let l = std::mem::replace(links(&mut nodes[n.0 as usize]), OFF);
        if !l.on {
            return false;
        }
        match l.prev {
            NIL => self.head = l.next,
            p => links(&mut nodes[p as usize]).next = l.next,
        }
        match l.next {
            NIL => self.tail = l.prev,
            x => links(&mut nodes[x as usize]).prev = l.prev,
        }
        self.len -= 1;
        true
    }
}

pub(crate) fn dentry_links(n: &mut Node) -> &mut Links {
    &mut n.dentry_links
}

pub(crate) fn inode_links(n: &mut Node) -> &mut Links {
    &mut n.inode_links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_found_in_its_extent() {
        let mut n = Node::new(0, false, NodeId(0), 0);
        n.extend(&[Extent { start: 100, len: 3 }]);
        n.extend(&[Extent { start: 103, len: 2 }, Extent { start: 50, len: 4 }]);
        assert_eq!(n.extents.len(), 2);
        assert_eq!(n.block(0), Some((100, 5)));
        assert_eq!(n.block(4), Some((104, 1)));
        assert_eq!(n.block(6), Some((51, 3)));
        assert_eq!((n.block(9), n.allocated()), (None, 9));
    }

    #[test]
    fn a_list_keeps_its_order_through_removals() {
        let mut nodes: Vec<_> = (0..4).map(|i| Node::new(0, false, NodeId(0), i)).collect();
        let mut list = NodeList::EMPTY;
        for i in 0..4 {
            list.push_front(&mut nodes, NodeId(i), dentry_links);
        }
        assert!(list.remove(&mut nodes, NodeId(1), dentry_links));
        assert!(!list.remove(&mut nodes, NodeId(1), dentry_links));
        let mut seen = vec![];
        while let Some(n) = list.last() {
            list.remove(&mut nodes, n, dentry_links);
            seen.push(n.0);
        }
        assert_eq!((seen, list.len), (vec![0, 2, 3], 0));
    }
}
