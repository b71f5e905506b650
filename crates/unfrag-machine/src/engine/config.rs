//! Settings of the CPU scheduler.

use super::policy::{Fair, Policy};
use super::time::{MS, Nanos};

/// Rules of the CPU scheduler.
#[derive(Clone, Debug)]
pub struct SchedConfig {
    /// How programs share a CPU.
    pub policy: Policy,
    /// Nice level of the kernel's threads that set none of their own.
    pub kthread_nice: i8,
    /// Least time between two moves of a task to a CPU that has one task less.
    pub balance: Nanos,
    /// CPU that takes device interrupts.
    pub irq_cpu: usize,
}

impl Default for SchedConfig {
    fn default() -> Self {
        SchedConfig {
            policy: Policy::Fair(Fair::rounds(4 * MS)),
            kthread_nice: 0,
            balance: 10 * MS,
            irq_cpu: 0,
        }
    }
}

/// The CPUs of a machine, and the costs of sharing them.
pub(crate) struct CpuConfig<'a> {
    /// Number of CPUs.
    pub cpus: usize,
    /// Timer interrupts a second.
    pub hz: u32,
    /// CPU time of a context switch.
    pub context_switch: Nanos,
    /// CPU time of the entry and exit of an interrupt.
    pub interrupt: Nanos,
    /// Rules of the CPU scheduler.
    pub sched: &'a SchedConfig,
}
