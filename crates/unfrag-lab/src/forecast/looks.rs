//! From dated snapshots to numbers over time.
//!
//! Invariant: a look counts whole, or is told as one that was not read: no number of it is a part of what its host had.

use super::look::{Look, at_best, date, free, order, zones};
use super::report::{Blocks, DatedBy, Forecast, NotRead, When};
use super::series::Sample;
use super::trend::falls;
use super::unread::{Unreadable, check};
use crate::doctor::gate::Need;
use crate::error::{Error, Result};
use crate::geometry::PageSizeFrom;
use crate::host::Unread;
use crate::inspect::{ZoneState, of_snapshot};
use crate::report::number::bytes;
use std::collections::BTreeMap;
use unfrag_linux::recording::Snapshot;
use unfrag_linux::snapshots::Clock;

/// What is looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks<'a> {
    /// Snapshots.
    pub snapshots: &'a [Snapshot],
    /// Files that may belong to one, and were not read.
    pub not_read: &'a [Unread],
    /// Moments of a range of Prometheus, in place of snapshots.
    pub samples: &'a [Sample],
    /// What told the times of those in directories.
    pub clock: Option<Clock>,
    /// Bytes in a page, where no file tells it.
    pub page_size: Option<u64>,
}

/// Numbers at one moment: seconds, and the blocks of each kind.
struct Numbers {
    time: f64,
    free: Option<u64>,
    at_best: Option<u64>,
}

/// When a need of blocks fails, by the looks of the input that is called `source`.
///
/// # Errors
/// If the looks do not say when they were taken or cannot be read, or the need is of blocks that this host does not have.
pub fn forecast(given: Looks, source: &str, need: Need, seed: u64) -> Result<Forecast> {
    let (times, dated_by) = times(&given);
    let (mut looks, mut unreadable) = read(&given, &times);
    let has_node = looks
        .iter()
        .any(|l| zones(&l.moment, need).next().is_some());
    if let Some(node) = need.node.filter(|_| !looks.is_empty() && !has_node) {
        return Err(Error::question(format!("there is no node {node} here"))
            .help("give a need without a node, or of one that there is"));
    }
    of_one_row(&looks)?;
    of_one_page_size(&given)?;
    check(&mut looks, &mut unreadable, need);
    let not_read = unreadable.summary(&looks);
    if looks.is_empty() {
        return Err(lacking(not_read.as_ref()));
    }
    let lists = |z: &ZoneState| z.free_blocks.as_ref().map(Vec::len);
    let orders = looks.iter().flat_map(|l| &l.moment.zones).filter_map(lists);
    let orders = orders.max().unwrap_or(0);
    let mut numbers = vec![];
    let mut undated = 0;
    for look in &looks {
        let order = order(&look.moment, orders, need)?;
        match look.time {
            Some(time) => numbers.push(Numbers {
                time,
                free: free(&look.moment, need, order),
                at_best: at_best(&look.moment, need, order),
            }),
            None => undated += 1,
        }
    }
    if numbers.is_empty() {
        let what = match given.clock {
            Some(Clock::Modified) => {
                "its looks do not say when they were taken: their names are no dates, and the times of their files are those of \
                 any copying"
            }
            _ => "its looks do not say when they were taken",
        };
        return Err(Error::lacking(what).help(DATES));
    }
    numbers.sort_by(|a, b| a.time.total_cmp(&b.time));
    let (first, last) = (numbers[0].time, numbers[numbers.len() - 1].time);
    let blocks = |of: fn(&Numbers) -> Option<u64>| {
        let known: Vec<(f64, f64)> = numbers
            .iter()
            .filter_map(|l| Some((l.time, of(l)? as f64)))
            .collect();
        let bound = need.count as f64;
        let below: Vec<f64> = known
            .iter()
            .filter(|l| l.1 < bound)
            .map(|l| last - l.0)
            .collect();
        Blocks {
            looks: known.len() as u64,
            last: known.last().map(|l| l.1 as u64),
            below: below.len() as u64,
            last_below_days_before: below.last().map(|s| s / super::grid::DAY),
            when: When::of(falls(&known, bound, seed), known.is_empty()),
        }
    };
    let is_assumed = |l: &Look| l.moment.page_size_from == PageSizeFrom::Assumed;
    let is_assumed = looks.iter().all(is_assumed);
    let last_moment = &looks[looks.len() - 1].moment;
    Ok(Forecast {
        source: source.into(),
        need: need.to_string(),
        count: need.count,
        block_bytes: need.bytes,
        page_size: last_moment.page_size,
        page_size_from: match given.page_size {
            Some(_) => PageSizeFrom::Asked,
            None if is_assumed => PageSizeFrom::Assumed,
            None => PageSizeFrom::Derived,
        },
        looks: numbers.len() as u64,
        undated,
        dated_by,
        not_read,
        seconds: last - first,
        free: blocks(|l| l.free),
        at_best: blocks(|l| l.at_best),
    })
}

