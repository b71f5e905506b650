//! The state of the scheduler: the clock, the CPUs and the tasks.
//!
//! There is one clock, and it only goes forward: the engine always takes the event or the CPU that is
//! due first, so all that is seen at a time is the state of that time. No time passes while a task's code
//! runs. The code states how much CPU time its work takes, and goes on once it has had it.
//!
//! - this file: the state, tasks, waiting and waking.
//! - `dispatch`: which task runs where and how long.
//! - `event_loop`: the loop over events and CPUs, interrupts.
//!
//! Invariants: each live task is in exactly one of: the queue of one CPU, running on one CPU, waiting.
//! `next[c]` is when CPU `c` is due next. While code runs, its task's `left` is 0, and `horizon` is the
//! time up to which that task may go on before another event or CPU is due.

use super::channel::Channel;
use super::config::CpuConfig;
use super::coroutine::{Fiber, Stacks};
use super::cpu::{Cpu, CpuTimes, NIL};
use super::events::{Event, EventKind, EventQueue};
use super::nice::weight;
use super::outcome::{Ended, Next};
use super::policy::Policy;
use super::task::{Priority, Spec, Task, TaskId, TaskState, TaskTimes, Wait, Waited};
use super::time::{Nanos, SEC};
use super::waiters::Waiters;

/// Deferred code.
pub(crate) struct Call<S> {
    /// CPU on whose time it runs, as an interrupt; none: outside of the machine.
    pub cpu: Option<usize>,
    pub code: Box<dyn FnOnce(&mut S)>,
}

/// The clock, the CPUs and the tasks.
pub(crate) struct Sched<S: 'static> {
    pub now: Nanos,
    pub limit: Nanos,
    pub tick: Nanos,
    pub policy: Policy,
    pub kthread_nice: i8,
    pub balance: Nanos,
    /// Earliest time of the next move of a surplus task to another CPU.
    pub next_around: Nanos,
    pub switch_cost: Nanos,
    pub irq_cost: Nanos,
    pub irq_cpu: usize,
    pub horizon: Nanos,
    /// CPU on which code runs now.
    pub cpu: usize,
    /// Slot of the task whose code runs now, or that the present interrupt interrupted.
    pub current: u32,
    pub in_interrupt: bool,
    /// CPU time of the present interrupt.
    pub irq_spent: Nanos,
    pub stop: bool,
    /// Whether the run ends with the last program.
    pub until_finished: bool,
    /// What is to run next, as found by the task that passed the machine on.
    pub handover: Next,
    pub cpus: Vec<Cpu>,
    pub next: Vec<Nanos>,
    pub tasks: Vec<Task>,
    pub free_slots: Vec<u32>,
    /// Live tasks that a run waits for.
    pub awaited: usize,
    /// Live tasks.
    pub live: usize,
    pub waiters: Waiters,
    pub events: EventQueue,
    pub calls: Vec<Option<Call<S>>>,
    pub free_calls: Vec<u32>,
    pub seq: u64,
    pub stacks: Stacks,
    /// Tasks whose coroutines the engine has not taken over yet.
    pub newborn: Vec<(u32, Fiber<S>)>,
    pub trace_hash: u64,
    pub handled: u64,
}

