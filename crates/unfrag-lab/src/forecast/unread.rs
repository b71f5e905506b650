//! Looks that cannot count, as they were cut off, or are not of the host that the others are of.
//!
//! Invariant: each is told, with the reason of the newest.

use super::grid::DAY;
use super::look::{Look, date, zones};
use super::report::NotRead;
use crate::doctor::gate::Need;
use crate::host::Unread;
use crate::inspect::{Moment, ZoneState};
use crate::report::number::bytes;
use std::collections::BTreeMap;

/// Files that tell free blocks.
const TELLING: [&str; 2] = ["buddyinfo", "pagetypeinfo"];

/// One of them.
struct One {
    name: String,
    time: Option<f64>,
    why: String,
}

/// All of them.
#[derive(Default)]
pub(super) struct Unreadable {
    all: Vec<One>,
}

impl Unreadable {
    pub fn add(&mut self, name: &str, time: Option<f64>, why: String) {
        self.all.push(One {
            name: name.to_owned(),
            time,
            why,
        });
    }

    /// Files that were not read, of directories that are no look.
    pub fn add_files(&mut self, files: &[Unread], looks: &[Look]) {
        for file in files {
            let Some((directory, name)) = file.file.rsplit_once('/') else {
                continue;
            };
            let base = name.split('.').next().unwrap_or_default();
            let is_of = |name: &str| {
                let rest = directory.strip_suffix(name);
                rest.is_some_and(|r| r.is_empty() || r.ends_with('/'))
            };
            let is_known =
                looks.iter().any(|l| is_of(l.name)) || self.all.iter().any(|o| is_of(&o.name));
            if TELLING.contains(&base) && !is_known {
                let time = date(directory).map(|ns| ns as f64 / 1e9);
                self.add(directory, time, format!("{base} is {}", file.why));
            }
        }
    }

    /// Takes out looks for which there is a reason.
    fn take(&mut self, looks: &mut Vec<Look>, why: &dyn Fn(&Moment) -> Option<String>) {
        looks.retain(|look| match why(&look.moment) {
            Some(why) => {
                self.add(look.name, look.time, why);
                false
            }
            None => true,
        });
    }

    /// What is told of them; `looks` are those that count.
    pub fn summary(&self, looks: &[Look]) -> Option<NotRead> {
        let by_time = |a: &&One, b: &&One| {
            let key = |o: &One| o.time.unwrap_or(f64::NEG_INFINITY);
            key(a).total_cmp(&key(b))
        };
        let newest = self.all.iter().max_by(by_time)?;
        let last = looks.iter().filter_map(|l| l.time).max_by(f64::total_cmp);
        let after = newest
            .time
            .zip(last)
            .map(|(newest, last)| (newest - last) / DAY);
        Some(NotRead {
            looks: self.all.len() as u64,
            of: (self.all.len() + looks.len()) as u64,
            newest: newest.name.clone(),
            why: newest.why.clone(),
            newest_days_after_last: after.filter(|days| *days > 0.0),
        })
    }
}

/// Takes out the looks that cannot count beside the others.
pub(super) fn check(looks: &mut Vec<Look>, unreadable: &mut Unreadable, need: Need) {
    unreadable.take(looks, &cut);
    let names = |m: &Moment| -> Vec<(u32, String)> {
        let of = zones(m, need);
        of.map(|z| (z.node, z.zone.clone())).collect()
    };
    // What most looks have: one that lacks it was cut off, or is of another time of a host that has grown.
    let mut usual: BTreeMap<(u32, String), usize> = BTreeMap::new();
    for zone in looks.iter().flat_map(|l| names(&l.moment)) {
        *usual.entry(zone).or_default() += 1;
    }
    usual.retain(|_, n| *n * 2 > looks.len());
    let ends = |m: &Moment| -> Vec<u64> { m.zones.iter().filter_map(|z| end(m, z)).collect() };
    let largest = looks.iter().flat_map(|l| ends(&l.moment)).max();
    let largest = largest.unwrap_or(0);
    unreadable.take(looks, &|m| {
        let own = names(m);
        if own.is_empty() {
            return Some("it has no zone of the node that is asked about".into());
        }
        let lacks = usual.keys().find(|zone| !own.contains(zone));
        if let Some((node, zone)) = lacks {
            return Some(format!(
                "it lacks zone {zone} of node {node}, which most looks have"
            ));
        }
        let early = ends(m).into_iter().find(|e| *e < largest)?;
        Some(format!(
            "its lists end at blocks of {}, and those of other looks at {}",
            bytes(early),
            bytes(largest)
        ))
    });
}

/// Bytes of the largest blocks that a zone's lists have.
fn end(m: &Moment, zone: &ZoneState) -> Option<u64> {
    let orders = zone.free_blocks.as_ref()?.len() as u32;
    m.page_size.checked_shl(orders.saturating_sub(1))
}

/// Why a look is only a part of one.
fn cut(m: &Moment) -> Option<String> {
    let of_telling = |text: &&String| TELLING.iter().any(|t| text.starts_with(t));
    if let Some(note) = m.notes.iter().find(of_telling) {
        return Some(note.clone());
    }
    let is_told = |z: &ZoneState| z.free_blocks.is_some();
    let zone = m.zones.iter().find(|z| !is_told(z))?;
    let why = m.unread.iter().find(|u| TELLING.contains(&&*u.file));
    Some(match why {
        // Another zone has them, so a file that tells them is there.
        _ if m.zones.iter().any(is_told) => format!(
            "zoneinfo has zone {} of node {}, and buddyinfo does not tell its free blocks",
            zone.zone, zone.node
        ),
        Some(u) => format!("{}: {}", u.file, u.why),
        None => format!("no file tells the free blocks of zone {}", zone.zone),
    })
}
