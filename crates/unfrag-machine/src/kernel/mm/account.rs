//! The check that every frame is accounted for: what the allocator has handed out is what the simulated
//! kernel owns, and all tables agree.
//!
//! To be called when no task is in the middle of a call: at the end of a run. Between steps of the engine
//! tasks may hold pages that no table has; the caller allows for a number of them.

use crate::kernel::{KernelState, Sim};
use crate::mm::frames::{FrameFlags, NR_USES, ObjectId, Owner, Use};
use crate::mm::object::{ObjectKind, PageLocation};
use crate::mm::process::{Backing, Tables};
use crate::mm::thp::HUGE_PAGES;
use std::collections::BTreeMap;
use unfrag_eras::Pfn;
use unfrag_eras::reclaim::PageFlags;

/// All pages by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Pages that the allocator manages.
    pub managed: u64,
    /// Free, on buddy and per-CPU lists.
    pub free: u64,
    /// Anonymous pages that processes map.
    pub anon: u64,
    /// Page cache of files.
    pub file: u64,
    /// tmpfs.
    pub shmem: u64,
    /// Caches of devices.
    pub device: u64,
    /// In the swap cache, without mappings.
    pub swap_cache: u64,
    /// Freed when their transfer ends.
    pub orphans: u64,
    /// By use of the kernel, in the order of [`Use::ALL`].
    pub kernel: [u64; NR_USES],
}

impl Account {
    /// Pages in use.
    pub fn in_use(&self) -> u64 {
        let kernel: u64 = self.kernel.iter().sum();
        self.anon + self.file + self.shmem + self.device + self.swap_cache + self.orphans + kernel
    }
}

impl Sim {
    /// All pages by use.
    pub fn account(&self) -> Account {
        let kernel = self.kernel_ref();
        let mut a = Account {
            kernel: kernel.frames.uses(),
            ..Account::default()
        };
        for (_, info) in kernel.frames.owned() {
            match info.owner() {
                Owner::Anon(_) => a.anon += 1,
                Owner::Swap => a.swap_cache += 1,
                Owner::Orphan => a.orphans += 1,
                Owner::File(o) => match kernel.objects.get(o).kind {
                    ObjectKind::Shmem(_) => a.shmem += 1,
                    ObjectKind::Device(_) => a.device += 1,
                    _ => a.file += 1,
                },
                Owner::Kernel(_) | Owner::None => {}
            }
        }
        let m = self.manager_ref().inspect();
        for z in m.zones() {
            let v = m.zone(z);
            a.managed += v.config.managed;
            a.free += v.free_pages + m.pcp_pages(z);
        }
        a
    }

    /// Checks that all tables agree. `in_hands` is the number of pages that tasks may hold between allocation
    /// and use; 0 when all have ended.
    ///
    /// # Errors
    /// What is wrong, with frame or object.
    pub fn check(&mut self, in_hands: u64) -> Result<Account, String> {
        self.free_pending();
        let kernel = self.kernel_ref();
        kernel.check_objects()?;
        kernel.check_processes()?;
        kernel.check_kernel()?;
        kernel.kmem.validate()?;
        if let Some(swap) = &kernel.swap {
            swap.validate()?;
        }
        kernel.check_swap()?;
        self.check_flags()?;
        let a = self.account();
        let known = a.in_use() + a.free;
        if a.managed < known || a.managed - known > in_hands {
            return Err(format!(
                "of {} pages, {} are free and {} owned: {} are nobody's",
                a.managed,
                a.free,
                a.in_use(),
                a.managed as i64 - known as i64
            ));
        }
        Ok(a)
    }

