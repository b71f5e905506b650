//! Waiting for congestion to end.
//!
//! There are two lists for the whole machine, sync and async, not one for each device. Any device that
//! leaves congestion in a class, or is not congested in it while a request completes, wakes the whole
//! list. `spec: 4.4`

use crate::block::bio::{ASYNC, SYNC};
use crate::channels::congestion_channel;
use crate::engine::{Nanos, Waited};
use crate::kernel::Cx;

impl Cx<'_> {
    /// Waits for a device to leave congestion in a class, at most `timeout`; returns what was left.
    /// It waits even if no device is congested. `spec: 4.4`
    pub fn congestion_wait(&mut self, sync: bool, timeout: Nanos) -> Nanos {
        let from = self.now();
        let waited = self.wait_io(congestion_channel(sync), Some(timeout));
        let took = self.now() - from;
        let class = if sync { SYNC } else { ASYNC };
        self.with(|sim| {
            let s = &mut sim.world().block.congestion;
            s.waits[class] += 1;
            s.waited[class] += took;
            s.timeouts[class] += u64::from(waited == Waited::TimedOut);
        });
        waited.left()
    }
}
