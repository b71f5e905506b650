//! Reclaim: wake-ups of kswapd, and processes that had to reclaim themselves. `spec: 7.6`
//!
//! Invariant: what begins ends with the next end of the same task. What has no end, or no beginning, in the trace is
//! counted, and not timed.

use super::people::{People, WhoId};
use super::report::{DirectReclaim, Kswapd, Stall, Times, Wake};
use super::table::{Event, Kind, Table};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Reclaim so far.
#[derive(Default)]
pub(super) struct Tally {
    asked: HashMap<(WhoId, Option<u64>), u64>,
    wakes: BTreeMap<(Option<i64>, Option<i64>), u64>,
    sleeps: u64,
    /// Since when each daemon has been awake.
    awake: HashMap<u32, u64>,
    awake_times: Times,
    stalls: BTreeMap<(WhoId, Option<u64>), Stalled>,
    /// Who reclaims, for which order, and since when, by task.
    open: HashMap<u32, (WhoId, Option<u64>, u64)>,
    /// Ends without a beginning.
    begun_before: u64,
    reclaimed: Option<u64>,
}

#[derive(Default)]
struct Stalled {
    count: u64,
    time: Times,
    reclaimed: Option<u64>,
}

impl Tally {
    /// Counts an event, if it is one of reclaim.
    pub fn add(&mut self, table: &Table<'_>, event: &Event) {
        let Event {
            time, task, who, ..
        } = *event;
        let number = |field| table.number(field, event.row);
        match table.kind {
            Kind::WakeupKswapd => *self.asked.entry((who, number(0))).or_default() += 1,
            Kind::KswapdWake => {
                let signed = |n: Option<u64>| n.map(|n| n as i64);
                let key = (signed(number(1)), signed(number(0)));
                *self.wakes.entry(key).or_default() += 1;
                self.awake.entry(task).or_insert(time);
            }
            Kind::KswapdSleep => {
                self.sleeps += 1;
                if let Some(since) = self.awake.remove(&task) {
                    self.awake_times.add(time.saturating_sub(since));
                }
            }
            Kind::ReclaimBegin => {
                let order = number(0);
                self.stalls.entry((who, order)).or_default().count += 1;
                self.open.insert(task, (who, order, time));
            }
            Kind::ReclaimEnd => {
                let pages = number(0);
                let add = |sum: &mut Option<u64>| {
                    if let Some(pages) = pages {
                        *sum = Some(sum.unwrap_or(0).saturating_add(pages));
                    }
                };
                add(&mut self.reclaimed);
                let Some((who, order, since)) = self.open.remove(&task) else {
                    self.begun_before += 1;
                    return;
                };
                let stalled = self.stalls.entry((who, order)).or_default();
                stalled.time.add(time.saturating_sub(since));
                add(&mut stalled.reclaimed);
            }
            _ => {}
        }
    }

    /// What it amounts to, each part `None` if it has no events.
    pub fn report(self, people: &People<'_>) -> (Option<Kswapd>, Option<DirectReclaim>) {
        let mut wakes: Vec<Wake> = self
            .wakes
            .into_iter()
            .map(|((node, order), count)| Wake { node, order, count })
            .collect();
        wakes.sort_by_key(|w| Reverse(w.count));
        let kswapd = Kswapd {
            asked: people.asked(self.asked),
            wakes: (!wakes.is_empty()).then_some(wakes),
            sleeps: (self.sleeps > 0).then_some(self.sleeps),
            awake: self.awake_times,
        };
        let mut kinds: Vec<Stall> = self
            .stalls
            .into_iter()
            .map(|((who, order), s)| Stall {
                who: people.name(who),
                order: order.map(|o| o as i64),
                count: s.count,
                time: s.time,
                reclaimed: s.reclaimed,
            })
            .collect();
        kinds.sort_by(|a, b| {
            let longer = b.time.seconds.total_cmp(&a.time.seconds);
            longer.then_with(|| b.count.cmp(&a.count))
        });
        let direct = DirectReclaim {
            stalls: kinds.iter().map(|k| k.count).sum(),
            open: self.open.len() as u64,
            begun_before: self.begun_before,
            reclaimed: self.reclaimed,
            kinds,
        };
        (
            (kswapd != Kswapd::default()).then_some(kswapd),
            (direct != DirectReclaim::default()).then_some(direct),
        )
    }
}
