//! The claim of a range, as an operation.

use super::obstacle::{ClaimError, Obstacle, Stand, head_of, stand, walk};
use super::search::{Found, Search};
use super::supply::Elsewhere;
use crate::compact::{CLUSTER, Mode, Mover, Targets};
use crate::drive::Operation;
use crate::evict::Eviction;
use crate::frame::{
    CpuId, FrameIx, FrameKind, MigrateType, NodeId, Order, PageFlags, Pfn, Span, State, ZoneId,
    ZoneKind,
};
use crate::gfp::Gfp;
use crate::host::Host;
use crate::manager::Manager;
use crate::migrate::Migration;
use crate::need::{Answer, Need, Step};
use crate::page_alloc::FreeError;
use crate::placement::{End, FreeTo};
use crate::reclaim::DirectReclaim;

/// Passes over a range before a page that stays ends the claim.
const PASSES: u32 = 5;

/// Reclaims without progress after which there is no room.
const VAIN_RECLAIMS: u32 = 3;

/// A claim of contiguous frames, of any number: those at a given place (`alloc_contig_range`), or the cheapest run of a
/// node (`alloc_contig_pages`). The result is the first frame.
///
/// Pages in use there are moved to other frames, their owners being asked; where there is no room, pages are reclaimed.
/// It holds pages and pageblocks between two steps, and has no manager to give them back to when it is dropped: one that is
/// not driven to its end has to be [aborted](Claim::abort).
#[derive(Debug)]
#[must_use = "a claim does nothing unless it is driven, and holds frames until it is done or aborted"]
pub struct Claim {
    wish: Wish,
    takes: Takes,
    phase: Phase,
    zone: ZoneId,
    /// The frames that are wanted, and the pageblocks that are set apart for them.
    wanted: Span,
    apart: Option<Span>,
    /// The next frame to be looked at, and where the batch at hand began.
    at: FrameIx,
    batch: FrameIx,
    passes: u32,
    vain: u32,
    mover: Mover,
    targets: Targets,
    scanned: u32,
}

/// What is wished for.
#[derive(Clone, Copy, Debug)]
enum Wish {
    /// These frames.
    Range { start: Pfn, frames: u64 },
    /// Any such run of a node.
    Run {
        node: NodeId,
        frames: u32,
        align: Order,
        /// Zones that were searched without success.
        zones: usize,
        search: Option<Search>,
    },
}

/// What becomes of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// They are in use.
    Use,
    /// There is no memory any more.
    Offline,
}

#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is no heap to put the larger one on"
)]
enum Phase {
    /// The range is to be looked at and set apart; for a run it is to be found first.
    Begin,
    Take,
    Move,
    Reclaim(DirectReclaim),
}

/// How an attempt at one range went on.
enum Next {
    /// To the next phase.
    On,
    Need(Need),
    Done(Result<Pfn, ClaimError>),
}

impl Operation for Claim {
    type Output = Result<Pfn, ClaimError>;

    fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        mut answer: Answer,
    ) -> Step<Result<Pfn, ClaimError>> {
        loop {
            let given = core::mem::replace(&mut answer, Answer::Go);
            let next = match &mut self.phase {
                Phase::Begin => self.begin(m, cpu),
                Phase::Take => self.take_pages(m, cpu),
                Phase::Move => self.move_pages(m, cpu, given),
                Phase::Reclaim(reclaim) => match reclaim.step(m, cpu, given) {
                    Step::Need(need) => Next::Need(need),
                    Step::Done(progress) => self.after_reclaim(m, cpu, progress),
                },
            };
            match next {
                Next::On => {}
                Next::Need(need) => return Step::Need(need),
                Next::Done(result) => return Step::Done(result),
            }
        }
    }

    fn eviction(&self) -> &Eviction {
        match &self.phase {
            Phase::Reclaim(reclaim) => reclaim.eviction(),
            _ => &Eviction::EMPTY,
        }
    }

    fn migration(&self) -> &Migration {
        self.mover.migration()
    }
}

impl Claim {
    /// A claim of the `frames` frames from `start` on. They need not be aligned; pages that lie beside them in the same
    /// pageblock stay.
    pub fn range(start: Pfn, frames: u64) -> Claim {
        Claim::new(Wish::Range { start, frames }, Takes::Use)
    }

