//! The rules by which programs share a CPU: which task is next, for how long, and when a waking task
//! preempts.
//!
//! Each task has a rank; the task with the least rank is next. The rules decide what a rank is:
//!
//! - [`Policy::Fair`]: the CPU time that a task has had, weighted: its virtual runtime. A task that slept
//!   has less of it than the others, within a limit, so it runs before them.
//! - [`Policy::Arrays`]: a round of the CPU, and a priority within it. Sleep improves the priority. A task
//!   that has used up its time slice expires: it goes to the next round, unless it is interactive.
//!
//! Sources (`spec: 4.9`): for `Arrays` J. Aas, "Understanding the Linux
//! 2.6.8.1 CPU Scheduler" (2005); for `Fair` the administrators' manuals of SLES 11 and RHEL 7.
//!
//! Invariant: a task in a CPU's queue has a rank of at least that CPU's base, less a sleeper's credit.

use super::cpu::Cpu;
use super::nice::{NORMAL, timeslice};
use super::task::Task;
use super::time::{Nanos, SEC};

/// Rules by which programs share a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Equal shares of CPU time (2.6.23 and later).
    Fair(Fair),
    /// Two arrays of priorities (2.6.0 to 2.6.22).
    Arrays,
}

/// Settings of equal shares, in nanoseconds. The first three are the sysctls `kernel.sched_latency_ns`,
/// `sched_min_granularity_ns` and `sched_wakeup_granularity_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fair {
    /// Period in which each task runs once, unless slices would fall below `min_granularity`.
    pub latency: Nanos,
    /// Shortest time slice.
    pub min_granularity: Nanos,
    /// Lead in virtual runtime with which a waking task preempts the running one.
    pub wakeup_granularity: Nanos,
    /// Largest credit in virtual runtime of a task that slept.
    pub sleeper_credit: Nanos,
}

impl Fair {
    /// Round robin: slices of equal length for all with nice 0, and no preemption by a wake-up.
    pub const fn rounds(quantum: Nanos) -> Fair {
        Fair {
            latency: 0,
            min_granularity: quantum,
            wakeup_granularity: Nanos::MAX / 2,
            sleeper_credit: 2 * quantum,
        }
    }

    /// The settings for `cpus` CPUs, from those for a single one: scaled by `1 + log2(cpus)`.
    #[must_use]
    pub const fn on(self, cpus: usize) -> Fair {
        let times = 1 + cpus.ilog2() as Nanos;
        Fair {
            latency: self.latency * times,
            min_granularity: self.min_granularity * times,
            wakeup_granularity: self.wakeup_granularity * times,
            sleeper_credit: self.sleeper_credit * times,
        }
    }

    /// Time slice of a task on a CPU with `load` tasks, the others of them with nice 0.
    fn slice(&self, weight: u64, load: usize) -> Nanos {
        let load = load.max(1) as Nanos;
        let period = self.latency.max(self.min_granularity * load);
        (period.saturating_mul(weight) / (weight + (load - 1) * NORMAL)).max(1)
    }
}

/// Sleep that gives the largest bonus.
const MAX_SLEEP: Nanos = SEC;
/// Largest bonus.
const MAX_BONUS: u64 = 10;
/// Bonus from which a task counts as interactive: it stays in its round when its time is used up.
const INTERACTIVE: u64 = 7;
/// Wait of the expired tasks, for each task of the CPU, after which interactive tasks expire too.
const STARVATION: Nanos = SEC;
/// Ranks of a round.
const ROUND: u64 = 1 << 8;

/// A task's credit for sleep, in tenths of [`MAX_SLEEP`].
fn bonus(t: &Task) -> u64 {
    t.rested * MAX_BONUS / MAX_SLEEP
}

/// Rank within a round: the least nice level and the most sleep come first.
fn priority(t: &Task) -> u64 {
    let nice = (i64::from(t.nice) + 20) as u64;
    nice + MAX_BONUS - bonus(t)
}

impl Task {
    /// Gives it a new time slice if the old one is used up.
    fn renew(&mut self) {
        if self.slice_left == 0 {
            self.slice_left = timeslice(self.nice);
        }
    }
}

impl Policy {
    /// The part of a rank that counts for a CPU's base.
    #[inline]
    pub(super) fn base(&self, rank: u64) -> u64 {
        match self {
            Policy::Fair(_) => rank,
            Policy::Arrays => rank / ROUND * ROUND,
        }
    }

    /// End of the time slice of a CPU's running task, if others wait. Its time has to be charged before.
    #[inline]
    pub(super) fn end(&self, t: &Task, cpu: &Cpu) -> Nanos {
        match self {
            Policy::Fair(f) => cpu.slice_from + f.slice(t.weight, cpu.load()),
            Policy::Arrays => cpu.run_from + t.slice_left,
        }
    }

    /// New end of the time slice after another task has joined the queue. `first`: the queue was empty.
    pub(super) fn new_end(&self, t: &Task, cpu: &Cpu, first: bool) -> Nanos {
        match self {
            // While it was alone, its time slice did not end.
            Policy::Arrays if first => self.end(t, cpu),
            _ => cpu.slice_end.min(self.end(t, cpu)),
        }
    }

    /// A task has used CPU time.
    #[inline]
    pub(super) fn used(&self, t: &mut Task, ns: Nanos) {
        match self {
            Policy::Fair(_) if t.weight == NORMAL => t.rank += ns,
            Policy::Fair(_) => t.rank += ns * NORMAL / t.weight,
            Policy::Arrays => {
                t.slice_left = match t.slice_left.checked_sub(ns) {
                    Some(left) => left,
                    // No task waited, so it began another slice each time.
                    None => {
                        let slice = timeslice(t.nice);
                        slice - (ns - t.slice_left) % slice
                    }
                };
                t.rested = t.rested.saturating_sub(ns / bonus(t).max(1));
            }
        }
    }

