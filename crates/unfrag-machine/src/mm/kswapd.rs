//! The task of kswapd. `spec: linux-mm 4.2`

use super::alloc::Who;
use super::meet::Asker;
use crate::engine::TaskId;
use crate::{Cx, Sim, Spec};
use unfrag::Gfp;
use unfrag::reclaim::{Answer, Kswapd, Need, Throttle};

impl Sim {
    /// Starts kswapd of node 0.
    pub fn start_kswapd(&mut self) -> TaskId {
        let spec = Spec::kthread("kswapd0");
        let task = self.spawn(spec, kswapd);
        self.mem().kswapd.push(Some(task));
        task
    }
}

fn kswapd(cx: &mut Cx) {
    let asker = Asker {
        who: Who {
            memalloc: true,
            ..Who::KERNEL
        },
        gfp: Gfp::KERNEL,
        order: 0,
    };
    let mut daemon = Kswapd::new(0);
    let mut answer = Answer::Go;
    loop {
        let need = cx.with(|sim| {
            let need = daemon.step(sim.manager(), answer);
            sim.free_pending();
            if matches!(need, Need::Turn { freed: 1.., .. } | Need::Sleep(_)) {
                sim.end_throttle(Throttle::Reserves);
            }
            need
        });
        // Nothing may pass between the decision to sleep and the sleep, or a wake-up would be lost.
        if !matches!(need, Need::Sleep(_)) {
            cx.settle();
        }
        answer = cx.meet(asker, need);
    }
}