    /// A claim of any `frames` frames of a node, the first of which is a multiple of `2^align`. Of all such runs it takes
    /// the one with the fewest pages in use. It begins with a pageblock: for less than one, a request is cheaper.
    pub fn run(node: NodeId, frames: u32, align: Order) -> Claim {
        let wish = Wish::Run {
            node,
            frames,
            align,
            zones: 0,
            search: None,
        };
        Claim::new(wish, Takes::Use)
    }

    /// A claim of frames that are then taken offline.
    pub(super) fn offline(start: Pfn, frames: u64) -> Claim {
        Claim::new(Wish::Range { start, frames }, Takes::Offline)
    }

    fn new(wish: Wish, takes: Takes) -> Claim {
        let nothing = Span {
            start: FrameIx(0),
            end: FrameIx(0),
        };
        Claim {
            wish,
            takes,
            phase: Phase::Begin,
            zone: ZoneId(0),
            wanted: nothing,
            apart: None,
            at: FrameIx(0),
            batch: FrameIx(0),
            passes: 0,
            vain: 0,
            mover: Mover::NEW,
            targets: Targets::NONE,
            scanned: 0,
        }
    }

    /// How many frames it is for.
    pub fn frames(&self) -> u64 {
        match self.wish {
            Wish::Range { frames, .. } => frames,
            Wish::Run { frames, .. } => frames.into(),
        }
    }

    /// The zone of the range, once it is set apart, and the range.
    pub(super) fn taken(&self) -> (ZoneId, Span) {
        (self.zone, self.wanted)
    }

    /// Ends a claim early, as its task is killed. `answer` is what became of its last need: without an answer, pages that
    /// it asked about stay where they are. All that it holds is put back or freed.
    pub fn abort<H: Host>(mut self, m: &mut Manager<'_, H>, cpu: CpuId, answer: Answer) {
        match &mut self.phase {
            Phase::Move => self.mover.abort(m, cpu, answer, &mut self.targets),
            Phase::Reclaim(reclaim) => reclaim.abort(m, cpu, answer),
            Phase::Begin | Phase::Take => {}
        }
        self.let_go(m, cpu);
    }

