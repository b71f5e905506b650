//! Areas that map files: which pages of its file the page tables of an area map.
//!
//! Invariant: a mapped page is in memory, and its frame counts the areas that map it.

use crate::engine::Nanos;
use crate::kernel::Sim;
use crate::kernel::mm::prefetch::AHEAD;
use crate::mm::bit_set::BitSet;
use crate::mm::config::MemConfig;
use crate::mm::counters::VmCounters;
use crate::mm::frames::{FrameFlags, Frames};
use crate::mm::object::Object;
use crate::mm::process::{Backing, ProcId, Tables};
use std::ops::Range;
use unfrag_eras::Pfn;
use unfrag_eras::reclaim::{PageFlags, PagesMut};

/// An area that maps a file, with everything that mapping a page changes.
pub(super) struct FileArea<'a> {
    mapped: &'a mut BitSet,
    exec: bool,
    pages: u32,
    tables: &'a Tables,
    shared_tables: &'a [u32],
    /// Pages whose page table is known to exist.
    tabled: Range<u32>,
    rss: &'a mut u32,
    file: &'a Object,
    frames: &'a mut Frames,
    core: PagesMut<'a, 'static>,
    config: &'a MemConfig,
    counters: &'a mut VmCounters,
    pub owed: &'a mut Nanos,
}

impl Sim {
    /// An area, if it maps a file.
    pub(super) fn file_area(&mut self, who: ProcId, area: u16) -> Option<FileArea<'_>> {
        let (world, core) = self.manager().host_and_pages();
        let kernel = &mut world.kernel;
        let p = kernel.procs.get_mut(who);
        let a = p.areas.get_mut(usize::from(area))?.as_mut()?;
        let Backing::File { mapped, exec, .. } = &mut a.backing else {
            return None;
        };
        Some(FileArea {
            mapped,
            exec: *exec,
            pages: a.pages,
            tables: &a.tables,
            shared_tables: &p.shared_tables,
            tabled: 0..0,
            rss: &mut p.rss,
            file: kernel.objects.get(a.object),
            frames: &mut kernel.frames,
            core,
            config: &kernel.config,
            counters: &mut kernel.counters,
            owed: &mut kernel.owed,
        })
    }
}

impl FileArea<'_> {
    /// Touches a page, if it is in memory and its page table exists.
    #[inline]
    pub fn touch(&mut self, index: u32) -> bool {
        let Some(pfn) = self.file.get(index).pfn() else {
            return false;
        };
        if self.mapped.get(index) {
            // Mapped and locked: it is being moved.
            let there = !self.is_locked(pfn);
            if there {
                self.core.set(pfn, PageFlags::YOUNG);
            }
            return there;
        }
        self.prefetch_after(index);
        let error = self.frames.get(pfn).bits.contains(FrameFlags::ERROR);
        if error || self.is_locked(pfn) || !self.has_table(index) {
            return false;
        }
        self.map(index);
        true
    }

    /// Maps a page that is there, and those around it.
    pub fn map(&mut self, index: u32) {
        self.counters.pgfault += 1;
        *self.owed += self.config.costs.minor_fault;
        let around = self.config.fault_around;
        if around <= 1 {
            return self.map_page(index, true);
        }
        let first = index & !(around - 1);
        for i in first..first + around {
            self.map_page(i, i == index);
        }
    }

    #[inline]
    fn map_page(&mut self, index: u32, asked: bool) {
        if index >= self.pages || !self.has_table(index) {
            return;
        }
        let Some(pfn) = self.file.get(index).pfn() else {
            return;
        };
        if !asked && self.is_locked(pfn) {
            return;
        }
        let mut flags = PageFlags::MAPPED;
        flags.set(PageFlags::YOUNG, asked);
        flags.set(PageFlags::EXEC, self.exec);
        if self.mapped.set(index, true) {
            *self.rss += 1;
            self.frames.get_mut(pfn).maps += 1;
        }
        self.core.set(pfn, flags);
    }

    /// Unmaps pages from `from` on, at most `limit` at once. Returns where it stopped, `None` at the end.
    pub fn unmap(&mut self, from: u32, limit: u32) -> Option<u32> {
        let mut at = from;
        for _ in 0..limit {
            let i = self.mapped.next(at)?;
            self.mapped.set(i, false);
            *self.owed += self.config.costs.exit_page;
            *self.rss -= 1;
            self.prefetch_after(i);
            let Some(pfn) = self.file.get(i).pfn() else {
                unreachable!("a page that is mapped is there")
            };
            let info = self.frames.get_mut(pfn);
            info.maps -= 1;
            if info.maps == 0 {
                self.core.clear(pfn, PageFlags::MAPPED);
            }
            at = i + 1;
        }
        Some(at)
    }

    /// Prefetches the records of a page that is likely to be used soon.
    #[inline]
    fn prefetch_after(&self, index: u32) {
        if let Some(pfn) = self.file.get(index + AHEAD as u32).pfn() {
            unfrag::hint::prefetch(self.frames.get(pfn));
            self.core.prefetch(pfn);
        }
    }

    #[inline]
    fn is_locked(&self, pfn: Pfn) -> bool {
        self.core.flags(pfn).contains(PageFlags::LOCKED)
    }

    #[inline]
    fn has_table(&mut self, index: u32) -> bool {
        if !self.tabled.contains(&index) {
            let span = self.config.table_span();
            self.tabled = self.tables.covered(self.shared_tables, index, span);
        }
        self.tabled.contains(&index)
    }
}
