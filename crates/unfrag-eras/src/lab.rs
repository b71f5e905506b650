//! Operations for replays and experiments: allocating from a given zone, and giving blocks the sizes that a
//! recording has. With feature `lab`.

use crate::compact::{Compaction, Control, Mode, Outcome};
use crate::config::ConfigError;
use crate::frame::{
    FrameIx, FrameKind, MigrateType, NodeId, Order, Pfn, State, UseTable, Uses, ZoneId, ZoneKind,
};
use crate::host::Host;
use crate::kernel::Sysctl;
use crate::lru::ISOLATED;
use crate::manager::Manager;
use crate::request::{AllocError, Request, first_flags};
use crate::restore::{Edit, RestoreError};
use unfrag::arena::{Arena, LINE, room};

impl<'m, H: Host> Manager<'m, H> {
    /// Operations for replays and experiments.
    pub fn lab(&mut self) -> Lab<'_, 'm, H> {
        Lab { manager: self }
    }
}

/// Operations for replays and experiments. From [`Manager::lab`].
pub struct Lab<'a, 'm, H: Host> {
    manager: &'a mut Manager<'m, H>,
}

/// A run of compaction over one zone.
#[derive(Clone, Copy, Debug)]
pub struct RunRequest {
    /// The zone.
    pub zone: ZoneId,
    /// The order of the block that is wanted; `None`: the whole zone is compacted for none.
    pub order: Option<Order>,
    /// Type of the request.
    pub migratetype: MigrateType,
    /// What the run may wait for.
    pub mode: Mode,
    /// A request waits for it; else a node's daemon makes it.
    pub direct: bool,
    /// Both scanners begin at the ends of the zone, and marked pageblocks are scanned too.
    pub whole: bool,
}

impl RunRequest {
    fn control(&self) -> Control {
        Control {
            order: self.order,
            mt: self.migratetype,
            ignores_skips: self.whole,
            any_source: self.whole,
            whole_zone: self.whole,
            direct: self.direct,
            ..Control::of_zone(self.zone, self.mode, false)
        }
    }
}