    /// Checks the allocator's flags against the tables.
    fn check_flags(&self) -> Result<(), String> {
        let kernel = self.kernel_ref();
        let m = self.manager_ref().inspect();
        let (mut writeback, mut to_swap) = (0, 0);
        for (pfn, info) in kernel.frames.owned() {
            if matches!(info.owner(), Owner::Kernel(_)) {
                continue;
            }
            let part =
                info.bits.contains(FrameFlags::HUGE) && !pfn.0.is_multiple_of(HUGE_PAGES.into());
            if part {
                continue;
            }
            let flags = m.page_flags(pfn);
            if flags.contains(PageFlags::MAPPED) != (info.maps > 0) {
                return Err(format!(
                    "{pfn:?}: {} mappings, but flags {flags:?}",
                    info.maps
                ));
            }
            let transfer = flags.intersects(PageFlags::LOCKED | PageFlags::WRITEBACK);
            let in_flight = info.bits.contains(FrameFlags::IN_FLIGHT);
            let moving = info.bits.contains(FrameFlags::MOVING);
            if transfer != (in_flight || moving) {
                return Err(format!("{pfn:?}: {:?}, but flags {flags:?}", info.bits));
            }
            if in_flight && flags.contains(PageFlags::WRITEBACK) {
                match info.owner() {
                    Owner::File(o)
                        if !matches!(kernel.objects.get(o).kind, ObjectKind::Shmem(_)) =>
                    {
                        writeback += 1;
                    }
                    // It was either's.
                    Owner::Orphan => {}
                    _ => to_swap += 1,
                }
            }
        }
        // The writeback of pages that have lost their file or slot is counted, too.
        let swap = kernel.swap.as_ref().map_or(0, |s| s.writeback);
        for (counted, there) in [(kernel.vfs.dirty.nr_writeback, writeback), (swap, to_swap)] {
            if counted < there {
                return Err(format!(
                    "{counted} pages under writeback counted, {there} there"
                ));
            }
        }
        Ok(())
    }
}

impl KernelState {
    fn check_objects(&self) -> Result<(), String> {
        let mut nr_dirty = 0;
        for (id, o) in self.objects.iter() {
            let (mut frames, mut swapped) = (0, 0);
            for (i, e) in o.entries().iter().enumerate() {
                match e.at() {
                    PageLocation::Absent => {}
                    PageLocation::Slot(_) => swapped += 1,
                    PageLocation::Frame(pfn) => {
                        frames += 1;
                        let huge = self.frames.get(pfn).bits.contains(FrameFlags::HUGE);
                        if e.huge().is_some() != huge {
                            return Err(format!("{id:?}: page {i} at {pfn:?} is huge on one side"));
                        }
                        self.check_entry(id, o.kind, i as u32, pfn)?;
                    }
                }
            }
            if (frames, swapped) != (o.frames, o.swapped) {
                return Err(format!(
                    "{id:?}: {} frames and {} slots counted, {frames} and {swapped} there",
                    o.frames, o.swapped
                ));
            }
            if o.dirty.count() != o.nr_dirty {
                return Err(format!(
                    "{id:?}: {} dirty pages counted, {} there",
                    o.nr_dirty,
                    o.dirty.count()
                ));
            }
            if let Some(i) = o.dirty.iter().find(|&i| o.get(i).pfn().is_none()) {
                return Err(format!("{id:?}: page {i} is dirty but not in memory"));
            }
            nr_dirty += u64::from(o.nr_dirty);
        }
        if nr_dirty != self.vfs.dirty.nr_dirty {
            return Err(format!(
                "{} dirty pages counted, {nr_dirty} there",
                self.vfs.dirty.nr_dirty
            ));
        }
        Ok(())
    }

    fn check_entry(
        &self,
        id: ObjectId,
        kind: ObjectKind,
        index: u32,
        pfn: Pfn,
    ) -> Result<(), String> {
        let info = self.frames.get(pfn);
        let fits = match (kind, info.owner()) {
            (ObjectKind::Anon(f), Owner::Anon(g)) => f == g,
            (ObjectKind::Anon(_), _) => false,
            (_, Owner::File(o)) => o == id,
            _ => false,
        };
        if !fits || info.index != index {
            return Err(format!(
                "{id:?} has page {index} at {pfn:?}, which belongs to {:?} at {}",
                info.owner(),
                info.index
            ));
        }
        Ok(())
    }