    /// Finds the range, and sets its pageblocks apart.
    fn begin<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) -> Next {
        if m.policy.rules.is_sourced() {
            return Next::Done(Err(ClaimError::Sourced));
        }
        let found = match &mut self.wish {
            Wish::Range { start, frames } => m
                .span_in_zone(*start, *frames)
                .map_err(ClaimError::NotInOneZone),
            Wish::Run {
                node,
                frames,
                align,
                zones,
                search,
            } => {
                let list = m.zonelists.of(*node, ZoneKind::Movable).local();
                let zone = list.zones().nth(*zones).filter(|_| *frames > 0);
                let Some(zone) = zone else {
                    return Next::Done(Err(ClaimError::NoRun));
                };
                let search = search.get_or_insert_with(|| Search::new(m, zone, *frames, *align));
                match search.step(m) {
                    Found::Later(blocks) => {
                        return Next::Need(Need::Turn {
                            scanned: blocks,
                            freed: 0,
                        });
                    }
                    Found::None => {
                        self.next_zone();
                        return Next::On;
                    }
                    Found::Run(start) => Ok((
                        zone,
                        Span {
                            start,
                            end: start.plus(*frames),
                        },
                    )),
                }
            }
        };
        match found.and_then(|(zone, wanted)| self.set_apart(m, cpu, zone, wanted)) {
            Ok(()) => {
                self.phase = Phase::Take;
                Next::On
            }
            // It may be apart for a moment only: for a run of compaction.
            Err(ClaimError::Claimed(_)) if self.passes < PASSES => {
                self.passes += 1;
                Next::Need(self.turn())
            }
            Err(why) => self.give_up(m, cpu, why),
        }
    }

    /// Sets the pageblocks of a range apart, if nothing in it stays.
    fn set_apart<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        zone: ZoneId,
        wanted: Span,
    ) -> Result<(), ClaimError> {
        let span = m.zone(zone).span;
        let order = m.frames.geometry.block_order;
        let last = FrameIx(wanted.end.0 - 1).head(order);
        let apart = Span {
            start: wanted.start.head(order).max(span.start),
            end: last.plus(order.frames()).min(span.end),
        };
        let mut at = apart.start.head(order);
        while at < apart.end {
            let pfn = m.map.pfn(at);
            if m.frames.is_shared(at) {
                return Err(ClaimError::InTheWay(pfn, Obstacle::SharedBlock));
            }
            if m.frames.block_type(at) == MigrateType::Isolate {
                return Err(ClaimError::Claimed(pfn));
            }
            at = at.plus(order.frames());
        }
        self.scanned += look_through(m, wanted, apart)?;
        for cpu in m.cpu_ids() {
            m.drain(cpu, zone);
        }
        let (_, mut z) = m.parts(zone, cpu);
        z.set_apart(apart);
        (self.zone, self.wanted, self.apart) = (zone, wanted, Some(apart));
        (self.at, self.passes, self.vain) = (head_of(m, wanted.start), 0, 0);
        Ok(())
    }

    /// Isolates the next pages that move, up to a batch. At the end of the range: whether all of it is free.
    fn take_pages<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) -> Next {
        let (mut taken, mut scanned) = (0, 0);
        self.batch = self.at;
        while self.at < self.wanted.end && taken < CLUSTER {
            let s = m.frames.state(self.at);
            scanned += 1;
            if stand::<H>(s) == Stand::Moves {
                m.pages().hold(self.at);
                self.mover.sources.push(m.frames.table, self.at, End::Tail);
                taken += s.order().frames();
            }
            self.at = self.at.plus(s.extent());
        }
        self.scanned += scanned;
        m.note_isolated((self.batch, self.at), scanned, taken);
        if taken > 0 {
            self.mover.begin(taken, Mode::Sync);
            self.phase = Phase::Move;
            return Next::On;
        }
        self.at = head_of(m, self.wanted.start);
        let Some(stayed) = first_used(m, self.wanted) else {
            return Next::Done(Ok(self.finish(m, cpu)));
        };
        self.passes += 1;
        let pfn = m.map.pfn(stayed);
        if self.passes >= PASSES {
            return self.give_up(m, cpu, ClaimError::Busy(pfn));
        }
        let flags = m.frames.state(stayed).flags();
        Next::Need(if flags.contains(PageFlags::WRITEBACK) {
            Need::PageWriteback(pfn)
        } else {
            self.turn()
        })
    }

    fn move_pages<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, given: Answer) -> Next {
        if let Answer::Migrated(verdicts) = given {
            self.mover.settle(m, cpu, &verdicts, &mut self.targets);
        }
        let zones = m
            .zonelists
            .of(m.zone(self.zone).node, m.zone(self.zone).kind);
        let mut supply = Elsewhere {
            targets: &mut self.targets,
            zones,
        };
        if self.mover.next(m, cpu, &mut supply) {
            return Next::Need(Need::Migrate);
        }
        let moved = self.mover.end(m, cpu);
        self.phase = Phase::Take;
        if moved.lacks_target {
            let gfp = Gfp::HIGHUSER_MOVABLE;
            let reclaim = DirectReclaim::new(m, zones, Order::ZERO, gfp, false);
            self.phase = Phase::Reclaim(reclaim);
        }
        Next::On
    }

    fn after_reclaim<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        progress: bool,
    ) -> Next {
        self.phase = Phase::Take;
        self.vain = if progress { 0 } else { self.vain + 1 };
        // What was freed may lie on a list of a CPU, and pages of the range may be gone.
        m.drain_all();
        self.at = head_of(m, self.batch);
        if self.vain < VAIN_RECLAIMS {
            return Next::On;
        }
        let pages = used(m, self.wanted);
        self.give_up(m, cpu, ClaimError::NoRoom(pages))
    }

    /// Takes the frames, which are all free.
    fn finish<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) -> Pfn {
        let max = m.frames.geometry.max_order;
        let wanted = self.wanted;
        let mut at = wanted.start;
        while at < wanted.end {
            let Some(head) = m.frames.buddy_of(at) else {
                unreachable!("the range was found to be free in this step");
            };
            let (_, mut z) = m.parts(self.zone, cpu);
            let end = head.plus(z.isolate(head).frames());
            let inner = Span {
                start: head.max(wanted.start),
                end: end.min(wanted.end),
            };
            for outer in [(head, inner.start), (inner.end, end)] {
                for (ix, order) in outer.0.blocks_until(outer.1, max) {
                    z.give(ix, order, FreeTo::Tail);
                }
            }
            match self.takes {
                Takes::Use => {
                    for (ix, order) in inner.start.blocks_until(inner.end, max) {
                        let state = State::used(order, MigrateType::Unmovable, false);
                        m.frames.set_state(ix, state);
                    }
                }
                Takes::Offline => {
                    let absent = State::new(FrameKind::Absent, Order::ZERO, MigrateType::Unmovable);
                    for ix in inner.start.until(inner.end) {
                        m.frames.set_state(ix, absent);
                    }
                }
            }
            at = end;
        }
        self.let_go(m, cpu);
        m.map.pfn(wanted.start)
    }

    /// The range at hand cannot be had: a claim of any run looks for the next one.
    fn give_up<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, why: ClaimError) -> Next {
        self.let_go(m, cpu);
        let Wish::Run {
            search: Some(search),
            ..
        } = &mut self.wish
        else {
            return Next::Done(Err(why));
        };
        let bad = match why {
            ClaimError::Busy(p) | ClaimError::Claimed(p) | ClaimError::InTheWay(p, _) => {
                m.map.ix(p)
            }
            _ => None,
        };
        let Some(bad) = bad else {
            return Next::Done(Err(why));
        };
        self.phase = Phase::Begin;
        self.passes = 0;
        if !search.avoid(m, bad) {
            self.next_zone();
        }
        Next::Need(self.turn())
    }

    fn next_zone(&mut self) {
        if let Wish::Run { zones, search, .. } = &mut self.wish {
            (*zones, *search) = (*zones + 1, None);
        }
    }

    /// Gives back what it holds, but for frames that were taken.
    fn let_go<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId) {
        while let Some((ix, order)) = self.targets.take_any(&m.frames) {
            m.account_free(m.map.pfn(ix), order);
            m.free_block(cpu, ix, order);
        }
        if let Some(apart) = self.apart.take() {
            let (_, mut z) = m.parts(self.zone, cpu);
            z.rejoin(apart);
        }
    }

    fn turn(&mut self) -> Need {
        Need::Turn {
            scanned: core::mem::take(&mut self.scanned),
            freed: 0,
        }
    }
}

