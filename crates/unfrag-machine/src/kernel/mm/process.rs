//! Processes: fork, exec, exit. `spec: 8.1, 8.6`

use crate::error::Fail;
use crate::fs::NodeId;
use crate::kernel::mm::Who;
use crate::kernel::{Cx, KernelState, Sim};
use crate::kmem::Obj;
use crate::kmem::caches::CacheKind;
use crate::mm::bit_set::BitSet;
use crate::mm::frames::Use;
use crate::mm::object::{Mapper, ObjectKind, PageLocation};
use crate::mm::process::{Area, Backing, ProcId, Process, Tables};
use std::rc::Rc;
use unfrag_eras::Gfp;

/// Pages that are copied or freed in one piece.
const CHUNK: u32 = 256;

/// Pages of a kernel stack that is mapped page by page: 16 KiB.
const MAPPED_STACK: u32 = 4;

/// Objects of a process from its fork to its exit.
const PROCESS_OBJECTS: [CacheKind; 4] = [
    CacheKind::TaskStruct,
    CacheKind::SighandCache,
    CacheKind::SignalCache,
    CacheKind::FilesCache,
];

impl Cx<'_> {
    /// Creates a process without memory of its own on behalf of `who`: kernel stack, `task_struct`, page
    /// directory.
    ///
    /// # Errors
    /// [`Fail::NoMemory`]; nothing is left of it then.
    pub fn create_process(&mut self, who: Who, name: &Rc<str>) -> Result<ProcId, Fail> {
        let proc = self.with(|sim| {
            let kernel = sim.kernel();
            kernel.owed += kernel.config.costs.fork;
            kernel.procs.insert(Process::new(name.clone()))
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
            self.with(|sim| sim.kernel().procs.get_mut(proc).objects.push(obj));
        }
        let order = self.with(|sim| sim.kernel_ref().config.stack_order);
        let (n, gfp) = if order == 0 {
            (MAPPED_STACK, Gfp::KERNEL | Gfp::HIGHMEM | Gfp::ZERO)
        } else {
            (1, Gfp::KERNEL)
        };
        for _ in 0..n {
            let pfn = self.alloc_pages(who, order, gfp)?;
            self.with(|sim| {
                sim.take_kernel(pfn, order, Use::Stack);
                sim.kernel().procs.get_mut(proc).stack.push(pfn);
            });
        }
        self.make_mm(who, proc)
    }

    /// `mm_struct` and page directory.
    fn make_mm(&mut self, who: Who, proc: ProcId) -> Result<(), Fail> {
        let mm = self.kmem_kind(who, CacheKind::MmStruct)?;
        self.with(|sim| sim.kernel().procs.get_mut(proc).mm = Some(mm));
        let pfn = self.alloc_pages(who, 0, Gfp::KERNEL | Gfp::ZERO)?;
        self.with(|sim| {
            sim.take_kernel(pfn, 0, Use::Table);
            let p = sim.kernel().procs.get_mut(proc);
            p.directory = Some(pfn);
            p.tables += 1;
        });
        Ok(())
    }

    /// Forks a process: its anonymous pages are shared until one of the two writes.
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
            let p = sim.kernel_ref().procs.get(parent);
            let (len, areas) = (p.shared_len, p.areas.len() as u16);
            sim.kernel().procs.get_mut(child).shared_len = len;
            areas
        });
        for _ in 0..self.with(|sim| sim.kernel_ref().procs.get(parent).vmas.len()) {
            let vma = self.kmem_kind(who, CacheKind::VmAreaStruct)?;
            self.with(|sim| sim.kernel().procs.get_mut(child).vmas.push(vma));
        }
        for area in 0..areas {
            if self.with(|sim| sim.kernel_ref().procs.get(parent).area(area).is_none()) {
                self.with(|sim| sim.kernel().procs.get_mut(child).areas.push(None));
                continue;
            }
            let vma = self.kmem_kind(who, CacheKind::VmAreaStruct)?;
            let anon = self.with(|sim| sim.clone_area(parent, child, area, vma));
            if anon {
                self.copy_tables(who, parent, child, area)?;
                self.copy_pages(parent, child, area)?;
            }
        }
        Ok(())
    }

    /// Allocates the page tables of the child where the parent has some.
    fn copy_tables(
        &mut self,
        who: Who,
        parent: ProcId,
        child: ProcId,
        area: u16,
    ) -> Result<(), Fail> {
        let (span, pages) = self.with(|sim| {
            let kernel = sim.kernel_ref();
            let pages = kernel.procs.get(parent).area(area).map_or(0, |a| a.pages);
            (kernel.config.table_span(), pages)
        });
        let mut index = 0;
        while index < pages {
            let wanted = self.with(|sim| {
                let kernel = sim.kernel_ref();
                kernel.has_table(parent, area, index) && !kernel.has_table(child, area, index)
            });
            if wanted {
                let gfp = self.with(|sim| sim.kernel_ref().config.table_gfp());
                let pfn = self.alloc_pages(who, 0, gfp)?;
                self.with(|sim| sim.add_table(child, area, index, pfn));
            }
            let into = self.with(|sim| sim.kernel_ref().table_offset(parent, area, index));
            index += span - into;
        }
        Ok(())
    }

    fn copy_pages(&mut self, parent: ProcId, child: ProcId, area: u16) -> Result<(), Fail> {
        while !self.with(|sim| sim.split_area(parent, area)) {
            let tick = self.with(|sim| sim.world_ref().tick());
            self.sleep(tick);
        }
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

    /// Unmaps all memory of a process (for `exec`).
    pub(crate) fn clear_process(&mut self, proc: ProcId) {
        let areas = self.with(|sim| sim.kernel_ref().procs.get(proc).areas.len() as u16);
        for area in 0..areas {
            self.unmap_area(proc, area);
        }
        self.with(|sim| {
            let p = sim.kernel().procs.get_mut(proc);
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
            at = self.with(|sim| sim.zap(proc, area, from..u32::MAX, CHUNK));
            self.pay_if_much();
        }
        self.with(|sim| sim.remove_area(proc, area));
    }

    /// Replaces the memory of a process by an empty one.
    ///
    /// # Errors
    /// [`Fail::NoMemory`].
    pub(crate) fn exec_process(&mut self, proc: ProcId, name: &Rc<str>) -> Result<(), Fail> {
        self.clear_process(proc);
        self.with(|sim| {
            sim.free_mm(proc);
            let kernel = sim.kernel();
            kernel.owed += kernel.config.costs.exec;
            kernel.procs.get_mut(proc).name = name.clone();
        });
        self.pay();
        self.make_mm(Who::process(proc), proc)
    }

    /// Ends a process and frees all that it has. It may be incomplete.
    pub fn destroy_process(&mut self, proc: ProcId) {
        self.with(|sim| {
            let kernel = sim.kernel();
            kernel.owed += kernel.config.costs.exit;
        });
        self.clear_process(proc);
        self.with(|sim| {
            sim.free_mm(proc);
            let p = sim.kernel().procs.get_mut(proc);
            let (stack, objects) = (std::mem::take(&mut p.stack), std::mem::take(&mut p.objects));
            for pfn in stack {
                sim.free_kernel(pfn);
            }
            for obj in objects {
                sim.kmem_free(obj);
            }
            let kernel = sim.kernel();
            if kernel.procs.get(proc).victim {
                kernel.dying -= 1;
            }
            kernel.procs.remove(proc);
        });
        self.pay();
    }
}

impl Sim {
    /// Copies an area to the child, without pages; true if it is anonymous.
    fn clone_area(&mut self, parent: ProcId, child: ProcId, area: u16, vma: Obj) -> bool {
        let kernel = self.kernel();
        let Some(a) = kernel.procs.get(parent).area(area).cloned() else {
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
                let ObjectKind::Anon(family) = kernel.objects.get(copy.object).kind else {
                    unreachable!("anonymous areas have anonymous objects")
                };
                copy.object = kernel.objects.create_anon(Some(family));
                kernel.objects.get_mut(copy.object).mappers = vec![mapper];
                true
            }
            Backing::File { node, mapped, .. } => {
                *mapped = BitSet::default();
                kernel.objects.get_mut(copy.object).mappers.push(mapper);
                let node = NodeId(*node);
                self.pin(node);
                false
            }
        };
        let areas = &mut self.kernel().procs.get_mut(child).areas;
        debug_assert!(areas.len() == usize::from(area));
        areas.push(Some(copy));
        anon
    }

    /// Shares some pages from `from` on with a child; returns where to continue.
    fn share_pages(&mut self, parent: ProcId, child: ProcId, area: u16, from: u32) -> Option<u32> {
        let kernel = self.kernel();
        let theirs = kernel.procs.get(parent).area(area)?.object;
        let ours = kernel.procs.get(child).area(area)?.object;
        let mut at = from;
        let mut shared = 0;
        for _ in 0..CHUNK {
            let Some(i) = kernel.objects.get(theirs).next_present(at) else {
                self.share_done(shared);
                return None;
            };
            at = i + 1;
            let o = kernel.objects.get_mut(theirs);
            o.protect(i);
            let entry = o.get(i);
            kernel.objects.get_mut(ours).set(i, entry);
            let p = kernel.procs.get_mut(child);
            match entry.at() {
                PageLocation::Frame(pfn) => {
                    kernel.frames.get_mut(pfn).maps += 1;
                    p.rss += 1;
                    shared += 1;
                }
                PageLocation::Slot(slot) => {
                    p.swapped += 1;
                    if let Some(swap) = &mut kernel.swap {
                        swap.add(slot);
                    }
                }
                PageLocation::Absent => {}
            }
        }
        self.share_done(shared);
        Some(at)
    }

    fn share_done(&mut self, shared: u64) {
        let cost = self.kernel_ref().config.costs.fork_page;
        self.kernel().owe(cost * shared);
    }

    fn free_mm(&mut self, proc: ProcId) {
        let p = self.kernel().procs.get_mut(proc);
        let (mm, directory) = (p.mm.take(), p.directory.take());
        if let Some(obj) = mm {
            self.kmem_free(obj);
        }
        if let Some(pfn) = directory {
            self.kernel().procs.get_mut(proc).tables -= 1;
            self.free_kernel(pfn);
        }
    }
}

impl KernelState {
    /// Position of a page in its page table.
    fn table_offset(&self, proc: ProcId, area: u16, index: u32) -> u32 {
        let span = self.config.table_span();
        match self.procs.get(proc).area(area).map(|a| &a.tables) {
            Some(Tables::Shared { base }) => (base + index) % span,
            _ => index % span,
        }
    }
}