impl<S: 'static> Sched<S> {
    pub fn new(config: &CpuConfig) -> Sched<S> {
        let cpus = config.cpus.max(1);
        Sched {
            now: 0,
            limit: Nanos::MAX,
            tick: SEC / Nanos::from(config.hz.max(1)),
            policy: config.sched.policy,
            kthread_nice: config.sched.kthread_nice,
            balance: config.sched.balance,
            next_around: 0,
            switch_cost: config.context_switch,
            irq_cost: config.interrupt,
            irq_cpu: config.sched.irq_cpu.min(cpus - 1),
            horizon: 0,
            cpu: 0,
            current: NIL,
            in_interrupt: false,
            irq_spent: 0,
            stop: false,
            until_finished: true,
            handover: Next::End(Ended::Stuck),
            cpus: (0..cpus).map(|_| Cpu::new()).collect(),
            next: vec![Nanos::MAX; cpus],
            tasks: Vec::new(),
            free_slots: Vec::new(),
            awaited: 0,
            live: 0,
            waiters: Waiters::new(),
            events: EventQueue::default(),
            calls: Vec::new(),
            free_calls: Vec::new(),
            seq: 0,
            stacks: Stacks::default(),
            newborn: Vec::new(),
            trace_hash: 0,
            handled: 0,
        }
    }

    #[inline]
    pub fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    #[inline]
    pub fn task(&mut self, slot: u32) -> &mut Task {
        &mut self.tasks[slot as usize]
    }

    /// Slot of a task that still lives.
    pub fn slot(&self, id: TaskId) -> Option<u32> {
        let t = self.tasks.get(id.slot as usize)?;
        (t.generation == id.generation && t.state != TaskState::Free).then_some(id.slot)
    }

    /// The task in a slot.
    pub fn id(&self, slot: u32) -> Option<TaskId> {
        let t = self.tasks.get(slot as usize)?;
        Some(TaskId {
            slot,
            generation: t.generation,
        })
    }

    /// Enters a new task and makes it ready.
    pub fn enter(&mut self, spec: Spec) -> TaskId {
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.tasks.push(Task::vacant());
            self.tasks.len() as u32 - 1
        });
        let bound = spec.cpu.map(|c| {
            let n = self.cpus.len();
            assert!(c < n, "task {} is bound to CPU {c} of {n}", spec.name);
            c as u16
        });
        // A child starts on its parent's CPU, unless it is bound to another.
        let cpu = bound.unwrap_or(self.cpu as u16);
        let nice = spec.nice.unwrap_or(match spec.priority {
            Priority::Kthread => self.kthread_nice,
            _ => 0,
        });
        let t = &mut self.tasks[slot as usize];
        let generation = t.generation;
        *t = Task {
            generation,
            name: spec.name,
            priority: spec.priority,
            nice,
            weight: weight(nice),
            awaited: spec.awaited,
            bound,
            cpu,
            ..Task::vacant()
        };
        self.live += 1;
        self.awaited += usize::from(spec.awaited);
        self.place_new(slot);
        TaskId { slot, generation }
    }

    /// The running task's body has returned.
    pub fn exit(&mut self, slot: u32) {
        let t = self.task(slot);
        let id = TaskId {
            slot,
            generation: t.generation,
        };
        let awaited = t.awaited;
        t.state = TaskState::Free;
        t.generation += 1;
        t.name = std::rc::Rc::from("");
        self.free_slots.push(slot);
        self.live -= 1;
        self.awaited -= usize::from(awaited);
        self.leave_cpu(slot);
        self.wake(Channel::new(Channel::EXIT, id.number()));
    }

    /// Deadline of a timeout that begins now. It is counted in ticks, rounded up, from the start of the
    /// present tick, as the kernel's timers are.
    pub fn tick_deadline(&self, timeout: Nanos) -> Nanos {
        (self.now / self.tick)
            .saturating_add(timeout.div_ceil(self.tick))
            .saturating_mul(self.tick)
    }

    /// The running task leaves its CPU and waits. The outcome is in the task when it runs again.
    pub fn begin_wait(&mut self, slot: u32, wait: Wait) {
        let seq = self.next_seq();
        let now = self.now;
        let t = self.task(slot);
        t.wait = wait;
        t.wait_seq = seq;
        t.wait_from = now;
        t.outcome = Waited::TimedOut;
        self.leave_cpu(slot);
        let t = &mut self.tasks[slot as usize];
        t.state = TaskState::Waiting;
        if wait.io {
            let cpu = &mut self.cpus[usize::from(t.cpu)];
            cpu.charge_idle(now);
            cpu.io_waiters += 1;
        }
        if let Some(c) = wait.channel {
            self.waiters.add(&mut self.tasks, c, slot);
        }
        if let Some(at) = wait.deadline {
            self.push_event(at.max(now), seq, EventKind::Timer(slot));
        }
    }

    /// Ends a task's wait and makes it ready.
    pub fn end_wait(&mut self, slot: u32, timed_out: bool) {
        let (now, tick) = (self.now, self.tick);
        let t = &mut self.tasks[slot as usize];
        let wait = t.wait;
        t.outcome = match wait.deadline {
            _ if timed_out => Waited::TimedOut,
            None => Waited::Woken { left: 0 },
            Some(at) => {
                let from = if wait.ticks { now / tick * tick } else { now };
                Waited::Woken {
                    left: at.saturating_sub(from),
                }
            }
        };
        if wait.io {
            t.times.iowait += now - t.wait_from;
            let cpu = &mut self.cpus[usize::from(t.cpu)];
            cpu.charge_idle(now);
            cpu.io_waiters -= 1;
        }
        t.wait = Wait::NONE;
        t.wait_seq = 0;
        if let Some(c) = wait.channel {
            self.waiters.remove(&mut self.tasks, c, slot);
        }
        self.place_woken(slot, wait);
    }

    pub fn wake(&mut self, channel: Channel) -> usize {
        let mut n = 0;
        while self.wake_one(channel) {
            n += 1;
        }
        n
    }

    #[inline]
    pub fn wake_one(&mut self, channel: Channel) -> bool {
        match self.waiters.first(&self.tasks, channel) {
            Some(slot) => {
                self.end_wait(slot, false);
                true
            }
            None => false,
        }
    }

    pub fn kill(&mut self, id: TaskId) {
        let Some(slot) = self.slot(id) else { return };
        let t = self.task(slot);
        t.killed = true;
        if t.state == TaskState::Waiting && t.wait.killable {
            self.end_wait(slot, false);
        }
    }

    /// One more bio of a task waits for a request.
    pub fn add_unsettled(&mut self, id: TaskId) {
        if let Some(slot) = self.slot(id) {
            self.task(slot).unsettled += 1;
        }
    }

    /// A bio of a task has its request; true if it was the last.
    pub fn settle_one(&mut self, id: TaskId) -> bool {
        let Some(slot) = self.slot(id) else {
            return false;
        };
        let t = self.task(slot);
        t.unsettled -= 1;
        t.unsettled == 0
    }

    /// Whether bios of a task wait for a request.
    pub fn has_unsettled(&self, id: TaskId) -> bool {
        let slot = self.slot(id);
        slot.is_some_and(|s| self.tasks[s as usize].unsettled > 0)
    }

    #[inline]
    pub fn push_event(&mut self, at: Nanos, seq: u64, kind: EventKind) {
        self.horizon = self.horizon.min(at);
        self.events.push(Event { at, seq, kind });
    }

    /// Posts an event for a time, after those already posted for that time.
    #[inline]
    pub fn post(&mut self, at: Nanos, kind: EventKind) {
        let seq = self.next_seq();
        self.push_event(at, seq, kind);
    }

    /// Posts a deferred call.
    pub fn push_call(&mut self, at: Nanos, call: Call<S>) {
        let ix = self.free_calls.pop().unwrap_or_else(|| {
            self.calls.push(None);
            self.calls.len() as u32 - 1
        });
        self.calls[ix as usize] = Some(call);
        self.post(at.max(self.now), EventKind::Call(ix));
    }

    /// Time of a CPU by what it was spent on, up to now.
    pub fn cpu_times(&self, cpu: usize) -> CpuTimes {
        let c = &self.cpus[cpu];
        let mut times = c.times;
        if c.running == NIL {
            let d = self.now.saturating_sub(c.idle_from);
            match c.io_waiters {
                0 => times.idle += d,
                _ => times.iowait += d,
            }
        } else {
            let d = self.now.saturating_sub(c.run_from);
            times.add(self.tasks[c.running as usize].left.first(d));
        }
        times
    }

    /// Time of a live task by what it was spent on, up to now.
    pub fn task_times(&self, slot: u32) -> TaskTimes {
        let t = &self.tasks[slot as usize];
        let c = &self.cpus[usize::from(t.cpu)];
        let mut times = t.times;
        if c.running == slot {
            times.add(t.left.first(self.now.saturating_sub(c.run_from)));
        }
        if t.state == TaskState::Waiting && t.wait.io {
            times.iowait += self.now - t.wait_from;
        }
        times
    }
}
