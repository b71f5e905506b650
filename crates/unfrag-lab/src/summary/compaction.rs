//! Compaction: who asked for it, its runs, and what they gained. `spec: 5.3, 7.6`
//!
//! Invariant: a run ends with the next end of the same task; a part without events is `None`.

use super::kernel::Kernel;
use super::people::{People, WhoId};
use super::report::{Answer, Compaction, Moved, RunResult, Runs, Scanner, Times};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use unfrag_linux::event::{At, Named, page};

/// Answers by order and result.
type Answers = HashMap<(Option<u64>, Option<Outcome>), u64>;

/// How something ended; names by their number among those seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Outcome {
    Number(u64),
    Name(usize),
}

/// Compaction so far.
#[derive(Default)]
pub(super) struct Tally {
    direct: HashMap<(WhoId, Option<u64>), u64>,
    begun: u64,
    /// When each task's run began.
    open: HashMap<u32, u64>,
    results: HashMap<Option<Outcome>, (u64, Times)>,
    suitable: Answers,
    finished: Answers,
    migrate: Scanner,
    free: Scanner,
    moved: Moved,
    deferred: BTreeMap<i64, u64>,
    kcompactd: BTreeMap<i64, u64>,
    /// Names of outcomes.
    names: Vec<String>,
}

impl Tally {
    /// Counts an event.
    pub fn add(&mut self, who: WhoId, at: &At, event: &page::Compaction<'_>) {
        use page::Compaction as Event;
        match *event {
            Event::Try { order, .. } => *self.direct.entry((who, order)).or_default() += 1,
            Event::Begin { .. } => {
                self.begun += 1;
                self.open.insert(at.task, at.time);
            }
            Event::End { status, .. } => {
                let outcome = self.outcome(status);
                let (count, times) = self.results.entry(outcome).or_default();
                *count += 1;
                if let Some(begun) = self.open.remove(&at.task) {
                    times.add(at.time.saturating_sub(begun));
                }
            }
            Event::Suitable { order, result } => {
                let key = (order, self.outcome(result));
                *self.suitable.entry(key).or_default() += 1;
            }
            Event::Finished { order, result } => {
                let key = (order, self.outcome(result));
                *self.finished.entry(key).or_default() += 1;
            }
            Event::IsolateMigrate { scanned: n, taken } => scanned(&mut self.migrate, n, taken),
            Event::IsolateFree { scanned: n, taken } => scanned(&mut self.free, n, taken),
            Event::Migrated { moved, failed } => {
                let m = &mut self.moved;
                if let (Some(migrated), Some(failed)) = (moved, failed) {
                    m.batches += 1;
                    m.migrated = m.migrated.saturating_add(migrated);
                    m.failed = m.failed.saturating_add(failed);
                }
            }
            Event::Deferred { order } => count_order(&mut self.deferred, order),
            Event::KcompactdWake { order, .. } => count_order(&mut self.kcompactd, order),
            Event::Asked { .. } | Event::KcompactdSleep { .. } => {}
        }
    }

    fn outcome(&mut self, named: Option<Named<'_>>) -> Option<Outcome> {
        Some(match named? {
            Named::Number(n) => Outcome::Number(n),
            Named::Name(name) => {
                let known = self.names.iter().position(|n| n == name);
                Outcome::Name(known.unwrap_or_else(|| {
                    self.names.push(name.to_owned());
                    self.names.len() - 1
                }))
            }
        })
    }

    /// What it amounts to; `None` if there was none.
    pub fn report(self, people: &People<'_>, kernel: &Kernel) -> Option<Compaction> {
        let names = self.names;
        let name = |r: Option<Outcome>| {
            r.map(|r| match r {
                Outcome::Number(n) => kernel.result(n),
                Outcome::Name(name) => names[name].clone(),
            })
        };
        let mut results: Vec<RunResult> = self
            .results
            .into_iter()
            .map(|(result, (count, time))| RunResult {
                result: name(result),
                count,
                time,
            })
            .collect();
        results.sort_by(|a, b| (Reverse(a.count), &a.result).cmp(&(Reverse(b.count), &b.result)));
        let runs = Runs {
            begun: self.begun,
            open: self.open.len() as u64,
            results,
        };
        let answers = |all: Answers| {
            let list = all.into_iter().map(|((order, result), count)| Answer {
                order: order.map(|o| o as i64),
                result: name(result),
                count,
            });
            let mut list: Vec<Answer> = list.collect();
            list.sort_by(|a, b| {
                (a.order, Reverse(a.count), &a.result).cmp(&(b.order, Reverse(b.count), &b.result))
            });
            (!list.is_empty()).then_some(list)
        };
        let some = |counts: BTreeMap<i64, u64>| (!counts.is_empty()).then_some(counts);
        let found = Compaction {
            direct: people.asked(self.direct),
            runs: (runs != Runs::default()).then_some(runs),
            suitable: answers(self.suitable),
            finished: answers(self.finished),
            migrate_scanner: (self.migrate.ranges > 0).then_some(self.migrate),
            free_scanner: (self.free.ranges > 0).then_some(self.free),
            moved: (self.moved.batches > 0).then_some(self.moved),
            deferred: some(self.deferred),
            kcompactd: some(self.kcompactd),
        };
        (found != Compaction::default()).then_some(found)
    }
}

fn count_order(orders: &mut BTreeMap<i64, u64>, order: Option<u64>) {
    if let Some(order) = order {
        *orders.entry(order as i64).or_default() += 1;
    }
}

fn scanned(scanner: &mut Scanner, pages: Option<u64>, taken: Option<u64>) {
    if let (Some(pages), Some(taken)) = (pages, taken) {
        scanner.ranges += 1;
        scanner.scanned = scanner.scanned.saturating_add(pages);
        scanner.taken = scanner.taken.saturating_add(taken);
    }
}
