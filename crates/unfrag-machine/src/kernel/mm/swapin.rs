//! Reading pages from swap in clusters, and the end of transfers. `spec: 4.5`

use crate::block::{Bio, Dir, Done};
use crate::channels::page_channel;
use crate::error::Fail;
use crate::kernel::mm::Who;
use crate::kernel::{Cx, Sim};
use crate::mm::frames::{FrameFlags, FrameInfo, ObjectId, Owner};
use crate::mm::object::{Entry, ObjectKind};
use crate::mm::process::ProcId;
use crate::mm::swap::READ_CLUSTER;
use unfrag_eras::reclaim::PageFlags;
use unfrag_eras::{Gfp, Pfn};

/// Slots of one sweep.
const SWEEP: u32 = 64;

impl Sim {
    /// Maps a page of the swap cache for a process.
    pub(super) fn map_swapped(
        &mut self,
        who: ProcId,
        area: u16,
        index: u32,
        slot: u32,
        pfn: Pfn,
        write: bool,
    ) {
        let kernel = self.kernel();
        let p = kernel.procs.get_mut(who);
        p.rss += 1;
        p.swapped -= 1;
        let Some(object) = p.area(area).map(|a| a.object) else {
            unreachable!("an area that faults is there")
        };
        let o = kernel.objects.get_mut(object);
        let ObjectKind::Anon(family) = o.kind else {
            unreachable!("files of tmpfs claim their pages themselves")
        };
        o.set(index, Entry::frame(pfn).protected());
        let info = kernel.frames.get_mut(pfn);
        info.set_owner(Owner::Anon(family), index);
        info.maps += 1;
        if let Some(swap) = &mut kernel.swap {
            swap.drop_one(slot);
        }
        kernel.owed += kernel.config.costs.minor_fault;
        kernel.counters.pgfault += 1;
        let m = self.manager();
        m.pages().set(pfn, PageFlags::MAPPED | PageFlags::YOUNG);
        if !write && self.swap_is_half_full() {
            self.drop_slot(pfn);
        }
    }

    /// Moves a page of the swap cache back to its file of tmpfs, and frees the slot.
    pub(crate) fn shmem_claim(&mut self, object: ObjectId, index: u32, slot: u32, pfn: Pfn) {
        if !self
            .manager()
            .inspect()
            .page_flags(pfn)
            .contains(PageFlags::WRITEBACK)
        {
            let kernel = self.kernel();
            kernel.objects.get_mut(object).set(index, Entry::frame(pfn));
            let info = kernel.frames.get_mut(pfn);
            info.set_owner(Owner::File(object), index);
            if let Some(swap) = &mut kernel.swap {
                swap.drop_one(slot);
                swap.set_cached(slot, None);
            }
            info.set_slot(None);
        } else {
            // The slot stays until the transfer ends.
            let kernel = self.kernel();
            kernel.objects.get_mut(object).set(index, Entry::frame(pfn));
            kernel
                .frames
                .get_mut(pfn)
                .set_owner(Owner::File(object), index);
            if let Some(swap) = &mut kernel.swap {
                swap.drop_one(slot);
            }
        }
        self.radix_insert(object, index);
        self.manager().pages().set(pfn, PageFlags::DIRTY);
    }

    /// Adds a page to the swap cache that is about to be read.
    fn add_to_swap_cache(&mut self, slot: u32, pfn: Pfn) {
        let kernel = self.kernel();
        let mut info = FrameInfo::new(Owner::Swap, slot);
        info.set_slot(Some(slot));
        info.bits |= FrameFlags::IN_FLIGHT;
        *kernel.frames.get_mut(pfn) = info;
        if let Some(swap) = &mut kernel.swap {
            swap.set_cached(slot, Some(pfn));
        }
        kernel.counters.pswpin += 1;
        self.manager()
            .pages()
            .lru_add_new(pfn, false, PageFlags::LOCKED);
    }

    /// The transfer of a page has ended.
    pub fn page_done(&mut self, done: Done, page: u32, failed: bool) {
        let pfn = Pfn(page.into());
        let kernel = self.kernel();
        let info = kernel.frames.get_mut(pfn);
        info.bits -= FrameFlags::IN_FLIGHT;
        info.bits.set(FrameFlags::ERROR, failed);
        let owner = info.owner();
        match done {
            Done::PageRead | Done::SwapRead => {
                kernel.counters.read_errors += u64::from(failed);
                self.manager().pages().clear(pfn, PageFlags::LOCKED);
            }
            Done::PageWritten | Done::SwapWritten => {
                kernel.counters.write_errors += u64::from(failed);
                if done == Done::PageWritten {
                    kernel.vfs.dirty.nr_writeback -= 1;
                } else if let Some(swap) = &mut kernel.swap {
                    swap.writeback -= 1;
                }
                self.manager().pages().end_writeback(pfn);
                self.note_written();
                if failed && owner != Owner::Orphan {
                    self.dirty_again(pfn, owner);
                }
            }
            Done::User(_) => {}
        }
        if owner == Owner::Orphan {
            *self.kernel().frames.get_mut(pfn) = FrameInfo::default();
            self.give_frame(pfn, 0);
        } else if matches!(done, Done::SwapRead | Done::SwapWritten) {
            self.settle_swap(pfn);
        }
        self.wake(page_channel(pfn));
    }

