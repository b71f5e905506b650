//! The world of an era's operations: tasks that wait, and owners that let go of pages and move them.

use super::moves::Batch;
use crate::frames::{Era, Waker};
use crate::owners::{self, Owner};
use crate::{cache, task};
use unfrag::CpuId;
use unfrag_eras::Manager;
use unfrag_eras::drive::World;
use unfrag_eras::migrate::{Migration, MoveVerdict, MoveVerdicts};
use unfrag_eras::reclaim::{Answer, Eviction, Need, Verdict, Verdicts};

/// A task of this kernel.
pub struct Kernel<'e>(pub &'e Era);

impl World for Kernel<'_> {
    type Host = Waker;

    fn locked<T>(&mut self, f: impl FnOnce(&mut Manager<'_, Waker>, CpuId) -> T) -> T {
        self.0.with(|m, cpu| f(m, cpu))
    }

    fn meet(&mut self, need: Need) -> Answer {
        match need {
            Need::CongestionWait { ms, .. } | Need::Throttle { ms, .. } => {
                task::sleep(u64::from(ms.clamp(1, 10)));
                Answer::Left(0)
            }
            Need::Shrink { .. } => Answer::Freed(0),
            Need::Oom => Answer::Killed(false),
            _ => {
                task::yield_now();
                Answer::Go
            }
        }
    }

    fn evict(&mut self, eviction: &Eviction) -> Verdicts {
        eviction.ask(|ask| match owners::of(ask.page) {
            Some(Owner::Cache(page)) if cache::forget(page, ask.page) => Verdict::Released,
            _ => Verdict::Keep,
        })
    }

    fn migrate(&mut self, migration: &Migration) -> MoveVerdicts {
        let mut batch = Batch::new();
        let verdicts = migration.ask(|ask| {
            if batch.add(ask.from, ask.to) {
                MoveVerdict::Moved
            } else {
                MoveVerdict::Busy
            }
        });
        batch.finish();
        verdicts
    }
}
