//! The page cache: adding and removing pages, dirty marks, the index.
//!
//! Invariant: a page is dirty in its object's set exactly when the allocator's flag says so and it is on a file
//! system with a device; `Dirty::nr_dirty` counts them.

use crate::error::Fail;
use crate::fs::node::inode_links;
use crate::fs::{FsKind, NodeId};
use crate::kernel::mm::Who;
use crate::kernel::{Cx, KernelState, Sim};
use crate::kmem::Obj;
use crate::kmem::caches::CacheKind;
use crate::mm::frames::{FrameFlags, FrameInfo, ObjectId, Owner};
use crate::mm::object::{Entry, ObjectKind, PageLocation, RADIX, RadixNode};
use unfrag_eras::reclaim::PageFlags;
use unfrag_eras::{Gfp, Pfn};

/// Flags of requests for buffer heads.
const BUFFER_HEAD: Gfp = Gfp::KERNEL.difference(Gfp::FS);

impl Cx<'_> {
    /// Makes sure that the next buffer head can be allocated without a wait.
    ///
    /// # Errors
    /// As [`kmem_alloc`](Cx::kmem_alloc).
    pub(crate) fn warm_buffers(&mut self, who: Who) -> Result<(), Fail> {
        let cache = self.with(|sim| sim.cache(CacheKind::BufferHead));
        let obj = self.kmem_alloc(who, cache, BUFFER_HEAD)?;
        self.with(|sim| sim.kmem_free(obj));
        Ok(())
    }
}

impl KernelState {
    /// Counts one page less under a node of an object's index; returns the node's object if it was the last.
    pub(crate) fn radix_remove(&mut self, object: ObjectId, index: u32) -> Option<Obj> {
        let o = self.objects.get_mut(object);
        let node = o.radix.get_mut((index / RADIX) as usize)?;
        node.count = node.count.saturating_sub(1);
        if node.count == 0 {
            node.obj.take()
        } else {
            None
        }
    }
}

impl Sim {
    /// Counts one page more under a node of an object's index. A file of one page needs no node.
    pub(crate) fn radix_insert(&mut self, object: ObjectId, index: u32) {
        let at = (index / RADIX) as usize;
        let o = self.kernel().objects.get_mut(object);
        if at >= o.radix.len() {
            o.radix.resize(at + 1, RadixNode::default());
        }
        o.radix[at].count += 1;
        if o.radix[at].obj.is_some() || (index == 0 && o.len() <= 1) {
            return;
        }
        // The node was allocated ahead, where waiting was allowed.
        let node = self.kernel().radix_stash.pop().or_else(|| {
            let cache = self.cache(CacheKind::RadixTreeNode);
            self.kmem_nowait(cache, Gfp::KERNEL | Gfp::HIGH | Gfp::NOWARN)
        });
        self.kernel().objects.get_mut(object).radix[at].obj = node;
    }

    /// Adds a page to the cache. `locked`: it is about to be read.
    pub(crate) fn add_to_cache(&mut self, object: ObjectId, index: u32, pfn: Pfn, locked: bool) {
        let kernel = self.kernel();
        let o = kernel.objects.get_mut(object);
        let file = !matches!(o.kind, ObjectKind::Shmem(_));
        debug_assert!(o.get(index) == Entry::ABSENT);
        o.set(index, Entry::frame(pfn));
        let mut info = FrameInfo::new(Owner::File(object), index);
        info.bits.set(FrameFlags::IN_FLIGHT, locked);
        *kernel.frames.get_mut(pfn) = info;
        self.radix_insert(object, index);
        let mut flags = PageFlags::empty();
        flags.set(PageFlags::LOCKED, locked);
        self.manager().pages().lru_add_new(pfn, file, flags);
    }

    /// Marks a page of a file dirty.
    pub(crate) fn set_dirty(&mut self, object: ObjectId, index: u32, pfn: Pfn) {
        self.manager().pages().set(pfn, PageFlags::DIRTY);
        let now = self.now();
        let kernel = self.kernel();
        let o = kernel.objects.get_mut(object);
        let kind = o.kind;
        if matches!(kind, ObjectKind::Shmem(_) | ObjectKind::Anon(_)) || !o.dirty.set(index, true) {
            return;
        }
        o.nr_dirty += 1;
        let first = o.nr_dirty == 1;
        kernel.vfs.dirty.nr_dirty += 1;
        match kind {
            ObjectKind::File(n) => {
                let n = NodeId(n);
                let node = kernel.vfs.node_mut(n);
                if first {
                    node.dirty_since = now;
                }
                if !node.on_dirty_list {
                    node.on_dirty_list = true;
                    let fs = node.fs;
                    kernel.vfs.system_mut(fs).dirty.push_back(n);
                }
            }
            ObjectKind::Device(fs) if first => {
                kernel.vfs.system_mut(fs as u8).device_dirty_since = now
            }
            _ => {}
        }
    }