    /// Marks a page dirty again whose write has failed.
    fn dirty_again(&mut self, pfn: Pfn, owner: Owner) {
        match owner {
            Owner::File(object) => {
                let index = self.kernel_ref().frames.get(pfn).index;
                self.set_dirty(object, index, pfn);
            }
            _ => self.manager().pages().set(pfn, PageFlags::DIRTY),
        }
    }

    /// After a transfer from or to swap: frees a copy that no entry needs.
    fn settle_swap(&mut self, pfn: Pfn) {
        let kernel = self.kernel();
        let info = kernel.frames.get_mut(pfn);
        let (Some(slot), Some(swap)) = (info.slot(), &mut kernel.swap) else {
            return;
        };
        if swap.count(slot) > 0 {
            return;
        }
        match info.owner() {
            Owner::Swap => {
                swap.set_cached(slot, None);
                *info = FrameInfo::default();
                self.give_frame(pfn, 0);
            }
            // tmpfs has taken it back while it was written.
            Owner::File(_) => {
                info.set_slot(None);
                swap.set_cached(slot, None);
            }
            Owner::Anon(_) => {
                let stale = self
                    .manager()
                    .inspect()
                    .page_flags(pfn)
                    .contains(PageFlags::DIRTY);
                if stale || self.swap_is_half_full() {
                    self.drop_slot(pfn);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn swap_is_half_full(&self) -> bool {
        self.kernel_ref()
            .swap
            .as_ref()
            .is_some_and(|s| s.is_half_full())
    }

    /// When swap is more than half full: frees some slots whose page is in memory and mapped. `spec: 4.5`
    pub(crate) fn sweep_slots(&mut self) {
        if !self.swap_is_half_full() {
            return;
        }
        for _ in 0..SWEEP {
            let Some(swap) = &mut self.kernel().swap else {
                return;
            };
            let slot = swap.next_to_sweep();
            let unused = swap.count(slot) == 0;
            let Some(pfn) = swap.cached(slot).filter(|_| unused) else {
                continue;
            };
            if matches!(self.kernel_ref().frames.get(pfn).owner(), Owner::Anon(_)) {
                self.drop_slot(pfn);
            }
        }
    }
}

impl Cx<'_> {
    /// Reads a slot and its cluster. Returns when the slot's page has been read, by this task or another.
    pub(crate) fn swap_in(&mut self, who: Who, slot: u32, gfp: Gfp) -> Result<(), Fail> {
        let slots = self.with(|sim| {
            let kernel = sim.kernel_ref();
            let skips = kernel.config.swap_skips_holes;
            let cluster = kernel.swap.iter().flat_map(|w| w.read_cluster(slot, skips));
            let mut all = [u32::MAX; READ_CLUSTER as usize];
            for (to, s) in all.iter_mut().zip(cluster) {
                *to = s;
            }
            all
        });
        for s in slots.into_iter().take_while(|s| *s != u32::MAX) {
            let pfn = match self.alloc_pages(who, 0, gfp) {
                Ok(pfn) => pfn,
                Err(e) if s == slot => return Err(e),
                Err(_) => break,
            };
            let bio = self.with(|sim| {
                // During the allocation the slot may have been freed or read by another task.
                let swap = sim.kernel_ref().swap.as_ref();
                let wanted = swap.filter(|w| w.count(s) > 0 && w.cached(s).is_none());
                let Some(swap) = wanted else {
                    sim.give_frame(pfn, 0);
                    return None;
                };
                let (device, sector) = (swap.config.device, swap.sector(s));
                sim.add_to_swap_cache(s, pfn);
                let cost = sim.kernel_ref().config.costs.submit;
                sim.kernel().owe(cost);
                let mut bio = Bio::new(device, sector, Dir::Read, true, Done::SwapRead);
                bio.push(pfn.0 as u32);
                Some(bio)
            });
            if let Some(bio) = bio {
                self.submit(bio);
            }
        }
        let pfn = self.with(|sim| sim.kernel_ref().swap.as_ref().and_then(|w| w.cached(slot)));
        if let Some(pfn) = pfn {
            self.wait_for_read(pfn);
            let failed = self.with(|sim| {
                let info = sim.kernel_ref().frames.get(pfn);
                info.slot() == Some(slot) && info.bits.contains(FrameFlags::ERROR)
            });
            if failed {
                return Err(Fail::Io);
            }
        }
        if self.killed() {
            return Err(Fail::Killed);
        }
        Ok(())
    }
}
