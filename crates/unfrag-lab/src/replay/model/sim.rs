//! The simulation of a replay: the allocator of one era, driven by what the recorded workload asked for.
//!
//! The model decides where each block goes; the recording says only who asked for what and when.
//! `model_frames` says which frame of the model a frame of the recorded host stands for.
//!
//! Invariant: exactly one recorded frame stands for each frame in use in the model, but for migrations
//! whose two sides the trace does not pair (counted as unmatched).

use super::compaction::Compaction;
use super::host::ReplayHost;
use super::huge_touches::Touches;
use super::huge_tries::HugeFaults;
use super::pause::LONGEST_PAUSE_NS;
use super::reclaim::{Effort, Reclaim, RecordedDaemon, Unknowns, Waits};
use super::request_node::RequestNode;
use super::tally::Tally;
use crate::replay::causes::{Action, Causes, HostBlock, NONE, Op, RecordedReclaim, is_huge_page};
use std::collections::BTreeMap;
use unfrag::hint::prefetch;
use unfrag_eras::frame::FrameKind;
use unfrag_eras::kernel::Pcp;
use unfrag_eras::{
    AllocError, CpuId, Gfp, Manager, NodeId, Order, Pfn, Request, Sysctl, ZoneId, ZoneKind,
};

mod twin;

/// A model and the operations carried out on it so far.
pub struct Sim<'m> {
    /// The allocator.
    pub manager: Manager<'m, ReplayHost>,
    /// Model frame of each recorded frame; [`NONE`] if it has none.
    model_frames: Vec<u32>,
    /// Whether the rules are those of the kernel that was recorded, from its exact state.
    pub recorded_era: bool,
    /// The CPU of the operation at hand.
    pub(super) cpu: CpuId,
    /// The node near which it asks.
    near: NodeId,
    request_node: RequestNode,
    /// When the vmstat workers run next, in nanoseconds of the trace clock.
    next_tick: Option<u64>,
    /// What happened.
    pub tally: Tally,
    /// Order of a huge page.
    pub(super) huge_order: Order,
    /// Faults for huge pages.
    pub(super) huge: HugeFaults,
    /// By number of the migration: the model frame of a page whose new recorded frame is not known yet.
    in_migration: BTreeMap<u32, u32>,
    /// The model's own reclaim; without it, the recorded kernel's is applied as given.
    reclaim: Option<Reclaim<'m>>,
    /// The recorded kernel's compaction, if it is taken as given; without it, pages stay.
    compaction: Option<Compaction>,
}

/// `vm.stat_interval`.
const STAT_INTERVAL_NS: u64 = 1_000_000_000;

