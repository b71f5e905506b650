//! Whether all needs can be had together, after each means.
//!
//! They are taken from the zones one after the other, the largest first, and no page twice. Where one for any node is taken
//! the kernel decides: what is certain, each node that others name may be the first; at most, these are the last.
//!
//! Invariant: *yes* only where what is certain is enough, *no* only where what there is at most is not; all else is *not known*.

use super::answer::{Asked, Kind, Needs, Room};
use super::means::{After, Means};
use super::need::Need;
use super::outlook::{Known, Outlook, outlooks};
use super::said;
use super::supply::{Asker, ORDERS, Supply};
use crate::doctor::evidence::Evidence;
use crate::doctor::examination;
use crate::doctor::examined::Examined;
use crate::era::Era;
use crate::error::{Error, Result};
use crate::host::amounts::{Late, late};
use std::sync::Arc;
use unfrag_eras::kernel::MarkCheck;
use unfrag_eras::{Rules, preset};

/// Judges needs against an examined host.
///
/// # Errors
/// If a need is of a size or a node that the host does not have.
pub fn judge(e: &Evidence, x: &Examined, needs: &[Need], after: After) -> Result<Needs> {
    let asked = asked(e, needs)?;
    let d = &x.diagnosis;
    let given = e.host.release.as_deref().filter(|r| !r.is_empty());
    let era = given.map(Era::of).transpose()?.unwrap_or_else(Era::newest);
    let Some(rules) = preset(era.preset()).map(|p| &p.rules) else {
        return Err(Error::lacking(format!("no rules of {}", era.preset())));
    };
    let check = rules.marks.check;
    let known = Known {
        kernel: examination::kernel(e, era),
        checks: match d.kernel_rules_assumed {
            true => vec![MarkCheck::BlockExists, MarkCheck::PerOrder],
            false => vec![check],
        },
        pinned: e.pinned(),
        pageblock_order: e
            .host
            .types
            .as_ref()
            .and_then(|t| t.told_pageblock_order())
            .unwrap_or(9),
        is_modelled: era.is_at_least(3, 15),
        asks_for_runs: asked.iter().any(|a| a.kind == Kind::Runs),
    };
    // Of zones that are missing, or of which no file tells pages, anything may be had.
    let is_whole = d.huge_pages.at_most.is_some() && !d.zones.is_empty();
    let late = late(&e.host).map(|(late, _)| late);
    let of = |(i, zone)| {
        let mut each = outlooks(zone, x.blocks.get(i).map(Arc::as_ref), &known)?;
        if let Some(Late::Free { at, pages }) = late
            && at == i
        {
            let (order, each_has) = (
                e.host.geometry.huge_order,
                e.host.geometry.huge_page_pages(),
            );
            let huge_pages = pages / each_has;
            each.iter_mut().for_each(|o| o.add(huge_pages, order));
        }
        Some(each)
    };
    let zones: Vec<[Outlook; 4]> = e.host.zones.iter().enumerate().filter_map(of).collect();
    let rooms: Vec<Vec<Room>> = (0..Means::ALL.len())
        .map(|means| {
            let all: Vec<&Outlook> = zones.iter().map(|z| &z[means]).collect();
            rooms(&asked, &all, is_whole, rules)
        })
        .collect();
    let each = asked
        .into_iter()
        .enumerate()
        .map(|(i, a)| Asked {
            rooms: std::array::from_fn(|m| rooms[m][i]),
            ..a
        })
        .collect();
    Ok(said::answer(d, each, after))
}

/// How many huge pages there are after each means, in the order of [`Means::ALL`]. `None` where the files tell no such need.
pub fn huge_page_rooms(e: &Evidence, x: &Examined) -> Option<[Room; 4]> {
    let need = Need::new(1, x.diagnosis.huge_page_bytes);
    let judged = judge(e, x, &[need], After::default()).ok()?;
    Some(judged.each.first()?.rooms)
}

/// How many huge pages there are by any means: for certain, and at most. `None` where the files tell no such need.
pub fn room_by_any_means(e: &Evidence, x: &Examined, count: u64) -> Option<Room> {
    let all = After {
        drop: true,
        compact: true,
    };
    let need = Need::new(count, x.diagnosis.huge_page_bytes);
    let judged = judge(e, x, &[need], all).ok()?;
    let rooms = judged.each.first()?.rooms;
    let most: Option<Vec<u64>> = rooms.iter().map(|r| r.at_most).collect();
    Some(Room {
        at_least: rooms.iter().map(|r| r.at_least).max()?,
        expected: rooms.iter().filter_map(|r| r.expected).max(),
        at_most: most.and_then(|m| m.into_iter().max()),
    })
}

