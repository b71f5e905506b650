//! Which task runs on which CPU, and for how long.
//!
//! Realtime tasks preempt. All others share a CPU in time slices while another task waits for it, by the
//! rules of [`policy`](super::policy). A task that wakes goes to an idle CPU, preferably its last one;
//! otherwise it stays, unless another CPU has less load. An idle CPU steals a waiting task from another.
//! At the end of its time slice a task moves to a CPU with less load.

use super::cpu::{NIL, Work};
use super::sched::Sched;
use super::task::{Priority, Task, TaskState, Wait};
use super::time::Nanos;

/// Adds a number to a digest.
pub(crate) fn digest(so_far: u64, number: u64) -> u64 {
    (so_far ^ number)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(23)
}

impl<S: 'static> Sched<S> {
    /// Makes a new task ready, on the CPU chosen for it.
    pub(super) fn place_new(&mut self, slot: u32) {
        let c = self.choose_cpu(slot);
        self.move_to(slot, c);
        let (base, load) = (self.cpus[c].base, self.cpus[c].load());
        let [t, parent] = match self.current {
            _ if self.in_interrupt => [slot, NIL],
            running => [slot, running],
        };
        match self.tasks.get_disjoint_mut([t as usize, parent as usize]) {
            Ok([t, parent]) => self.policy.begin(t, Some(parent), base, load),
            Err(_) => self
                .policy
                .begin(&mut self.tasks[slot as usize], None, base, load),
        }
        if parent != NIL {
            // The child has taken a part of its time.
            let at = usize::from(self.task(parent).cpu);
            self.shorten_slice(at, false);
            self.plan(at);
        }
        self.enqueue(slot, c);
    }

    /// Makes a task ready whose wait has ended, on the CPU chosen for it. It may preempt there.
    pub(super) fn place_woken(&mut self, slot: u32, wait: Wait) {
        let c = self.choose_cpu(slot);
        self.move_to(slot, c);
        let (now, base, policy) = (self.now, self.cpus[c].base, self.policy);
        let t = self.task(slot);
        policy.wake(t, base, now - t.wait_from, wait.io);
        self.enqueue(slot, c);
        let cpu = &mut self.cpus[c];
        if cpu.running == NIL {
            return;
        }
        let running = &self.tasks[cpu.running as usize];
        let normal = running.priority != Priority::Realtime;
        if normal && policy.preempts(&self.tasks[slot as usize], running) {
            cpu.slice_end = cpu.slice_end.min(now);
            self.plan(c);
        }
    }

    fn choose_cpu(&self, slot: u32) -> usize {
        let t = &self.tasks[slot as usize];
        let last = usize::from(t.cpu);
        if let Some(c) = t.bound {
            return usize::from(c);
        }
        if self.cpus[last].load() == 0 {
            return last;
        }
        let from_last = (last..self.cpus.len()).chain(0..last);
        if let Some(c) = from_last.clone().find(|&c| self.cpus[c].load() == 0) {
            return c;
        }
        if t.priority == Priority::Realtime {
            let mut others = from_last.clone();
            if let Some(c) = others.find(|&c| !self.runs_realtime(c)) {
                return c;
            }
        }
        let least = from_last
            .min_by_key(|&c| self.cpus[c].load())
            .unwrap_or(last);
        if self.cpus[least].load() + 1 < self.cpus[last].load() {
            least
        } else {
            last
        }
    }

    fn runs_realtime(&self, c: usize) -> bool {
        match self.cpus[c].running {
            NIL => false,
            slot => self.tasks[slot as usize].priority == Priority::Realtime,
        }
    }

    /// Moves a task that is on no queue to another CPU. Its rank keeps the distance to the CPU's base.
    fn move_to(&mut self, slot: u32, c: usize) {
        let from = usize::from(self.tasks[slot as usize].cpu);
        self.charge(c);
        if from != c {
            self.charge(from);
            let t = &mut self.tasks[slot as usize];
            let ahead = t.rank as i64 - self.cpus[from].base as i64;
            t.rank = self.cpus[c].base.saturating_add_signed(ahead);
            t.cpu = c as u16;
            t.arrived = self.now;
        }
    }

    fn enqueue(&mut self, slot: u32, c: usize) {
        let seq = self.next_seq();
        let t = &mut self.tasks[slot as usize];
        t.state = TaskState::Ready;
        let realtime = t.priority == Priority::Realtime;
        let cpu = &mut self.cpus[c];
        if !realtime && self.policy.is_expired(t.rank, cpu.base) {
            cpu.expired_from.get_or_insert(self.now);
        }
        let first = cpu.queue.is_empty();
        cpu.queue.push(slot, realtime, t.rank, seq);
        if cpu.running == NIL {
            cpu.charge_idle(self.now);
        } else if realtime && !self.runs_realtime(c) {
            let cpu = &mut self.cpus[c];
            cpu.slice_end = cpu.slice_end.min(self.now);
        } else {
            // The more tasks, the shorter a time slice.
            self.shorten_slice(c, first);
        }
        self.plan(c);
    }

    /// Shortens the time slice of a CPU's running task. `first`: no other task waited before.
    fn shorten_slice(&mut self, c: usize, first: bool) {
        let cpu = &mut self.cpus[c];
        let running = &self.tasks[cpu.running as usize];
        cpu.slice_end = self.policy.new_end(running, cpu, first);
    }

    /// Charges the running task for its CPU time up to now. To be called before the CPU's base is read.
    pub(super) fn charge(&mut self, c: usize) {
        let cpu = &mut self.cpus[c];
        if cpu.running == NIL {
            return;
        }
        let t = &mut self.tasks[cpu.running as usize];
        if self.now > cpu.run_from {
            let d = self.now - cpu.run_from;
            cpu.run_from = self.now;
            let had = t.left.take(d);
            self.policy.used(t, d);
            t.times.add(had);
            cpu.times.add(had);
        }
        if t.priority != Priority::Realtime {
            let least = cpu.queue.least_rank().map_or(t.rank, |r| r.min(t.rank));
            cpu.base = cpu.base.max(self.policy.base(least));
        }
    }

    /// Computes when a CPU is due next.
    pub(super) fn plan(&mut self, c: usize) {
        let cpu = &self.cpus[c];
        let waiting = !cpu.queue.is_empty();
        let at = match cpu.running {
            NIL if waiting => self.now.max(cpu.irq_until),
            NIL => Nanos::MAX,
            slot => {
                let done = cpu.run_from + self.tasks[slot as usize].left.total();
                if waiting {
                    done.min(cpu.slice_end.max(self.now))
                } else {
                    done
                }
            }
        };
        self.next[c] = at;
        // The CPU whose code runs now is due only at the end of its time slice.
        if self.cpus[c].running != self.current || self.current == NIL {
            self.horizon = self.horizon.min(at);
        } else if waiting {
            self.horizon = self.horizon.min(self.cpus[c].slice_end);
        }
    }

    /// The running task gives its CPU up, for good or to wait.
    pub(super) fn leave_cpu(&mut self, slot: u32) {
        let c = usize::from(self.tasks[slot as usize].cpu);
        self.charge(c);
        debug_assert_eq!(self.cpus[c].running, slot);
        self.cpus[c].running = NIL;
        self.cpus[c].idle_from = self.now.max(self.cpus[c].run_from);
        self.dispatch(c);
    }

    /// The running task's time slice is over: it goes to the end of this CPU's queue, or to a less loaded
    /// CPU.
    pub(super) fn requeue(&mut self, c: usize) {
        let slot = self.cpus[c].running;
        self.cpus[c].running = NIL;
        self.cpus[c].idle_from = self.now.max(self.cpus[c].run_from);
        let t = &mut self.tasks[slot as usize];
        if t.priority != Priority::Realtime {
            self.policy.leave(t, &mut self.cpus[c], self.now);
        }
        let target = self.less_loaded(slot, c);
        self.move_to(slot, target);
        self.enqueue(slot, target);
    }

    /// The CPU for a task whose time slice on `c` is over.
    fn less_loaded(&mut self, slot: u32, c: usize) -> usize {
        let t: &Task = &self.tasks[slot as usize];
        if t.bound.is_some() {
            return c;
        }
        let here = self.cpus[c].load() + 1;
        let n = self.cpus.len();
        let others = (c + 1..n).chain(0..c);
        let Some(least) = others.min_by_key(|&i| self.cpus[i].load()) else {
            return c;
        };
        // With one task more here than there, moving one moves the surplus only. Each gets its share of it in
        // turn.
        let there = self.cpus[least].load();
        let due = here == there + 1 && self.now >= self.next_around;
        let around = due && self.longest_in_place(slot, c, there);
        if around {
            self.next_around = self.now + self.balance;
        }
        if here >= there + 2 || around {
            least
        } else {
            c
        }
    }

    /// Whether this task has been on its CPU the longest, among the movable tasks that share a CPU with as
    /// many others or more.
    fn longest_in_place(&self, slot: u32, c: usize, others: usize) -> bool {
        let since = self.tasks[slot as usize].arrived;
        let shorter = |w: u32| {
            let t = &self.tasks[w as usize];
            w == slot || t.arrived >= since || t.bound.is_some() || t.priority == Priority::Realtime
        };
        let shared = |i: &usize| *i == c || self.cpus[*i].load() > others;
        (0..self.cpus.len()).filter(shared).all(|i| {
            let cpu = &self.cpus[i];
            (cpu.running == NIL || shorter(cpu.running)) && cpu.queue.all(shorter)
        })
    }

    /// Runs the next task on an idle CPU.
    pub(super) fn dispatch(&mut self, c: usize) {
        debug_assert_eq!(self.cpus[c].running, NIL);
        let slot = match self.cpus[c].queue.pop().or_else(|| self.steal(c)) {
            Some(slot) => slot,
            None => {
                self.next[c] = Nanos::MAX;
                return;
            }
        };
        let now = self.now;
        let cpu = &mut self.cpus[c];
        cpu.charge_idle(now);
        let t = &mut self.tasks[slot as usize];
        t.state = TaskState::Running;
        cpu.running = slot;
        cpu.run_from = now.max(cpu.irq_until).max(cpu.run_from);
        if cpu.last != (slot, t.generation) {
            cpu.last = (slot, t.generation);
            cpu.switches += 1;
            cpu.run_from += self.switch_cost;
            cpu.times.switching += self.switch_cost;
        }
        let base = self.policy.base(t.rank);
        if t.priority != Priority::Realtime && base > cpu.base {
            cpu.base = base;
            cpu.expired_from = None;
        }
        cpu.slice_from = cpu.run_from;
        cpu.slice_end = self.policy.end(t, cpu);
        let dispatched = now ^ (u64::from(slot) << 40) ^ ((c as u64) << 56);
        self.trace_hash = digest(self.trace_hash, dispatched);
        self.plan(c);
    }

    /// Steals a waiting task from the busiest other CPU.
    fn steal(&mut self, c: usize) -> Option<u32> {
        let n = self.cpus.len();
        let (mut from, mut most) = (c, 0);
        for i in (c + 1..n).chain(0..c) {
            let waiting = self.cpus[i].queue.len();
            if waiting > most {
                (from, most) = (i, waiting);
            }
        }
        if most == 0 {
            return None;
        }
        let tasks = &self.tasks;
        let slot = self.cpus[from]
            .queue
            .steal(|t| tasks[t as usize].bound.is_none())?;
        self.move_to(slot, c);
        self.plan(from);
        Some(slot)
    }

    /// The running task uses CPU time. True if nothing else is due before its end, so that it has had it at
    /// once; otherwise the engine has to step until it has had it.
    #[inline]
    pub(super) fn spend(&mut self, work: Work) -> bool {
        let c = self.cpu;
        let end = self.now + work.total();
        let t = &mut self.tasks[self.current as usize];
        let cpu = &mut self.cpus[c];
        if end < self.horizon {
            self.now = end;
            cpu.run_from = end;
            self.policy.used(t, work.total());
            t.times.add(work);
            cpu.times.add(work);
            return true;
        }
        t.left = work;
        self.current = NIL;
        self.next[c] = match cpu.queue.is_empty() {
            true => end,
            false => end.min(cpu.slice_end.max(self.now)),
        };
        false
    }
}

impl<S: 'static> Sched<S> {
    /// The running task goes behind all that wait for its CPU. False if none does.
    pub(super) fn yield_cpu(&mut self) -> bool {
        let c = self.cpu;
        if self.cpus[c].queue.is_empty() {
            return false;
        }
        let last = self.cpus[c].queue.greatest_rank();
        let slot = self.current;
        let t = self.task(slot);
        t.rank = t.rank.max(last);
        self.current = NIL;
        self.requeue(c);
        self.dispatch(c);
        true
    }
}
