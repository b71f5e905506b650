//! kcompactd: the daemon of a node that compacts for requests that do not, and ahead of demand. `spec: 5.4, 5.5`
//!
//! Invariant: it sleeps unless it was asked, or the node's score is above the high mark of its proactiveness; where the
//! host's source chooses, unless fewer huge blocks are free than demand has shown to be wanted.

use super::control::{Control, Goal};
use super::outcome::{Mode, Outcome};
use super::score::ScoreMarks;
use super::zone_run::Compaction;
use crate::drive::Operation;
use crate::evict::Eviction;
use crate::frame::{CpuId, MAX_ZONES, NodeId, Order, ZoneId, ZoneKind};
use crate::host::Host;
use crate::manager::Manager;
use crate::migrate::Migration;
use crate::need::{Answer, Need, Step};
use crate::node::Node;
use crate::zone::MAX_DEFER_SHIFT;
use core::convert::Infallible;

/// Milliseconds between two looks at the score (`HPAGE_FRAG_CHECK_INTERVAL_MSEC`).
pub const CHECK_INTERVAL_MS: u32 = 500;

/// The daemon of one node. It holds pages between two steps: it ends by [`abort`](Kcompactd::abort).
#[derive(Debug)]
// For the twin of a manager, in which it holds the same again.
#[cfg_attr(feature = "lab", derive(Clone))]
#[must_use = "it holds frames until it is aborted"]
pub struct Kcompactd {
    node: NodeId,
    phase: Phase,
    /// Milliseconds until the next look.
    wait: u32,
    /// Passes in a row that gained no huge block: each doubles the time to the next look.
    vain: u8,
    zones: [ZoneId; MAX_ZONES],
    len: usize,
    at: usize,
    /// What the work at hand is for.
    task: Task,
    run: Option<Compaction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Asleep,
    Zones,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// A block of this order, for requests that may use zones up to this one.
    Order(Order, ZoneKind),
    /// A lower score than this one.
    Proactive { score: u64 },
    /// Free huge blocks in the node.
    Ahead { goal: Goal, gained: u32 },
}

impl Kcompactd {
    /// The daemon of `node`, asleep.
    pub fn new(node: NodeId) -> Kcompactd {
        Kcompactd {
            node,
            phase: Phase::Asleep,
            wait: CHECK_INTERVAL_MS,
            vain: 0,
            zones: [ZoneId(0); MAX_ZONES],
            len: 0,
            at: 0,
            task: Task::Proactive { score: 0 },
            run: None,
        }
    }

    /// The node whose daemon it is.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Ends it, as its node goes away; see [`Compaction::abort`].
    pub fn abort<H: Host>(self, m: &mut Manager<'_, H>, cpu: CpuId, answer: Answer) {
        if let Some(run) = self.run {
            run.abort(m, cpu, answer);
        }
    }

