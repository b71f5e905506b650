//! Periodic work of each CPU: objects whose grace period is over are freed, slab caches are reaped and
//! trimmed, the CPU's counters are folded. `spec: 6.1, 6.3`

use crate::engine::{Nanos, SEC, Spec};
use crate::kernel::{Cx, Sim};
use unfrag_eras::CpuId;
use unfrag_slab::Due;

/// Time between two rounds: the interval of the counters' folding.
const ROUND: Nanos = SEC;

impl Sim {
    /// Starts kswapd, kcompactd, the flushers, and a worker on each CPU.
    pub fn start_daemons(&mut self) {
        self.start_kswapd();
        self.start_kcompactd();
        self.start_flushers();
        for cpu in 0..self.cpus() {
            let spec = Spec::kthread(format!("events/{cpu}")).on(cpu);
            self.spawn(spec, move |cx| work(cx, cpu));
        }
    }
}

fn work(cx: &mut Cx, cpu: usize) {
    let mut last = cx.now();
    loop {
        cx.sleep(ROUND);
        let now = cx.now();
        cx.with(|sim| {
            sim.manager().vmstat_update(CpuId(cpu as u32));
            sim.free_due();
            sim.kernel().kmem.reap(cpu, Due::between(last, now));
            sim.free_pending();
        });
        cx.pay();
        last = now;
    }
}
