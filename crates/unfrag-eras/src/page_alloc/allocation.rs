//! The slow path: an allocation that the first attempt did not serve, as an operation.
//! `spec: 1.4, 4.3, 4.6, 4.7, 4.8`
//!
//! Invariant: each allocation ends in exactly one frame or one error, which is counted and traced once.

use crate::compact::{DirectCompaction, Outcome, Priority};
use crate::drive::Operation;
use crate::evict::Eviction;
use crate::frame::{CpuId, FrameIx, Order, Pfn};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::{CongestionWait, OomOrders, RealtimeRight, RetryDrain, RetryForm};
use crate::manager::Manager;
use crate::migrate::Migration;
use crate::need::{Answer, Need, Step};
use crate::reclaim::{DirectReclaim, HZ_OVER_50_MS, congestion_wait, second_wait};
use crate::request::{AllocError, Context, Demand};
use crate::rights::alloc_flags;
use crate::zone::ZoneList;

/// Reclaims without progress after which the OOM killer is called (`MAX_RECLAIM_RETRIES`, modern).
const MAX_RECLAIM_RETRIES: u32 = 16;

/// Times that V19 repeats reclaim for a large block.
const V19_REPEATS: u32 = 3;

/// The result of [`Manager::begin`].
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the rare variant lives on the stack of its task"
)]
pub enum Begun {
    /// A frame from free memory.
    Got(Pfn),
    /// An operation to be driven.
    Allocation(Allocation),
}

/// An allocation in the slow path. It holds pages between two steps: one that is not driven to its end has to be
/// [aborted](Allocation::abort).
#[derive(Debug)]
#[must_use = "it holds pages until it is done or aborted"]
pub struct Allocation {
    pub(super) demand: Demand,
    context: Context,
    pub(super) list: ZoneList,
    /// It may reclaim; otherwise only free memory serves it.
    reclaims: bool,
    pub(super) phase: Phase,
    pub(super) flags: AllocFlags,
    /// Pages reclaimed for it, for requests that repeat until there were enough.
    reclaimed: u64,
    no_progress: u32,
    repeats: u32,
    drained: bool,
    /// It may wait for kswapd before it reclaims. False after such a wait in which kswapd freed nothing.
    may_throttle: bool,
    /// How hard its next compaction tries, and how the last one ended.
    pub(super) priority: Priority,
    pub(super) compacted: Outcome,
    /// Compactions after which it went on.
    pub(super) compactions: u32,
    /// Whether the reclaim before the compaction at hand freed pages.
    progress: bool,
    /// Its block came together for it: that counts as no allocation.
    pub(super) was_captured: bool,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is no heap to put the larger one on"
)]
pub(super) enum Phase {
    Begin {
        again: bool,
    },
    Reclaim(DirectReclaim),
    /// A compaction. `first`: the one before any reclaim.
    Compact {
        run: DirectCompaction,
        first: bool,
    },
    Oom,
    /// A wait before the next reclaim. `second`: the second wait of an era that waits for both classes.
    Pause {
        second: bool,
    },
}

/// The frame, if there is one.
pub(super) type Got = Option<FrameIx>;

impl Operation for Allocation {
    type Output = Result<Pfn, AllocError>;

    fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
    ) -> Step<Result<Pfn, AllocError>> {
        self.demand.cpu = cpu;
        match self.advance(m, answer) {
            Step::Need(need) => Step::Need(need),
            Step::Done(Some(ix)) => {
                let pfn = m.hand_out(&self.demand, ix);
                if self.was_captured {
                    m.counters.pgalloc -= u64::from(self.demand.order.frames());
                }
                Step::Done(Ok(pfn))
            }
            Step::Done(None) => Step::Done(m.fail(&self.demand)),
        }
    }

    fn eviction(&self) -> &Eviction {
        match &self.phase {
            Phase::Reclaim(d) => d.eviction(),
            _ => &Eviction::EMPTY,
        }
    }

    fn migration(&self) -> &Migration {
        match &self.phase {
            Phase::Compact { run, .. } => run.migration(),
            _ => &Migration::EMPTY,
        }
    }
}

