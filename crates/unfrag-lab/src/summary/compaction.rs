//! Compaction: who asked for it, its runs, and what they gained. `spec: 5.3, 7.6`
//!
//! Invariant: a run ends with the next end of the same task; a part without events is `None`.

use super::kernel::Kernel;
use super::people::{People, WhoId};
use super::report::{Answer, Compaction, Moved, RunResult, Runs, Scanner, Times};
use super::table::{Event, Kind, Named, Table};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Answers by order and result.
type Answers<'a> = HashMap<(Option<u64>, Option<Named<'a>>), u64>;

/// Compaction so far.
#[derive(Default)]
pub(super) struct Tally<'a> {
    direct: HashMap<(WhoId, Option<u64>), u64>,
    begun: u64,
    /// When each task's run began.
    open: HashMap<u32, u64>,
    results: HashMap<Option<Named<'a>>, (u64, Times)>,
    suitable: Answers<'a>,
    finished: Answers<'a>,
    migrate: Scanner,
    free: Scanner,
    moved: Moved,
    deferred: BTreeMap<i64, u64>,
    kcompactd: BTreeMap<i64, u64>,
}

impl<'a> Tally<'a> {
    /// Counts an event, if it is one of compaction.
    pub fn add(&mut self, table: &Table<'a>, event: &Event) {
        let row = event.row;
        let number = |field| table.number(field, row);
        match table.kind {
            Kind::CompactTry => *self.direct.entry((event.who, number(0))).or_default() += 1,
            Kind::CompactBegin => {
                self.begun += 1;
                self.open.insert(event.task, event.time);
            }
            Kind::CompactEnd => {
                let (count, times) = self.results.entry(table.named(0, row)).or_default();
                *count += 1;
                if let Some(begun) = self.open.remove(&event.task) {
                    times.add(event.time.saturating_sub(begun));
                }
            }
            Kind::Suitable => count_answer(&mut self.suitable, table, row),
            Kind::Finished => count_answer(&mut self.finished, table, row),
            Kind::IsolateMigrate => scanned(&mut self.migrate, number(0), number(1)),
            Kind::IsolateFree => scanned(&mut self.free, number(0), number(1)),
            Kind::Migrated => {
                let m = &mut self.moved;
                if let (Some(migrated), Some(failed)) = (number(0), number(1)) {
                    m.batches += 1;
                    m.migrated = m.migrated.saturating_add(migrated);
                    m.failed = m.failed.saturating_add(failed);
                }
            }
            Kind::Deferred => count_order(&mut self.deferred, number(0)),
            Kind::KcompactdWake => count_order(&mut self.kcompactd, number(0)),
            _ => {}
        }
    }

    /// What it amounts to; `None` if there was none.
    pub fn report(self, people: &People<'_>, kernel: &Kernel) -> Option<Compaction> {
        let name = |r: Option<Named<'_>>| r.map(|r| kernel.result(r));
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
        let answers = |all: Answers<'_>| {
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

fn count_answer<'a>(answers: &mut Answers<'a>, table: &Table<'a>, row: usize) {
    let key = (table.number(0, row), table.named(1, row));
    *answers.entry(key).or_default() += 1;
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