/// What is asked for, the largest first.
fn asked(e: &Evidence, needs: &[Need]) -> Result<Vec<Asked>> {
    let g = &e.host.geometry;
    let largest = e.host.zones.iter().filter_map(|z| z.orders()).max();
    let largest = largest.unwrap_or(11).saturating_sub(1);
    let mut all: Vec<Asked> = vec![];
    for need in needs {
        let question = |what: String, help: &str| Error::question(what).help(help.to_owned());
        if need.bytes < g.page_size {
            return Err(question(
                format!("{need}: a page of this host has {} KiB", g.page_size >> 10),
                "ask for that size, or a larger one",
            ));
        }
        if let Some(node) = need.node
            && !e.host.zones.iter().any(|z| z.node == node)
        {
            return Err(question(
                format!("{need}: the files tell no memory of node {node}"),
                "name a node that `unfrag inspect` shows",
            ));
        }
        // Two needs of the same are one.
        let same = |a: &&mut Asked| (a.need.bytes, a.need.node) == (need.bytes, need.node);
        if let Some(one) = all.iter_mut().find(same) {
            one.need.count = one.need.count.saturating_add(need.count);
            one.name = one.need.to_string();
            continue;
        }
        let order = (need.bytes / g.page_size).ilog2();
        let kind = match order as usize {
            o if o == usize::from(g.huge_order) => Kind::HugePages,
            o if o > largest => Kind::Runs,
            _ => Kind::Blocks,
        };
        all.push(Asked {
            need: *need,
            name: need.to_string(),
            order: (order as u8).min(ORDERS as u8 - 1),
            kind,
            rooms: [Room::default(); 4],
        });
    }
    all.sort_by_key(|a| std::cmp::Reverse(a.need.bytes));
    Ok(all)
}

/// How many pieces of each need can be had with those before it, after a means.
fn rooms(asked: &[Asked], all: &[&Outlook], is_whole: bool, rules: &Rules) -> Vec<Room> {
    let supplies = |of: fn(&Outlook) -> &Supply| all.iter().map(|o| of(o).clone()).collect();
    let take = |all: Vec<Supply>, of, order| together(asked, all, of, order, rules);
    let named = asked.iter().filter_map(|a| a.need.node);
    let orders = named.map(Order::First).chain([Order::NamedLast]);
    let sure = orders
        .map(|order| take(supplies(|o| &o.sure), Of::Least, order))
        .reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a.min(b)).collect())
        .unwrap_or_default();
    let most = take(supplies(|o| &o.most), Of::Most, Order::NamedLast);
    let expected: Option<Vec<Supply>> = all.iter().map(|o| o.expected.clone()).collect();
    let expected = expected.map(|all| take(all, Of::Least, Order::NamedLast));
    (0..asked.len())
        .map(|i| Room {
            at_least: sure[i],
            expected: expected.as_ref().map(|e| e[i].max(sure[i])),
            at_most: is_whole.then(|| most[i].max(sure[i])),
        })
        .collect()
}

/// Where what is for any node is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// On this node.
    First(u32),
    /// On nodes that no need names.
    NamedLast,
}

/// Takes all needs from the zones; of each how many there were.
fn together(
    asked: &[Asked],
    mut all: Vec<Supply>,
    of: Of,
    order: Order,
    rules: &Rules,
) -> Vec<u64> {
    let is_later = |node: u32| match order {
        Order::First(first) => node != first,
        Order::NamedLast => asked.iter().any(|a| a.need.node == Some(node)),
    };
    // Of a node the highest zones first, as the kernel does.
    all.sort_by_key(|s| (is_later(s.node), std::cmp::Reverse(s.view.kind as usize)));
    let each = asked.iter().map(|a| {
        let asker = a.asker(of);
        let mut there = 0u64;
        for zone in &mut all {
            if a.need.node.is_some_and(|n| n != zone.node) {
                continue;
            }
            // A range is taken out of the allocator, whatever its watermarks.
            let n = match (a.kind, of) {
                (Kind::Runs, Of::Most) => zone
                    .pieces(a.order, asker)
                    .min(zone.view.free_pages >> a.order),
                _ => zone.capacity(a.order, asker, rules),
            };
            let left = a.need.count.saturating_sub(there);
            zone.take(a.order, asker, n.min(left));
            there = there.saturating_add(n);
        }
        there
    });
    each.collect()
}

/// Whether what is counted is there for certain, or at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// For certain.
    Least,
    /// At most.
    Most,
}

impl Asked {
    fn asker(&self, of: Of) -> Asker {
        match (self.kind, of) {
            // A range of any zone may be emptied.
            (Kind::HugePages, _) | (Kind::Runs, Of::Most) => Asker::Process,
            _ => Asker::Kernel,
        }
    }
}
