//! Touching memory.
//!
//! Touches go on inside one borrow of the machine while each page is present or allocated at once. The first
//! that has to wait leaves it. `spec: 8.6`

use crate::engine::Nanos;
use crate::error::Fail;
use crate::kernel::mm::Who;
use crate::kernel::mm::prefetch::TOGETHER;
use crate::kernel::{BATCH, Cx, Sim};
use crate::mm::config::NEW_PAGE;
use crate::mm::frames::ObjectId;
use crate::mm::object::Entry;
use crate::mm::process::{Backing, ProcId};
use std::iter::once;
use std::ops::Range;
use unfrag_eras::Pfn;
use unfrag_eras::page_alloc::{Allocation, Begun};
use unfrag_eras::reclaim::PageFlags;

/// How touches stopped.
enum TouchStop {
    /// All pages were touched.
    Done,
    /// One piece of work is done; continue.
    Pause,
    /// This page needs more than free memory.
    Fault(u32),
    /// The allocation for this page has to wait.
    Wait(u32),
}

/// How a process touches pages of an area.
struct TouchRun {
    who: ProcId,
    area: u16,
    write: bool,
    /// The program's own work for each page.
    each: Nanos,
    /// The program's own work that is done and not yet spent.
    user: Nanos,
    /// The rest of the present run of pages.
    rest: Range<u32>,
    /// Set with [`TouchStop::Wait`]. It is kept apart because it is large and rare.
    allocation: Option<Allocation>,
}

/// Flags that a touch sets on an anonymous page.
fn hit(write: bool) -> PageFlags {
    if write {
        PageFlags::YOUNG | PageFlags::DIRTY
    } else {
        PageFlags::YOUNG
    }
}

/// Runs of consecutive pages, in the order in which they are touched.
pub type Runs<'a> = dyn Iterator<Item = Range<u32>> + 'a;

impl TouchRun {
    /// The next page.
    #[inline]
    fn next(&mut self, runs: &mut Runs) -> Option<u32> {
        while self.rest.is_empty() {
            self.rest = runs.next()?;
        }
        self.rest.next()
    }
}

impl Sim {
    /// Touches pages until one has to wait or one piece of work is done.
    fn touch_run(&mut self, t: &mut TouchRun, runs: &mut Runs) -> TouchStop {
        let (who, area) = (t.who, t.area);
        if let Some(mut file) = self.file_area(who, area) {
            while let Some(i) = t.next(runs) {
                t.user += t.each;
                if !file.touch(i) {
                    return TouchStop::Fault(i);
                }
                if t.user + *file.owed >= BATCH {
                    return TouchStop::Pause;
                }
            }
            return TouchStop::Done;
        }
        let Some(a) = self.kernel_ref().procs.get(who).area(area) else {
            return TouchStop::Done;
        };
        let object = a.object;
        let hit = hit(t.write);
        // Pages whose page table is known to exist.
        let mut tabled = 0..0;
        while let Some(i) = t.next(runs) {
            t.user += t.each;
            let entry = self.kernel_ref().objects.get(object).get(i);
            match entry.pfn() {
                Some(pfn) if !(t.write && entry.is_protected()) => {
                    let (world, mut pages) = self.manager().host_and_pages();
                    let block = entry.huge().unwrap_or(pfn);
                    // Mapped and locked: it is being moved.
                    if pages.flags(block).contains(PageFlags::LOCKED) {
                        return TouchStop::Fault(i);
                    }
                    pages.set(block, hit);
                    if t.write {
                        world.kernel.frames.write_content(pfn);
                    }
                }
                None if entry == Entry::ABSENT => {
                    if !tabled.contains(&i) {
                        tabled = self.kernel_ref().tabled(who, area, i);
                    }
                    if tabled.is_empty() {
                        return TouchStop::Fault(i);
                    }
                    if !self.map_listed(t, object, i, tabled.end) {
                        match self.begin(Who::process(who), 0, NEW_PAGE) {
                            Ok(Begun::Got(pfn)) => self.map_new(who, object, i, &[pfn]),
                            Ok(Begun::Allocation(allocation)) => {
                                t.allocation = Some(allocation);
                                return TouchStop::Wait(i);
                            }
                            Err(_) => return TouchStop::Fault(i),
                        }
                    }
                }
                _ => return TouchStop::Fault(i),
            }
            if t.user + self.kernel_ref().owed >= BATCH {
                return TouchStop::Pause;
            }
        }
        TouchStop::Done
    }

