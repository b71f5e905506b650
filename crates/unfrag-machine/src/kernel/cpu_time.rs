//! CPU time of the kernel's work, charged to the task or interrupt that runs.
//!
//! Kernel code adds its costs to `KernelState::owed`; the task or interrupt that runs spends them.

use crate::engine::Nanos;
use crate::kernel::{Cx, Sim};

/// CPU time after which kernel work and runs of touches pause, so that other tasks see it in pieces of this
/// size. It is far below a tick and a disk access; each piece costs a switch of coroutines.
pub(crate) const BATCH: Nanos = 50_000;

impl Sim {
    /// In an interrupt: spends the CPU time that is owed.
    pub(crate) fn pay_in_interrupt(&mut self) {
        let ns = std::mem::take(&mut self.kernel().owed);
        if ns > 0 {
            self.spend_interrupt(ns);
        }
    }
}

impl Cx<'_> {
    /// Spends the CPU time that is owed for kernel work on behalf of this task.
    #[inline]
    pub(crate) fn pay(&mut self) {
        self.spend_and_pay(0);
    }

    /// Spends CPU time for the program's own work, and what is owed for kernel work, in one piece: no other
    /// task runs in between and pays for this one.
    #[inline]
    pub(crate) fn spend_and_pay(&mut self, user: Nanos) {
        let system = self.with(|sim| std::mem::take(&mut sim.kernel().owed));
        self.spend_both(user, system);
    }

    /// Spends what is owed once it reaches [`BATCH`].
    #[inline]
    pub(crate) fn pay_if_much(&mut self) {
        if self.with(|sim| sim.kernel().owed) >= BATCH {
            self.pay();
        }
    }
}
