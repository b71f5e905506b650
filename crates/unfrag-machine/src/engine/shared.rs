//! What the engine needs of the value that all tasks share.

use super::events::DeviceTimer;
use super::sched::Sched;

/// The value that all tasks of a machine share. The engine knows no more of it than this.
pub(crate) trait Shared: Sized + 'static {
    /// The scheduler, which is a part of it.
    fn sched(&mut self) -> &mut Sched<Self>;

    /// Called when a task has finished one access to it ([`Cx::with`](super::Cx::with)), before time
    /// passes.
    fn end_access(&mut self);

    /// A device interrupt, on the CPU that takes them.
    fn device_interrupt(&mut self, device: u8);

    /// A timer of a device has expired. It runs on no CPU's time.
    fn device_timer(&mut self, timer: DeviceTimer);
}