    /// Maps new pages at `first` and at the absent pages after it in its run. It is limited by the pages on
    /// this CPU's list, the page table, and the size of one piece of work. False if the list is empty.
    fn map_listed(&mut self, t: &mut TouchRun, object: ObjectId, first: u32, tabled: u32) -> bool {
        let kernel = self.kernel_ref();
        let costs = &kernel.config.costs;
        // Cost of allocating, zeroing and mapping a page.
        let each_fault = costs.alloc + costs.zero_page + costs.fault;
        let begun = t.user + kernel.owed + each_fault;
        let more = BATCH
            .saturating_sub(begun)
            .div_ceil((t.each + each_fault).max(1));
        let room = t.rest.end.min(tabled).saturating_sub(t.rest.start);
        let more = more.min(room.into()).min(TOGETHER as u64 - 1) as u32;
        let o = kernel.objects.get(object);
        let absent = (first + 1..first + 1 + more).take_while(|i| o.get(*i) == Entry::ABSENT);
        let mut pages = [Pfn(0); TOGETHER];
        let pages = &mut pages[..1 + absent.count()];
        let request = self.request(0, NEW_PAGE);
        let n = self.manager().alloc_from_pcp(&request, pages);
        if n == 0 {
            return false;
        }
        let kernel = self.kernel();
        kernel.owed += kernel.config.costs.alloc * n as u64;
        for _ in 0..n {
            kernel.owe_zeroing(0);
        }
        self.map_new(t.who, object, first, &pages[..n]);
        t.user += t.each * (n as u64 - 1);
        t.rest.start += n as u32 - 1;
        true
    }

    /// Touches pages of an anonymous area as long as they are present, and returns how many were. All frames of
    /// a chunk are looked up and prefetched before the first is marked.
    fn touch_present(&mut self, who: ProcId, area: u16, pages: &[u32], write: bool) -> usize {
        let hit = hit(write);
        let area = self.kernel_ref().procs.get(who).area(area);
        let Some(a) = area.filter(|a| matches!(a.backing, Backing::Anon)) else {
            return 0;
        };
        let id = a.object;
        let (world, mut core) = self.manager().host_and_pages();
        let object = world.kernel.objects.get(id);
        let mut present = 0;
        for chunk in pages.chunks(TOGETHER) {
            let mut frames = [Pfn(0); TOGETHER];
            let mut n = 0;
            for &page in chunk {
                let entry = object.get(page);
                match entry.block() {
                    Some(pfn) if !(write && entry.is_protected()) => {
                        core.prefetch(pfn);
                        frames[n] = pfn;
                    }
                    _ => break,
                }
                n += 1;
            }
            for &pfn in &frames[..n] {
                if core.flags(pfn).contains(PageFlags::LOCKED) {
                    return present;
                }
                core.set(pfn, hit);
                present += 1;
            }
            if n < chunk.len() {
                break;
            }
        }
        present
    }
}

impl Cx<'_> {
    /// Touches runs of pages of an area in the given order, with `each` nanoseconds of the program's own work
    /// for each page.
    ///
    /// # Errors
    /// [`Fail::Killed`] when the task is killed, [`Fail::Io`] when a page cannot be read.
    pub fn touch(
        &mut self,
        who: ProcId,
        area: u16,
        runs: &mut Runs,
        write: bool,
        each: Nanos,
    ) -> Result<(), Fail> {
        let mut t = TouchRun {
            who,
            area,
            write,
            each,
            user: 0,
            rest: 0..0,
            allocation: None,
        };
        loop {
            let stop = self.with(|sim| sim.touch_run(&mut t, runs));
            self.spend_and_pay(std::mem::take(&mut t.user));
            if self.killed() {
                return Err(Fail::Killed);
            }
            match stop {
                TouchStop::Done => return Ok(()),
                TouchStop::Pause => {}
                TouchStop::Fault(i) => self.fault(who, area, i, write, None)?,
                TouchStop::Wait(i) => {
                    let allocation = t.allocation.take();
                    let spare = allocation.and_then(|a| self.try_to_finish(Who::process(who), a));
                    self.fault(who, area, i, write, spare)?;
                }
            }
        }
    }

    /// Touches pages that are most likely present, without work of the program's own.
    ///
    /// # Errors
    /// As [`touch`](Cx::touch).
    pub(crate) fn touch_again(
        &mut self,
        who: ProcId,
        area: u16,
        pages: &[u32],
        write: bool,
    ) -> Result<(), Fail> {
        let mut rest = pages;
        loop {
            let present = self.with(|sim| sim.touch_present(who, area, rest, write));
            let Some((&missing, more)) = rest[present..].split_first() else {
                return Ok(());
            };
            self.touch(who, area, &mut once(missing..missing + 1), write, 0)?;
            rest = more;
        }
    }
}
