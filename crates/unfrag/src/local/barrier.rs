//! [`Barrier`]: what brings the owner of a `Local` and whoever drains it together.

/// A full memory barrier on all CPUs at once: the price of draining what an idle CPU keeps, paid by whoever drains, so that
/// taking and giving cost no locked instruction.
///
/// On Linux it is `membarrier` with `MEMBARRIER_CMD_PRIVATE_EXPEDITED`, in a kernel an interrupt to each other CPU that waits
/// for all answers, on one CPU a fence.
///
/// ```
/// use std::sync::atomic::{Ordering::SeqCst, fence};
/// use unfrag::{Barrier, MemoryConfig, Pfn};
///
/// fn one_cpu() -> bool {
///     fence(SeqCst);
///     true
/// }
/// // SAFETY: there is one CPU, which has executed a full barrier.
/// let barrier = unsafe { Barrier::new(one_cpu) };
/// let config = MemoryConfig { barrier: Some(barrier), ..MemoryConfig::new(Pfn(0), 1 << 18) };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Barrier(fn() -> bool);

impl Barrier {
    /// Takes a function that returns true once the barrier has been executed everywhere. It may take its time, and must not
    /// use the memory that it is for. False, if it cannot be had now, such as in a kernel with interrupts off: then each CPU
    /// gives back what it keeps at its next free.
    ///
    /// # Safety
    /// Between a call of `everywhere` and its return with true, each CPU or thread that may be in a call of a
    /// [`Local`](crate::Local) has executed a full memory barrier, the calling one too; whoever did not run meanwhile has
    /// executed one since it ran, or will before it does. Else two CPUs may get the same frame.
    #[allow(unsafe_code, reason = "a promise of the caller, and no operation")]
    pub const unsafe fn new(everywhere: fn() -> bool) -> Barrier {
        Barrier(everywhere)
    }

    pub(crate) fn execute(self) -> bool {
        (self.0)()
    }
}
