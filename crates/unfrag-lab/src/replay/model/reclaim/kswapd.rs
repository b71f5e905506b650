//! The kswapd of a node, which works between the operations of a recording in the time of the trace.

use super::pages::Pages;
use super::request_world::wait;
use crate::replay::causes::AS_RECORDED;
use crate::replay::model::ReplayHost;
use crate::replay::model::pause::LONGEST_PAUSE_NS;
use unfrag_eras::drive::Operation;
use unfrag_eras::reclaim::{Answer, Kswapd, Need, Throttle};
use unfrag_eras::{CpuId, Manager, NodeId};

/// The kswapd of a node, the answer to what it needs, and when it goes on.
#[derive(Clone, Debug)]
pub(super) struct ReplayKswapd {
    kswapd: Kswapd,
    /// When it goes on; `None` while it waits to be woken.
    next: Option<u64>,
    answer: Answer,
    /// When a sleep with a timeout would end.
    sleeps_to: Option<u64>,
}

impl ReplayKswapd {
    /// A kswapd that sleeps.
    pub fn new(node: NodeId, m: &mut Manager<'_, ReplayHost>) -> ReplayKswapd {
        let mut kswapd = Kswapd::new(node);
        kswapd.run(m, CpuId(0), Answer::Go);
        ReplayKswapd {
            kswapd,
            next: None,
            answer: Answer::Go,
            sleeps_to: None,
        }
    }

    /// When it goes on; `None` while it waits to be woken.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// Its node.
    pub fn node(&self) -> NodeId {
        self.kswapd.node()
    }

    /// A request called for it.
    pub fn wake(&mut self, now: u64) {
        if self.next.is_none() || self.sleeps_to.is_some() {
            let left = self.sleeps_to.take();
            let left = left.map_or(0, |t| t.saturating_sub(now) / 1_000_000);
            self.answer = Answer::Left(left as u32);
            self.next = Some(now);
        }
    }

    /// Works on a CPU up to a time; of a pause that is longer than [`LONGEST_PAUSE_NS`], in its beginning alone. A page that it looks at takes as many nanoseconds as `ns_per_look`
    /// says for its node and the time, in units of [`AS_RECORDED`].
    pub fn run(
        &mut self,
        m: &mut Manager<'_, ReplayHost>,
        pages: &mut Pages,
        cpu: CpuId,
        time: u64,
        ns_per_look: impl Fn(NodeId, u64) -> u64,
    ) {
        let last = self.next.map_or(0, |t| t.saturating_add(LONGEST_PAUSE_NS));
        while let Some(at) = self.next.filter(|&t| t <= time) {
            if at > last || at == u64::MAX {
                self.next = time.checked_add(1);
                break;
            }
            // Writes that began for an answer that kswapd has not received yet have not ended.
            if !matches!(self.answer, Answer::Evicted(_)) {
                pages.end_writes(m, at);
            }
            if self.sleeps_to.take().is_some() {
                self.answer = Answer::Left(0);
            }
            m.set_nr_swap_pages(pages.swap_left());
            m.set_time_ms(at / 1_000_000);
            let answer = std::mem::replace(&mut self.answer, Answer::Go);
            let need = self.kswapd.run(m, cpu, answer);
            if need == Need::Evict {
                self.answer = Answer::Evicted(pages.evict(self.kswapd.eviction()));
                continue;
            }
            if let Some(answer) = pages.meet(&need) {
                self.answer = answer;
                continue;
            }
            self.next = match need {
                Need::Turn { scanned, .. } => {
                    let looks = u64::from(scanned) * ns_per_look(self.node(), at);
                    Some(at.saturating_add((looks / u64::from(AS_RECORDED)).max(1)))
                }
                Need::CongestionWait { ms, .. } => {
                    self.answer = Answer::Left(0);
                    Some(at.saturating_add(wait(ms)))
                }
                Need::Throttle { why, ms } => {
                    self.answer = Answer::Left(0);
                    let most = at.saturating_add(wait(ms));
                    let written = pages.enough_written();
                    let written = written.filter(|_| why == Throttle::Writeback);
                    Some(written.map_or(most, |t| t.clamp(at.saturating_add(1), most)))
                }
                Need::Sleep(ms) => {
                    self.sleeps_to = ms.map(|ms| at.saturating_add(u64::from(ms) * 1_000_000));
                    self.sleeps_to
                }
                _ => at.checked_add(1),
            };
        }
    }
}
