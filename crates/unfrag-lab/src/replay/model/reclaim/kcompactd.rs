//! The kcompactd of a node, which works between the operations of a recording in the time of the trace.

use super::pages::Pages;
use crate::replay::causes::DaemonRun;
use crate::replay::model::ReplayHost;
use crate::replay::model::pause::LONGEST_PAUSE_NS;
use unfrag_eras::compact::Kcompactd;
use unfrag_eras::drive::Operation;
use unfrag_eras::reclaim::{Answer, Need};
use unfrag_eras::{CpuId, Manager, NodeId};

/// Nanoseconds for a frame that a scanner looks at: assumed.
const NS_PER_SCANNED: u64 = 20;
/// Runs over the zones of a node begin within so many nanoseconds.
const SAME_WAKE_NS: u64 = 10_000_000;
/// Milliseconds of a tick.
const MS_PER_TICK: u64 = 4;
/// Nanoseconds for a page that is moved, where the recorded kernel's daemon moved none: assumed.
const NS_PER_MOVED: u64 = 2_000;

/// What a recording tells of its kernel's daemon.
#[derive(Clone, Debug, Default)]
pub struct RecordedDaemon {
    /// When compaction ahead of demand begins, in nanoseconds of the trace clock.
    pub proactive_from: Option<u64>,
    /// What it did over one zone after another, in the order of time.
    pub runs: Vec<DaemonRun>,
}

impl RecordedDaemon {
    /// The CPU of the run that began nearest to a time, after so many moves of pages.
    fn cpu(&self, woke: u64, moved: u64) -> Option<CpuId> {
        let after = self.runs.partition_point(|r| r.begin <= woke);
        let near = [after.checked_sub(1), Some(after)].into_iter().flatten();
        let near = near.filter_map(|i| self.runs.get(i));
        let begin = near.map(|r| r.begin).min_by_key(|b| b.abs_diff(woke))?;
        let at_once = |r: &&DaemonRun| r.begin.abs_diff(begin) < SAME_WAKE_NS;
        let run = self.runs.iter().filter(at_once).max_by_key(|r| r.moved)?;
        let i = run.cpus.partition_point(|c| c.0 <= moved);
        let of = run.cpus.get(i.saturating_sub(1))?;
        Some(CpuId(of.1.into()))
    }

    /// Nanoseconds for a page that it moves, scans included.
    fn ns_per_moved(&self) -> u64 {
        let moves = |r: &DaemonRun| if r.ns > 0 { r.moved } else { 0 };
        let most = self.runs.iter().max_by_key(|r| moves(r));
        let most = most.filter(|r| moves(r) > 0);
        most.map_or(NS_PER_MOVED, |r| r.ns / r.moved)
    }
}

/// A wait of so many milliseconds, in nanoseconds, as the timer wheel of a Linux of 250 ticks a second makes it: of
/// 64 ticks and more, it lasts a multiple of 8 ticks, and each eight times as long a multiple of eight times as many.
/// So kcompactd looks each 512 ms.
fn timer_wheel_wait(ms: u32) -> u64 {
    let ticks = u64::from(ms).div_ceil(MS_PER_TICK);
    let mut granule = 1;
    while ticks >= 64 * granule {
        granule *= 8;
    }
    ticks.next_multiple_of(granule).max(1) * MS_PER_TICK * 1_000_000
}

/// The kcompactd of a node, the answer to what it needs, and when it goes on.
#[derive(Clone, Debug)]
pub(super) struct ReplayKcompactd {
    kcompactd: Kcompactd,
    /// When it goes on; `None` while it waits to be woken.
    next: Option<u64>,
    answer: Answer,
    is_asleep: bool,
    /// When it woke last.
    woke: u64,
    /// Pages that it moved since.
    moved: u64,
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
            woke: 0,
            moved: 0,
            recorded,
        }
    }

    /// When it goes on; `None` while it waits to be woken.
    pub fn next(&self) -> Option<u64> {
        self.next
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

    /// It looks at the node's score at a time, if it is asleep.
    pub fn look_ahead(&mut self, time: u64) {
        if self.is_asleep {
            self.answer = Answer::Left(0);
            self.next = Some(time);
        }
    }

    /// Works on a CPU up to a time; of a pause that is longer than [`LONGEST_PAUSE_NS`], in its beginning alone.
    pub fn run(
        &mut self,
        m: &mut Manager<'_, ReplayHost>,
        pages: &mut Pages,
        cpu: CpuId,
        time: u64,
    ) {
        let last = self.next.map_or(0, |t| t.saturating_add(LONGEST_PAUSE_NS));
        while let Some(at) = self.next.filter(|&t| t <= time) {
            if at > last || at == u64::MAX {
                self.next = time.checked_add(1);
                break;
            }
            let answer = std::mem::replace(&mut self.answer, Answer::Go);
            if self.is_asleep {
                (self.woke, self.moved) = (at, 0);
            }
            let cpu = self.recorded.cpu(self.woke, self.moved).unwrap_or(cpu);
            let need = self.kcompactd.run(m, cpu, answer);
            self.is_asleep = false;
            self.next = match need {
                Need::Migrate => {
                    let migration = self.kcompactd.migration();
                    let moves = migration.asks().len() as u64;
                    self.answer = Answer::Migrated(pages.migrate(migration));
                    self.moved += moves;
                    Some(at.saturating_add(moves.saturating_mul(self.recorded.ns_per_moved())))
                }
                Need::Turn { scanned, .. } => {
                    Some(at.saturating_add((u64::from(scanned) * NS_PER_SCANNED).max(1)))
                }
                Need::Sleep(ms) => {
                    self.is_asleep = true;
                    self.answer = Answer::Left(0);
                    ms.map(|ms| at.saturating_add(timer_wheel_wait(ms)))
                }
                _ => at.checked_add(1),
            };
        }
    }
}
