//! The loop over events and CPUs, and interrupts.
//!
//! Of what is due at the same time, events come first, in the order of their numbers, then CPUs, in
//! theirs. An interrupt that comes while another runs on its CPU waits for its end.

use super::cpu::NIL;
use super::events::{Event, EventKind};
use super::outcome::{Ended, Next};
use super::sched::{Call, Sched};
use super::shared::Shared;
use super::time::Nanos;

impl<S: 'static> Sched<S> {
    /// The CPU that is due first and when, and when the next one is.
    #[inline]
    fn earliest_cpu(&self) -> (Nanos, usize, Nanos) {
        let (mut first, mut cpu, mut second) = (Nanos::MAX, 0, Nanos::MAX);
        // Without branches: they could not be predicted.
        for (c, &at) in self.next.iter().enumerate() {
            second = second.min(at.max(first));
            cpu = if at < first { c } else { cpu };
            first = first.min(at);
        }
        (first, cpu, second)
    }

    /// Time of the next event; drops timers whose wait has ended.
    #[inline]
    fn next_event(&mut self) -> Nanos {
        while let Some(&Event { at, seq, kind }) = self.events.peek() {
            match kind {
                EventKind::Timer(slot) if self.tasks[slot as usize].wait_seq != seq => {
                    self.events.pop();
                }
                _ => return at,
            }
        }
        Nanos::MAX
    }

    /// A CPU is due: its task's code may go on, or its time slice is over.
    fn cpu_due(&mut self, c: usize) -> Option<u32> {
        self.charge(c);
        let slot = self.cpus[c].running;
        if slot == NIL {
            self.dispatch(c);
            return None;
        }
        let cpu = &self.cpus[c];
        if cpu.slice_end <= self.now && !cpu.queue.is_empty() {
            self.requeue(c);
            self.dispatch(c);
            return None;
        }
        if self.tasks[slot as usize].left.total() == 0 && cpu.run_from <= self.now {
            return Some(slot);
        }
        self.plan(c);
        None
    }

    /// Enters the code of a task.
    #[inline]
    fn enter_code(&mut self, c: usize, slot: u32, others: Nanos) {
        self.cpu = c;
        self.current = slot;
        self.horizon = others.min(self.limit);
        let cpu = &self.cpus[c];
        if !cpu.queue.is_empty() {
            self.horizon = self.horizon.min(cpu.slice_end);
        }
    }
}

/// Handles events and CPUs until a task's code is to run or the run ends.
pub(super) fn step<S: Shared>(shared: &mut S) -> Next {
    loop {
        let s = shared.sched();
        s.current = NIL;
        if s.stop {
            return Next::End(Ended::Stopped);
        }
        if s.until_finished && s.awaited == 0 {
            return Next::End(Ended::Finished);
        }
        let event_at = s.next_event();
        let (cpu_at, c, next_cpu_at) = s.earliest_cpu();
        let at = event_at.min(cpu_at);
        let idles = !s.until_finished && s.limit < Nanos::MAX;
        if at >= s.limit && (at < Nanos::MAX || idles) {
            s.now = s.limit.max(s.now);
            return Next::End(Ended::TimeLimit);
        }
        if at == Nanos::MAX {
            return Next::End(Ended::Stuck);
        }
        s.now = at;
        if event_at <= cpu_at {
            event(shared);
        } else if let Some(slot) = s.cpu_due(c) {
            s.enter_code(c, slot, event_at.min(next_cpu_at));
            return Next::Run(slot);
        }
    }
}

fn event<S: Shared>(shared: &mut S) {
    let s = shared.sched();
    let Some(event) = s.events.pop() else { return };
    s.handled += 1;
    match event.kind {
        EventKind::Timer(slot) => s.end_wait(slot, true),
        EventKind::Interrupt(device) => {
            let cpu = s.irq_cpu;
            if !postponed(shared, cpu, event) {
                on_cpu(shared, cpu, |s| s.device_interrupt(device));
            }
        }
        EventKind::DeviceTimer(timer) => shared.device_timer(timer),
        EventKind::Call(ix) => {
            let cpu = s.calls[ix as usize].as_ref().and_then(|call| call.cpu);
            if cpu.is_some_and(|c| postponed(shared, c, event)) {
                return;
            }
            let s = shared.sched();
            let Some(Call { code, .. }) = s.calls[ix as usize].take() else {
                return;
            };
            s.free_calls.push(ix);
            match cpu {
                Some(c) => on_cpu(shared, c, code),
                None => code(shared),
            }
        }
    }
}

/// Postpones an interrupt while its CPU is in another one.
fn postponed<S: Shared>(shared: &mut S, cpu: usize, event: Event) -> bool {
    let s = shared.sched();
    let until = s.cpus[cpu].irq_until;
    let busy = until > s.now;
    if busy {
        s.push_event(until, event.seq, event.kind);
    }
    busy
}

/// Runs code in an interrupt on a CPU.
fn on_cpu<S: Shared>(shared: &mut S, c: usize, code: impl FnOnce(&mut S)) {
    let s = shared.sched();
    s.charge(c);
    s.cpus[c].charge_idle(s.now);
    s.cpu = c;
    s.current = s.cpus[c].running;
    s.in_interrupt = true;
    s.irq_spent = s.irq_cost;
    code(shared);
    let s = shared.sched();
    s.in_interrupt = false;
    s.current = NIL;
    let (now, spent) = (s.now, s.irq_spent);
    let cpu = &mut s.cpus[c];
    cpu.times.irq += spent;
    cpu.irq_until = now + spent;
    if cpu.running == NIL {
        cpu.idle_from = now + spent;
    } else {
        cpu.run_from = cpu.run_from.max(now) + spent;
        cpu.slice_from += spent;
        cpu.slice_end += spent;
    }
    s.plan(c);
}
