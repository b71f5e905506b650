//! Areas of address spaces: mapping, growing, unmapping, and the pages in them.

use crate::fs::NodeId;
use crate::kernel::mm::prefetch::TOGETHER;
use crate::kernel::{KernelState, Sim};
use crate::kmem::Obj;
use crate::mm::bit_set::BitSet;
use crate::mm::frames::{FrameFlags, FrameInfo, Owner};
use crate::mm::object::{Entry, Mapper, PageLocation};
use crate::mm::process::{Area, Backing, ProcId, Tables};
use std::ops::Range;
use unfrag_eras::Pfn;
use unfrag_eras::reclaim::PageFlags;

impl Sim {
    /// Maps anonymous memory; with `grows`, in a range of addresses of its own.
    pub fn map_anon(&mut self, proc: ProcId, pages: u32, grows: bool, vma: Option<Obj>) -> u16 {
        let kernel = self.kernel();
        let object = kernel.objects.create_anon(None);
        let p = kernel.procs.get_mut(proc);
        let tables = if grows {
            Tables::Own(vec![])
        } else {
            p.place(pages)
        };
        let area = p.add_area(Area {
            backing: Backing::Anon,
            object,
            pages,
            tables,
            vma,
            advised: false,
        });
        kernel.objects.get_mut(object).mappers = vec![Mapper { proc, area }];
        area
    }

    /// Maps the first `pages` pages of a file read-only. The node stays pinned until the area is removed.
    pub fn map_file_area(
        &mut self,
        proc: ProcId,
        node: NodeId,
        pages: u32,
        exec: bool,
        vma: Option<Obj>,
    ) -> u16 {
        self.pin(node);
        let object = self.object_of(node);
        let kernel = self.kernel();
        let p = kernel.procs.get_mut(proc);
        let tables = p.place(pages);
        let area = p.add_area(Area {
            backing: Backing::File {
                node: node.0,
                mapped: BitSet::default(),
                exec,
            },
            object,
            pages,
            tables,
            vma,
            advised: false,
        });
        let mappers = &mut kernel.objects.get_mut(object).mappers;
        mappers.push(Mapper { proc, area });
        area
    }

    /// Length of an area.
    pub fn area_pages(&self, proc: ProcId, area: u16) -> u32 {
        let area = self.kernel_ref().procs.get(proc).area(area);
        area.map_or(0, |a| a.pages)
    }

    /// Makes an anonymous area longer.
    pub fn grow_area(&mut self, proc: ProcId, area: u16, pages: u32) {
        let kernel = self.kernel();
        if let Some(a) = kernel.procs.get_mut(proc).area_mut(area) {
            debug_assert!(matches!(a.tables, Tables::Own(_)), "only such areas grow");
            a.pages += pages;
            kernel.objects.get_mut(a.object).lengthen(a.pages);
        }
    }

    /// Unmaps the pages of a part of an area, at most about `limit` at once. Returns where it stopped, `None` at
    /// the end. Huge pages are in the part as a whole. Of a file the part goes to the end of the area.
    pub(crate) fn zap(
        &mut self,
        proc: ProcId,
        area: u16,
        part: Range<u32>,
        limit: u32,
    ) -> Option<u32> {
        if let Some(mut file) = self.file_area(proc, area) {
            return file.unmap(part.start, limit);
        }
        let object = self.kernel_ref().procs.get(proc).area(area)?.object;
        let mut left = limit as usize;
        let mut at = part.start;
        while left > 0 {
            let mut taken = [Entry::ABSENT; TOGETHER];
            let taken = &mut taken[..left.min(TOGETHER)];
            let o = self.kernel().objects.get_mut(object);
            let n = o.take_out(&mut at, part.end, taken);
            let huge = o.take_huge(&mut at, part.end);
            self.zap_anon(proc, &taken[..n]);
            left -= n;
            match huge {
                Some(head) => {
                    self.free_huge(proc, head);
                    left = left.saturating_sub(TOGETHER);
                }
                None if left > 0 && n < TOGETHER => return None,
                None => {}
            }
        }
        Some(at)
    }

    /// Removes a process's entries for anonymous pages.
    fn zap_anon(&mut self, proc: ProcId, entries: &[Entry]) {
        let kernel = self.kernel();
        kernel.owed += kernel.config.costs.exit_page * entries.len() as u64;
        self.prefetch_first(entries);
        // Pages without entries, to be freed together.
        let (mut unused, mut n) = ([Pfn(0); TOGETHER], 0);
        for (i, entry) in entries.iter().enumerate() {
            self.prefetch_next(entries, i);
            match entry.at() {
                PageLocation::Absent => {}
                PageLocation::Frame(pfn) => {
                    if self.unmap_anon(proc, pfn) {
                        unused[n] = pfn;
                        n += 1;
                    }
                }
                PageLocation::Slot(slot) => {
                    self.give_pages(&unused[..std::mem::take(&mut n)]);
                    self.kernel().procs.get_mut(proc).swapped -= 1;
                    self.drop_swap_entry(slot);
                }
            }
        }
        self.give_pages(&unused[..n]);
    }

