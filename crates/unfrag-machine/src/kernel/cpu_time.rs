//! CPU time of the kernel's work, charged to whoever runs.
//!
//! Kernel code adds what its work takes to [`KernelState::owed`](KernelState); the task or
//! interrupt that runs spends it.

use crate::engine::Nanos;
use crate::kernel::{Cx, Sim};

/// CPU time from which on work of the kernel and runs of touches pause for others: what others see of
/// a task comes in pieces of this size. Far below a tick and a disk's access; each piece costs a switch
/// of coroutines.
pub(crate) const BATCH: Nanos = 50_000;

impl Sim {
    /// In an interrupt: uses the CPU time that is owed.
    pub(crate) fn pay_in_interrupt(&mut self) {
        let ns = std::mem::take(&mut self.kernel().owed);
        if ns > 0 {
            self.spend_interrupt(ns);
        }
    }
}

impl Cx<'_> {
    /// Uses the CPU time that kernel work on behalf of this task has taken since the last time.
    #[inline]
    pub(crate) fn pay(&mut self) {
        self.spend_and_pay(0);
    }

    /// Uses so much CPU time for the program's own work, and what kernel work for it has taken: in one
    /// piece, so that no other task comes in between and pays for this one.
    #[inline]
    pub(crate) fn spend_and_pay(&mut self, user: Nanos) {
        let system = self.with(|sim| std::mem::take(&mut sim.kernel().owed));
        self.spend_both(user, system);
    }

    /// The same once it is worth a look at the clock: work in short pieces stays one piece.
    #[inline]
    pub(crate) fn pay_if_much(&mut self) {
        if self.with(|sim| sim.kernel().owed) >= BATCH {
            self.pay();
        }
    }
}
