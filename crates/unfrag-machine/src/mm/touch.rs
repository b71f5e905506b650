//! Touching memory.
//!
//! A run of touches goes on inside one borrow of the machine as long as each page is there, or free
//! memory gives one; the first that has to wait leaves it. `spec: linux-mm 8.6`

use super::alloc::Who;
use super::config::USER_PAGE;
use super::object::Entry;
use super::prefetch::AHEAD;
use super::process::{Backing, ProcId};
use super::{BATCH, Fail};
use crate::{Cx, Nanos, Sim};
use unfrag::page_alloc::{Attempt, Begun};
use unfrag::reclaim::PageFlags;
use unfrag::{Gfp, Pfn};

/// Pages that are found together before they are marked.
const CHUNK: usize = 32;

/// How a run of touches stopped.
#[expect(clippy::large_enum_variant, reason = "lives on the stack of its task")]
enum Stop {
    /// All pages were touched.
    Done,
    /// Enough for one piece; go on.
    Pause,
    /// This page needs more than free memory.
    Fault(u32),
    /// The page for this one has to be waited for.
    Wait(u32, Attempt),
}

/// The marks that a touch of anonymous memory leaves on its page.
fn hit(write: bool) -> PageFlags {
    if write {
        PageFlags::YOUNG | PageFlags::DIRTY
    } else {
        PageFlags::YOUNG
    }
}

impl Sim {
    fn touch_run(
        &mut self,
        who: ProcId,
        area: u16,
        indices: &mut dyn Iterator<Item = u32>,
        write: bool,
        each: Nanos,
        user: &mut Nanos,
    ) -> Stop {
        let p = self.mem_ref().procs.get(who);
        let Some(a) = p.area(area) else {
            return Stop::Done;
        };
        let object = a.object;
        let anon = matches!(a.backing, Backing::Anon);
        let hit = hit(write);
        // Pages whose page table is known to be there.
        let mut tabled = 0..0;
        for i in indices {
            *user += each;
            let entry = self.mem_ref().objects.get(object).get(i);
            let there = match entry.pfn() {
                Some(pfn) if anon && !(write && entry.is_protected()) => Some((pfn, hit)),
                Some(pfn) if !anon && self.mem_ref().is_mapped(who, area, i) => {
                    Some((pfn, PageFlags::YOUNG))
                }
                _ => None,
            };
            if let Some((pfn, marks)) = there {
                self.manager().set_page_flags(pfn, marks);
            } else {
                if !anon {
                    self.prefetch(object, i + AHEAD, 1);
                }
                if !tabled.contains(&i) {
                    tabled = self.mem_ref().tabled(who, area, i);
                }
                if tabled.is_empty() {
                    return Stop::Fault(i);
                }
                match entry.pfn() {
                    Some(pfn) if !anon && !self.is_locked(pfn) && !self.has_error(pfn) => {
                        self.map_file(who, area, i);
                    }
                    None if anon && entry == Entry::ABSENT => {
                        match self.begin(Who::process(who), 0, USER_PAGE | Gfp::ZERO) {
                            Ok(Begun::Got(pfn)) => self.map_new(who, area, i, pfn),
                            Ok(Begun::Attempt(attempt)) => return Stop::Wait(i, attempt),
                            Err(_) => return Stop::Fault(i),
                        }
                    }
                    _ => return Stop::Fault(i),
                }
            }
            if *user + self.mem_ref().owed >= BATCH {
                return Stop::Pause;
            }
        }
        Stop::Done
    }

    /// Touches pages of an anonymous area as long as they are there, and returns how many were. All
    /// frames of a chunk are found before the first is marked, so that their records are there by then.
    fn touch_present(&mut self, who: ProcId, area: u16, pages: &[u32], write: bool) -> usize {
        let hit = hit(write);
        let area = self.mem_ref().procs.get(who).area(area);
        let Some(a) = area.filter(|a| matches!(a.backing, Backing::Anon)) else {
            return 0;
        };
        let id = a.object;
        let mut present = 0;
        for chunk in pages.chunks(CHUNK) {
            let object = self.mem_ref().objects.get(id);
            let mut frames = [Pfn(0); CHUNK];
            let mut n = 0;
            for &page in chunk {
                let entry = object.get(page);
                match entry.pfn() {
                    Some(pfn) if !(write && entry.is_protected()) => {
                        self.manager_ref().prefetch(pfn);
                        frames[n] = pfn;
                    }
                    _ => break,
                }
                n += 1;
            }
            for &pfn in &frames[..n] {
                self.manager().set_page_flags(pfn, hit);
            }
            present += n;
            if n < chunk.len() {
                break;
            }
        }
        present
    }
}

impl super::Memory {
    /// Whether a process's page tables name a page of a file.
    #[inline]
    fn is_mapped(&self, who: ProcId, area: u16, index: u32) -> bool {
        match self.procs.get(who).area(area).map(|a| &a.backing) {
            Some(Backing::File { mapped, .. }) => mapped.get(index),
            _ => false,
        }
    }
}

impl Cx<'_> {
    /// Touches pages of an area in the order given, each for `each` nanoseconds of the program's own
    /// work.
    ///
    /// # Errors
    /// [`Fail::Killed`] when the task is told to end, [`Fail::Io`] when a page cannot be read.
    pub fn touch(
        &mut self,
        who: ProcId,
        area: u16,
        indices: &mut dyn Iterator<Item = u32>,
        write: bool,
        each: Nanos,
    ) -> Result<(), Fail> {
        loop {
            let mut user = 0;
            let stop = self.with(|sim| sim.touch_run(who, area, indices, write, each, &mut user));
            self.spend_and_pay(user);
            if self.killed() {
                return Err(Fail::Killed);
            }
            match stop {
                Stop::Done => return Ok(()),
                Stop::Pause => {}
                Stop::Fault(i) => self.fault(who, area, i, write, None)?,
                Stop::Wait(i, attempt) => {
                    let spare = self.try_attempt(Who::process(who), attempt);
                    self.fault(who, area, i, write, spare)?;
                }
            }
        }
    }

    /// Touches pages that are most likely there, without any work of the program's own.
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
            self.touch(who, area, &mut std::iter::once(missing), write, 0)?;
            rest = more;
        }
    }
}
