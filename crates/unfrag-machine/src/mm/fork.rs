//! Processes come and go: fork, exec, exit. `spec: linux-mm 8.1, 8.6`

use super::Fail;
use super::alloc::Who;
use super::frames::Use;
use super::object::{At, Kind, Mapper};
use super::process::{Area, Backing, ProcId, Process, Tables};
use crate::kmem::caches;
use crate::{Cx, Sim};
use std::rc::Rc;
use unfrag::Gfp;

/// Pages that are copied or freed in one piece.
const CHUNK: u32 = 256;

/// Pages of a kernel stack where each is mapped by itself: 16 KiB.
const MAPPED_STACK: u32 = 4;

/// What a process has from its fork to its exit.
const PROCESS_OBJECTS: [caches::Kind; 4] = [
    caches::Kind::TaskStruct,
    caches::Kind::SighandCache,
    caches::Kind::SignalCache,
    caches::Kind::FilesCache,
];

impl Cx<'_> {
    /// A process without memory of its own yet, as `who` makes it: kernel stack, `task_struct`, page
    /// directory.
    ///
    /// # Errors
    /// [`Fail::NoMemory`]; nothing is left of it then.
    pub fn create_process(&mut self, who: Who, name: &Rc<str>) -> Result<ProcId, Fail> {
        let proc = self.with(|sim| {
            let mem = sim.mem();
            mem.owed += mem.config.costs.fork;
            mem.procs.insert(Process::new(name.clone()))
        });
        let made = self.make_process(who, proc);
        self.pay();
        match made {
            Ok(()) => Ok(proc),
            Err(e) => {
                self.destroy_process(proc);
                Err(e)
            }
        }
    }

    fn make_process(&mut self, who: Who, proc: ProcId) -> Result<(), Fail> {
        for kind in PROCESS_OBJECTS {
            let obj = self.kmem_kind(who, kind)?;
            self.with(|sim| sim.mem().procs.get_mut(proc).objects.push(obj));
        }
        let order = self.with(|sim| sim.mem_ref().config.stack_order);
        let (n, gfp) = if order == 0 {
            (MAPPED_STACK, Gfp::KERNEL | Gfp::HIGHMEM | Gfp::ZERO)
        } else {
            (1, Gfp::KERNEL)
        };
        for _ in 0..n {
            let pfn = self.alloc_pages(who, order, gfp)?;
            self.with(|sim| {
                sim.take_kernel(pfn, order, Use::Stack);
                sim.mem().procs.get_mut(proc).stack.push(pfn);
            });
        }
        self.make_mm(who, proc)
    }

    /// `mm_struct` and page directory.
    fn make_mm(&mut self, who: Who, proc: ProcId) -> Result<(), Fail> {
        let mm = self.kmem_kind(who, caches::Kind::MmStruct)?;
        self.with(|sim| sim.mem().procs.get_mut(proc).mm = Some(mm));
        let pfn = self.alloc_pages(who, 0, Gfp::KERNEL | Gfp::ZERO)?;
        self.with(|sim| {
            sim.take_kernel(pfn, 0, Use::Table);
            let p = sim.mem().procs.get_mut(proc);
            p.directory = Some(pfn);
            p.tables += 1;
        });
        Ok(())
    }

    /// A copy of a process: its anonymous pages are shared until one of the two writes.
    ///
    /// # Errors
    /// [`Fail::NoMemory`], or [`Fail::Killed`]; nothing is left of the copy then.
    pub fn fork_process(&mut self, parent: ProcId, name: &Rc<str>) -> Result<ProcId, Fail> {
        let who = Who::process(parent);
        let child = self.create_process(who, name)?;
        match self.copy_areas(who, parent, child) {
            Ok(()) => Ok(child),
            Err(e) => {
                self.destroy_process(child);
                Err(e)
            }
        }
    }

    fn copy_areas(&mut self, who: Who, parent: ProcId, child: ProcId) -> Result<(), Fail> {
        let areas = self.with(|sim| {
            let p = sim.mem_ref().procs.get(parent);
            let (len, areas) = (p.shared_len, p.areas.len() as u16);
            sim.mem().procs.get_mut(child).shared_len = len;
            areas
        });
        for _ in 0..self.with(|sim| sim.mem_ref().procs.get(parent).vmas.len()) {
            let vma = self.kmem_kind(who, caches::Kind::VmAreaStruct)?;
            self.with(|sim| sim.mem().procs.get_mut(child).vmas.push(vma));
        }
        for area in 0..areas {
            if self.with(|sim| sim.mem_ref().procs.get(parent).area(area).is_none()) {
                self.with(|sim| sim.mem().procs.get_mut(child).areas.push(None));
                continue;
            }
            let vma = self.kmem_kind(who, caches::Kind::VmAreaStruct)?;
            let anon = self.with(|sim| sim.clone_area(parent, child, area, vma));
            if anon {
                self.copy_tables(who, parent, child, area)?;
                self.copy_pages(parent, child, area)?;
            }
        }
        Ok(())
    }

    /// Page tables of the child where the parent's have something.
    fn copy_tables(
        &mut self,
        who: Who,
        parent: ProcId,
        child: ProcId,
        area: u16,
    ) -> Result<(), Fail> {
        let (span, pages) = self.with(|sim| {
            let mem = sim.mem_ref();
            let pages = mem.procs.get(parent).area(area).map_or(0, |a| a.pages);
            (mem.config.table_span(), pages)
        });
        let mut index = 0;
        while index < pages {
            let wanted = self.with(|sim| {
                let mem = sim.mem_ref();
                mem.has_table(parent, area, index) && !mem.has_table(child, area, index)
            });
            if wanted {
                let gfp = self.with(|sim| sim.mem_ref().config.table_gfp());
                let pfn = self.alloc_pages(who, 0, gfp)?;
                self.with(|sim| sim.add_table(child, area, index, pfn));
            }
            let into = self.with(|sim| sim.mem_ref().table_offset(parent, area, index));
            index += span - into;
        }
        Ok(())
    }

    fn copy_pages(&mut self, parent: ProcId, child: ProcId, area: u16) -> Result<(), Fail> {
        let mut at = Some(0);
        while let Some(from) = at {
            at = self.with(|sim| sim.share_pages(parent, child, area, from));
            self.pay();
            if self.killed() {
                return Err(Fail::Killed);
            }
        }
        Ok(())
    }

    /// Takes all memory of a process away, so that it can begin anew (`exec`).
    pub(crate) fn clear_process(&mut self, proc: ProcId) {
        let areas = self.with(|sim| sim.mem_ref().procs.get(proc).areas.len() as u16);
        for area in 0..areas {
            self.unmap_area(proc, area);
        }
        self.with(|sim| {
            let p = sim.mem().procs.get_mut(proc);
            p.areas.clear();
            p.shared_len = 0;
            let tables = std::mem::take(&mut p.shared_tables);
            let vmas = std::mem::take(&mut p.vmas);
            sim.free_tables(proc, &tables);
            for vma in vmas {
                sim.kmem_free(vma);
            }
        });
        self.pay();
    }

    /// Removes an area with its pages.
    pub fn unmap_area(&mut self, proc: ProcId, area: u16) {
        let mut at = Some(0);
        while let Some(from) = at {
            at = self.with(|sim| sim.zap(proc, area, from, CHUNK));
            self.pay_if_much();
        }
        self.with(|sim| sim.remove_area(proc, area));
    }

    /// New, empty memory for a process in place of what it has.
    ///
    /// # Errors
    /// [`Fail::NoMemory`].
    pub(crate) fn exec_process(&mut self, proc: ProcId, name: &Rc<str>) -> Result<(), Fail> {
        self.clear_process(proc);
        self.with(|sim| {
            sim.free_mm(proc);
            let mem = sim.mem();
            mem.owed += mem.config.costs.exec;
            mem.procs.get_mut(proc).name = name.clone();
        });
        self.pay();
        self.make_mm(Who::process(proc), proc)
    }

    /// Ends a process: all that it has is freed. Works for one that is half made, too.
    pub fn destroy_process(&mut self, proc: ProcId) {
        self.with(|sim| {
            let mem = sim.mem();
            mem.owed += mem.config.costs.exit;
        });
        self.clear_process(proc);
        self.with(|sim| {
            sim.free_mm(proc);
            let p = sim.mem().procs.get_mut(proc);
            let (stack, objects) = (std::mem::take(&mut p.stack), std::mem::take(&mut p.objects));
            for pfn in stack {
                sim.free_kernel(pfn);
            }
            for obj in objects {
                sim.kmem_free(obj);
            }
            let mem = sim.mem();
            if mem.procs.get(proc).victim {
                mem.dying -= 1;
            }
            mem.procs.remove(proc);
        });
        self.pay();
    }
}

