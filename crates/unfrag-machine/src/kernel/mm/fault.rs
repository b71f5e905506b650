//! Page faults, step by step. `spec: 8.6`

use crate::channels::page_channel;
use crate::error::Fail;
use crate::kernel::mm::Who;
use crate::kernel::{Cx, KernelState, Sim};
use crate::mm::config::{NEW_PAGE, USER_PAGE};
use crate::mm::frames::{FrameFlags, FrameInfo, ObjectId, Owner, Use};
use crate::mm::object::{Entry, ObjectKind, PageLocation};
use crate::mm::process::{Backing, ProcId};
use std::ops::Range;
use unfrag_eras::reclaim::PageFlags;
use unfrag_eras::{Gfp, Pfn};

/// What a fault needs before it can go on.
enum FaultNeed {
    Nothing,
    /// A huge page from this page on, if there is one.
    Huge(u32),
    /// A page table.
    Table,
    /// A page, to be zeroed or copied to.
    Page(Gfp),
    /// A page that is being read or moved.
    Transfer(Pfn),
    /// A slot of swap.
    SwapIn(u32),
    /// A page of a file.
    Read(u32),
    /// The page could not be read.
    Failed,
}

/// Flags of a private page that was just written.
const NEW: PageFlags = PageFlags::MAPPED
    .union(PageFlags::DIRTY)
    .union(PageFlags::YOUNG);

impl Sim {
    /// Maps new zeroed pages of anonymous memory, the first at `index`.
    pub(super) fn map_new(&mut self, who: ProcId, object: ObjectId, index: u32, pages: &[Pfn]) {
        let kernel = self.kernel();
        let n = pages.len() as u32;
        kernel.procs.get_mut(who).rss += n;
        let o = kernel.objects.get_mut(object);
        o.fill(index, pages);
        let ObjectKind::Anon(family) = o.kind else {
            unreachable!("only anonymous memory begins as zeroes")
        };
        for (i, &pfn) in (index..).zip(pages) {
            *kernel.frames.get_mut(pfn) = FrameInfo::mapped(Owner::Anon(family), i);
            kernel.frames.zero_content(pfn);
        }
        kernel.owed += kernel.config.costs.fault * u64::from(n);
        kernel.counters.pgfault += u64::from(n);
        let m = self.manager();
        for &pfn in pages {
            m.pages().lru_add_new(pfn, false, NEW);
        }
    }

    /// One step of a fault: maps the page, or returns what that needs. `spare` is a page for it, if one was
    /// allocated.
    fn fault_step(
        &mut self,
        who: ProcId,
        area: u16,
        index: u32,
        write: bool,
        spare: &mut Option<Pfn>,
        may_be_huge: bool,
    ) -> FaultNeed {
        let p = self.kernel_ref().procs.get(who);
        let Some(a) = p.area(area) else {
            return FaultNeed::Nothing;
        };
        if !self.kernel_ref().has_table(who, area, index) {
            let huge = self.kernel_ref().huge_range(who, area, index);
            return match huge.filter(|_| may_be_huge) {
                Some(start) => FaultNeed::Huge(start),
                None => FaultNeed::Table,
            };
        }
        let (object, anon) = (a.object, matches!(a.backing, Backing::Anon));
        let entry = self.kernel_ref().objects.get(object).get(index);
        match entry.at() {
            PageLocation::Absent if anon => match spare.take() {
                Some(pfn) => {
                    self.map_new(who, object, index, &[pfn]);
                    FaultNeed::Nothing
                }
                None => FaultNeed::Page(NEW_PAGE),
            },
            PageLocation::Absent => FaultNeed::Read(index),
            PageLocation::Slot(slot) => {
                let cached = self.kernel_ref().swap.as_ref().and_then(|s| s.cached(slot));
                match cached {
                    Some(pfn) if self.is_locked(pfn) => FaultNeed::Transfer(pfn),
                    Some(pfn) if self.has_error(pfn) => FaultNeed::Failed,
                    Some(pfn) if anon => {
                        self.map_swapped(who, area, index, slot, pfn, write);
                        if write {
                            return self.fault_step(who, area, index, write, spare, may_be_huge);
                        }
                        FaultNeed::Nothing
                    }
                    Some(pfn) => {
                        self.shmem_claim(object, index, slot, pfn);
                        self.fault_step(who, area, index, write, spare, may_be_huge)
                    }
                    None => FaultNeed::SwapIn(slot),
                }
            }
            PageLocation::Frame(pfn) if self.is_locked(pfn) => FaultNeed::Transfer(pfn),
            PageLocation::Frame(pfn) if anon => {
                self.write_fault(who, area, index, pfn, write, spare)
            }
            PageLocation::Frame(pfn) if self.has_error(pfn) => FaultNeed::Failed,
            PageLocation::Frame(_) => {
                if let Some(mut area) = self.file_area(who, area) {
                    area.map(index);
                }
                FaultNeed::Nothing
            }
        }
    }