impl<'m, H: Host> Lab<'_, 'm, H> {
    /// Words of memory that [`count_uses`](Self::count_uses) takes.
    pub fn use_words(&self) -> usize {
        let blocks = self.manager.frames.blocks();
        // Aligning the table may take up to one line.
        (LINE + room::<Uses>(blocks)).div_ceil(8)
    }

    /// Counts from now on how many frames of each pageblock are in use ([`Inspect::uses`](crate::inspect::Inspect::uses)),
    /// in `memory` of [`use_words`](Self::use_words) words of any content.
    ///
    /// # Errors
    /// [`ConfigError::Memory`], if the memory is too small.
    pub fn count_uses(&mut self, memory: &'m mut [u64]) -> Result<(), ConfigError> {
        let words = self.use_words();
        let memory = memory.get_mut(..words).ok_or(ConfigError::Memory(words))?;
        let frames = &mut self.manager.frames;
        let uses: &[Uses] = Arena::new(memory).table(frames.blocks());
        let uses = UseTable::new(uses, frames.geometry.block_order);
        for ix in FrameIx(0).until(FrameIx(self.manager.map.len())) {
            uses.change(ix, State::TAIL, frames.state(ix));
        }
        frames.uses = Some(uses);
        Ok(())
    }

    /// A run of compaction by itself, outside an allocation. A block that comes together for it is freed by
    /// [`Compaction::abort`].
    pub fn compaction(&self, run: &RunRequest) -> Compaction {
        Compaction::new(run.control())
    }

    /// Whether such a run should begin: [`Outcome::Continue`] if so. `spec: 5.2`
    pub fn compaction_suitable(&self, run: &RunRequest) -> Outcome {
        self.manager.compaction_suitable(&run.control())
    }

    /// Direct changes to the state.
    pub fn edit(&mut self) -> Edit<'_, 'm, H> {
        Edit {
            manager: self.manager,
        }
    }

    /// Allocates from one zone, whatever its watermark: for a replay that knows which zone was taken.
    ///
    /// # Errors
    /// [`AllocError::Forbidden`], if there is no such zone; else as [`Manager::alloc`].
    pub fn alloc_in_zone(&mut self, zone: ZoneId, request: &Request) -> Result<Pfn, AllocError> {
        let mut d = self.manager.demand(request)?;
        let z = self.manager.zones.get(zone.index());
        d.node = z.ok_or(AllocError::Forbidden)?.node;
        match self.manager.take_from_zone(zone, &d, first_flags(d.gfp)) {
            Some(ix) => Ok(self.manager.hand_out(&d, ix)),
            None => self.manager.fail(&d),
        }
    }

    /// Zone that the first attempt of a request would take, by the watermarks.
    pub fn zone_for(&self, request: &Request) -> Option<ZoneId> {
        let d = self.manager.demand(request).ok()?;
        let flags = first_flags(d.gfp);
        let list = self.manager.zone_list(&d);
        let mut zones = list.zones().map(|id| self.manager.zone(id));
        let found = zones.find(|z| {
            let mark = z.marks.of(flags);
            z.passes(&self.manager.policy.rules, d.order, mark, d.highest, flags)
        });
        found.map(|z| z.id())
    }

    /// Says whether kswapd works on a zone; while it does, per-CPU lists stay small.
    pub fn set_reclaim_active(&mut self, node: NodeId, kind: ZoneKind, active: bool) {
        for z in self.manager.zones.iter_mut() {
            if z.node == node && z.kind == kind {
                z.reclaim_active = active;
            }
        }
    }

    /// Changes settings at run time. Marks, protections and sizes of per-CPU lists, and whether pages are grouped by
    /// mobility, stay as they are.
    pub fn change_settings(&mut self, to: &Sysctl) {
        let rules = &self.manager.policy.rules;
        let defrag_mode = to.defrag_mode && rules.pageblocks().is_some_and(|p| p.defrag_mode);
        let has_generations = rules.generations().is_some();
        let now = &mut self.manager.policy.sysctl;
        now.compaction_proactiveness = to.compaction_proactiveness.min(100);
        now.extfrag_threshold = to.extfrag_threshold;
        now.compact_unevictable_allowed = to.compact_unevictable_allowed;
        now.watermark_boost_factor = to.watermark_boost_factor;
        now.swappiness = to.swappiness;
        now.lru_gen = to.lru_gen && has_generations;
        now.lru_gen_min_ttl_ms = to.lru_gen_min_ttl_ms;
        now.defrag_mode = defrag_mode;
        self.manager.switch_lists();
    }

    /// Sets `vm.compaction_proactiveness` at run time. A value other than 0, even the one that it has, wakes the daemons
    /// for a look, where they compact ahead of demand; they run only if the score is above the high mark. `spec: 5.5`
    pub fn set_compaction_proactiveness(&mut self, percent: u8) {
        let m = &mut *self.manager;
        m.policy.sysctl.compaction_proactiveness = percent.min(100);
        let rules = m.policy.rules.compact;
        if percent > 0 && rules.is_some_and(|r| r.kcompactd && r.proactive.is_some()) {
            for i in 0..m.nodes.len() {
                let node = m.nodes[i].id;
                m.host.wake_kcompactd(node);
            }
        }
    }

    /// Lowers the boost of a zone's marks by `by` pages, as kswapd does at the end of a run by the boost that it
    /// saw at the start. `spec: 1.3`
    pub fn lower_boost(&mut self, node: NodeId, kind: ZoneKind, by: u64) {
        for z in self.manager.zones.iter_mut() {
            if z.node == node && z.kind == kind {
                z.marks.boost = z.marks.boost.saturating_sub(by);
            }
        }
    }

    /// Makes frames in use that begin at `pfn` one block of `order`, whatever blocks they are now:
    /// smaller ones are joined, a larger one around them is cut. They leave their LRU lists, unless they are that
    /// block already. The outside pieces of a cut stay in use, in the largest blocks that fit.
    ///
    /// # Errors
    /// [`RestoreError::NotABlock`], if they are not such frames, or one is isolated; nothing has changed then.
    pub fn reshape(&mut self, pfn: Pfn, order: Order) -> Result<(), RestoreError> {
        let bad = RestoreError::NotABlock(pfn, order);
        let ix = self.manager.map.ix(pfn).ok_or(bad)?;
        if order > self.manager.frames.geometry.max_order || !ix.is_aligned(order) {
            return Err(bad);
        }
        for o in order.up_to(self.manager.frames.geometry.max_order) {
            let head = ix.head(o);
            let s = self.manager.frames.state(head);
            if s.kind() != FrameKind::Used || s.order() != o {
                continue;
            }
            if o == order {
                return Ok(());
            }
            if s.lru() >= ISOLATED {
                return Err(bad);
            }
            let first = self.manager.map.pfn(head);
            self.manager.pages().lru_del(first);
            // Halve the block that holds the frame until it is of the order asked for.
            let (mut lo, mut o) = (head, o);
            while o > order {
                o.0 -= 1;
                let hi = lo.plus(o.frames());
                let (keep, apart) = if ix >= hi { (hi, lo) } else { (lo, hi) };
                self.manager.frames.set_state(apart, s.piece(o));
                lo = keep;
            }
            self.manager.frames.set_state(ix, s.piece(order));
            return Ok(());
        }
        let mut at = ix;
        let end = ix.plus(order.frames());
        while at < end {
            let s = self.manager.frames.state(at);
            if s.kind() != FrameKind::Used || s.order() >= order || s.lru() >= ISOLATED {
                return Err(bad);
            }
            at = at.plus(s.order().frames());
        }
        let s = self.manager.frames.state(ix);
        self.manager.pages().lru_del(pfn);
        for at in ix.plus(1).until(end) {
            let page = self.manager.map.pfn(at);
            self.manager.pages().lru_del(page);
            self.manager.frames.set_state(at, State::TAIL);
        }
        self.manager.frames.set_state(ix, s.piece(order));
        Ok(())
    }
}
