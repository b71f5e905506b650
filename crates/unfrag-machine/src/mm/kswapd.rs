//! The task of kswapd. `spec: linux-mm 4.2`

use super::alloc::Who;
use super::meet::Asker;
use crate::{Channel, Cx, Sim, Spec};
use unfrag::reclaim::Kswapd;
use unfrag::{Gfp, NodeId};

/// Where kswapd of a node sleeps.
pub(crate) fn kswapd_channel(node: NodeId) -> Channel {
    Channel::new(Channel::KSWAPD, node.0.into())
}

impl Sim {
    /// Starts kswapd of each node.
    pub fn start_kswapd(&mut self) {
        let nodes: Vec<_> = self.manager_ref().inspect().nodes().collect();
        for node in nodes {
            let spec = Spec::kthread(format!("kswapd{}", node.0));
            let task = self.spawn(spec, move |cx| kswapd(cx, node));
            self.mem().kswapd.push(task);
        }
    }
}

fn kswapd(cx: &mut Cx, node: NodeId) {
    let asker = Asker {
        who: Who {
            memalloc: true,
            ..Who::KERNEL
        },
        gfp: Gfp::KERNEL,
        order: 0,
        kswapd: Some(node),
    };
    cx.drive(asker, &mut Kswapd::new(node), |_, _| ());
}