impl Sim {
    /// Makes the child's area like the parent's, without pages; true if it is anonymous.
    fn clone_area(
        &mut self,
        parent: ProcId,
        child: ProcId,
        area: u16,
        vma: crate::kmem::Obj,
    ) -> bool {
        let mem = self.mem();
        let Some(a) = mem.procs.get(parent).area(area).cloned() else {
            unreachable!("the area was there a moment ago")
        };
        let mut copy = Area {
            vma: Some(vma),
            ..a
        };
        if let Tables::Own(t) = &mut copy.tables {
            t.clear();
        }
        let mapper = Mapper { proc: child, area };
        let anon = match &mut copy.backing {
            Backing::Anon => {
                let Kind::Anon(family) = mem.objects.get(copy.object).kind else {
                    unreachable!("anonymous areas have anonymous objects")
                };
                copy.object = mem.objects.create_anon(Some(family));
                mem.objects.get_mut(copy.object).mappers = vec![mapper];
                true
            }
            Backing::File { node, mapped, .. } => {
                *mapped = super::bits::BitVec::default();
                mem.objects.get_mut(copy.object).mappers.push(mapper);
                let node = crate::fs::NodeId(*node);
                self.pin(node);
                false
            }
        };
        let areas = &mut self.mem().procs.get_mut(child).areas;
        debug_assert!(areas.len() == usize::from(area));
        areas.push(Some(copy));
        anon
    }

