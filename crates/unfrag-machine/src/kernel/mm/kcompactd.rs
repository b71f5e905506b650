//! The task of kcompactd, and the run that the administrator asks for. `spec: 5.4, 5.5`

use crate::engine::Spec;
use crate::kernel::mm::Who;
use crate::kernel::mm::caller::{Caller, Daemon};
use crate::kernel::{Cx, Sim};
use unfrag_eras::compact::{Compaction, Kcompactd};
use unfrag_eras::{Gfp, NodeId};

impl Sim {
    /// Starts kcompactd of each node, if the kernel has it.
    pub fn start_kcompactd(&mut self) {
        let m = self.manager_ref().inspect();
        if !m.rules().compact.is_some_and(|c| c.kcompactd) {
            return;
        }
        let nodes: Vec<_> = m.nodes().collect();
        for node in nodes {
            let spec = Spec::kthread(format!("kcompactd{}", node.0));
            let task = self.spawn(spec, move |cx| kcompactd(cx, node));
            self.kernel().kcompactd.push(task);
        }
    }
}

fn kcompactd(cx: &mut Cx, node: NodeId) {
    let caller = Caller {
        who: Who::KERNEL,
        gfp: Gfp::KERNEL,
        order: 0,
        daemon: Some(Daemon::Kcompactd(node)),
    };
    cx.drive(caller, &mut Kcompactd::new(node), |_, _| ());
}

impl Cx<'_> {
    /// Compacts all zones, as a write to `vm.compact_memory` does. A kernel without compaction does nothing.
    pub fn compact_memory(&mut self, who: Who) {
        let caller = Caller {
            who,
            gfp: Gfp::KERNEL,
            order: 0,
            daemon: None,
        };
        let zones: Vec<_> = self.with(|sim| sim.manager_ref().inspect().zones().collect());
        for zone in zones {
            self.drive(caller, &mut Compaction::whole_zone(zone), |_, _| ());
            self.pay();
        }
    }
}