    pub(crate) fn has_error(&self, pfn: Pfn) -> bool {
        self.kernel_ref()
            .frames
            .get(pfn)
            .bits
            .contains(FrameFlags::ERROR)
    }

    pub(crate) fn is_locked(&mut self, pfn: Pfn) -> bool {
        self.manager()
            .inspect()
            .page_flags(pfn)
            .contains(PageFlags::LOCKED)
    }

    /// A fault on an anonymous page in memory. A write to a page that is shared or has a copy in swap first
    /// makes it this process's own. `spec: 4.5`
    fn write_fault(
        &mut self,
        who: ProcId,
        area: u16,
        index: u32,
        pfn: Pfn,
        write: bool,
        spare: &mut Option<Pfn>,
    ) -> FaultNeed {
        let kernel = self.kernel();
        let Some(object) = kernel.procs.get(who).area(area).map(|a| a.object) else {
            return FaultNeed::Nothing;
        };
        let o = kernel.objects.get_mut(object);
        let mut hit = PageFlags::YOUNG;
        if write && o.get(index).is_protected() {
            let info = *kernel.frames.get(pfn);
            let in_swap = info
                .slot()
                .is_some_and(|s| kernel.swap.as_ref().is_some_and(|w| w.count(s) > 0));
            if info.maps > 1 || in_swap {
                let Some(copy) = spare.take() else {
                    return FaultNeed::Page(USER_PAGE);
                };
                self.copy_on_write(who, object, index, pfn, copy);
                return FaultNeed::Nothing;
            }
            o.unprotect(index);
            kernel.owed += kernel.config.costs.minor_fault;
            kernel.counters.pgfault += 1;
            self.drop_slot(pfn);
        }
        if write {
            hit |= PageFlags::DIRTY;
        }
        let block = self.kernel_ref().objects.get(object).get(index).huge();
        self.manager().pages().set(block.unwrap_or(pfn), hit);
        if write {
            self.kernel().frames.write_content(pfn);
        }
        FaultNeed::Nothing
    }

    /// Frees the slot of a page if no entry refers to it, unless the page is being written.
    pub(crate) fn drop_slot(&mut self, pfn: Pfn) {
        if self
            .manager()
            .inspect()
            .page_flags(pfn)
            .contains(PageFlags::WRITEBACK)
        {
            return;
        }
        let kernel = self.kernel();
        let info = kernel.frames.get_mut(pfn);
        let (Some(slot), Some(swap)) = (info.slot(), &mut kernel.swap) else {
            return;
        };
        if swap.count(slot) == 0 {
            info.set_slot(None);
            swap.set_cached(slot, None);
            self.manager().pages().set(pfn, PageFlags::DIRTY);
        }
    }

    fn copy_on_write(&mut self, who: ProcId, object: ObjectId, index: u32, from: Pfn, to: Pfn) {
        let kernel = self.kernel();
        let o = kernel.objects.get_mut(object);
        let ObjectKind::Anon(family) = o.kind else {
            unreachable!("only anonymous memory is copied on write")
        };
        o.set(index, Entry::frame(to));
        kernel.frames.copy_content(from, to);
        kernel.frames.write_content(to);
        *kernel.frames.get_mut(to) = FrameInfo::mapped(Owner::Anon(family), index);
        kernel.owed += kernel.config.costs.fault + kernel.config.costs.copy_page;
        kernel.counters.pgfault += 1;
        kernel.counters.cow_copies += 1;
        kernel.procs.get_mut(who).rss += 1;
        self.manager().pages().lru_add_new(to, false, NEW);
        if self.unmap_anon(who, from) {
            self.give_frame(from, 0);
        }
    }

