//! Reclaim: wake-ups of kswapd, and processes that had to reclaim themselves. `spec: 7.6`
//!
//! Invariant: what begins ends with the next end of the same task. What has no end, or no beginning, in the trace is
//! counted, and not timed.

use super::people::{People, WhoId};
use super::report::{DirectReclaim, Kswapd, Stall, Times, Wake};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use unfrag_linux::event::At;
use unfrag_linux::event::page::Reclaim;

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
    /// Counts an event.
    pub fn add(&mut self, who: WhoId, at: &At, event: &Reclaim) {
        let At { time, task, .. } = *at;
        match *event {
            Reclaim::Asked { order, .. } => *self.asked.entry((who, order)).or_default() += 1,
            Reclaim::Wakes { node, order } => {
                let signed = |n: Option<u64>| n.map(|n| n as i64);
                *self.wakes.entry((signed(node), signed(order))).or_default() += 1;
                self.awake.entry(task).or_insert(time);
            }
            Reclaim::Sleeps { .. } => {
                self.sleeps += 1;
                if let Some(since) = self.awake.remove(&task) {
                    self.awake_times.add(time.saturating_sub(since));
                }
            }
            Reclaim::Begin { order } => {
                self.stalls.entry((who, order)).or_default().count += 1;
                self.open.insert(task, (who, order, time));
            }
            Reclaim::End { reclaimed } => {
                let add = |sum: &mut Option<u64>| {
                    if let Some(pages) = reclaimed {
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
            let unnamed = a.who.is_unnamed().cmp(&b.who.is_unnamed());
            unnamed.then(longer).then_with(|| b.count.cmp(&a.count))
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
