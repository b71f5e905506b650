//! How programs share a CPU: who comes first, for how long, and for whom the one that runs makes room.
//!
//! Each task has a rank, and who has the least is next. What a rank is depends on the rules:
//!
//! - [`Policy::Fair`]: the CPU time that it had so far, its virtual runtime. One that slept comes back with
//!   little of it, and so before the others.
//! - [`Policy::Arrays`]: a round of the CPU, and a priority within it. Who slept much has a better one; who
//!   has used up its time is in the next round, unless it sleeps much.
//!
//! The specification is silent on schedulers. What is here is what documents of their time say: for
//! `Arrays` J. Aas, "Understanding the Linux 2.6.8.1 CPU Scheduler" (2005); for `Fair` the administrators'
//! manuals of SLES 11 and RHEL 7.
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
    /// Time in which each task has a turn, as long as turns do not get too short.
    pub latency: Nanos,
    /// Shortest turn.
    pub min_granularity: Nanos,
    /// One that wakes takes the CPU at once if it had so much less than the one that runs.
    pub wakeup_granularity: Nanos,
    /// How far behind all others one that slept may be.
    pub sleeper_credit: Nanos,
}

impl Fair {
    /// Policy of equal length for all with a nice of 0, in which nobody interrupts.
    pub const fn rounds(quantum: Nanos) -> Fair {
        Fair {
            latency: 0,
            min_granularity: quantum,
            wakeup_granularity: Nanos::MAX / 2,
            sleeper_credit: 2 * quantum,
        }
    }

    /// The settings of a machine with so many CPUs, from those of one with a single CPU: once more for
    /// each time that their number doubles.
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

    /// A task's turn among so many, the others of them with a nice of 0.
    fn turn(&self, weight: u64, load: usize) -> Nanos {
        let load = load.max(1) as Nanos;
        let period = self.latency.max(self.min_granularity * load);
        (period.saturating_mul(weight) / (weight + (load - 1) * NORMAL)).max(1)
    }
}

/// Sleep that earns the best priority.
const MAX_SLEEP: Nanos = SEC;
/// Priorities from no sleep to the best.
const MAX_BONUS: u64 = 10;
/// Bonus from which on a task stays in its round when its time is used up.
const INTERACTIVE: u64 = 7;
/// How long those of the next round may wait for each task of the CPU, before nobody stays in this one.
const STARVATION: Nanos = SEC;
/// Ranks of a round.
const ROUND: u64 = 1 << 8;

/// Tenths of the longest sleep that counts, which a task has to its credit.
fn bonus(t: &Task) -> u64 {
    t.rested * MAX_BONUS / MAX_SLEEP
}

/// Rank within a round: who has the least nice and slept most is first.
fn priority(t: &Task) -> u64 {
    let nice = (i64::from(t.nice) + 20) as u64;
    nice + MAX_BONUS - bonus(t)
}

impl Task {
    /// Gives it new time if all of it is used up.
    fn renew(&mut self) {
        if self.turn_left == 0 {
            self.turn_left = timeslice(self.nice);
        }
    }
}

impl Policy {
    /// The part of a rank that a CPU's base follows.
    #[inline]
    pub(super) fn base(&self, rank: u64) -> u64 {
        match self {
            Policy::Fair(_) => rank,
            Policy::Arrays => rank / ROUND * ROUND,
        }
    }

    /// When the turn of a CPU's running task ends, if others wait. Its time is charged.
    #[inline]
    pub(super) fn end(&self, t: &Task, cpu: &Cpu) -> Nanos {
        match self {
            Policy::Fair(f) => cpu.turn_from + f.turn(t.weight, cpu.load()),
            Policy::Arrays => cpu.run_from + t.turn_left,
        }
    }

    /// The same when another has joined those that wait; with `first`, the first of them.
    pub(super) fn new_end(&self, t: &Task, cpu: &Cpu, first: bool) -> Nanos {
        match self {
            // As long as it was alone, its turns did not end.
            Policy::Arrays if first => self.end(t, cpu),
            _ => cpu.turn_end.min(self.end(t, cpu)),
        }
    }

