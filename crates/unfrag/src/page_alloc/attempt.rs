//! An allocation that may reclaim, wait and start over, as a value that its host steps.
//! `spec: linux-mm 4.3, 4.6, 4.8`
//!
//! Invariant: each attempt ends in exactly one frame or one error, which is counted and told once.

use super::fast::Request;
use super::slow::alloc_flags;
use super::zonelist::ZoneList;
use super::{AllocError, Manager};
use crate::frame::{COSTLY_ORDER, Ix, MAX_ORDER, NR_ORDERS, Pfn};
use crate::gfp::{AllocFlags, Gfp};
use crate::host::Host;
use crate::kernel::{CongestionWait, OomOrders, RealtimeRight, RetryDrain, RetryForm};
use crate::reclaim::direct::{DirectReclaim, congestion_wait, second_wait};
use crate::reclaim::shrink::FIFTIETH;
use crate::reclaim::{Answer, Context, Need, Step};

/// Times that reclaim may bring nothing before the OOM killer is called (modern).
const MAX_RECLAIM_RETRIES: u32 = 16;

/// Times that V19 repeats reclaim for a large block.
const V19_REPEATS: u32 = 3;

/// An allocation on its way.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    request: Request,
    context: Context,
    list: ZoneList,
    phase: Phase,
    flags: AllocFlags,
    /// Pages reclaimed for it, for requests that repeat until there were enough.
    reclaimed: u64,
    no_progress: u32,
    repeats: u32,
    drained: bool,
    /// It may wait for kswapd before it reclaims: no such wait was in vain yet.
    stalls: bool,
}

#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "an allocator has nowhere to box it, and an attempt that is kept is in reclaim"
)]
enum Phase {
    Begin {
        again: bool,
    },
    Reclaim(DirectReclaim),
    Oom,
    /// A wait before the next reclaim; the second one where both classes are waited for.
    Pause {
        second: bool,
    },
}

type Got = Result<Ix, AllocError>;

impl<'m, H: Host> Manager<'m, H> {
    /// Begins an allocation near `node`: the frame itself where free memory serves it, else an
    /// [`Attempt`] to be stepped.
    ///
    /// # Errors
    /// As [`alloc`](Manager::alloc), for requests that nothing can serve.
    #[inline]
    pub fn begin_alloc(
        &mut self,
        node: u8,
        order: u8,
        gfp: Gfp,
        context: Context,
    ) -> Result<Begun, AllocError> {
        let mt = self.request_type(gfp).ok_or(AllocError::BothMobilities)?;
        if order > MAX_ORDER {
            return Err(AllocError::OrderTooLarge);
        }
        let request = Request::new(node, order, gfp, mt);
        match self.hit(&request) {
            Some(ix) => Ok(Begun::Got(self.hand_out(&request, ix))),
            None => self.begin_beyond(request, context),
        }
    }

    /// The same where the CPU's own list does not serve it.
    #[inline(never)]
    fn begin_beyond(&mut self, request: Request, context: Context) -> Result<Begun, AllocError> {
        if let Some(ix) = self.fast_path(&request) {
            return Ok(Begun::Got(self.hand_out(&request, ix)));
        }
        let list = self.zonelists.of(&request);
        if list.zones().is_empty() {
            return Err(AllocError::NoZone);
        }
        self.counters.slow_path += 1;
        Ok(Begun::Attempt(Attempt {
            request,
            context,
            list,
            phase: Phase::Begin { again: false },
            flags: AllocFlags::empty(),
            reclaimed: 0,
            no_progress: 0,
            repeats: 0,
            drained: false,
            stalls: true,
        }))
    }
}

/// How an allocation began.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the rare variant lives on the stack of its task"
)]
pub enum Begun {
    /// Free memory served it.
    Got(Pfn),
    /// It has to be stepped.
    Attempt(Attempt),
}

