//! Operations that may wait, the worlds that meet their needs, and the loop that runs one in the other.
//!
//! An operation is a value. A step runs until it is done or has a [`Need`]; a [`World`] meets the need
//! with nothing locked, and the operation is stepped again with the answer. The machine's tasks, a replay,
//! threads and the tasks of a kernel are worlds.

use crate::evict::{Eviction, Verdict, Verdicts};
use crate::frame::CpuId;
use crate::host::Host;
use crate::manager::Manager;
use crate::migrate::{Migration, MoveVerdict, MoveVerdicts};
use crate::need::{Answer, Need, Step};

/// An operation that may have to wait before it is done: an allocation that reclaims, or kswapd.
pub trait Operation {
    /// Its result.
    type Output;

    /// Continues on `cpu` until the operation is done or needs something. `answer` is what became of the last
    /// need; for the first step it is [`Answer::Go`].
    fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
    ) -> Step<Self::Output>;

    /// The pages whose owners are to be asked, where the last step had [`Need::Evict`].
    fn eviction(&self) -> &Eviction;

    /// The pages whose owners are to move them, where the last step had [`Need::Migrate`].
    fn migration(&self) -> &Migration {
        &Migration::EMPTY
    }
}

/// What runs operations: it lends the manager for a step, and meets needs between steps.
///
/// A need is met by `&mut self`, and the manager is lent only for the time of a call, so that a wait while
/// the manager is locked does not compile:
/// ```compile_fail
/// # use unfrag_eras::drive::World;
/// # use unfrag_eras::reclaim::{Answer, Need};
/// fn waits_under_the_lock<W: World>(world: &mut W) -> Answer {
///     world.locked(|_manager, _cpu| world.meet(Need::Oom))
/// }
/// ```
pub trait World {
    /// Type of the manager's host.
    type Host: Host;

    /// Lends the manager, and says on which CPU the caller is.
    fn locked<T>(&mut self, f: impl FnOnce(&mut Manager<'_, Self::Host>, CpuId) -> T) -> T;

    /// Does what an operation needs, other than an eviction or a migration.
    fn meet(&mut self, need: Need) -> Answer;

    /// Asks the owners of pages to let go of them. In a world without owners none does.
    fn evict(&mut self, eviction: &Eviction) -> Verdicts {
        eviction.ask(|_| Verdict::Busy)
    }

    /// Asks the owners of pages to move them. In a world without owners none does.
    fn migrate(&mut self, migration: &Migration) -> MoveVerdicts {
        migration.ask(|_| MoveVerdict::Busy)
    }
}

/// Runs an operation in a world until it is done.
pub fn drive<W: World, O: Operation>(world: &mut W, operation: &mut O) -> O::Output {
    let mut answer = Answer::Go;
    loop {
        match world.locked(|m, cpu| operation.step(m, cpu, answer)) {
            Step::Done(output) => return output,
            Step::Need(Need::Evict) => {
                answer = Answer::Evicted(world.evict(operation.eviction()));
            }
            Step::Need(Need::Migrate) => {
                answer = Answer::Migrated(world.migrate(operation.migration()));
            }
            Step::Need(need) => answer = world.meet(need),
        }
    }
}
