//! Huge pages of anonymous memory: the fault, the split, the end. `spec: 5.6`
//!
//! A fault gets a huge page where no page table exists yet. It maps one area of one process, as a whole: a fork, a
//! partial unmap and reclaim split it first.
//!
//! Invariant: each of its frames has a record with [`FrameFlags::HUGE`], and each of its entries is marked; the allocator
//! knows its first frame, with the flags and on the LRU list of all.

use crate::kernel::mm::Who;
use crate::kernel::{Cx, KernelState, Sim};
use crate::kmem::caches::Word;
use crate::mm::frames::{FrameFlags, FrameInfo, ObjectId, Owner};
use crate::mm::object::{Object, ObjectKind};
use crate::mm::process::{Backing, ProcId, Tables};
use crate::mm::thp::{HUGE, HUGE_PAGES};
use std::ops::Range;
use unfrag_eras::reclaim::{Lru, PageFlags};
use unfrag_eras::{Order, Pfn};

/// Flags that the pages of a huge page have from it.
const KEPT: PageFlags = PageFlags::MAPPED
    .union(PageFlags::DIRTY)
    .union(PageFlags::YOUNG)
    .union(PageFlags::REFERENCED);

impl KernelState {
    /// The first page of the huge page that a fault would map, if the area gets one there.
    pub(super) fn huge_range(&self, who: ProcId, area: u16, index: u32) -> Option<u32> {
        let a = self.procs.get(who).area(area)?;
        let thp = self.config.thp;
        let can = self.config.word == Word::W64 && matches!(a.backing, Backing::Anon);
        if !can || !thp.serves(a.advised) {
            return None;
        }
        let base = match a.tables {
            Tables::Own(_) => 0,
            Tables::Shared { base } => base,
        };
        let start = ((base + index) & !(HUGE_PAGES - 1)).checked_sub(base)?;
        (start + HUGE_PAGES <= a.pages).then_some(start)
    }
}

impl Sim {
    /// An area asks for huge pages (`MADV_HUGEPAGE`).
    pub fn advise_huge(&mut self, proc: ProcId, area: u16) {
        if let Some(a) = self.kernel().procs.get_mut(proc).area_mut(area) {
            a.advised = true;
        }
    }

    /// Maps a zeroed huge page, the first page at `index`.
    fn map_huge(&mut self, who: ProcId, object: ObjectId, index: u32, head: Pfn) {
        let kernel = self.kernel();
        kernel.procs.get_mut(who).rss += HUGE_PAGES;
        let o = kernel.objects.get_mut(object);
        let ObjectKind::Anon(family) = o.kind else {
            unreachable!("only anonymous memory has huge pages")
        };
        o.fill_huge(index, head);
        for (i, pfn) in (index..).zip(pages(head)) {
            let mut info = FrameInfo::mapped(Owner::Anon(family), i);
            info.bits |= FrameFlags::HUGE;
            *kernel.frames.get_mut(pfn) = info;
            kernel.frames.zero_content(pfn);
        }
        kernel.owe_zeroing(HUGE.0);
        let costs = &kernel.config.costs;
        kernel.owed += costs.fault + costs.prep_page * u64::from(HUGE_PAGES);
        kernel.counters.pgfault += 1;
        kernel.counters.thp_fault_alloc += 1;
        let flags = PageFlags::MAPPED | PageFlags::DIRTY | PageFlags::YOUNG;
        self.manager().pages().lru_add_new(head, false, flags);
    }

    /// Splits a huge page into single pages, which go to its LRU list, or to that of pages not in use if it is
    /// `unused`. False if the allocator holds it, so that it cannot be split now.
    pub(crate) fn split_huge(&mut self, head: Pfn, unused: bool) -> bool {
        let info = *self.kernel_ref().frames.get(head);
        let Owner::Anon(family) = info.owner() else {
            return true;
        };
        if !info.bits.contains(FrameFlags::HUGE) {
            return true;
        }
        let m = self.manager();
        let flags = m.inspect().page_flags(head) & KEPT;
        let Some(lru) = m.pages().lru_of(head) else {
            return false;
        };
        m.pages().clear(head, KEPT);
        if m.split(head, HUGE, Order::ZERO).is_err() {
            m.pages().set(head, flags);
            return false;
        }
        let lru = if unused { Lru::InactiveAnon } else { lru };
        for pfn in pages(head) {
            m.pages().lru_add(pfn, lru, flags);
        }
        let kernel = self.kernel();
        for pfn in pages(head) {
            kernel.frames.get_mut(pfn).bits -= FrameFlags::HUGE;
        }
        for i in 0..kernel.objects.family(family).len() {
            let id = kernel.objects.family(family)[i];
            kernel.objects.get_mut(id).unmark_huge(info.index, head);
        }
        kernel.owed += kernel.config.costs.split_page * u64::from(HUGE_PAGES);
        kernel.counters.thp_split_page += 1;
        true
    }

