//! Waiting for congestion to end.
//!
//! Two lists for the whole machine, sync and async, not one for each device: any device that leaves
//! congestion in a class, or is not congested in it while a request completes, wakes all of it.
//! `spec: linux-mm 4.4`

use super::Block;
use super::queue::{ASYNC, SYNC};
use crate::engine::{Channel, Cx, Nanos, Waited};

/// What waits for congestion took, by class (0 async, 1 sync).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongestionStats {
    /// Waits.
    pub waits: [u64; 2],
    /// Waits that nothing ended before their time.
    pub timeouts: [u64; 2],
    /// Time in them, over all tasks.
    pub waited: [Nanos; 2],
}

/// What the waiters of a class wait for.
pub const fn channel(sync: bool) -> Channel {
    Channel::new(Channel::CONGESTION, sync as u64)
}

impl Block {
    /// What waits for congestion took so far.
    pub fn congestion(&self) -> &CongestionStats {
        &self.congestion
    }
}

impl Cx<'_> {
    /// Waits for a device to leave congestion in a class, at most `timeout`; returns what was left.
    /// It waits even if no device is congested. `spec: linux-mm 4.4`
    pub fn congestion_wait(&mut self, sync: bool, timeout: Nanos) -> Nanos {
        let from = self.now();
        let waited = self.wait_io(channel(sync), Some(timeout));
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
