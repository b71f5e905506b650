//! Requests for pages, from `mm_page_alloc`. `spec: 7.6`
//!
//! Invariant: an event without an order or a frame is counted apart.

use super::kernel::Kernel;
use super::people::{People, WhoId};
use super::report::{Failure, ProcessRequests, RequestKind, Requests};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use unfrag_linux::event::page::Alloc;

/// Requests of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    who: WhoId,
    order: u64,
    flags: Option<u64>,
    migratetype: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    all: u64,
    failed: u64,
}

/// Requests so far.
#[derive(Default)]
pub(super) struct Tally {
    kinds: HashMap<Key, Count>,
    /// Events without an order or a frame.
    pub incomplete: u64,
}

impl Tally {
    /// Counts a request.
    pub fn add(&mut self, who: WhoId, request: &Alloc) {
        let key = Key {
            who,
            order: request.order.into(),
            flags: request.gfp.map(|f| f.0),
            migratetype: request.migratetype,
        };
        let count = self.kinds.entry(key).or_default();
        count.all += 1;
        count.failed += u64::from(request.pfn.is_none());
    }

    /// What they amount to; `None` if there were none.
    pub fn report(self, people: &People<'_>, kernel: &Kernel) -> Option<Requests> {
        if self.kinds.is_empty() {
            return None;
        }
        let mut out = Requests::default();
        let mut processes: BTreeMap<WhoId, ProcessRequests> = BTreeMap::new();
        let mut kinds: BTreeMap<(u64, Option<u64>, Option<u64>), Count> = BTreeMap::new();
        for (key, n) in &self.kinds {
            out.count += n.all;
            out.failed += n.failed;
            *out.orders.entry(key.order).or_default() += n.all;
            let process = processes.entry(key.who).or_default();
            process.count += n.all;
            process.failed += n.failed;
            process.pages = process.pages.saturating_add(pages(key.order, n.all));
            *process.orders.entry(key.order).or_default() += n.all;
            let kind = (key.order, key.flags, key.migratetype);
            let kind = kinds.entry(kind).or_default();
            kind.all += n.all;
            kind.failed += n.failed;
            if n.failed > 0 {
                out.failures.push(Failure {
                    who: people.name(key.who),
                    order: key.order,
                    flags: key.flags.map(|f| kernel.flags(f)),
                    migratetype: key.migratetype.map(|t| kernel.migratetype(t)),
                    count: n.failed,
                });
            }
        }
        out.processes = processes
            .into_iter()
            .map(|(who, p)| ProcessRequests {
                who: people.name(who),
                ..p
            })
            .collect();
        out.kinds = kinds
            .into_iter()
            .map(|((order, flags, migratetype), n)| RequestKind {
                order,
                flags: flags.map(|f| kernel.flags(f)),
                migratetype: migratetype.map(|t| kernel.migratetype(t)),
                count: n.all,
                failed: n.failed,
                pages: pages(order, n.all),
            })
            .collect();
        out.processes
            .sort_by_key(|p| (p.who.is_unnamed(), Reverse(p.pages), p.who.clone()));
        out.kinds.sort_by_key(|k| Reverse(k.pages));
        out.failures.sort_by(|a, b| {
            let rank = |f: &Failure| (f.who.is_unnamed(), Reverse(f.count), Reverse(f.order));
            let key = |f: &Failure| (rank(f), f.who.clone());
            let more = |f: &Failure| (f.flags.clone(), f.migratetype.clone());
            key(a).cmp(&key(b)).then_with(|| more(a).cmp(&more(b)))
        });
        Some(out)
    }
}

/// Pages of so many blocks of an order.
fn pages(order: u64, blocks: u64) -> u64 {
    blocks.saturating_mul(1 << order)
}