    /// Continues on a CPU until something is needed. The first answer is [`Answer::Go`]; after
    /// [`Need::Sleep`] it is [`Answer::Left`], 0 if it was not woken.
    pub fn run<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, answer: Answer) -> Need {
        let mut answer = answer;
        loop {
            match self.phase {
                Phase::Asleep => {
                    let slept = !matches!(answer, Answer::Go);
                    let asked = m.node(self.node).is_some_and(Node::wants_kcompactd);
                    let left = if let Answer::Left(left) = answer {
                        left
                    } else {
                        0
                    };
                    let slept_ms = if slept {
                        self.wait.saturating_sub(left)
                    } else {
                        0
                    };
                    if !((slept || asked) && self.wakes(m, slept_ms)) {
                        return Need::Sleep(self.timeout(m));
                    }
                    answer = Answer::Go;
                }
                Phase::Zones => {
                    let given = core::mem::replace(&mut answer, Answer::Go);
                    if let Some(need) = self.next(m, cpu, given) {
                        return need;
                    }
                }
            }
        }
    }

    fn timeout<H: Host>(&self, m: &Manager<'_, H>) -> Option<u32> {
        let proactive = m.policy.rules.compact.and_then(|r| r.proactive);
        let is_on = proactive.is_some() && m.policy.sysctl.compaction_proactiveness > 0;
        is_on.then_some(self.wait)
    }

    /// Whether there is work after a sleep; then it is begun.
    fn wakes<H: Host>(&mut self, m: &mut Manager<'_, H>, slept_ms: u32) -> bool {
        self.wait = CHECK_INTERVAL_MS << self.vain;
        if let Some(n) = m.node_mut(self.node) {
            n.huge.tick(slept_ms / CHECK_INTERVAL_MS);
        }
        (self.len, self.at, self.run) = (0, 0, None);
        for z in m.node(self.node).into_iter().flat_map(|n| n.zones()) {
            self.zones[self.len] = z;
            self.len += 1;
        }
        let asked = m.node_mut(self.node).and_then(|n| n.take_kcompactd_order());
        let task = match asked {
            Some((order, highest)) => {
                m.compact_counters.compact_daemon_wake += 1;
                Some(Task::Order(order, highest))
            }
            None if m.follows_demand() => {
                self.zones[..self.len].reverse();
                self.ahead_task(m)
            }
            None => self.proactive_task(m),
        };
        if let Some(task) = task {
            (self.task, self.phase) = (task, Phase::Zones);
        }
        task.is_some()
    }

    /// Whether the node should be compacted ahead of demand (`should_proactive_compact_node`).
    fn proactive_task<H: Host>(&self, m: &Manager<'_, H>) -> Option<Task> {
        let rules = m.policy.rules.compact?.proactive?;
        let proactiveness = m.policy.sysctl.compaction_proactiveness;
        if proactiveness == 0 || m.node(self.node)?.kswapd_awake {
            return None;
        }
        let score = m.fragmentation_score(self.node);
        let marks = ScoreMarks::new(proactiveness, &rules);
        (score > marks.high).then_some(Task::Proactive { score })
    }

    /// Whether the node has fewer huge blocks than demand has shown to be wanted.
    fn ahead_task<H: Host>(&mut self, m: &Manager<'_, H>) -> Option<Task> {
        let Some(goal) = m.huge_goal(self.node) else {
            (self.vain, self.wait) = (0, CHECK_INTERVAL_MS);
            return None;
        };
        Some(Task::Ahead { goal, gained: 0 })
    }

    /// Works on the zones in turn.
    fn next<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
    ) -> Option<Need> {
        if let Some(run) = &mut self.run {
            let before = m.compact_counters;
            let step = run.step(m, cpu, answer);
            let counts = match self.task {
                Task::Order(..) => true,
                Task::Proactive { .. } => {
                    let ahead = m.policy.rules.compact.and_then(|r| r.proactive);
                    ahead.is_some_and(|r| r.counts_as_daemon)
                }
                Task::Ahead { .. } => false,
            };
            if counts {
                let c = &mut m.compact_counters;
                c.compact_daemon_migrate_scanned +=
                    c.compact_migrate_scanned - before.compact_migrate_scanned;
                c.compact_daemon_free_scanned +=
                    c.compact_free_scanned - before.compact_free_scanned;
            }
            match step {
                Step::Need(need) => return Some(need),
                Step::Done(outcome) => {
                    if let Task::Ahead { gained, .. } = &mut self.task {
                        *gained += run.gained();
                    }
                    self.after_zone(m, outcome);
                }
            }
            self.run = None;
            self.at += 1;
        }
        while self.at < self.len {
            let zone = self.zones[self.at];
            if let Some(control) = self.control(m, zone) {
                self.run = Some(Compaction::new(control));
                return None;
            }
            self.at += 1;
        }
        self.finish(m);
        None
    }

    /// The run over a zone, if it is worth one.
    fn control<H: Host>(&self, m: &mut Manager<'_, H>, zone: ZoneId) -> Option<Control> {
        let (order, highest) = match self.task {
            Task::Order(order, highest) => (order, highest),
            Task::Proactive { .. } => return Some(Control::of_zone(zone, Mode::SyncLight, true)),
            Task::Ahead { goal, .. } => return m.ahead_control(zone, goal),
        };
        let by_order = m.policy.rules.compact?.order_failed;
        let state = &mut m.zones[zone.index()];
        if state.kind > highest || state.compact.is_deferred(order, by_order) {
            return None;
        }
        let kind = state.kind;
        let control = Control::of_daemon(zone, order, kind, m.policy.sysctl.defrag_mode);
        (m.compaction_suitable(&control) == Outcome::Continue).then_some(control)
    }

    fn after_zone<H: Host>(&self, m: &mut Manager<'_, H>, outcome: Outcome) {
        let Task::Order(order, _) = self.task else {
            return;
        };
        let zone = self.zones[self.at];
        if outcome == Outcome::Success {
            m.zones[zone.index()].compact.succeeded(order, false);
        } else if outcome.is_vain() {
            for cpu in m.cpu_ids() {
                m.drain(cpu, zone);
            }
            m.zones[zone.index()].compact.defer(order);
        }
    }

    fn finish<H: Host>(&mut self, m: &Manager<'_, H>) {
        match self.task {
            Task::Proactive { score } if m.fragmentation_score(self.node) >= score => {
                self.wait = CHECK_INTERVAL_MS << MAX_DEFER_SHIFT;
            }
            Task::Ahead { gained, .. } => {
                self.vain = match gained {
                    0 => (self.vain + 1).min(MAX_DEFER_SHIFT),
                    _ => 0,
                };
                self.wait = CHECK_INTERVAL_MS << self.vain;
            }
            Task::Proactive { .. } | Task::Order(..) => {}
        }
        self.phase = Phase::Asleep;
    }
}

impl Operation for Kcompactd {
    /// It never ends.
    type Output = Infallible;

    fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        answer: Answer,
    ) -> Step<Infallible> {
        Step::Need(self.run(m, cpu, answer))
    }

    fn eviction(&self) -> &Eviction {
        &Eviction::EMPTY
    }

    fn migration(&self) -> &Migration {
        self.run
            .as_ref()
            .map_or(&Migration::EMPTY, Operation::migration)
    }
}

impl<H: Host> Manager<'_, H> {
    /// Asks for kcompactd of a node, for an order and requests up to a zone (`wakeup_kcompactd`).
    pub(crate) fn ask_kcompactd(&mut self, node: NodeId, order: Order, highest: ZoneKind) {
        let has = self.policy.rules.compact.is_some_and(|r| r.kcompactd);
        if order == Order::ZERO || !has {
            return;
        }
        let Some(n) = self.node_mut(node) else { return };
        n.ask_kcompactd(order, highest);
        let zones = n.zones();
        let defrag = self.policy.sysctl.defrag_mode;
        let is_worth = |z: ZoneId| {
            let zone = self.zone(z);
            let control = Control::of_daemon(z, order, highest, defrag);
            zone.kind <= highest && self.compaction_suitable(&control) == Outcome::Continue
        };
        if zones.into_iter().any(is_worth) {
            self.host.wake_kcompactd(node);
        }
    }
}