    fn check_processes(&self) -> Result<(), String> {
        let mut maps: BTreeMap<Pfn, u16> = BTreeMap::new();
        let mut tables = 0;
        for (id, p) in self.procs.iter() {
            let (mut rss, mut swapped) = (0, 0);
            let mut count = u32::from(p.directory.is_some());
            count += p.shared_tables.iter().filter(|t| **t != 0).count() as u32;
            for a in p.areas.iter().flatten() {
                let o = self.objects.get(a.object);
                if let Tables::Own(own) = &a.tables {
                    count += own.iter().filter(|t| **t != 0).count() as u32;
                }
                match &a.backing {
                    Backing::Anon => {
                        rss += o.frames;
                        swapped += o.swapped;
                        for pfn in o.entries().iter().filter_map(|e| e.pfn()) {
                            *maps.entry(pfn).or_default() += 1;
                        }
                    }
                    Backing::File { mapped, .. } => {
                        for i in mapped.iter() {
                            let Some(pfn) = o.get(i).pfn() else {
                                return Err(format!(
                                    "{id:?} maps page {i} of {:?}, which is not there",
                                    a.object
                                ));
                            };
                            rss += 1;
                            *maps.entry(pfn).or_default() += 1;
                        }
                    }
                }
            }
            if (rss, swapped, count) != (p.rss, p.swapped, p.tables) {
                return Err(format!(
                    "{id:?} ({}): {} pages, {} slots, {} tables counted; {rss}, {swapped}, {count} there",
                    p.name, p.rss, p.swapped, p.tables
                ));
            }
            tables += u64::from(count);
        }
        if tables != self.frames.uses()[Use::Table as usize] {
            return Err(format!(
                "{tables} page tables of processes, {} in all",
                self.frames.uses()[0]
            ));
        }
        for (pfn, info) in self.frames.owned() {
            if matches!(info.owner(), Owner::Kernel(_)) {
                continue;
            }
            let there = maps.get(&pfn).copied().unwrap_or(0);
            if info.maps != there {
                return Err(format!(
                    "{pfn:?}: {} mappings counted, {there} there",
                    info.maps
                ));
            }
        }
        Ok(())
    }

    fn check_kernel(&self) -> Result<(), String> {
        let uses = self.frames.uses();
        let slab = uses[Use::Slab as usize];
        if slab != self.kmem.pages() {
            return Err(format!(
                "{slab} pages are slabs, the caches know of {}",
                self.kmem.pages()
            ));
        }
        for (pfn, order, _) in self.kmem.blocks() {
            let info = self.frames.get(Pfn(pfn.into()));
            if info.owner() != Owner::Kernel(Use::Slab) || info.index != u32::from(order) {
                return Err(format!(
                    "the slab at frame {pfn:#x} belongs to {:?}",
                    info.owner()
                ));
            }
        }
        let net = self.net.waiting().1;
        if uses[Use::Net as usize] != net {
            return Err(format!(
                "{} pages of network buffers, {net} wait",
                uses[Use::Net as usize]
            ));
        }
        let crypt = self.crypt.pages() as u64;
        if uses[Use::Crypt as usize] != crypt {
            return Err(format!(
                "{} pages for encryption, {crypt} known",
                uses[Use::Crypt as usize]
            ));
        }
        Ok(())
    }

    /// Checks the reference counts of slots and their copies in memory.
    fn check_swap(&self) -> Result<(), String> {
        let Some(swap) = &self.swap else {
            return Ok(());
        };
        let mut counts: BTreeMap<u32, u16> = BTreeMap::new();
        for (_, o) in self.objects.iter() {
            for e in o.entries() {
                if let PageLocation::Slot(s) = e.at() {
                    *counts.entry(s).or_default() += 1;
                }
            }
        }
        for (slot, count, cached) in swap.iter() {
            let there = counts.remove(&slot).unwrap_or(0);
            if there != count {
                return Err(format!(
                    "slot {slot}: {count} entries counted, {there} there"
                ));
            }
            if let Some(pfn) = cached
                && self.frames.get(pfn).slot() != Some(slot)
            {
                return Err(format!(
                    "slot {slot} is cached in {pfn:?}, which does not know it"
                ));
            }
        }
        match counts.first_key_value() {
            Some((slot, _)) => Err(format!("slot {slot} is free, but an entry names it")),
            None => Ok(()),
        }
    }
}
