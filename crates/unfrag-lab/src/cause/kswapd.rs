//! When kswapd ran: rule 5.

use super::walk::Walk;
use super::{Do, NONE, Op};

impl Walk {
    pub(super) fn kswapd_wakes(&mut self) {
        // A run that never said that it slept ended with its last page event.
        self.kswapd_mark(102_000_000);
        self.push(Do::ReclaimBegins, 0, NONE, 0);
        self.reclaiming = true;
        self.wakeup_between = false;
        self.kswapd_last = None;
    }

    /// The end of a run has no event: it is the later of kswapd's last page event and the next wake
    /// or sleep less 102 ms; with a `wakeup_kswapd` in between, the last page event.
    /// `spec: linux-6.1 10`
    pub(super) fn kswapd_mark(&mut self, back: u64) {
        if !std::mem::take(&mut self.reclaiming) {
            return;
        }
        let by_clock = self.time.saturating_sub(back);
        let clock = self.out.ops.partition_point(|o| o.time < by_clock);
        let (i, t) = match self.kswapd_last {
            Some((i, t)) if self.wakeup_between || t >= by_clock => (i, t),
            _ => (clock, by_clock),
        };
        let end = Op {
            time: t,
            act: Do::ReclaimEnds,
            order: 0,
            cpu: 0,
            pfn: NONE,
            other: 0,
            task: 0,
        };
        self.inserts.push((i.min(self.out.ops.len()), end));
    }
}