    /// Removes a page from the cache and frees it, now or when its transfer ends. It must not be mapped.
    pub(crate) fn remove_from_cache(&mut self, object: ObjectId, index: u32) {
        let PageLocation::Frame(pfn) = self.kernel_ref().at(object, index) else {
            return;
        };
        self.kernel().clear_dirty_mark(object, index);
        let kernel = self.kernel();
        kernel.objects.get_mut(object).set(index, Entry::ABSENT);
        let node = kernel.radix_remove(object, index);
        let info = kernel.frames.get_mut(pfn);
        let buffers = info.buffers();
        info.set_owner(Owner::None, 0);
        if info.bits.contains(FrameFlags::BUFFERS) {
            info.set_buffers(None);
        } else if let (Some(slot), Some(swap)) = (info.slot(), &mut kernel.swap) {
            // A page of tmpfs that is still being written to swap.
            info.set_slot(None);
            swap.set_cached(slot, None);
        }
        for obj in node.into_iter().chain(buffers) {
            self.kmem_free(obj);
        }
        self.free_page(pfn);
    }

    /// Attaches a buffer head to a page; false if its slab has to be waited for.
    pub(crate) fn attach_buffers(&mut self, pfn: Pfn) -> bool {
        if self.kernel_ref().frames.get(pfn).buffers().is_some() {
            return true;
        }
        let cache = self.cache(CacheKind::BufferHead);
        match self.kmem_now(cache, BUFFER_HEAD) {
            Some(obj) => {
                self.kernel().frames.get_mut(pfn).set_buffers(Some(obj));
                true
            }
            None => false,
        }
    }

    /// Drops the clean pages of a node's page cache that are not mapped and have no transfer. True if none is
    /// left.
    pub(crate) fn invalidate(&mut self, node: NodeId) -> bool {
        let Some(object) = self.kernel_ref().vfs.node(node).object else {
            return true;
        };
        let mut at = 0;
        while let Some(i) = self.kernel_ref().objects.get(object).next_present(at) {
            at = i + 1;
            let Some(pfn) = self.kernel_ref().objects.get(object).get(i).pfn() else {
                continue;
            };
            let info = *self.kernel_ref().frames.get(pfn);
            let busy = PageFlags::DIRTY | PageFlags::WRITEBACK | PageFlags::LOCKED;
            if info.maps > 0
                || info.bits.contains(FrameFlags::IN_FLIGHT)
                || self.manager().inspect().page_flags(pfn).intersects(busy)
            {
                continue;
            }
            self.kernel().counters.inode_pages_dropped += 1;
            self.remove_from_cache(object, i);
        }
        let o = self.kernel_ref().objects.get(object);
        o.frames == 0 && o.swapped == 0
    }

    /// Removes all pages of a node from `from` on from memory, dirty or not.
    pub(crate) fn truncate_pages(&mut self, node: NodeId, from: u32) {
        let Some(object) = self.kernel_ref().vfs.node(node).object else {
            return;
        };
        let mut at = from;
        while let Some(i) = self.kernel_ref().objects.get(object).next_present(at) {
            at = i + 1;
            match self.kernel_ref().at(object, i) {
                PageLocation::Frame(pfn) => {
                    self.kernel().unmap_file_page(object, i, pfn);
                    self.manager().pages().clear(pfn, PageFlags::MAPPED);
                    self.remove_from_cache(object, i);
                }
                PageLocation::Slot(slot) => {
                    self.kernel().objects.get_mut(object).set(i, Entry::ABSENT);
                    self.drop_swap_entry(slot);
                }
                PageLocation::Absent => {}
            }
        }
        self.kernel().objects.get_mut(object).truncate(from);
    }

    /// Whether a node's inode is in memory.
    pub fn is_cached(&self, node: NodeId) -> bool {
        self.kernel_ref().vfs.node(node).inode.is_some()
    }

    /// Whether a node is on tmpfs. Such a node stays in memory as long as it has a name.
    pub(crate) fn is_tmpfs(&self, node: NodeId) -> bool {
        let vfs = &self.kernel_ref().vfs;
        vfs.system(vfs.node(node).fs).kind == FsKind::Tmpfs
    }

    /// Removes a node from the list of unused inodes.
    pub(crate) fn unlist_inode(&mut self, node: NodeId) {
        let vfs = &mut self.kernel().vfs;
        vfs.lists.inodes.remove(&mut vfs.nodes, node, inode_links);
    }
}

impl KernelState {
    pub(crate) fn clear_dirty_mark(&mut self, object: ObjectId, index: u32) {
        let o = self.objects.get_mut(object);
        if o.dirty.set(index, false) {
            o.nr_dirty -= 1;
            self.vfs.dirty.nr_dirty -= 1;
        }
    }
}
