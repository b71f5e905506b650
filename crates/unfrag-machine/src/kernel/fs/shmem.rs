//! tmpfs: files whose pages are in memory and swap only. `spec: 8.6`
//!
//! A page is dirty as long as it lives. Reclaim moves it to swap; the next use swaps it in.

use crate::error::Fail;
use crate::fs::NodeId;
use crate::kernel::mm::Who;
use crate::kernel::{Cx, Sim};
use crate::mm::config::CACHE_PAGE;
use crate::mm::frames::ObjectId;
use crate::mm::object::PageLocation;
use unfrag_eras::reclaim::PageFlags;
use unfrag_eras::{Gfp, Pfn};

/// What a page of tmpfs needs before it can be used.
enum ShmemNeed {
    Ready(Pfn),
    Page,
    Transfer(Pfn),
    SwapIn(u32),
    Failed,
}

impl Sim {
    fn shmem_step(&mut self, object: ObjectId, index: u32, spare: &mut Option<Pfn>) -> ShmemNeed {
        match self.kernel_ref().at(object, index) {
            PageLocation::Frame(pfn) if self.is_locked(pfn) => ShmemNeed::Transfer(pfn),
            PageLocation::Frame(pfn) => {
                self.manager().pages().mark_accessed(pfn);
                ShmemNeed::Ready(pfn)
            }
            PageLocation::Absent => match spare.take() {
                Some(pfn) => {
                    self.add_to_cache(object, index, pfn, false);
                    self.manager().pages().set(pfn, PageFlags::DIRTY);
                    ShmemNeed::Ready(pfn)
                }
                None => ShmemNeed::Page,
            },
            PageLocation::Slot(slot) => {
                match self.kernel_ref().swap.as_ref().and_then(|s| s.cached(slot)) {
                    Some(pfn) if self.is_locked(pfn) => ShmemNeed::Transfer(pfn),
                    Some(pfn) if self.has_error(pfn) => ShmemNeed::Failed,
                    Some(pfn) => {
                        self.shmem_claim(object, index, slot, pfn);
                        ShmemNeed::Ready(pfn)
                    }
                    None => ShmemNeed::SwapIn(slot),
                }
            }
        }
    }
}

impl Cx<'_> {
    /// The page of a tmpfs file, allocated or swapped in if need be.
    ///
    /// # Errors
    /// [`Fail::NoMemory`], [`Fail::Io`], [`Fail::Killed`].
    pub(crate) fn shmem_page(
        &mut self,
        who: Who,
        object: ObjectId,
        index: u32,
        gfp: Gfp,
    ) -> Result<Pfn, Fail> {
        self.preload(who, gfp)?;
        let mut spare = None;
        let got = loop {
            match self.with(|sim| sim.shmem_step(object, index, &mut spare)) {
                ShmemNeed::Ready(pfn) => break Ok(pfn),
                ShmemNeed::Failed => break Err(Fail::Io),
                ShmemNeed::Page => match self.alloc_pages(who, 0, gfp) {
                    Ok(pfn) => spare = Some(pfn),
                    Err(e) => break Err(e),
                },
                ShmemNeed::Transfer(pfn) => self.wait_for_read(pfn),
                ShmemNeed::SwapIn(slot) => {
                    if let Err(e) = self.swap_in(who, slot, gfp) {
                        break Err(e);
                    }
                }
            }
            if self.killed() {
                break Err(Fail::Killed);
            }
        };
        if let Some(pfn) = spare {
            self.with(|sim| sim.give_frame(pfn, 0));
        }
        got
    }

    /// Writes pages of a tmpfs file.
    pub(super) fn write_shmem(
        &mut self,
        who: Who,
        node: NodeId,
        first: u32,
        count: u32,
    ) -> Result<(), Fail> {
        self.fill_blocks(node, first + count)?;
        let object = self.with(|sim| sim.object_of(node));
        for index in first..first + count {
            self.shmem_page(who, object, index, CACHE_PAGE)?;
            self.with(|sim| {
                let kernel = sim.kernel();
                kernel.owed += kernel.config.costs.write_page;
                let n = kernel.vfs.node_mut(node);
                n.pages = n.pages.max(index + 1);
            });
            self.pay_if_much();
        }
        Ok(())
    }
}
