//! Requests served from blocks of another type, from `mm_page_alloc_extfrag`. `spec: 7.6`
//!
//! Invariant: whether one fragments is computed from the orders, as some recorders print it wrong.

use super::kernel::Kernel;
use super::people::{People, WhoId};
use super::report::{Fallback, Fallbacks};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use unfrag_linux::event::page;

/// Who, then the fields of the event that are shown.
type Key = (WhoId, [Option<u64>; 5]);

/// Fallbacks so far.
#[derive(Default)]
pub(super) struct Tally {
    kinds: BTreeMap<Key, u64>,
    count: u64,
    fragmenting: u64,
    /// Whether every event had the orders that decide it.
    decided: u64,
}

impl Tally {
    /// Counts one.
    pub fn add(&mut self, who: WhoId, f: &page::Fallback) {
        let key = (
            who,
            [f.order, f.fallback_order, f.wanted, f.from, f.ownership],
        );
        *self.kinds.entry(key).or_default() += 1;
        self.count += 1;
        if let (Some(fallback), Some(pageblock)) = (f.fallback_order, f.pageblock_order) {
            self.decided += 1;
            self.fragmenting += u64::from(fallback < pageblock);
        }
    }

    /// What they amount to; `None` if there were none.
    pub fn report(self, people: &People<'_>, kernel: &Kernel) -> Option<Fallbacks> {
        if self.count == 0 {
            return None;
        }
        let name = |t: Option<u64>| t.map(|t| kernel.migratetype(t));
        let mut kinds: Vec<Fallback> = self
            .kinds
            .into_iter()
            .map(
                |((who, [order, fallback_order, wanted, from, ownership]), count)| Fallback {
                    who: people.name(who),
                    order,
                    fallback_order,
                    wanted: name(wanted),
                    taken_from: name(from),
                    change_ownership: ownership.map(|o| o != 0),
                    count,
                },
            )
            .collect();
        kinds.sort_by_key(|k| (k.who.is_unnamed(), Reverse(k.count)));
        Some(Fallbacks {
            count: self.count,
            fragmenting: (self.decided == self.count).then_some(self.fragmenting),
            kinds,
        })
    }
}
