//! Pages come back from swap, each with its neighbours; and what becomes of a transfer's pages when
//! it ends. `spec: linux-mm 4.5`

use super::alloc::Who;
use super::frames::{Bits, FrameInfo, ObjectId, Owner};
use super::object::Entry;
use super::process::ProcId;
use super::{Fail, page_channel};
use crate::block::{Bio, Dir, Done};
use crate::{Cx, Sim};
use unfrag::reclaim::PageFlags;
use unfrag::{Gfp, Pfn};

/// Slots looked at in one piece.
const SWEEP: u32 = 64;

impl Sim {
    /// A process maps a page of the swap cache again.
    pub(super) fn map_swapped(
        &mut self,
        who: ProcId,
        area: u16,
        index: u32,
        slot: u32,
        pfn: Pfn,
        write: bool,
    ) {
        let mem = self.mem();
        let p = mem.procs.get_mut(who);
        p.rss += 1;
        p.swapped -= 1;
        let Some(object) = p.area(area).map(|a| a.object) else {
            unreachable!("an area that faults is there")
        };
        let o = mem.objects.get_mut(object);
        let super::object::Kind::Anon(family) = o.kind else {
            unreachable!("files of tmpfs claim their pages themselves")
        };
        o.set(index, Entry::frame(pfn).protected());
        let info = mem.frames.get_mut(pfn);
        info.set_owner(Owner::Anon(family), index);
        info.maps += 1;
        if let Some(swap) = &mut mem.swap {
            swap.drop_one(slot);
        }
        mem.owed += mem.config.costs.minor_fault;
        mem.counters.pgfault += 1;
        let m = self.manager();
        m.pages().set(pfn, PageFlags::MAPPED | PageFlags::YOUNG);
        if !write && self.swap_is_half_full() {
            self.drop_slot(pfn);
        }
    }

    /// A file of tmpfs takes a page of the swap cache back; its slot is free then.
    pub(crate) fn shmem_claim(&mut self, object: ObjectId, index: u32, slot: u32, pfn: Pfn) {
        if !self
            .manager()
            .inspect()
            .page_flags(pfn)
            .contains(PageFlags::WRITEBACK)
        {
            let mem = self.mem();
            mem.objects.get_mut(object).set(index, Entry::frame(pfn));
            let info = mem.frames.get_mut(pfn);
            info.set_owner(Owner::File(object), index);
            if let Some(swap) = &mut mem.swap {
                swap.drop_one(slot);
                swap.set_cached(slot, None);
            }
            info.set_slot(None);
        } else {
            // The transfer goes on under the slot, which lasts until it ends.
            let mem = self.mem();
            mem.objects.get_mut(object).set(index, Entry::frame(pfn));
            mem.frames
                .get_mut(pfn)
                .set_owner(Owner::File(object), index);
            if let Some(swap) = &mut mem.swap {
                swap.drop_one(slot);
            }
        }
        self.radix_insert(object, index);
        self.manager().pages().set(pfn, PageFlags::DIRTY);
    }

    /// A page joins the swap cache and is about to be read.
    fn add_to_swap_cache(&mut self, slot: u32, pfn: Pfn) {
        let mem = self.mem();
        let mut info = FrameInfo::new(Owner::Swap, slot);
        info.set_slot(Some(slot));
        info.bits |= Bits::IN_FLIGHT;
        *mem.frames.get_mut(pfn) = info;
        if let Some(swap) = &mut mem.swap {
            swap.set_cached(slot, Some(pfn));
        }
        mem.counters.pswpin += 1;
        self.manager()
            .pages()
            .lru_add_new(pfn, false, PageFlags::LOCKED);
    }

