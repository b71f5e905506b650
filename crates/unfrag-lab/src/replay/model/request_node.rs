//! Which node a request is made near.
//!
//! A trace says where a page was, not where its task wanted it: a request is made near the node that
//! served it there. What failed, or was taken without an event, names no frame: it is made near the node
//! that served the last request of its CPU.

use super::host::ReplayHost;
use crate::replay::causes::{Action, Causes, Op};
use unfrag_eras::{Manager, NodeId, Pfn};

/// Tells the node near which each operation asks.
#[derive(Clone, Debug)]
pub(super) struct RequestNode {
    /// The first node of the machine.
    first: NodeId,
    /// Whether there are other nodes.
    is_numa: bool,
    /// By CPU: the node that served its last request.
    last: Vec<NodeId>,
}

impl RequestNode {
    pub fn of(m: &Manager<'_, ReplayHost>) -> RequestNode {
        let mut nodes = m.inspect().nodes();
        let first = nodes.next().unwrap_or_default();
        RequestNode {
            first,
            is_numa: nodes.next().is_some(),
            last: vec![first; m.inspect().cpus().len()],
        }
    }

    /// The node near which an operation asks.
    #[inline]
    pub fn node(&mut self, m: &Manager<'_, ReplayHost>, op: &Op, causes: &Causes) -> NodeId {
        if !self.is_numa {
            return self.first;
        }
        let Some(last) = self.last.get_mut(usize::from(op.cpu)) else {
            return self.first;
        };
        let served = match op.action {
            Action::Alloc { pfn, .. } | Action::AllocRaced { pfn, .. } => Some(pfn.get()),
            Action::Stack { index } => Some(causes.stacks[index.get() as usize][0]),
            _ => None,
        };
        if let Some(frame) = served
            && let Some(zone) = m.inspect().zone_of(Pfn(frame.into()))
        {
            *last = m.inspect().zone_config(zone).node;
        }
        *last
    }
}
