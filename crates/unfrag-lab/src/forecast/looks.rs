//! From dated snapshots to numbers over time.

use super::report::{Blocks, Forecast, When};
use super::trend::falls;
use crate::doctor::gate::Need;
use crate::error::{Error, Result};
use crate::inspect::{Moment, of_snapshot};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::snapshots;

/// Numbers at one moment: seconds, and the blocks of each kind.
struct Look {
    time: f64,
    free: Option<u64>,
    at_best: Option<u64>,
}

/// When a need of blocks fails, by the snapshots of the input that is called `source`.
///
/// # Errors
/// If the snapshots do not say when they were taken, or the need is of blocks that this host does not have.
pub fn forecast(all: &[Snapshot], source: &str, need: Need, seed: u64) -> Result<Forecast> {
    let mut looks = vec![];
    let mut undated = 0;
    for (snapshot, time) in all.iter().zip(times(all)) {
        let Ok(moment) = of_snapshot(snapshot, None) else {
            continue;
        };
        if moment.zones.is_empty() {
            continue;
        }
        if let Some(node) = need.node.filter(|_| zones(&moment, need).next().is_none()) {
            return Err(Error::question(format!("there is no node {node} here"))
                .help("give a need without a node, or of one that there is"));
        }
        let order = order(&moment, need)?;
        match time {
            Some(time) => looks.push(Look {
                time,
                free: free(&moment, need, order),
                at_best: at_best(&moment, need, order),
            }),
            None => undated += 1,
        }
    }
    looks.sort_by(|a, b| a.time.total_cmp(&b.time));
    let (Some(first), Some(last)) = (looks.first(), looks.last()) else {
        let what = match undated {
            0 => "there is no look at memory in it",
            _ => "its looks do not say when they were taken",
        };
        return Err(Error::lacking(what).help(
            "give a directory of copies of procfs, each in a directory that is named by its date, or what `unfrag record --keep` made",
        ));
    };
    let seconds = last.time - first.time;
    let blocks = |of: fn(&Look) -> Option<u64>| {
        let known: Vec<(f64, f64)> = looks
            .iter()
            .filter_map(|l| Some((l.time, of(l)? as f64)))
            .collect();
        let falls = falls(&known, need.count as f64, seed);
        Blocks {
            looks: known.len() as u64,
            last: known.last().map(|l| l.1 as u64),
            when: When::of(falls, known.is_empty()),
        }
    };
    Ok(Forecast {
        source: source.into(),
        need: need.to_string(),
        count: need.count,
        block_bytes: need.bytes,
        looks: looks.len() as u64,
        undated,
        seconds,
        free: blocks(|l| l.free),
        at_best: blocks(|l| l.at_best),
    })
}

/// When each was taken, in seconds: by the dates that they are named by, or by the times of their files.
fn times(all: &[Snapshot]) -> Vec<Option<f64>> {
    let named = |s: &Snapshot| snapshots::date(s.name.rsplit('/').next()?);
    let read = |s: &Snapshot| s.files.iter().filter_map(|f| f.time).map(|t| t.0).min();
    // Their clocks may differ.
    let by_name = all.iter().all(|s| named(s).is_some());
    let time = |s| if by_name { named(s) } else { read(s) };
    all.iter().map(|s| Some(time(s)? as f64 / 1e9)).collect()
}

/// The order of the blocks that are needed.
fn order(moment: &Moment, need: Need) -> Result<u8> {
    let whole = moment.page_size > 0 && need.bytes.is_multiple_of(moment.page_size);
    let pages = if whole {
        need.bytes / moment.page_size
    } else {
        0
    };
    let orders = moment.zones.iter().filter_map(|z| z.free_blocks.as_ref());
    let orders = orders.map(Vec::len).max().unwrap_or(0);
    match pages.is_power_of_two() {
        true if orders == 0 || (pages.ilog2() as usize) < orders => Ok(pages.ilog2() as u8),
        _ => Err(Error::question(format!(
            "blocks of {} bytes are not made here: pages have {} bytes, and the largest block {} of them",
            need.bytes,
            moment.page_size,
            1_u64 << orders.saturating_sub(1)
        ))
        .help("give a need of smaller blocks, such as 64x2M")),
    }
}

/// The zones that the need may be met from.
fn zones(moment: &Moment, need: Need) -> impl Iterator<Item = &crate::inspect::ZoneState> {
    let zones = moment.zones.iter();
    zones.filter(move |z| need.node.is_none_or(|node| z.node == node))
}

/// Free blocks; `None` if a zone does not tell them.
fn free(moment: &Moment, need: Need, order: u8) -> Option<u64> {
    let order = usize::from(order);
    zones(moment, need)
        .map(|z| {
            let blocks = z.free_blocks.as_ref()?.iter().enumerate().skip(order);
            Some(blocks.map(|(o, &n)| n << (o - order)).sum::<u64>())
        })
        .sum()
}

/// Blocks of which the kernel has nothing: all of each pageblock that is movable. Of larger blocks that is not known.
fn at_best(moment: &Moment, need: Need, order: u8) -> Option<u64> {
    let parts = moment.huge_order.checked_sub(order)?;
    zones(moment, need)
        .map(|z| {
            let types = z.pageblocks.as_ref()?;
            Some(types.get("Movable").copied().unwrap_or(0) << parts)
        })
        .sum()
}