impl<'m> Sim<'m> {
    /// A model in which each recorded frame in use at the start stands for the frame of its own number.
    pub fn new(manager: Manager<'m, ReplayHost>, frames: u32) -> Sim<'m> {
        let model_frames = (0..frames)
            .map(|p| match manager.inspect().frame(Pfn(p.into())) {
                Some(f) if f.kind == FrameKind::Used => p,
                _ => NONE,
            })
            .collect();
        Sim {
            request_node: RequestNode::of(&manager),
            huge_order: manager.inspect().geometry().huge_order,
            near: NodeId::default(),
            cpu: CpuId::default(),
            manager,
            model_frames,
            recorded_era: false,
            next_tick: None,
            tally: Tally::default(),
            huge: HugeFaults::default(),
            in_migration: BTreeMap::new(),
            reclaim: None,
            compaction: None,
        }
    }

    /// Lets the model reclaim by itself from now on.
    pub fn enable_reclaim(&mut self, evidence: &'m RecordedReclaim, effort: Effort) {
        let names = &self.model_frames;
        self.reclaim = Some(Reclaim::new(evidence, effort, &mut self.manager, names));
    }

    /// Takes these for what no recording shows of how a host reclaims, where the model reclaims by itself.
    pub fn vary(&mut self, unknowns: Unknowns) {
        if let Some(reclaim) = &mut self.reclaim {
            reclaim.vary(unknowns);
        }
    }

    /// Lets the model compact by itself from now on; the recorded kernel's moves only rename pages. Its reclaim has to
    /// be modelled, too.
    pub fn enable_own_compaction(&mut self, recorded: &RecordedDaemon) {
        if let Some(r) = &mut self.reclaim {
            r.enable_compaction(&mut self.manager, &self.model_frames, recorded);
        }
    }

    /// What tasks take in place of a huge page that the model refuses.
    pub fn know_touches(&mut self, touches: Touches) {
        self.huge.touches = touches;
    }

    /// Requests that a real host would have let wait until other tasks give memory back.
    pub fn waits(&self) -> Waits {
        self.reclaim
            .as_ref()
            .map_or_else(Waits::default, Reclaim::waits)
    }

    /// Changes settings from a time on. Writing one for compaction ahead of demand makes its daemon look at once.
    pub fn change_settings(&mut self, sysctl: &Sysctl, time: u64) {
        let before = self.manager.inspect().sysctl().compaction_proactiveness;
        self.manager.lab().change_settings(sysctl);
        let now = sysctl.compaction_proactiveness;
        if let Some(r) = &mut self.reclaim
            && now != before
            && now > 0
        {
            r.look_ahead(time);
        }
    }

    /// Moves the pages in the model that moved on the recorded host, from now on.
    pub fn enable_compaction(&mut self) {
        self.compaction = Some(Compaction::default());
    }

    /// The model's frame that a recorded one stands for.
    pub fn model_frame(&self, recorded: u32) -> Option<u32> {
        self.model_frames
            .get(recorded as usize)
            .copied()
            .filter(|&h| h != NONE)
    }

    /// Clears the table of model frames; [`set_model_frame`](Self::set_model_frame) fills it.
    pub fn clear_model_frames(&mut self) {
        self.model_frames.fill(NONE);
    }

    /// Gives a recorded frame in use at the start another place in the model.
    pub fn set_model_frame(&mut self, recorded: u32, model: u32) {
        self.model_frames[recorded as usize] = model;
    }

    /// The vmstat workers of all CPUs have run once a second up to `time`: self-tuning per-CPU lists
    /// shrink then. In which part of a second they run is not recorded.
    fn tick(&mut self, time: u64) {
        let rules = self.manager.inspect().rules();
        let tuned = matches!(rules.pcp, Pcp::Orders { tuned: Some(_) });
        let mut at = match self.next_tick {
            // What the lists of an idle host are after so long, they stay.
            Some(at) => at.max(time.saturating_sub(LONGEST_PAUSE_NS)),
            None => time.saturating_add(STAT_INTERVAL_NS),
        };
        while at <= time && at < u64::MAX {
            if tuned {
                let cpus = self.manager.inspect().cpus();
                cpus.for_each(|cpu| self.manager.vmstat_update(cpu));
            }
            at = at.saturating_add(STAT_INTERVAL_NS);
        }
        self.next_tick = Some(at);
    }

    /// Nobody asks for anything up to `time`: the workers and the daemons do what they do by themselves.
    #[inline]
    pub fn live_until(&mut self, time: u64) {
        if self.next_tick.is_none_or(|at| at <= time) {
            self.tick(time);
        }
        if let Some(r) = &mut self.reclaim {
            let names = (&mut self.model_frames[..], &mut self.in_migration);
            r.advance(&mut self.manager, names, self.cpu, time);
        }
    }

    /// Prefetches what the operations to come look at. Frees go anywhere in memory: first to what a recorded frame stands
    /// for, then to the page there, then to those beside it on its list.
    #[inline]
    pub fn prefetch(&mut self, to_come: &[Op]) {
        const FRAME: usize = 12;
        const PAGE: usize = 8;
        const BESIDE: usize = 4;
        let freed = |ahead: usize| Some(to_come.get(ahead)?.freed()?.pfn as usize);
        if let Some(pfn) = freed(FRAME)
            && let Some(at) = self.model_frames.get(pfn)
        {
            prefetch(at);
        }
        if let Some(pfn) = freed(PAGE)
            && let Some(&at) = self.model_frames.get(pfn)
            && at != NONE
        {
            self.manager.pages().prefetch(Pfn(at.into()));
            if let Some(r) = &self.reclaim {
                r.prefetch(at);
            }
        }
        if self.reclaim.is_some()
            && let Some(pfn) = freed(BESIDE)
            && let Some(&at) = self.model_frames.get(pfn)
            && at != NONE
        {
            self.manager.pages().prefetch_beside(Pfn(at.into()));
        }
    }

    /// Carries out one operation.
    #[inline]
    pub fn apply(&mut self, op: &Op, causes: &Causes) {
        self.cpu = CpuId(op.cpu.into());
        self.near = self.request_node.node(&self.manager, op, causes);
        self.live_until(op.time);
        if let Some(c) = &mut self.compaction {
            c.before(&mut self.manager, op);
        }
        self.carry_out(op, causes);
        if let Some(r) = &mut self.reclaim {
            r.next_op();
        }
    }

    #[inline]
    fn carry_out(&mut self, op: &Op, causes: &Causes) {
        match op.action {
            Action::Alloc { order, pfn, gfp } => {
                let pfn = pfn.get();
                self.alloc(HostBlock { pfn, order }, gfp.get(), (op.task, causes));
            }
            Action::AllocRaced { order, pfn, gfp } => {
                let pfn = pfn.get();
                self.alloc_raced(HostBlock { pfn, order }, gfp.get(), (op.task, causes));
            }
            Action::Free { order, pfn } | Action::FreeUnseen { order, pfn } => {
                let pfn = pfn.get();
                if self.huge.kept.is_none() || !self.keeps(pfn, order, op.task) {
                    self.free(pfn, order);
                }
            }
            Action::FreeReclaimed { order, pfn } => self.free_reclaimed(pfn.get(), order),
            Action::AllocFailed { order, gfp } => {
                self.alloc_failed(order, gfp.get(), (op.task, causes));
            }
            Action::Stack { index } => self.stack(causes.stacks[index.get() as usize]),
            Action::AllocUnseen { pages } => self.alloc_unseen(pages.get()),
            Action::Moved { order, pfn, to } => self.moved(op, order, pfn.get(), to.get()),
            Action::MovedAway { order, pfn, number } => {
                self.moved_away(op, order, pfn.get(), number.get());
            }
            Action::MovedTo { pfn, number } => self.moved_to(pfn.get(), number.get()),
            Action::KswapdBegins { node } => self.set_reclaim_active(node, true),
            Action::KswapdEnds { node } => self.set_reclaim_active(node, false),
            Action::DrainAll => self.drain_after_reclaim(),
        }
    }

    fn free_reclaimed(&mut self, pfn: u32, order: u8) {
        if let Some(r) = &mut self.reclaim
            && order == 0
            && r.defer_free(&self.manager, &mut self.model_frames, pfn)
        {
            return;
        }
        self.tally.given_pages += 1 << order;
        self.free(pfn, order);
    }

    /// A request of the operation at hand.
    #[inline]
    fn request(&self, order: u8, gfp: Gfp) -> Request {
        Request::new(Order(order), gfp).on(self.cpu).near(self.near)
    }

    /// Allocates a block, with reclaim if it is needed and the model reclaims.
    #[inline]
    pub(super) fn alloc_block(&mut self, order: u8, gfp: Gfp) -> Result<Pfn, AllocError> {
        let request = self.request(order, gfp);
        match &mut self.reclaim {
            None => self.manager.alloc(&request),
            Some(r) => {
                let names = (&mut self.model_frames[..], &mut self.in_migration);
                r.alloc(&mut self.manager, names, &request)
            }
        }
    }

    /// Zone that the watermarks would choose for an allocation.
    pub fn zone_for(&mut self, op: &Op, causes: &Causes) -> Option<ZoneId> {
        let (block, gfp) = op.allocated()?;
        let near = self.request_node.node(&self.manager, op, causes);
        let request = Request::new(Order(block.order), gfp);
        let request = request.on(CpuId(op.cpu.into())).near(near);
        self.manager.lab().zone_for(&request)
    }

    #[inline]
    fn alloc(&mut self, block: HostBlock, gfp: Gfp, (task, causes): (u32, &Causes)) {
        if self.has_huge_pieces() && self.alloc_from_huge(block, gfp, task) {
            return;
        }
        if is_huge_page(block.order, gfp, self.huge_order) {
            return match causes.collapses(task) {
                true => self.collapse(Some(block), gfp, task),
                false => self.huge_fault(Some(block), gfp, task),
            };
        }
        match self.alloc_block(block.order, gfp) {
            Ok(Pfn(at)) => self.allocated(block, gfp, at as u32),
            Err(_) => *self.tally.failures.entry((block.order, gfp)).or_default() += 1,
        }
    }

    /// Under the recorded kernel's own rules the zone is known; under others there was no race.
    fn alloc_raced(&mut self, block: HostBlock, gfp: Gfp, (task, causes): (u32, &Causes)) {
        let zone = self.recorded_era.then(|| self.zone_of(block.pfn)).flatten();
        let request = self.request(block.order, gfp);
        let got = zone.and_then(|z| self.manager.lab().alloc_in_zone(z, &request).ok());
        match got {
            Some(Pfn(at)) => self.allocated(block, gfp, at as u32),
            None => self.alloc(block, gfp, (task, causes)),
        }
    }

    /// Zone that holds a frame.
    pub fn zone_of(&self, pfn: u32) -> Option<ZoneId> {
        self.manager.inspect().zone_of(Pfn(pfn.into()))
    }

    #[inline]
    pub(super) fn allocated(&mut self, block: HostBlock, gfp: Gfp, at: u32) {
        self.tally.allocated += 1;
        self.tally.on_same_frame += u64::from(at == block.pfn);
        self.place(block, gfp, at);
    }

    /// A block of the recorded host is at a frame of the model from now on.
    #[inline]
    pub(super) fn place(&mut self, block: HostBlock, gfp: Gfp, at: u32) {
        for i in 0..1 << block.order {
            self.model_frames[(block.pfn + i) as usize] = at + i;
        }
        if let Some(r) = &mut self.reclaim {
            r.allocated(&mut self.manager, block, at, gfp);
        }
    }

    /// A request that failed on the recorded host may succeed in the model.
    #[cold]
    fn alloc_failed(&mut self, order: u8, gfp: Gfp, (task, causes): (u32, &Causes)) {
        if is_huge_page(order, gfp, self.huge_order) {
            return match causes.collapses(task) {
                true => self.collapse(None, gfp, task),
                false => self.huge_fault(None, gfp, task),
            };
        }
        match self.alloc_block(order, gfp) {
            // The recording has no free of a block that the recorded task never got.
            Ok(at) => {
                let _ = self.manager.free(self.cpu, at, Order(order));
            }
            Err(_) => {
                *self.tally.failures.entry((order, gfp)).or_default() += 1;
                self.tally.failed_in_both += 1;
            }
        }
    }

    #[inline]
    fn free(&mut self, pfn: u32, order: u8) {
        let at = std::mem::replace(&mut self.model_frames[pfn as usize], NONE);
        if at != NONE && self.free_block(at, order) {
            for i in 1..1u32 << order {
                self.model_frames[(pfn + i) as usize] = NONE;
            }
            self.tally.freed += 1;
            return;
        }
        self.model_frames[pfn as usize] = at;
        self.free_odd(pfn, order);
    }

    /// Frees a block of the model. Returns whether there was such a block.
    #[inline]
    pub(super) fn free_block(&mut self, at: u32, order: u8) -> bool {
        let freed = self.manager.free(self.cpu, Pfn(at.into()), Order(order));
        if let Some(r) = &mut self.reclaim
            && freed.is_ok()
        {
            r.freed(at, order);
        }
        freed.is_ok()
    }

    /// Makes frames of the model one block in use. Returns whether they are in use.
    fn reshape(&mut self, at: u32, order: u8) -> bool {
        let shaped = self.manager.lab().reshape(Pfn(at.into()), Order(order));
        shaped.is_ok()
    }

    /// A free that does not fit one block in use of its order: a part of a larger one, several
    /// smaller ones, or nothing.
    #[cold]
    fn free_odd(&mut self, pfn: u32, order: u8) {
        let at = self.model_frames[pfn as usize];
        let whole = at != NONE
            && !self.is_piece(at)
            && at & ((1 << order) - 1) == 0
            && (0..1u32 << order).all(|i| self.model_frames[(pfn + i) as usize] == at + i);
        if whole && self.reshape(at, order) {
            for i in 0..1u32 << order {
                self.model_frames[(pfn + i) as usize] = NONE;
            }
            self.tally.freed += u64::from(self.free_block(at, order));
            return;
        }
        for i in 0..1u32 << order {
            let at = std::mem::replace(&mut self.model_frames[(pfn + i) as usize], NONE);
            if at == NONE && self.never_taken(pfn + i) {
                continue;
            }
            let done = at != NONE
                && match self.is_piece(at) {
                    true => self.free_piece(at),
                    false => self.reshape(at, 0) && self.free_block(at, 0),
                };
            self.tally.freed += u64::from(done);
            self.tally.dropped_frees += u64::from(!done);
        }
    }

    fn stack(&mut self, pages: [u32; 4]) {
        let mut got = [Pfn(0); 4];
        let n = self.bulk(&mut got);
        for (recorded, model) in pages.iter().zip(&got[..n]) {
            self.model_frames[*recorded as usize] = model.0 as u32;
        }
    }

    fn alloc_unseen(&mut self, mut pages: u32) {
        let mut got = [Pfn(0); 4];
        while pages > 0 {
            let n = self.bulk(&mut got[..pages.min(4) as usize]);
            if n == 0 {
                break;
            }
            self.tally.unseen += n as u64;
            pages -= n as u32;
        }
    }

    /// Allocates pages for the kernel in bulk, as for stacks and vmalloc. Returns how many.
    fn bulk(&mut self, got: &mut [Pfn]) -> usize {
        let gfp = Gfp::KERNEL | Gfp::ZERO | Gfp::ACCOUNT | Gfp::HIGHMEM;
        let request = self.request(0, gfp);
        let mut n = 0;
        while n < got.len() {
            match self.manager.alloc_bulk(&request, &mut got[n..]) {
                Ok(more) if more > 0 => n += more,
                _ => break,
            }
        }
        n
    }

    fn moved(&mut self, op: &Op, order: u8, pfn: u32, to: u32) {
        let at = self.migrate(op, order, pfn);
        self.rename(NONE, to, at);
    }

    /// What is at frame `at` of the model stands for recorded frame `to`, no longer for `from`.
    pub(super) fn rename(&mut self, from: u32, to: u32, at: u32) {
        if let Some(old) = self.model_frames.get_mut(from as usize) {
            *old = NONE;
        }
        self.model_frames[to as usize] = at;
        if let Some(r) = &mut self.reclaim {
            r.set_host_frame(at, to);
        }
    }

    fn moved_away(&mut self, op: &Op, order: u8, pfn: u32, number: u32) {
        let at = self.migrate(op, order, pfn);
        if let Some(r) = &mut self.reclaim {
            r.set_in_migration(at, number);
        }
        self.in_migration.insert(number, at);
    }

    /// The page of a recorded frame leaves it, for memory of `order` to be compacted. Returns the model's
    /// frame where the page is then.
    fn migrate(&mut self, op: &Op, order: u8, pfn: u32) -> u32 {
        self.tally.moved += 1;
        let at = std::mem::replace(&mut self.model_frames[pfn as usize], NONE);
        let zone = if at == NONE { None } else { self.zone_of(at) };
        let (Some(c), Some(zone)) = (&mut self.compaction, zone) else {
            return at;
        };
        let now = c.migrate(&mut self.manager, op, order, at, zone);
        if now != at {
            self.tally.moved_here += 1;
            if let Some(r) = &mut self.reclaim {
                r.moved(at, now);
            }
        }
        now
    }

    fn moved_to(&mut self, to: u32, number: u32) {
        let at = self.in_migration.remove(&number).unwrap_or(NONE);
        self.model_frames[to as usize] = at;
        if let Some(r) = &mut self.reclaim {
            r.set_host_frame(at, to);
        }
    }

    /// The recorded kernel's kswapd of a node begins or ends.
    fn set_reclaim_active(&mut self, node: NodeId, active: bool) {
        if self.reclaim.is_some() {
            return;
        }
        for kind in ZoneKind::ALL {
            self.manager.lab().set_reclaim_active(node, kind, active);
        }
    }

    /// After direct reclaim that did not help, the kernel drains all per-CPU lists.
    /// `spec: 10`
    fn drain_after_reclaim(&mut self) {
        if self.reclaim.is_some() {
            return;
        }
        let m = self.manager.inspect();
        let stuck = m
            .zones()
            .map(|z| m.zone(z))
            .filter(|v| v.config.managed > 0)
            .all(|v| v.free_counter <= (v.marks.min + v.marks.boost + v.protection[4]) as i64);
        if stuck {
            self.manager.drain_all();
        }
    }
}
