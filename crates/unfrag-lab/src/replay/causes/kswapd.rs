//! When kswapd ran: rule 5. Each node has its own.

use super::operations::{Action, Op};
use super::walk::{Kswapd, Walk};
use crate::error::Result;
use unfrag_eras::NodeId;

/// From the last page event of a run to kswapd's sleep: a short sleep of a tenth of a second, and what it
/// takes to get there.
const SHORT_SLEEP: u64 = 102_000_000;

impl Walk {
    /// The node that an event names, or whose kswapd is at work.
    fn kswapd_node(&self, nid: Option<u64>) -> NodeId {
        let named = nid.map(|nid| NodeId(nid.min(255) as u8));
        let own = || self.kswapd_of.get(self.task as usize).copied().flatten();
        named.or_else(own).unwrap_or_default()
    }

    pub(super) fn kswapd_wakes(&mut self, nid: Option<u64>) -> Result<()> {
        let node = self.kswapd_node(nid);
        // A run that never said that it slept ended with its last page event.
        self.end_kswapd_run(node, SHORT_SLEEP)?;
        self.push(Action::KswapdBegins { node });
        self.kswapd.insert(
            node,
            Kswapd {
                runs: true,
                ..Kswapd::default()
            },
        );
        Ok(())
    }

    pub(super) fn kswapd_sleeps(&mut self, nid: Option<u64>) -> Result<()> {
        self.end_kswapd_run(self.kswapd_node(nid), SHORT_SLEEP)
    }

    pub(super) fn kswapd_is_asked(&mut self, nid: Option<u64>) {
        let node = nid.map(|nid| NodeId(nid.min(255) as u8));
        for (id, k) in &mut self.kswapd {
            if node.is_none_or(|node| node == *id) {
                k.wakeup_between = k.runs;
            }
        }
    }

    pub(super) fn kswapd_frees(&mut self) {
        let node = self.kswapd_node(None);
        self.kswapd.entry(node).or_default().last = Some((self.out.ops.len() + 1, self.time));
    }

    pub(super) fn all_kswapd_end(&mut self) -> Result<()> {
        let nodes: Vec<NodeId> = self.kswapd.keys().copied().collect();
        nodes
            .into_iter()
            .try_for_each(|node| self.end_kswapd_run(node, 0))
    }

    /// The end of a run has no event: it is the later of kswapd's last page event and the next wake
    /// or sleep less 102 ms; with a `wakeup_kswapd` in between, the last page event.
    /// `spec: 10`
    fn end_kswapd_run(&mut self, node: NodeId, back: u64) -> Result<()> {
        let k = self.kswapd.entry(node).or_default();
        if !std::mem::take(&mut k.runs) {
            return Ok(());
        }
        let by_clock = self.time.saturating_sub(back);
        let clock = self.out.ops.at(by_clock)?;
        let (i, t) = match k.last {
            Some((i, t)) if k.wakeup_between || t >= by_clock => (i, t),
            _ => (clock, by_clock),
        };
        let end = Op {
            time: t,
            task: 0,
            cpu: 0,
            action: Action::KswapdEnds { node },
        };
        self.inserts.push((i.min(self.out.ops.len()), end));
        Ok(())
    }
}
