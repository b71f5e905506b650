//! The task of kswapd. `spec: 4.2`

use crate::engine::Spec;
use crate::kernel::mm::Who;
use crate::kernel::mm::caller::{Caller, Daemon};
use crate::kernel::{Cx, Sim};
use unfrag_eras::reclaim::Kswapd;
use unfrag_eras::{Gfp, NodeId};

impl Sim {
    /// Starts kswapd of each node.
    pub fn start_kswapd(&mut self) {
        let nodes: Vec<_> = self.manager_ref().inspect().nodes().collect();
        for node in nodes {
            let spec = Spec::kthread(format!("kswapd{}", node.0));
            let task = self.spawn(spec, move |cx| kswapd(cx, node));
            self.kernel().kswapd.push(task);
        }
    }
}

fn kswapd(cx: &mut Cx, node: NodeId) {
    let caller = Caller {
        who: Who {
            memalloc: true,
            ..Who::KERNEL
        },
        gfp: Gfp::KERNEL,
        order: 0,
        daemon: Some(Daemon::Kswapd(node)),
    };
    cx.drive(caller, &mut Kswapd::new(node), |_, _| ());
}