    /// Splits the huge pages that reclaim has asked about, as far as the allocator does not hold them.
    pub(crate) fn split_pending(&mut self) {
        for head in std::mem::take(&mut self.kernel().to_split) {
            if !self.split_huge(head, true) {
                self.kernel().to_split.push(head);
            }
        }
    }

    /// Splits the huge pages of an area. False if one cannot be split now.
    pub(crate) fn split_area(&mut self, proc: ProcId, area: u16) -> bool {
        while let Some(head) = self.object_of_area(proc, area).and_then(Object::any_huge) {
            if !self.split_huge(head, false) {
                return false;
            }
        }
        true
    }

    /// Splits the huge page that has pages on both sides of the beginning of page `edge`, if one has. False if it
    /// cannot be split now.
    fn split_across(&mut self, proc: ProcId, area: u16, edge: u32) -> bool {
        let at = |i| self.object_of_area(proc, area)?.get(i).huge();
        match (edge.checked_sub(1).and_then(at), at(edge)) {
            (Some(below), Some(above)) if below == above => self.split_huge(above, false),
            _ => true,
        }
    }

    fn object_of_area(&self, proc: ProcId, area: u16) -> Option<&Object> {
        let a = self.kernel_ref().procs.get(proc).area(area)?;
        Some(self.kernel_ref().objects.get(a.object))
    }

    /// Frees a huge page whose entries are gone.
    pub(super) fn free_huge(&mut self, proc: ProcId, head: Pfn) {
        let kernel = self.kernel();
        kernel.procs.get_mut(proc).rss -= HUGE_PAGES;
        for pfn in pages(head) {
            *kernel.frames.get_mut(pfn) = FrameInfo::default();
        }
        let costs = &kernel.config.costs;
        kernel.owed += costs.exit_page + costs.free;
        self.give_frame(head, HUGE.0);
    }
}

/// The frames of a huge page.
fn pages(head: Pfn) -> impl Iterator<Item = Pfn> {
    (head.0..head.0 + u64::from(HUGE_PAGES)).map(Pfn)
}

impl Cx<'_> {
    /// A fault's attempt at a huge page, the first page at `start`.
    pub(super) fn huge_fault(&mut self, proc: ProcId, area: u16, start: u32) {
        let who = Who::process(proc);
        let tries = self.with(|sim| {
            let kernel = sim.kernel_ref();
            let advised = kernel.procs.get(proc).area(area).map(|a| a.advised);
            kernel.config.thp.tries(advised.unwrap_or_default())
        });
        let mut head = None;
        for gfp in tries {
            head = self.alloc_pages(who, HUGE.0, gfp).ok();
            if head.is_some() || self.killed() {
                break;
            }
        }
        let Some(head) = head else {
            self.with(|sim| sim.kernel().counters.thp_fault_fallback += 1);
            return;
        };
        let gfp = self.with(|sim| sim.kernel_ref().config.table_gfp());
        let table = self.alloc_pages(who, 0, gfp).ok();
        self.with(|sim| {
            let a = sim.kernel_ref().procs.get(proc).area(area);
            let object = a.map(|a| a.object);
            match (table, object) {
                (Some(table), Some(object)) => {
                    sim.add_table(proc, area, start, table);
                    sim.map_huge(proc, object, start, head);
                }
                (table, _) => {
                    table.into_iter().for_each(|pfn| sim.give_frame(pfn, 0));
                    sim.give_frame(head, HUGE.0);
                    sim.kernel().counters.thp_fault_fallback += 1;
                }
            }
        });
    }

    /// Gives back the pages of a part of an anonymous area; the area and its page tables stay (`MADV_DONTNEED`).
    /// Huge pages that are partly in it are split.
    pub fn discard(&mut self, proc: ProcId, area: u16, part: Range<u32>) {
        for edge in [part.start, part.end] {
            while !self.with(|sim| sim.split_across(proc, area, edge)) {
                let tick = self.with(|sim| sim.world_ref().tick());
                self.sleep(tick);
            }
        }
        let mut at = Some(part.start);
        while let Some(from) = at {
            at = self.with(|sim| sim.zap(proc, area, from..part.end, HUGE_PAGES));
            self.pay_if_much();
        }
    }
}
