//! The world of a request that reclaims, while the time of the trace stands still.

use super::pages::Pages;
use crate::replay::model::ReplayHost;
use unfrag_eras::drive::World;
use unfrag_eras::migrate::{Migration, MoveVerdicts};
use unfrag_eras::reclaim::{Answer, Eviction, Need, Throttle, Verdicts};
use unfrag_eras::{CpuId, Manager};

/// The world of one request. Its own time advances where it waits, so that writes end.
pub(super) struct RequestWorld<'a, 'm> {
    m: &'a mut Manager<'m, ReplayHost>,
    pages: &'a mut Pages,
    cpu: CpuId,
    now: u64,
}

impl<'a, 'm> RequestWorld<'a, 'm> {
    /// For a request on a CPU, now.
    pub fn new(m: &'a mut Manager<'m, ReplayHost>, pages: &'a mut Pages, cpu: CpuId) -> Self {
        let now = pages.now;
        RequestWorld { m, pages, cpu, now }
    }
}

impl World for RequestWorld<'_, '_> {
    type Host = ReplayHost;

    fn locked<T>(&mut self, f: impl FnOnce(&mut Manager<'_, ReplayHost>, CpuId) -> T) -> T {
        self.m.set_nr_swap_pages(self.pages.swap_left());
        self.m.set_time_ms(self.now / 1_000_000);
        f(self.m, self.cpu)
    }

    fn meet(&mut self, need: Need) -> Answer {
        if let Some(answer) = self.pages.meet(&need) {
            return answer;
        }
        match need {
            Need::Oom => Answer::Killed(false),
            // kswapd stands still as well.
            Need::Throttle {
                why: Throttle::Reserves,
                ..
            } => Answer::Left(0),
            Need::CongestionWait { ms, .. } | Need::Throttle { ms, .. } => {
                self.now += wait(ms);
                self.pages.end_writes(self.m, self.now);
                Answer::Left(0)
            }
            _ => Answer::Go,
        }
    }

    fn evict(&mut self, eviction: &Eviction) -> Verdicts {
        self.pages.evict(eviction)
    }

    fn migrate(&mut self, migration: &Migration) -> MoveVerdicts {
        self.pages.migrate(migration)
    }
}

/// Nanoseconds of a wait of so many milliseconds, which takes a tick at least.
pub(super) fn wait(ms: u32) -> u64 {
    u64::from(ms.max(4)) * 1_000_000
}