    /// Shares pages from `from` on with a child, some at once; returns where to go on.
    fn share_pages(&mut self, parent: ProcId, child: ProcId, area: u16, from: u32) -> Option<u32> {
        let mem = self.mem();
        let theirs = mem.procs.get(parent).area(area)?.object;
        let ours = mem.procs.get(child).area(area)?.object;
        let mut at = from;
        let mut shared = 0;
        for _ in 0..CHUNK {
            let Some(i) = mem.objects.get(theirs).next_present(at) else {
                self.share_done(shared);
                return None;
            };
            at = i + 1;
            let o = mem.objects.get_mut(theirs);
            o.protect(i);
            let entry = o.get(i);
            mem.objects.get_mut(ours).set(i, entry);
            let p = mem.procs.get_mut(child);
            match entry.at() {
                At::Frame(pfn) => {
                    mem.frames.get_mut(pfn).maps += 1;
                    p.rss += 1;
                    shared += 1;
                }
                At::Slot(slot) => {
                    p.swapped += 1;
                    if let Some(swap) = &mut mem.swap {
                        swap.add(slot);
                    }
                }
                At::Absent => {}
            }
        }
        self.share_done(shared);
        Some(at)
    }

    fn share_done(&mut self, shared: u64) {
        let cost = self.mem_ref().config.costs.fork_page;
        self.mem().owe(cost * shared);
    }

    fn free_mm(&mut self, proc: ProcId) {
        let p = self.mem().procs.get_mut(proc);
        let (mm, directory) = (p.mm.take(), p.directory.take());
        if let Some(obj) = mm {
            self.kmem_free(obj);
        }
        if let Some(pfn) = directory {
            self.mem().procs.get_mut(proc).tables -= 1;
            self.free_kernel(pfn);
        }
    }
}

impl super::Memory {
    /// Pages from the beginning of its page table to a page.
    fn table_offset(&self, proc: ProcId, area: u16, index: u32) -> u32 {
        let span = self.config.table_span();
        match self.procs.get(proc).area(area).map(|a| &a.tables) {
            Some(Tables::Shared { base }) => (base + index) % span,
            _ => index % span,
        }
    }
}