impl Allocation {
    /// Begins the slow path; `None` if no zone may serve the request.
    pub(super) fn new<H: Host>(
        m: &mut Manager<'_, H>,
        demand: &Demand,
        context: Context,
        reclaims: bool,
    ) -> Option<Allocation> {
        let list = m.zone_list(demand);
        if list.is_empty() {
            return None;
        }
        m.counters.slow_path += 1;
        Some(Allocation {
            demand: *demand,
            context,
            list,
            reclaims,
            phase: Phase::Begin { again: false },
            flags: AllocFlags::empty(),
            reclaimed: 0,
            no_progress: 0,
            repeats: 0,
            drained: false,
            may_throttle: true,
            priority: Priority::SyncLight,
            compacted: Outcome::Skipped,
            compactions: 0,
            progress: false,
            was_captured: false,
        })
    }

    /// Runs an allocation that cannot reclaim to its end. It has no needs.
    pub(super) fn without_waiting<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
    ) -> Result<Pfn, AllocError> {
        debug_assert!(!self.reclaims);
        match self.step(m, self.demand.cpu, Answer::Go) {
            Step::Done(got) => got,
            Step::Need(need) => unreachable!("without reclaim nothing is needed, but {need:?}"),
        }
    }

    /// Ends it without a frame, as its task is killed. `answer` is what became of its last need: without an answer, pages
    /// that it asked about stay where they are. All that it holds is put back or freed.
    pub fn abort<H: Host>(mut self, m: &mut Manager<'_, H>, cpu: CpuId, answer: Answer) {
        match &mut self.phase {
            Phase::Reclaim(reclaim) => reclaim.abort(m, cpu, answer),
            Phase::Compact { run, .. } => run.abort(m, cpu, answer),
            Phase::Begin { .. } | Phase::Oom | Phase::Pause { .. } => {}
        }
    }

    /// Order of the request.
    pub fn order(&self) -> Order {
        self.demand.order
    }

    /// Flags of the request.
    pub fn gfp(&self) -> Gfp {
        self.demand.gfp
    }

    fn advance<H: Host>(&mut self, m: &mut Manager<'_, H>, mut answer: Answer) -> Step<Got> {
        loop {
            let next = match &mut self.phase {
                Phase::Begin { again } => {
                    let again = *again;
                    self.begin(m, again)
                }
                Phase::Reclaim(d) => match d.step(m, self.demand.cpu, answer) {
                    Step::Need(need) => Some(Step::Need(need)),
                    Step::Done(progress) => {
                        self.reclaimed += d.reclaimed();
                        self.may_throttle &= !d.throttle_failed;
                        self.after_reclaim(m, progress)
                    }
                },
                Phase::Compact { run, first } => {
                    let first = *first;
                    match run.step(m, self.demand.cpu, answer) {
                        Step::Need(need) => Some(Step::Need(need)),
                        Step::Done(outcome) => {
                            let captured = run.take_captured();
                            self.after_compaction(m, outcome, captured, first)
                        }
                    }
                }
                Phase::Oom => {
                    let killed = matches!(answer, Answer::Killed(true));
                    self.no_progress = 0;
                    self.phase = Phase::Begin { again: true };
                    (!killed).then_some(Step::Done(None))
                }
                Phase::Pause { second } => {
                    let second = *second;
                    let more = second_wait(m.policy.rules.reclaim.congestion, answer);
                    match more {
                        Some(need) if !second => {
                            self.phase = Phase::Pause { second: true };
                            Some(Step::Need(need))
                        }
                        _ => self.start_reclaim(m),
                    }
                }
            };
            if let Some(step) = next {
                return step;
            }
            answer = Answer::Go;
        }
    }

    /// One pass over the zones with these rights; the final step, if it finds a block.
    pub(super) fn pass<H: Host>(
        &self,
        m: &mut Manager<'_, H>,
        flags: AllocFlags,
    ) -> Option<Step<Got>> {
        let got = m.get_page(&self.list, &self.demand, flags)?;
        Some(Step::Done(Some(got)))
    }

    /// A pass without [`AllocFlags::NOFRAGMENT`].
    fn mixed_pass<H: Host>(&self, m: &mut Manager<'_, H>, flags: AllocFlags) -> Option<Step<Got>> {
        let got = m.get_page_mixed(&self.list, &self.demand, flags)?;
        Some(Step::Done(Some(got)))
    }

    /// The slow path from `wake_all_kswapds` to the decision to reclaim.
    fn begin<H: Host>(&mut self, m: &mut Manager<'_, H>, again: bool) -> Option<Step<Got>> {
        let rules = m.policy.rules;
        let d = self.demand;
        if !again || rules.retry.wake_on_restart {
            m.wake_kswapds(&self.list, &d);
        }
        self.flags = alloc_flags(d.gfp, d.order, &rules);
        let cx = self.context;
        if cx.realtime && (!cx.in_interrupt || rules.rights.realtime_in_interrupt) {
            self.flags |= match rules.rights.realtime {
                RealtimeRight::NonBlock => AllocFlags::NON_BLOCK,
                RealtimeRight::MinReserve => AllocFlags::MIN_RESERVE,
            };
        }
        if m.policy.sysctl.defrag_mode {
            self.flags |= AllocFlags::NOFRAGMENT;
        }
        if let Some(done) = self.pass(m, self.flags) {
            return Some(done);
        }
        let all = self.flags | AllocFlags::NO_WATERMARKS;
        let open = !d.gfp.contains(Gfp::NOMEMALLOC);
        if open && (cx.memalloc || cx.oom_victim) {
            return self.pass(m, all).or(Some(Step::Done(None)));
        }
        // A request that serves reclaim ignores the marks.
        if open
            && d.gfp.contains(Gfp::MEMALLOC)
            && let Some(done) = self.pass(m, all)
        {
            return Some(done);
        }
        if cx.memalloc || cx.in_interrupt || !d.gfp.contains(Gfp::DIRECT_RECLAIM) {
            return Some(Step::Done(None));
        }
        if !self.reclaims {
            return self.last_resort(m).or(Some(Step::Done(None)));
        }
        if !again && self.compacts_first(m) {
            return self.start_compaction(m, Priority::Async, true);
        }
        self.start_reclaim(m)
    }

    /// The end of an allocation that cannot reclaim: gives up reserves and the separation of types, unless the
    /// request gives up early. `spec: 4.7, 4.8`
    fn last_resort<H: Host>(&self, m: &mut Manager<'_, H>) -> Option<Step<Got>> {
        let d = self.demand;
        let persists = !d.gfp.contains(Gfp::NORETRY)
            && (d.order <= Order::COSTLY || d.gfp.contains(Gfp::RETRY_MAYFAIL));
        if persists && let Some(done) = self.persist(m) {
            return Some(done);
        }
        if d.gfp.contains(Gfp::NOFAIL) {
            let all = AllocFlags::MIN_RESERVE | AllocFlags::NON_BLOCK;
            return self.mixed_pass(m, self.flags | all);
        }
        None
    }

    fn persist<H: Host>(&self, m: &mut Manager<'_, H>) -> Option<Step<Got>> {
        while self.unreserve(m, true) {
            if let Some(done) = self.pass(m, self.flags) {
                return Some(done);
            }
        }
        if self.flags.contains(AllocFlags::NOFRAGMENT)
            && let Some(done) = self.mixed_pass(m, self.flags)
        {
            return Some(done);
        }
        // `__alloc_pages_may_oom` tries once more, at the high mark, before it kills.
        self.pass(m, AllocFlags::WMARK_HIGH | AllocFlags::CPUSET)
    }

    /// Gives one pageblock of the first high-atomic reserve back to the request's type; even the
    /// last one, if `last`.
    fn unreserve<H: Host>(&self, m: &mut Manager<'_, H>, last: bool) -> bool {
        let (rules, frames) = (&m.policy.rules, &m.frames);
        self.list.zones().any(|z| {
            let zone = &mut m.zones[z.index()];
            zone.unreserve_highatomic(frames, rules, self.demand.mt, last)
        })
    }

    pub(super) fn start_reclaim<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Step<Got>> {
        let d = self.demand;
        let reclaim = DirectReclaim::new(m, &self.list, d.order, d.gfp, self.may_throttle);
        self.phase = Phase::Reclaim(reclaim);
        None
    }

    fn after_reclaim<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        progress: bool,
    ) -> Option<Step<Got>> {
        let d = self.demand;
        let retry = m.policy.rules.retry;
        if d.order > Order::ZERO && retry.drain == RetryDrain::EachBlock {
            m.drain_all();
        }
        if progress {
            if let Some(done) = self.pass(m, self.flags) {
                return Some(done);
            }
            // Modern: per-CPU lists and the high-atomic reserve are drained, once.
            if retry.drain == RetryDrain::OnceInVain && !self.drained {
                self.drained = true;
                self.unreserve(m, false);
                m.drain_all();
                if let Some(done) = self.pass(m, self.flags) {
                    return Some(done);
                }
            }
        }
        self.progress = progress;
        if retry.form == RetryForm::Bounded && self.may_compact(m) {
            return self.start_compaction(m, self.priority, false);
        }
        self.retry(m)
    }

    /// What follows a reclaim, and the compaction after it, that did not bring the block.
    pub(super) fn retry<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Step<Got>> {
        let (d, progress) = (self.demand, self.progress);
        match m.policy.rules.retry.form {
            RetryForm::Pauses {
                repeats_from: Some(from),
                ..
            } if d.order.0 >= from && self.repeats < V19_REPEATS => {
                self.repeats += 1;
                return Some(self.pause(m));
            }
            RetryForm::Bounded => return self.bounded_retry(m, progress),
            RetryForm::Pauses { .. } => {}
        }
        let tries_oom = !progress && d.gfp.contains(Gfp::FS) && !d.gfp.contains(Gfp::NORETRY);
        if tries_oom {
            return Some(self.oom(m));
        }
        if self.retries() {
            return Some(self.pause(m));
        }
        Some(Step::Done(None))
    }

    /// Whether an allocation of an old era retries after a reclaim that did not bring the block.
    fn retries(&self) -> bool {
        let d = &self.demand;
        if d.gfp.contains(Gfp::NORETRY) {
            return false;
        }
        let few = self.reclaimed < u64::from(d.order.frames());
        d.order <= Order::COSTLY
            || d.gfp.contains(Gfp::RETRY_MAYFAIL) && few
            || d.gfp.contains(Gfp::NOFAIL)
    }

    fn pause<H: Host>(&mut self, m: &Manager<'_, H>) -> Step<Got> {
        self.phase = Phase::Pause { second: false };
        Step::Need(congestion_wait(
            m.policy.rules.reclaim.congestion,
            HZ_OVER_50_MS,
        ))
    }

    /// One more pass at the high mark; then the OOM killer, if the order may call it.
    fn oom<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Step<Got> {
        let d = self.demand;
        let flags = AllocFlags::WMARK_HIGH | AllocFlags::CPUSET;
        if let Some(done) = self.pass(m, flags) {
            return done;
        }
        let kills = match m.policy.rules.retry.form {
            RetryForm::Pauses { oom, .. } => match oom {
                OomOrders::Any => true,
                OomOrders::BelowHalf => {
                    d.order.index() < m.frames.geometry.max_order.index().div_ceil(2)
                }
                OomOrders::Cheap => d.order <= Order::COSTLY,
            },
            RetryForm::Bounded => true,
        };
        if !kills && !d.gfp.contains(Gfp::NOFAIL) {
            return Step::Done(None);
        }
        m.reclaim.oom_kill += 1;
        self.phase = Phase::Oom;
        Step::Need(Need::Oom)
    }

    /// The retry loop since 4.7. `spec: 4.8`
    fn bounded_retry<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        progress: bool,
    ) -> Option<Step<Got>> {
        let d = self.demand;
        if d.gfp.contains(Gfp::NORETRY)
            || d.order > Order::COSTLY && !d.gfp.intersects(Gfp::RETRY_MAYFAIL | Gfp::NOFAIL)
        {
            return Some(Step::Done(None));
        }
        if progress && d.order <= Order::COSTLY {
            self.no_progress = 0;
        } else {
            self.no_progress += 1;
        }
        let reclaims = self.no_progress <= MAX_RECLAIM_RETRIES && self.worth_reclaiming(m);
        if reclaims || progress && self.worth_compacting(m) {
            self.phase = Phase::Begin { again: true };
            let throttles = m.policy.rules.reclaim.congestion == CongestionWait::Throttle;
            return Some(Step::Need(if progress || !throttles {
                Need::Turn {
                    scanned: 0,
                    freed: 0,
                }
            } else {
                congestion_wait(CongestionWait::Throttle, 0)
            }));
        }
        if self.unreserve(m, true) {
            self.phase = Phase::Begin { again: true };
            return None;
        }
        if self.flags.contains(AllocFlags::NOFRAGMENT)
            && let Some(done) = self.mixed_pass(m, self.flags)
        {
            return Some(done);
        }
        if d.gfp.contains(Gfp::RETRY_MAYFAIL) {
            return Some(Step::Done(None));
        }
        Some(self.oom(m))
    }

    /// Whether some zone would pass if all that can be reclaimed were free (`should_reclaim_retry`).
    fn worth_reclaiming<H: Host>(&self, m: &Manager<'_, H>) -> bool {
        self.list.zones().any(|z| {
            let zone = m.zone(z);
            let could = m.reclaimable_pages(zone.lru);
            let mark = zone.marks.of(self.flags) + zone.protection[self.demand.highest as usize];
            zone.counter.max(0) as u64 + could > mark
        })
    }
}