    /// Removes an entry that referred to a slot.
    pub(crate) fn drop_swap_entry(&mut self, slot: u32) {
        let kernel = self.kernel();
        let Some(swap) = &mut kernel.swap else {
            unreachable!("a slot without swap")
        };
        swap.drop_one(slot);
        if swap.count(slot) > 0 {
            return;
        }
        let Some(pfn) = swap.cached(slot) else { return };
        let info = kernel.frames.get_mut(pfn);
        // A page that tmpfs has taken back keeps the slot until its transfer ends.
        if info.owner() == Owner::Swap && !info.bits.contains(FrameFlags::IN_FLIGHT) {
            *info = FrameInfo::default();
            swap.set_cached(slot, None);
            self.give_frame(pfn, 0);
        }
    }

    /// Removes a process's entry for an anonymous page. True if it was the last one, so that the page has to be
    /// freed.
    #[must_use]
    pub(super) fn unmap_anon(&mut self, proc: ProcId, pfn: Pfn) -> bool {
        let kernel = self.kernel();
        kernel.procs.get_mut(proc).rss -= 1;
        let info = kernel.frames.get_mut(pfn);
        info.maps -= 1;
        if info.maps > 0 {
            return false;
        }
        if let (Some(slot), Some(swap)) = (info.slot(), &mut kernel.swap) {
            if swap.count(slot) > 0 {
                // Other entries still refer to the slot.
                info.set_owner(Owner::Swap, slot);
                self.manager().pages().clear(pfn, PageFlags::MAPPED);
                return false;
            }
            info.set_slot(None);
            swap.set_cached(slot, None);
        }
        self.let_go(pfn)
    }

    /// Frees a page without entries, now or when its transfer ends.
    pub(crate) fn free_page(&mut self, pfn: Pfn) {
        if self.let_go(pfn) {
            self.give_frame(pfn, 0);
        }
    }

    /// Clears the record of a page without entries. False if its transfer has to end before it is freed.
    fn let_go(&mut self, pfn: Pfn) -> bool {
        let kernel = self.kernel();
        let info = kernel.frames.get_mut(pfn);
        debug_assert!(info.maps == 0 && info.slot().is_none() && info.buffers().is_none());
        if info.bits.contains(FrameFlags::IN_FLIGHT) {
            info.set_owner(Owner::Orphan, 0);
            let m = self.manager();
            m.pages().lru_del(pfn);
            m.pages().clear(pfn, PageFlags::MAPPED);
            return false;
        }
        *info = FrameInfo::default();
        kernel.owed += kernel.config.costs.free;
        true
    }

    /// Removes an area whose pages are gone, with its page tables.
    pub(crate) fn remove_area(&mut self, proc: ProcId, area: u16) {
        let kernel = self.kernel();
        let p = kernel.procs.get_mut(proc);
        let Some(a) = p.areas[usize::from(area)].take() else {
            return;
        };
        let tables = match a.tables {
            Tables::Own(own) => own,
            Tables::Shared { .. } => vec![],
        };
        match a.backing {
            Backing::Anon => kernel.objects.remove(a.object),
            Backing::File { node, .. } => {
                let mappers = &mut kernel.objects.get_mut(a.object).mappers;
                mappers.retain(|m| *m != Mapper { proc, area });
                self.unpin(NodeId(node));
            }
        }
        self.free_tables(proc, &tables);
        if let Some(vma) = a.vma {
            self.kmem_free(vma);
        }
    }

    /// Frees page tables of a process.
    pub(crate) fn free_tables(&mut self, proc: ProcId, tables: &[u32]) {
        for &t in tables.iter().filter(|t| **t != 0) {
            self.kernel().procs.get_mut(proc).tables -= 1;
            self.free_kernel(Pfn(t.into()));
        }
    }
}

impl KernelState {
    /// The file that an area maps.
    pub(super) fn mapped_node(&self, proc: ProcId, area: u16) -> Option<NodeId> {
        match &self.procs.get(proc).area(area)?.backing {
            Backing::File { node, .. } => Some(NodeId(*node)),
            Backing::Anon => None,
        }
    }
}