    /// Rank of a new task on a CPU with this base and load. Fair: one time slice behind the base. Arrays:
    /// with 95 % of its parent's credit for sleep and half of what is left of its parent's time.
    pub(super) fn begin(&self, t: &mut Task, parent: Option<&mut Task>, base: u64, load: usize) {
        match self {
            Policy::Fair(f) => t.rank = base + f.slice(t.weight, load + 1),
            Policy::Arrays => {
                t.slice_left = timeslice(t.nice);
                if let Some(p) = parent {
                    p.renew();
                    t.rested = p.rested / 100 * 95;
                    t.slice_left = p.slice_left.div_ceil(2);
                    p.slice_left -= p.slice_left / 2;
                }
                t.rank = base + priority(t);
            }
        }
    }

    /// A task wakes after a sleep, on a CPU with this base. `disk`: its wait was uninterruptible.
    pub(super) fn wake(&self, t: &mut Task, base: u64, slept: Nanos, disk: bool) {
        match self {
            Policy::Fair(f) => t.rank = t.rank.max(base.saturating_sub(f.sleeper_credit)),
            Policy::Arrays => {
                let most = match disk {
                    // Uninterruptible sleep makes a task interactive and no more.
                    true => t.rested.max(MAX_SLEEP * INTERACTIVE / MAX_BONUS),
                    false => MAX_SLEEP,
                };
                let worth = slept.saturating_mul((MAX_BONUS - bonus(t)).max(1));
                t.rested = t.rested.saturating_add(worth).min(most);
                t.rank = base + priority(t);
            }
        }
    }

    /// Whether a task that has woken preempts the running one.
    #[inline]
    pub(super) fn preempts(&self, woken: &Task, running: &Task) -> bool {
        match self {
            Policy::Fair(f) => {
                // A larger weight needs a smaller lead.
                let lead = match woken.weight {
                    NORMAL => f.wakeup_granularity,
                    weight => (f.wakeup_granularity / weight).saturating_mul(NORMAL),
                };
                running.rank > woken.rank.saturating_add(lead)
            }
            Policy::Arrays => woken.rank % ROUND < running.rank % ROUND,
        }
    }

    /// A task is preempted. If its time slice is used up, it gets a new one and a new rank.
    pub(super) fn leave(&self, t: &mut Task, cpu: &mut Cpu, now: Nanos) {
        if !matches!(self, Policy::Arrays) || t.slice_left > 0 {
            return;
        }
        t.renew();
        if !self.is_expired(cpu.queue.greatest_rank(), cpu.base) {
            // The expired tasks have gone to other CPUs.
            cpu.expired_from = None;
        }
        let load = cpu.queue.len() as Nanos + 1;
        let waited = cpu.expired_from.map_or(0, |from| now - from);
        let stays = bonus(t) >= INTERACTIVE && waited <= STARVATION * load;
        t.rank = cpu.base + priority(t);
        if !stays {
            t.rank += ROUND;
        }
    }

    /// Whether a task with this rank is expired on a CPU with this base.
    #[inline]
    pub(super) fn is_expired(&self, rank: u64, base: u64) -> bool {
        matches!(self, Policy::Arrays) && self.base(rank) > base
    }
}

#[cfg(test)]
mod tests {
    use super::super::nice::weight;
    use super::super::time::MS;
    use super::*;

    const BASE: u64 = 3 * ROUND;

    /// A sleeper has used up its time slice; with `another`, a second task has been expired since time 0.
    fn leaves(now: Nanos, another: bool) -> (Task, Cpu) {
        let (mut t, mut cpu) = (Task::vacant(), Cpu::new());
        (t.rested, cpu.base, cpu.expired_from) = (MAX_SLEEP, BASE, Some(0));
        if another {
            cpu.queue.push(1, false, BASE + ROUND + 30, 0);
        }
        Policy::Arrays.leave(&mut t, &mut cpu, now);
        (t, cpu)
    }

    #[test]
    fn interactive_task_stays_in_its_round_until_starvation() {
        let (t, _) = leaves(2 * SEC, true);
        assert_eq!((t.rank, t.slice_left), (BASE + 20, 100 * MS));
        let (t, cpu) = leaves(2 * SEC + 1, true);
        assert_eq!((t.rank, t.slice_left), (BASE + ROUND + 20, 100 * MS));
        assert_eq!(cpu.expired_from, Some(0));
    }

    #[test]
    fn stolen_tasks_do_not_count_as_starving() {
        let (t, cpu) = leaves(60 * SEC, false);
        assert_eq!((t.rank, cpu.expired_from), (BASE + 20, None));
    }

    #[test]
    fn cpu_bound_task_expires() {
        let (mut t, mut cpu) = (Task::vacant(), Cpu::new());
        (t.rested, cpu.base) = (MAX_SLEEP * 6 / 10, BASE);
        Policy::Arrays.leave(&mut t, &mut cpu, SEC);
        assert_eq!(t.rank, BASE + ROUND + 24);
        assert!(Policy::Arrays.is_expired(t.rank, cpu.base));
    }

    #[test]
    fn no_nice_overflows() {
        let rounds = Policy::Fair(Fair::rounds(3600 * SEC));
        let (mut a, mut b) = (Task::vacant(), Task::vacant());
        (a.weight, b.weight) = (weight(19), weight(-20));
        assert!(!rounds.preempts(&a, &b) && !rounds.preempts(&b, &a));
        rounds.begin(&mut b, None, 0, 1000);
        assert!(b.rank > 0);
    }
}