    /// A transfer of a page ended. Called for each page of it.
    pub fn page_done(&mut self, done: Done, page: u32, failed: bool) {
        let pfn = Pfn(page.into());
        let mem = self.mem();
        let info = mem.frames.get_mut(pfn);
        info.bits -= Bits::IN_FLIGHT;
        info.bits.set(Bits::ERROR, failed);
        let owner = info.owner();
        match done {
            Done::PageRead | Done::SwapRead => {
                mem.counters.read_errors += u64::from(failed);
                self.manager().pages().clear(pfn, PageFlags::LOCKED);
            }
            Done::PageWritten | Done::SwapWritten => {
                mem.counters.write_errors += u64::from(failed);
                if done == Done::PageWritten {
                    mem.vfs.dirty.nr_writeback -= 1;
                } else if let Some(swap) = &mut mem.swap {
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
            *self.mem().frames.get_mut(pfn) = FrameInfo::default();
            self.give_frame(pfn, 0);
        } else if matches!(done, Done::SwapRead | Done::SwapWritten) {
            self.settle_swap(pfn);
        }
        self.wake(page_channel(pfn));
    }

    /// What could not be written is kept, to be written again.
    fn dirty_again(&mut self, pfn: Pfn, owner: Owner) {
        match owner {
            Owner::File(object) => {
                let index = self.mem_ref().frames.get(pfn).index;
                self.set_dirty(object, index, pfn);
            }
            _ => self.manager().pages().set(pfn, PageFlags::DIRTY),
        }
    }

    /// After a transfer from or to swap: a copy that nobody needs goes.
    fn settle_swap(&mut self, pfn: Pfn) {
        let mem = self.mem();
        let info = mem.frames.get_mut(pfn);
        let (Some(slot), Some(swap)) = (info.slot(), &mut mem.swap) else {
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
            // It was taken back while it was written.
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
        self.mem_ref()
            .swap
            .as_ref()
            .is_some_and(|s| s.is_half_full())
    }

    /// Looks at some slots in turn, when swap is more than half full: those whose page is in memory
    /// and mapped are given up, so that others find a place. `spec: linux-mm 4.5`
    pub(crate) fn sweep_slots(&mut self) {
        if !self.swap_is_half_full() {
            return;
        }
        for _ in 0..SWEEP {
            let Some(swap) = &mut self.mem().swap else {
                return;
            };
            let slot = swap.next_to_sweep();
            let unused = swap.count(slot) == 0;
            let Some(pfn) = swap.cached(slot).filter(|_| unused) else {
                continue;
            };
            if matches!(self.mem_ref().frames.get(pfn).owner(), Owner::Anon(_)) {
                self.drop_slot(pfn);
            }
        }
    }
}

impl Cx<'_> {
    /// Reads a slot and those around it that are worth it; returns when the slot's page is there, or
    /// somebody else has brought it.
    pub(crate) fn swap_in(&mut self, who: Who, slot: u32, gfp: Gfp) -> Result<(), Fail> {
        let slots = self.with(|sim| {
            let mem = sim.mem_ref();
            let skips = mem.config.swap_skips_holes;
            let cluster = mem.swap.iter().flat_map(|w| w.read_cluster(slot, skips));
            let mut all = [u32::MAX; super::swap::READ_CLUSTER as usize];
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
                // While the page was waited for, others may have freed or read the slot.
                let swap = sim.mem_ref().swap.as_ref();
                let wanted = swap.filter(|w| w.count(s) > 0 && w.cached(s).is_none());
                let Some(swap) = wanted else {
                    sim.give_frame(pfn, 0);
                    return None;
                };
                let (device, sector) = (swap.config.device, swap.sector(s));
                sim.add_to_swap_cache(s, pfn);
                let cost = sim.mem_ref().config.costs.submit;
                sim.mem().owe(cost);
                let mut bio = Bio::new(device, sector, Dir::Read, true, Done::SwapRead);
                bio.push(pfn.0 as u32);
                Some(bio)
            });
            if let Some(bio) = bio {
                self.submit(bio);
            }
        }
        let pfn = self.with(|sim| sim.mem_ref().swap.as_ref().and_then(|w| w.cached(slot)));
        if let Some(pfn) = pfn {
            self.wait_for_read(pfn);
            let failed = self.with(|sim| {
                let info = sim.mem_ref().frames.get(pfn);
                info.slot() == Some(slot) && info.bits.contains(Bits::ERROR)
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
