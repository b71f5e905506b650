//! What the allocator's reclaim asks of the owners of pages: unmap, write, release.
//!
//! They are asked in the middle of reclaim, which goes on with their verdicts: no time passes, and they see
//! the [`World`] alone. What they free themselves (slab pages under buffer heads) is freed after that piece
//! of reclaim. `spec: 4.1`
//!
//! Invariant: a page that is [`Released`](Verdict::Released) has no entry, no mapping and no other copy.

use crate::block::{Bio, Dir, Done};
use crate::engine::TaskId;
use crate::kernel::{KernelState, World};
use crate::mm::frames::{FrameFlags, FrameInfo, ObjectId, Owner};
use crate::mm::object::{Entry, ObjectKind, PageLocation};
use crate::mm::process::Backing;
use unfrag_eras::Pfn;
use unfrag_eras::reclaim::{Ask, Content, Eviction, Verdict, Verdicts};

impl World {
    /// Asks the owners of pages to evict them.
    pub(crate) fn evict(&mut self, eviction: &Eviction) -> Verdicts {
        eviction.ask(|ask| self.answer(ask, eviction.sync))
    }

    fn answer(&mut self, ask: &Ask, sync: bool) -> Verdict {
        let bits = self.kernel.frames.get(ask.page).bits;
        if bits.contains(FrameFlags::HUGE) {
            // Its pages are asked about when reclaim meets them.
            self.kernel.to_split.push(ask.page);
            return Verdict::Busy;
        }
        if ask.unmap
            && let Err(stays) = self.unmap_page(ask.page)
        {
            return stays;
        }
        match ask.content {
            Content::Clean if self.forget_page(ask.page) => Verdict::Released,
            Content::Clean => Verdict::Keep,
            Content::Dirty => Verdict::Dirty,
            Content::Write => self.write_page(ask.page, sync),
        }
    }

    /// Unmaps a page from all page tables, with a slot of swap if it is anonymous; or returns why it stays.
    fn unmap_page(&mut self, pfn: Pfn) -> Result<(), Verdict> {
        let kernel = &mut self.kernel;
        let (num, den) = kernel.config.busy;
        if num > 0 && kernel.busy_rng.chance(num, den) {
            kernel.counters.busy_injected += 1;
            return Err(Verdict::Busy);
        }
        kernel.owed += kernel.config.costs.unmap_page;
        let info = *kernel.frames.get(pfn);
        match info.owner() {
            Owner::Swap => Ok(()),
            Owner::Anon(family) => {
                let Some(slot) = kernel.slot_for(pfn) else {
                    return Err(Verdict::NoSpace);
                };
                for i in 0..kernel.objects.family(family).len() {
                    let id = kernel.objects.family(family)[i];
                    if kernel.objects.get(id).get(info.index).pfn() == Some(pfn) {
                        kernel.swap_entry(id, info.index, slot);
                    }
                }
                kernel.join_swap_cache(pfn, slot);
                Ok(())
            }
            Owner::File(object) => {
                kernel.unmap_file_page(object, info.index, pfn);
                Ok(())
            }
            Owner::None | Owner::Orphan | Owner::Kernel(_) => Err(Verdict::Busy),
        }
    }

    /// Starts to write a page.
    fn write_page(&mut self, pfn: Pfn, sync: bool) -> Verdict {
        let info = *self.kernel.frames.get(pfn);
        if info.bits.contains(FrameFlags::IN_FLIGHT) {
            return Verdict::Failed;
        }
        match info.owner() {
            Owner::Swap => self.write_to_swap(pfn, info.index, sync),
            Owner::File(object) if self.kernel.is_shmem(object) => {
                let Some(slot) = self.shmem_to_swap_cache(object, info.index, pfn) else {
                    return Verdict::Failed;
                };
                match self.kernel.config.shmem_second_round {
                    true => Verdict::Later,
                    false => self.write_to_swap(pfn, slot, sync),
                }
            }
            Owner::File(object) => {
                if !self.kernel.is_kswapd(self.current()) && self.file_congested(object) {
                    return Verdict::Congested;
                }
                if self.start_write(object, info.index, sync) {
                    Verdict::Writing
                } else {
                    Verdict::Failed
                }
            }
            _ => Verdict::Failed,
        }
    }

    /// Writes a page of the swap cache to its slot.
    fn write_to_swap(&mut self, pfn: Pfn, slot: u32, sync: bool) -> Verdict {
        let Some(swap) = &mut self.kernel.swap else {
            return Verdict::Failed;
        };
        swap.writeback += 1;
        let (device, sector) = (swap.config.device, swap.sector(slot));
        let mut bio = Bio::new(device, sector, Dir::Write, sync, Done::SwapWritten);
        bio.push(pfn.0 as u32);
        self.kernel.counters.pswpout += 1;
        self.kernel.frames.get_mut(pfn).bits |= FrameFlags::IN_FLIGHT;
        self.kernel.owed += self.kernel.config.costs.submit;
        self.submit(bio);
        Verdict::Writing
    }