/// Looks of one host lie beside each other: two rows that overlap in time are of two, or of one that was copied twice.
fn of_one_row(looks: &[Look]) -> Result<()> {
    let mut rows: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for look in looks {
        let row = look.name.rsplit_once('/').map_or("", |(row, _)| row);
        if let Some(time) = look.time {
            let span = rows.entry(row).or_insert((time, time));
            *span = (span.0.min(time), span.1.max(time));
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
    let overlap = rows.windows(2).find(|pair| pair[1].1.0 <= pair[0].1.1);
    match overlap {
        Some([(one, _), (other, _)]) => Err(Error::question(format!(
            "looks of the same days lie in {one:?} and in {other:?}: they may be of two hosts"
        ))
        .help("give one of the two")),
        _ => Ok(()),
    }
}

/// A size that was given is that of the files, where they tell one.
fn of_one_page_size(given: &Looks) -> Result<()> {
    let Some(asked) = given.page_size else {
        return Ok(());
    };
    let told = given.snapshots.iter().find_map(|s| {
        let moment = of_snapshot(s, None).ok()?;
        (moment.page_size_from == PageSizeFrom::Derived).then_some(moment.page_size)
    });
    match told {
        Some(told) if told != asked => Err(Error::question(format!(
            "the looks tell pages of {}, and {} were asked for",
            bytes(told),
            bytes(asked)
        ))
        .help("leave the page size out: it is for looks that do not tell it")),
        _ => Ok(()),
    }
}

const DATES: &str = "give a directory of copies of procfs, each in a directory that is named by its date, such as \
                     2026-11-01T19:00:00Z, or what `unfrag record --keep` made";

fn lacking(not_read: Option<&NotRead>) -> Error {
    match not_read {
        Some(n) => Error::lacking(format!(
            "none of its {} looks could be read; the newest, {}: {}",
            n.looks, n.newest, n.why
        ))
        .help("give looks with a whole copy of buddyinfo"),
        None => Error::lacking("there is no look at memory in it").help(DATES),
    }
}

/// When each was taken, in seconds, and what tells it: the dates that they are named by, where any is; else what was recorded
/// with them. Two clocks are never mixed, and times of files are none: those of copies are of the copying.
fn times(given: &Looks) -> (Vec<Option<f64>>, DatedBy) {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let named = given.snapshots.iter().map(|s| date(&s.name).map(seconds));
    let named: Vec<Option<f64>> = named.collect();
    if !given.samples.is_empty() {
        return (vec![], DatedBy::Series);
    }
    let begin = |s: &Snapshot| s.files.iter().filter_map(|f| f.time).map(|t| t.0).min();
    let recorded = || given.snapshots.iter().map(|s| begin(s).map(seconds));
    match given.clock {
        _ if named.iter().any(Option::is_some) => (named, DatedBy::Names),
        Some(Clock::Modified) => (vec![None; given.snapshots.len()], DatedBy::Names),
        Some(Clock::Uptime) => (recorded().collect(), DatedBy::Uptime),
        _ => (recorded().collect(), DatedBy::Recorded),
    }
}

/// All looks, by one page size where any of them tells it.
fn read<'a>(given: &Looks<'a>, times: &[Option<f64>]) -> (Vec<Look<'a>>, Unreadable) {
    let mut looks: Vec<Look> = vec![];
    let mut unreadable = Unreadable::default();
    for (snapshot, &time) in given.snapshots.iter().zip(times) {
        match of_snapshot(snapshot, given.page_size) {
            Ok(moment) if !moment.zones.is_empty() => looks.push(Look {
                name: &snapshot.name,
                time,
                moment,
            }),
            Ok(_) => {}
            Err(error) => unreadable.add(&snapshot.name, time, error.to_string()),
        }
    }
    let is_told = |l: &&Look| l.moment.page_size_from == PageSizeFrom::Derived;
    let told = looks.iter().rev().find(is_told).map(|l| l.moment.page_size);
    if let (None, Some(size)) = (given.page_size, told) {
        let of = |name: &str| given.snapshots.iter().find(|s| s.name == name);
        for look in &mut looks {
            let is_assumed = look.moment.page_size_from == PageSizeFrom::Assumed;
            let again = of(look.name).filter(|_| is_assumed);
            if let Some(Ok(moment)) = again.map(|s| of_snapshot(s, Some(size))) {
                look.moment = moment;
            }
        }
    }
    unreadable.add_files(given.not_read, &looks);
    for sample in given.samples {
        match &sample.memory {
            Ok(moment) => looks.push(Look {
                name: &sample.name,
                time: Some(sample.time),
                moment: moment.clone(),
            }),
            Err(why) => unreadable.add(&sample.name, Some(sample.time), why.clone()),
        }
    }
    (looks, unreadable)
}