    /// Adds a page table.
    pub(super) fn add_table(&mut self, who: ProcId, area: u16, index: u32, pfn: Pfn) {
        self.take_kernel(pfn, 0, Use::Table);
        let kernel = self.kernel();
        let span = kernel.config.table_span();
        let p = kernel.procs.get_mut(who);
        p.tables += 1;
        let entry = p.table(area, index, span);
        debug_assert!(*entry == 0);
        *entry = pfn.0 as u32;
    }
}

impl KernelState {
    /// Whether the page table of a page exists.
    #[inline]
    pub(crate) fn has_table(&self, who: ProcId, area: u16, index: u32) -> bool {
        self.tabled(who, area, index).contains(&index)
    }

    /// Pages of an area that share the page table of page `index`; none, if there is no such table.
    pub(super) fn tabled(&self, who: ProcId, area: u16, index: u32) -> Range<u32> {
        let p = self.procs.get(who);
        let span = self.config.table_span();
        p.area(area)
            .map_or(0..0, |a| a.tables.covered(&p.shared_tables, index, span))
    }
}

impl Cx<'_> {
    /// A page fault, from its beginning to its end.
    ///
    /// # Errors
    /// As [`touch`](Cx::touch).
    pub(crate) fn fault(
        &mut self,
        proc: ProcId,
        area: u16,
        index: u32,
        write: bool,
        spare: Option<Pfn>,
    ) -> Result<(), Fail> {
        let who = Who::process(proc);
        let mut spare = spare;
        let mut may_be_huge = true;
        let mut result = Ok(());
        loop {
            let need =
                self.with(|sim| sim.fault_step(proc, area, index, write, &mut spare, may_be_huge));
            match need {
                FaultNeed::Nothing => break,
                FaultNeed::Huge(start) => {
                    self.huge_fault(proc, area, start);
                    may_be_huge = false;
                }
                need => {
                    if let Err(e) = self.meet_fault(who, proc, area, need, index, &mut spare) {
                        result = Err(e);
                        break;
                    }
                }
            }
        }
        if let Some(pfn) = spare {
            self.with(|sim| sim.give_frame(pfn, 0));
        }
        self.pay_if_much();
        result
    }

    fn meet_fault(
        &mut self,
        who: Who,
        proc: ProcId,
        area: u16,
        need: FaultNeed,
        index: u32,
        spare: &mut Option<Pfn>,
    ) -> Result<(), Fail> {
        match need {
            FaultNeed::Nothing | FaultNeed::Huge(_) => Ok(()),
            FaultNeed::Failed => Err(Fail::Io),
            FaultNeed::Table => {
                let gfp = self.with(|sim| sim.kernel_ref().config.table_gfp());
                let pfn = self.alloc_pages(who, 0, gfp)?;
                self.with(|sim| sim.add_table(proc, area, index, pfn));
                Ok(())
            }
            FaultNeed::Page(gfp) => {
                *spare = Some(self.alloc_pages(who, 0, gfp)?);
                Ok(())
            }
            FaultNeed::Transfer(pfn) => {
                self.wait_for_read(pfn);
                if self.killed() {
                    Err(Fail::Killed)
                } else {
                    Ok(())
                }
            }
            FaultNeed::SwapIn(slot) => {
                self.with(|sim| sim.kernel().counters.pgmajfault += 1);
                self.swap_in(who, slot, USER_PAGE)
            }
            FaultNeed::Read(index) => {
                self.with(|sim| sim.kernel().counters.pgmajfault += 1);
                let node = self.with(|sim| sim.kernel_ref().mapped_node(proc, area));
                match node {
                    Some(node) => self.read_around(who, node, index),
                    None => Ok(()),
                }
            }
        }
    }

    /// Waits until a page is not being read or moved.
    pub(crate) fn wait_for_read(&mut self, pfn: Pfn) {
        self.pay();
        while self.with(|sim| sim.is_locked(pfn)) {
            self.wait_io(page_channel(pfn), None);
        }
    }
}