    /// A task has used CPU time.
    #[inline]
    pub(super) fn used(&self, t: &mut Task, ns: Nanos) {
        match self {
            Policy::Fair(_) if t.weight == NORMAL => t.rank += ns,
            Policy::Fair(_) => t.rank += ns * NORMAL / t.weight,
            Policy::Arrays => {
                t.turn_left = match t.turn_left.checked_sub(ns) {
                    Some(left) => left,
                    // Nobody waited, so that it began another turn each time.
                    None => {
                        let slice = timeslice(t.nice);
                        slice - (ns - t.turn_left) % slice
                    }
                };
                t.rested = t.rested.saturating_sub(ns / bonus(t).max(1));
            }
        }
    }

    /// Where a new task begins, on a CPU with this base that so many others want: behind a whole turn, or
    /// with most of its parent's priority and half of what is left of its parent's time.
    pub(super) fn begin(&self, t: &mut Task, parent: Option<&mut Task>, base: u64, load: usize) {
        match self {
            Policy::Fair(f) => t.rank = base + f.turn(t.weight, load + 1),
            Policy::Arrays => {
                t.turn_left = timeslice(t.nice);
                if let Some(p) = parent {
                    p.renew();
                    t.rested = p.rested / 100 * 95;
                    t.turn_left = p.turn_left.div_ceil(2);
                    p.turn_left -= p.turn_left / 2;
                }
                t.rank = base + priority(t);
            }
        }
    }

    /// A task wakes after a sleep, on a CPU with this base. `disk`: it could not have been interrupted.
    pub(super) fn wake(&self, t: &mut Task, base: u64, slept: Nanos, disk: bool) {
        match self {
            Policy::Fair(f) => t.rank = t.rank.max(base.saturating_sub(f.sleeper_credit)),
            Policy::Arrays => {
                let most = match disk {
                    // The least that counts as much sleep.
                    true => t.rested.max(MAX_SLEEP * INTERACTIVE / MAX_BONUS),
                    false => MAX_SLEEP,
                };
                let worth = slept.saturating_mul((MAX_BONUS - bonus(t)).max(1));
                t.rested = t.rested.saturating_add(worth).min(most);
                t.rank = base + priority(t);
            }
        }
    }

    /// Whether the task that runs makes room for one that has woken.
    #[inline]
    pub(super) fn preempts(&self, woken: &Task, running: &Task) -> bool {
        match self {
            Policy::Fair(f) => {
                // One with more weight needs less of a lead.
                let lead = match woken.weight {
                    NORMAL => f.wakeup_granularity,
                    weight => (f.wakeup_granularity / weight).saturating_mul(NORMAL),
                };
                running.rank > woken.rank.saturating_add(lead)
            }
            Policy::Arrays => woken.rank % ROUND < running.rank % ROUND,
        }
    }

    /// A task leaves its CPU to another: if its time is used up, it gets new time, and its rank.
    pub(super) fn leave(&self, t: &mut Task, cpu: &mut Cpu, now: Nanos) {
        if !matches!(self, Policy::Arrays) || t.turn_left > 0 {
            return;
        }
        t.renew();
        if !self.is_expired(cpu.queue.greatest_rank(), cpu.base) {
            // Those that waited for the next round have gone elsewhere.
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

    /// Whether a task with this rank waits for the next round of a CPU with this base.
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

    /// One that sleeps much has used up its time; another waits for the next round since time 0, or nobody.
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
    fn who_sleeps_much_stays_in_the_round_until_others_have_waited_a_second_for_each_task() {
        let (t, _) = leaves(2 * SEC, true);
        assert_eq!((t.rank, t.turn_left), (BASE + 20, 100 * MS));
        let (t, cpu) = leaves(2 * SEC + 1, true);
        assert_eq!((t.rank, t.turn_left), (BASE + ROUND + 20, 100 * MS));
        assert_eq!(cpu.expired_from, Some(0));
    }

    #[test]
    fn those_that_waited_and_went_elsewhere_count_no_more() {
        let (t, cpu) = leaves(60 * SEC, false);
        assert_eq!((t.rank, cpu.expired_from), (BASE + 20, None));
    }

    #[test]
    fn one_that_hardly_sleeps_waits_for_the_next_round() {
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
