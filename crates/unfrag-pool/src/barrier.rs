//! A memory barrier on all CPUs at once, for who wants what an idle thread keeps.

use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::Once;

/// Tells the system that this process will ask for barriers. The first time takes the longer, the more threads there are.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where there is none, `everywhere` says so.
        let _ = membarrier(MembarrierCommand::RegisterPrivateExpedited);
    });
}

/// Has each CPU that runs a thread of this process execute a full barrier; the system had the others do so when it switched.
/// False, where the system has no such call, or forbids it.
pub(crate) fn everywhere() -> bool {
    membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}
