//! The OOM killer: when reclaim has failed, the largest process is killed.

use crate::channels::THROTTLE;
use crate::engine::Channel;
use crate::kernel::mm::caller::Caller;
use crate::kernel::{Cx, Sim};
use crate::mm::process::ProcId;
use unfrag_eras::frame::COSTLY_ORDER;

/// Key of the wait for a process that ends, among those of throttled tasks.
const OOM_WAIT: u64 = 100;

impl Sim {
    /// The process that the OOM killer would choose: the one with most memory, swap and page tables
    /// among those that run and may be killed; of equals, the first.
    pub fn oom_candidate(&self) -> Option<ProcId> {
        let mut best = None;
        for (id, p) in self.kernel_ref().procs.iter() {
            if p.task.is_none() || p.unkillable || p.victim {
                continue;
            }
            if best.is_none_or(|(_, b)| p.badness() > b) {
                best = Some((id, p.badness()));
            }
        }
        best.map(|(id, _)| id)
    }

    /// Kills a process, which may use the reserves from now on.
    pub fn oom_kill(&mut self, proc: ProcId) {
        let kernel = self.kernel();
        let p = kernel.procs.get_mut(proc);
        p.victim = true;
        let task = p.task;
        kernel.dying += 1;
        kernel.counters.oom_victims += 1;
        if let Some(task) = task {
            self.kill(task);
        }
    }
}

impl Cx<'_> {
    /// Kills a process, or waits a tick for one that is ending already. Returns whether memory can be
    /// expected; false to the victim itself, which may use the reserves. Without an OOM killer large
    /// requests fail and others retry.
    pub(crate) fn out_of_memory(&mut self, caller: Caller) -> bool {
        let who = caller.who;
        if self.is_victim(who) {
            return false;
        }
        let (kills, dying, tick) = self.with(|sim| {
            let kernel = sim.kernel_ref();
            (kernel.config.oom_killer, kernel.dying, sim.tick())
        });
        if !kills && (caller.order > COSTLY_ORDER || self.killed()) {
            return false;
        }
        if !kills || dying > 0 {
            // A kill does not end this wait: a killed task waits for memory like others.
            self.wait(Channel::new(THROTTLE, OOM_WAIT), Some(tick));
            return true;
        }
        let chosen = self.with(|sim| {
            let chosen = sim.oom_candidate();
            if let Some(p) = chosen {
                sim.oom_kill(p);
            }
            chosen
        });
        match chosen {
            Some(p) => Some(p) != who.proc,
            None => false,
        }
    }
}
