//! A memory barrier on all CPUs at once, for who wants what an idle thread keeps.
#![allow(unsafe_code)]

use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::Once;
use unfrag::Barrier;

/// The barrier of this process. The first call tells the system that it will be asked for, which takes the longer, the more
/// threads there are.
pub(crate) fn of_process() -> Barrier {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where there is none, `everywhere` says so.
        let _ = membarrier(MembarrierCommand::RegisterPrivateExpedited);
    });
    // SAFETY: the system has each CPU that runs a thread of this process execute one, and itself executes one whenever it has
    // a CPU go on with another thread.
    unsafe { Barrier::new(everywhere) }
}

/// False, where the system has no such call, or forbids it.
fn everywhere() -> bool {
    membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}