/// Looks for what stays in a range. Returns how many blocks were looked at.
fn look_through<H: Host>(m: &Manager<'_, H>, wanted: Span, apart: Span) -> Result<u32, ClaimError> {
    let mut scanned = 0;
    for (at, s) in walk(m, wanted) {
        let in_the_way = |what| ClaimError::InTheWay(m.map.pfn(at), what);
        if let Stand::Stays(what) = stand::<H>(s) {
            return Err(in_the_way(what));
        }
        let is_beyond = at < apart.start || at.plus(s.extent()) > apart.end;
        if s.kind() == FrameKind::Used && is_beyond {
            return Err(in_the_way(Obstacle::Beyond));
        }
        scanned += 1;
    }
    Ok(scanned)
}

/// The first block of a range that is not free.
fn first_used<H: Host>(m: &Manager<'_, H>, wanted: Span) -> Option<FrameIx> {
    let mut used = walk(m, wanted).filter(|(_, s)| !s.is_buddy());
    used.next().map(|(ix, _)| ix)
}

/// Pages of a range that are in use.
fn used<H: Host>(m: &Manager<'_, H>, wanted: Span) -> u64 {
    let used = walk(m, wanted).filter(|(_, s)| !s.is_buddy());
    used.map(|(_, s)| u64::from(s.extent())).sum()
}

impl<H: Host> Manager<'_, H> {
    /// Frees the `frames` frames from `start` on that a [`Claim`] took (`free_contig_range`), or a part of them: whole
    /// blocks in use that lie side by side.
    ///
    /// # Errors
    /// [`FreeError`], at the first frame that begins no block in use, or whose block reaches beyond the range; nothing has
    /// changed then.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn free_contig_range(
        &mut self,
        cpu: CpuId,
        start: Pfn,
        frames: u64,
    ) -> Result<(), FreeError> {
        let end = Pfn(start.0.saturating_add(frames));
        for free in [false, true] {
            let mut at = start;
            while at < end {
                let ix = self.map.ix(at).ok_or(FreeError::NoSuchFrame(at))?;
                let order = self.frames.state(ix).order();
                let next = Pfn(at.0 + u64::from(order.frames()));
                self.check(at, order)?;
                if next > end {
                    return Err(FreeError::WrongOrder {
                        pfn: at,
                        actual: order,
                    });
                }
                if free {
                    self.free(cpu, at, order)?;
                }
                at = next;
            }
        }
        Ok(())
    }
}
