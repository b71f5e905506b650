//! The kcompactd of a node, which works between the operations of a recording in the time of the trace.

use super::pages::Pages;
use super::request_world::wait;
use crate::replay::model::ReplayHost;
use unfrag::compact::Kcompactd;
use unfrag::drive::Operation;
use unfrag::reclaim::{Answer, Need};
use unfrag::{CpuId, Manager, NodeId};

/// Nanoseconds for a frame that a scanner looks at: assumed.
const NS_PER_SCANNED: u64 = 20;
/// Nanoseconds for a page that is moved, where the recorded kernel's daemon moved none: assumed.
const NS_PER_MOVED: u64 = 2_000;

/// What a recording tells of its kernel's daemon.
#[derive(Clone, Debug, Default)]
pub struct RecordedDaemon {
    /// When compaction ahead of demand begins, in nanoseconds of the trace clock.
    pub proactive_from: Option<u64>,
    /// From each time on, the CPU that the daemon was on.
    pub cpus: Vec<(u64, u16)>,
    /// Nanoseconds for a page that it moved.
    pub ns_per_moved: Option<u64>,
}

impl RecordedDaemon {
    fn cpu(&self, at: u64) -> Option<CpuId> {
        let i = self.cpus.partition_point(|c| c.0 <= at);
        let of = self.cpus.get(i.saturating_sub(1))?;
        Some(CpuId(of.1.into()))
    }
}

/// The kcompactd of a node, the answer to what it needs, and when it goes on.
#[derive(Debug)]
pub(super) struct ReplayKcompactd {
    kcompactd: Kcompactd,
    /// When it goes on; `None` while it waits to be woken.
    next: Option<u64>,
    answer: Answer,
    is_asleep: bool,
    recorded: RecordedDaemon,
}

impl ReplayKcompactd {
    /// A kcompactd that sleeps until compaction ahead of demand begins, and then looks at the node's score.
    pub fn new(
        node: NodeId,
        m: &mut Manager<'_, ReplayHost>,
        recorded: RecordedDaemon,
    ) -> ReplayKcompactd {
        let mut kcompactd = Kcompactd::new(node);
        kcompactd.run(m, CpuId(0), Answer::Go);
        ReplayKcompactd {
            kcompactd,
            next: recorded.proactive_from,
            answer: Answer::Left(0),
            is_asleep: true,
            recorded,
        }
    }

    /// Its node.
    pub fn node(&self) -> NodeId {
        self.kcompactd.node()
    }

    /// It has work.
    pub fn wake(&mut self, now: u64) {
        if self.is_asleep {
            self.answer = Answer::Left(1);
            self.next = Some(now);
        }
    }

    /// Works on a CPU up to a time.
    pub fn run(
        &mut self,
        m: &mut Manager<'_, ReplayHost>,
        pages: &mut Pages,
        cpu: CpuId,
        time: u64,
    ) {
        while let Some(at) = self.next.filter(|&t| t <= time) {
            let answer = std::mem::replace(&mut self.answer, Answer::Go);
            let cpu = self.recorded.cpu(at).unwrap_or(cpu);
            let need = self.kcompactd.run(m, cpu, answer);
            self.is_asleep = false;
            self.next = match need {
                Need::Migrate => {
                    let migration = self.kcompactd.migration();
                    let moves = migration.asks().len() as u64;
                    self.answer = Answer::Migrated(pages.migrate(migration));
                    let ns = self.recorded.ns_per_moved.unwrap_or(NS_PER_MOVED);
                    Some(at + moves * ns)
                }
                Need::Turn { scanned, .. } => {
                    Some(at + (u64::from(scanned) * NS_PER_SCANNED).max(1))
                }
                Need::Sleep(ms) => {
                    self.is_asleep = true;
                    self.answer = Answer::Left(0);
                    ms.map(|ms| at + wait(ms))
                }
                _ => Some(at + 1),
            };
        }
    }
}