    /// Moves an unmapped page of tmpfs to the swap cache, if there is a slot.
    fn shmem_to_swap_cache(&mut self, object: ObjectId, index: u32, pfn: Pfn) -> Option<u32> {
        let cpu = self.cpu();
        let kernel = &mut self.kernel;
        let slot = kernel.slot_for(pfn)?;
        kernel.objects.get_mut(object).set(index, Entry::slot(slot));
        if let Some(swap) = &mut kernel.swap {
            swap.add(slot);
        }
        kernel.join_swap_cache(pfn, slot);
        if let Some(obj) = kernel.radix_remove(object, index) {
            kernel.kmem.give(cpu, obj);
        }
        Some(slot)
    }

    /// Drops a clean page. False if its owner has to keep it.
    fn forget_page(&mut self, pfn: Pfn) -> bool {
        let cpu = self.cpu();
        let kernel = &mut self.kernel;
        let info = *kernel.frames.get(pfn);
        if info.maps > 0 || info.bits.contains(FrameFlags::IN_FLIGHT) {
            return false;
        }
        match info.owner() {
            Owner::Swap => {
                if let Some(swap) = &mut kernel.swap {
                    swap.set_cached(info.index, None);
                }
            }
            Owner::File(object) => {
                if kernel.is_shmem(object) {
                    return false;
                }
                kernel
                    .objects
                    .get_mut(object)
                    .set(info.index, Entry::ABSENT);
                if let Some(obj) = kernel.radix_remove(object, info.index) {
                    kernel.kmem.give(cpu, obj);
                }
                if let Some(obj) = info.buffers() {
                    kernel.kmem.give(cpu, obj);
                }
            }
            _ => return false,
        }
        *kernel.frames.get_mut(pfn) = FrameInfo::default();
        true
    }
}

impl KernelState {
    /// Whether a task is one of the kernel's page-out daemons.
    pub(crate) fn is_kswapd(&self, task: Option<TaskId>) -> bool {
        task.is_some_and(|t| self.kswapd.contains(&t))
    }

    fn is_shmem(&self, object: ObjectId) -> bool {
        matches!(self.objects.get(object).kind, ObjectKind::Shmem(_))
    }

    /// The slot of a page, or a new one.
    fn slot_for(&mut self, pfn: Pfn) -> Option<u32> {
        self.frames
            .get(pfn)
            .slot()
            .or_else(|| self.swap.as_mut()?.alloc(pfn))
    }

    /// Replaces the frame of an entry by its slot.
    fn swap_entry(&mut self, object: ObjectId, index: u32, slot: u32) {
        let o = self.objects.get_mut(object);
        let pfn = o.get(index).pfn();
        o.set(index, Entry::slot(slot));
        let mapper = o.mappers.first().copied();
        if let Some(swap) = &mut self.swap {
            swap.add(slot);
        }
        if let Some(pfn) = pfn {
            self.frames.get_mut(pfn).maps -= 1;
        }
        if let Some(m) = mapper {
            let p = self.procs.get_mut(m.proc);
            p.rss -= 1;
            p.swapped += 1;
        }
    }

    /// Moves an unmapped page to the swap cache.
    fn join_swap_cache(&mut self, pfn: Pfn, slot: u32) {
        let info = self.frames.get_mut(pfn);
        debug_assert!(info.maps == 0, "{pfn:?} is mapped somewhere else");
        info.set_owner(Owner::Swap, slot);
        info.set_slot(Some(slot));
    }

    /// Unmaps a file's page from all page tables.
    pub(crate) fn unmap_file_page(&mut self, object: ObjectId, index: u32, pfn: Pfn) {
        if self.frames.get(pfn).maps == 0 {
            return;
        }
        let mappers = std::mem::take(&mut self.objects.get_mut(object).mappers);
        for m in &mappers {
            let p = self.procs.get_mut(m.proc);
            if let Some(area) = p.area_mut(m.area)
                && let Backing::File { mapped, .. } = &mut area.backing
                && mapped.set(index, false)
            {
                p.rss -= 1;
                self.frames.get_mut(pfn).maps -= 1;
            }
        }
        self.objects.get_mut(object).mappers = mappers;
        debug_assert!(self.frames.get(pfn).maps == 0);
    }

    /// Where a page of an object is.
    #[inline]
    pub(crate) fn at(&self, object: ObjectId, index: u32) -> PageLocation {
        self.objects.get(object).get(index).at()
    }
}