impl Attempt {
    /// Goes on until something is needed. The first answer is [`Answer::Go`].
    pub fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        answer: Answer,
    ) -> Step<Result<Pfn, AllocError>> {
        match self.advance(m, answer) {
            Step::Need(need) => Step::Need(need),
            Step::Done(got) => Step::Done(m.finish(&self.request, got)),
        }
    }

    /// Order of the request.
    pub fn order(&self) -> u8 {
        self.request.order
    }

    /// Flags of the request.
    pub fn gfp(&self) -> Gfp {
        self.request.gfp
    }

    fn advance<H: Host>(&mut self, m: &mut Manager<'_, H>, mut answer: Answer) -> Step<Got> {
        loop {
            let next = match &mut self.phase {
                Phase::Begin { again } => {
                    let again = *again;
                    self.begin(m, again)
                }
                Phase::Reclaim(d) => match d.step(m, answer) {
                    Step::Need(need) => Some(Step::Need(need)),
                    Step::Done(progress) => {
                        self.reclaimed += d.reclaimed();
                        self.stalls &= !d.in_vain;
                        self.after_reclaim(m, progress)
                    }
                },
                Phase::Oom => {
                    let killed = matches!(answer, Answer::Killed(true));
                    self.no_progress = 0;
                    self.phase = Phase::Begin { again: true };
                    (!killed).then(|| self.fail())
                }
                Phase::Pause { second } => {
                    let second = *second;
                    let more = second_wait(m.env.sw.reclaim.congestion, answer);
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

    fn fail(&self) -> Step<Got> {
        Step::Done(Err(AllocError::NoMemory))
    }

    /// From "wake all kswapds" to the decision to reclaim.
    fn begin<H: Host>(&mut self, m: &mut Manager<'_, H>, again: bool) -> Option<Step<Got>> {
        let rights = m.env.sw.rights;
        let r = self.request;
        if !again || m.env.sw.retry.wake_on_restart {
            m.wake_kswapds(&self.list, &r);
        }
        self.flags = alloc_flags(r.gfp, r.order, &m.env.sw);
        let cx = self.context;
        if cx.realtime && (!cx.in_interrupt || rights.realtime_in_interrupt) {
            self.flags |= match rights.realtime {
                RealtimeRight::NonBlock => AllocFlags::NON_BLOCK,
                RealtimeRight::MinReserve => AllocFlags::MIN_RESERVE,
            };
        }
        if m.env.sysctl.defrag_mode {
            self.flags |= AllocFlags::NOFRAGMENT;
        }
        if let Some(ix) = m.get_page(&self.list, &r, self.flags) {
            return Some(Step::Done(Ok(ix)));
        }
        if (cx.memalloc || cx.oom_victim) && !r.gfp.contains(Gfp::NOMEMALLOC) {
            let got = m.get_page(&self.list, &r, self.flags | AllocFlags::NO_WATERMARKS);
            return Some(Step::Done(got.ok_or(AllocError::NoMemory)));
        }
        if let Some(ix) = m.reserves(&self.list, &r, self.flags) {
            return Some(Step::Done(Ok(ix)));
        }
        if cx.memalloc || cx.in_interrupt || !r.gfp.contains(Gfp::DIRECT_RECLAIM) {
            return Some(self.fail());
        }
        self.start_reclaim(m)
    }

    fn start_reclaim<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Option<Step<Got>> {
        let r = self.request;
        let reclaim = DirectReclaim::new(m, self.list.zones(), r.order, r.gfp, self.stalls);
        self.phase = Phase::Reclaim(reclaim);
        None
    }

    fn after_reclaim<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        progress: bool,
    ) -> Option<Step<Got>> {
        let r = self.request;
        if r.order > 0 && m.env.sw.retry.drain == RetryDrain::EachBlock {
            m.drain_all();
        }
        if progress {
            if let Some(ix) = m.get_page(&self.list, &r, self.flags) {
                return Some(Step::Done(Ok(ix)));
            }
            // What hides in per-CPU lists and in the atomic reserve comes out, once.
            if m.env.sw.retry.drain == RetryDrain::OnceInVain && !self.drained {
                self.drained = true;
                m.unreserve(&self.list, &r, false);
                m.drain_all();
                if let Some(ix) = m.get_page(&self.list, &r, self.flags) {
                    return Some(Step::Done(Ok(ix)));
                }
            }
        }
        match m.env.sw.retry.form {
            RetryForm::Pauses {
                repeats_from: Some(from),
                ..
            } if r.order >= from && self.repeats < V19_REPEATS => {
                self.repeats += 1;
                return Some(self.pause(m));
            }
            RetryForm::Pauses { .. } => {}
            RetryForm::Bounded => return self.modern_retry(m, progress),
        }
        let tries_oom = !progress && r.gfp.contains(Gfp::FS) && !r.gfp.contains(Gfp::NORETRY);
        if tries_oom {
            return Some(self.oom(m));
        }
        if self.retries() {
            return Some(self.pause(m));
        }
        Some(self.fail())
    }

    /// Whether the old allocator goes on after a reclaim that did not bring the block.
    fn retries(&self) -> bool {
        let r = &self.request;
        if r.gfp.contains(Gfp::NORETRY) {
            return false;
        }
        r.order <= COSTLY_ORDER
            || r.gfp.contains(Gfp::RETRY_MAYFAIL) && self.reclaimed < 1 << r.order
            || r.gfp.contains(Gfp::NOFAIL)
    }

    fn pause<H: Host>(&mut self, m: &Manager<'_, H>) -> Step<Got> {
        self.phase = Phase::Pause { second: false };
        Step::Need(congestion_wait(m.env.sw.reclaim.congestion, FIFTIETH))
    }

    /// One more look at the high mark; then a process has to go, if the order may ask for that.
    fn oom<H: Host>(&mut self, m: &mut Manager<'_, H>) -> Step<Got> {
        let r = self.request;
        let flags = AllocFlags::WMARK_HIGH | AllocFlags::CPUSET;
        if let Some(ix) = m.get_page(&self.list, &r, flags) {
            return Step::Done(Ok(ix));
        }
        let kills = match m.env.sw.retry.form {
            RetryForm::Pauses { oom, .. } => match oom {
                OomOrders::Any => true,
                OomOrders::BelowHalf => usize::from(r.order) < NR_ORDERS / 2,
                OomOrders::Cheap => r.order <= COSTLY_ORDER,
            },
            // Those that may not gave up before.
            RetryForm::Bounded => true,
        };
        if !kills && !r.gfp.contains(Gfp::NOFAIL) {
            return self.fail();
        }
        m.reclaim.oom_kill += 1;
        self.phase = Phase::Oom;
        Step::Need(Need::Oom)
    }

    /// The retry loop since 4.7. `spec: linux-mm 4.8`
    fn modern_retry<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        progress: bool,
    ) -> Option<Step<Got>> {
        let r = self.request;
        if r.gfp.contains(Gfp::NORETRY)
            || r.order > COSTLY_ORDER && !r.gfp.intersects(Gfp::RETRY_MAYFAIL | Gfp::NOFAIL)
        {
            return Some(self.fail());
        }
        if progress && r.order <= COSTLY_ORDER {
            self.no_progress = 0;
        } else {
            self.no_progress += 1;
        }
        if self.no_progress <= MAX_RECLAIM_RETRIES && self.worth_reclaiming(m) {
            self.phase = Phase::Begin { again: true };
            let throttles = m.env.sw.reclaim.congestion == CongestionWait::Throttle;
            return Some(Step::Need(if progress || !throttles {
                Need::Turn {
                    scanned: 0,
                    freed: 0,
                }
            } else {
                congestion_wait(CongestionWait::Throttle, 0)
            }));
        }
        if m.unreserve(&self.list, &r, true) {
            self.phase = Phase::Begin { again: true };
            return None;
        }
        if self.flags.contains(AllocFlags::NOFRAGMENT)
            && let Some(ix) = m.get_page_mixed(&self.list, &r, self.flags)
        {
            return Some(Step::Done(Ok(ix)));
        }
        if r.gfp.contains(Gfp::RETRY_MAYFAIL) {
            return Some(self.fail());
        }
        Some(self.oom(m))
    }

    /// Whether some zone would pass if all that can be reclaimed were free (`should_reclaim_retry`).
    fn worth_reclaiming<H: Host>(&self, m: &Manager<'_, H>) -> bool {
        self.list.zones().iter().any(|&z| {
            let zone = m.zone(z.into());
            let could = m.reclaimable_pages(usize::from(m.lruvec_of[usize::from(z)]));
            let mark = zone.marks.of(self.flags) + zone.protection[self.request.highest as usize];
            zone.counter.max(0) as u64 + could > mark
        })
    }
}
