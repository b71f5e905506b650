//! Moves of pages, as compaction asks for them. `spec: 5.1, 5.3`
//!
//! A batch has three parts. Pages that can be moved are locked and copied; the time that all of this takes passes;
//! all references to them are changed to their new frames at once. Whoever uses a page meanwhile waits for its lock.
//!
//! Invariant: a page is locked by a move only while the allocator holds it isolated, so no two moves and no reclaim have
//! the same page. What its owner frees meanwhile is freed when the move ends.

use crate::channels::page_channel;
use crate::kernel::mm::caller::Caller;
use crate::kernel::{Cx, KernelState, Sim};
use crate::mm::frames::{FrameFlags, ObjectId, Owner};
use crate::mm::object::ObjectKind;
use unfrag_eras::migrate::{Migration, MoveAsk, MoveVerdict, MoveVerdicts};
use unfrag_eras::reclaim::PageFlags;
use unfrag_eras::{Gfp, Pfn};

/// What becomes of a page that is to be locked for its move.
enum Locking {
    /// It is locked, and copied.
    Locked,
    /// Its owner has freed it.
    Gone,
    /// It stays.
    Busy,
    /// It is being read.
    Reading,
    /// It is being written.
    Writing,
}

impl Cx<'_> {
    /// Asks the owners of pages to move them, and lets the time for that pass.
    pub(crate) fn migrate(&mut self, caller: Caller, migration: &Migration) -> MoveVerdicts {
        let mut moving = 0u32;
        for (i, ask) in migration.asks().iter().enumerate() {
            moving |= u32::from(self.begin_move(caller, migration, ask)) << i;
        }
        self.pay();
        let sim = self.within();
        let mut nth = 0;
        let verdicts = migration.ask(|ask| {
            let is_moving = moving >> nth & 1 == 1;
            nth += 1;
            if is_moving {
                sim.end_move(ask)
            } else {
                MoveVerdict::Busy
            }
        });
        self.with(|sim| {
            let kernel = sim.kernel();
            let is_mapped = |ask: &MoveAsk| kernel.frames.get(ask.to).maps > 0;
            if migration.asks().iter().any(is_mapped) {
                kernel.owed += kernel.config.costs.flush_tlb;
            }
        });
        verdicts
    }

    /// Locks and copies a page. False if it stays.
    fn begin_move(&mut self, caller: Caller, migration: &Migration, ask: &MoveAsk) -> bool {
        // A request that frees memory for itself waits for no lock: it may hold locks of other pages.
        let waits_for_locks = migration.may_wait && caller.daemon.is_some();
        let waits_for_writes = migration.may_write && caller.gfp.contains(Gfp::IO);
        loop {
            match self.with(|sim| sim.lock_for_move(ask)) {
                Locking::Locked | Locking::Gone => return true,
                Locking::Reading if waits_for_locks => self.wait_for_read(ask.from),
                Locking::Writing if waits_for_writes => {
                    self.pay();
                    self.wait_on_writeback(ask.from);
                }
                Locking::Busy | Locking::Reading | Locking::Writing => return false,
            }
        }
    }
}

impl Sim {
    fn lock_for_move(&mut self, ask: &MoveAsk) -> Locking {
        let kernel = self.kernel();
        let (num, den) = kernel.config.busy;
        if num > 0 && kernel.busy_rng.chance(num, den) {
            kernel.counters.busy_injected += 1;
            return Locking::Busy;
        }
        let info = *kernel.frames.get(ask.from);
        match info.owner() {
            Owner::None => return Locking::Gone,
            Owner::Orphan | Owner::Kernel(_) => return Locking::Busy,
            Owner::File(object) if kernel.journal_holds(object, info.index) => {
                return Locking::Busy;
            }
            Owner::File(_) | Owner::Anon(_) | Owner::Swap => {}
        }
        let flags = self.manager().inspect().page_flags(ask.from);
        if flags.contains(PageFlags::WRITEBACK) {
            return Locking::Writing;
        }
        if flags.contains(PageFlags::LOCKED) {
            return Locking::Reading;
        }
        let kernel = self.kernel();
        debug_assert!(!info.bits.contains(FrameFlags::IN_FLIGHT));
        let costs = &kernel.config.costs;
        let pages = u64::from(ask.order.frames());
        let mapped = if info.maps > 0 { costs.unmap_page } else { 0 };
        kernel.owed += costs.move_page + pages * (costs.copy_page + mapped);
        for (from, to) in frames(ask) {
            kernel.frames.copy_content(from, to);
            kernel.frames.get_mut(from).bits |= FrameFlags::MOVING;
        }
        self.manager().pages().set(ask.from, PageFlags::LOCKED);
        Locking::Locked
    }

    /// Changes all references to a page to its new frame, and unlocks it.
    fn end_move(&mut self, ask: &MoveAsk) -> MoveVerdict {
        let kernel = self.kernel();
        let verdict = match kernel.frames.get(ask.from).owner() {
            // It was not to be locked.
            Owner::Orphan | Owner::Kernel(_) => MoveVerdict::Busy,
            Owner::None | Owner::File(_) | Owner::Anon(_) | Owner::Swap => {
                frames(ask).for_each(|(from, to)| kernel.repoint(from, to));
                MoveVerdict::Moved
            }
        };
        self.manager().pages().clear(ask.from, PageFlags::LOCKED);
        self.wake(page_channel(ask.from));
        verdict
    }
}

/// The frames of a block that moves, each with its new one.
fn frames(ask: &MoveAsk) -> impl Iterator<Item = (Pfn, Pfn)> {
    let (from, to) = (ask.from.0, ask.to.0);
    (0..u64::from(ask.order.frames())).map(move |i| (Pfn(from + i), Pfn(to + i)))
}

impl KernelState {
    /// Whether a journal refers to a page: a block of a device that has changed since the last commit.
    fn journal_holds(&self, object: ObjectId, index: u32) -> bool {
        let ObjectKind::Device(fs) = self.objects.get(object).kind else {
            return false;
        };
        let journal = &self.vfs.system(fs as u8).journal;
        journal.as_ref().is_some_and(|j| j.changed.get(index))
    }

    /// Makes all that refers to a frame refer to another one.
    fn repoint(&mut self, from: Pfn, to: Pfn) {
        let mut info = std::mem::take(self.frames.get_mut(from));
        info.bits -= FrameFlags::MOVING;
        match info.owner() {
            Owner::Anon(family) => {
                for i in 0..self.objects.family(family).len() {
                    let id = self.objects.family(family)[i];
                    self.objects.get_mut(id).repoint(info.index, from, to);
                }
            }
            Owner::File(object) => self.objects.get_mut(object).repoint(info.index, from, to),
            Owner::Swap | Owner::None | Owner::Orphan | Owner::Kernel(_) => {}
        }
        if let (Some(slot), Some(swap)) = (info.slot(), &mut self.swap) {
            swap.set_cached(slot, Some(to));
        }
        self.owed += self.config.costs.remap_page * u64::from(info.maps);
        *self.frames.get_mut(to) = info;
    }
}
