//! Keys and values of a part as the text of a file of procfs.
//!
//! Invariant: `None` of a key or a value that no writer makes; a text is as the kernel writes it.

use super::known;
use crate::procfs::Counters;
use crate::procfs::buddyinfo::{BuddyInfo, Row};
use crate::procfs::meminfo::{Line, MemInfo};
use crate::procfs::pagetypeinfo::{BlockRow, Count, FreeRow, PageTypeInfo};
use crate::procfs::slabinfo::{Cache, SlabInfo};
use crate::procfs::zoneinfo::{Pageset, Zone, ZoneInfo};
use crate::snapshots::settings::NUMBERS_OF_VM;

const SECOND: u64 = 1_000_000_000;

/// Nanoseconds of a value that is a number of seconds.
pub(super) fn seconds_of((key, value): &(&str, String), name: &str) -> Option<u64> {
    let seconds: f64 = value.parse().ok().filter(|_| *key == name)?;
    Some((seconds.clamp(0.0, 1e9) * SECOND as f64) as u64)
}

pub(super) fn settings(values: &[(&str, String)], files: &mut Vec<(String, String)>) -> Option<()> {
    let mut listing = String::new();
    for (key, value) in values {
        if let Some(name) = key.strip_prefix("vm.") {
            let known = NUMBERS_OF_VM.iter().find(|n| **n == name)?;
            listing += &format!("vm.{known} = {value}\n");
        } else {
            let (file, _) = known::CHOICES
                .iter()
                .find(|(f, _)| f.replace('/', ".") == *key)?;
            files.push(((*file).to_owned(), format!("{value}\n")));
        }
    }
    if !listing.is_empty() {
        files.push(("sysctl-vm".to_owned(), listing));
    }
    Some(())
}

pub(super) fn counters(values: &[(&str, String)]) -> Option<Counters> {
    let one = |(key, value): &(&str, String)| Some(((*key).to_owned(), value.parse().ok()?));
    values
        .iter()
        .map(one)
        .collect::<Option<Vec<_>>>()
        .map(Counters)
}

/// A list of numbers.
fn numbers(value: &str) -> Option<Vec<u64>> {
    value.split(',').map(|n| n.parse().ok()).collect()
}

/// The node and the zone of a key such as `0.Normal`.
fn zone_of(key: &str) -> Option<(u32, String)> {
    let (node, zone) = key.split_once('.')?;
    let zone = known::ZONES.iter().find(|z| **z == zone)?;
    Some((node.parse().ok()?, (*zone).to_owned()))
}

pub(super) fn buddyinfo(values: &[(&str, String)]) -> Option<String> {
    let row = |(key, value): &(&str, String)| {
        let (node, zone) = zone_of(key)?;
        let free = value.strip_suffix(",..");
        Some(Row {
            node,
            zone,
            goes_on: free.is_some(),
            free: numbers(free.unwrap_or(value))?,
        })
    };
    let zones: Option<Vec<Row>> = values.iter().map(row).collect();
    let read = BuddyInfo {
        zones: zones?,
        ..BuddyInfo::default()
    };
    Some(read.write())
}

pub(super) fn zoneinfo(values: &[(&str, String)]) -> Option<String> {
    let mut read = ZoneInfo::default();
    for (key, value) in values {
        if let Some((node, name)) = zone_of(key) {
            read.zones.push(Zone {
                node,
                name,
                free: value.parse().ok()?,
                ..Zone::default()
            });
            continue;
        }
        let zone = read.zones.last_mut()?;
        match key.split_once('.') {
            Some((letter, name)) => {
                let counters = match letter {
                    "n" => zone.per_node.get_or_insert_default(),
                    "z" => &mut zone.pages,
                    "c" => &mut zone.counters,
                    "e" => &mut zone.last,
                    _ => return None,
                };
                counters.push(name, value.parse().ok()?);
            }
            None if *key == "protection" => zone.protection = numbers(value)?,
            None if *key == "lists" => {
                let mut set = Pageset::default();
                if value != "unknown" {
                    set.fields.push("count", value.parse().ok()?);
                }
                zone.pagesets = Some(vec![set]);
            }
            None => return None,
        }
    }
    Some(read.write())
}

pub(super) fn nodes(values: &[(&str, String)], files: &mut Vec<(String, String)>) -> Option<()> {
    let node = |key: &str| key.split_once('.')?.0.parse::<u32>().ok();
    for lines in values.chunk_by(|a, b| node(a.0) == node(b.0)) {
        let inner: Option<Vec<(&str, String)>> = lines
            .iter()
            .map(|(key, value)| Some((key.split_once('.')?.1, value.clone())))
            .collect();
        let number = node(lines.first()?.0)?;
        files.push((format!("node{number}/meminfo"), meminfo(&inner?)?));
    }
    Some(())
}

pub(super) fn meminfo(values: &[(&str, String)]) -> Option<String> {
    let line = |(key, value): &(&str, String)| {
        let number = value.strip_suffix('k');
        Some(Line {
            name: (*key).to_owned(),
            kib: number.is_some(),
            value: number.unwrap_or(value).parse().ok()?,
        })
    };
    let lines: Option<Vec<Line>> = values.iter().map(line).collect();
    let read = MemInfo {
        lines: lines?,
        ..MemInfo::default()
    };
    Some(read.write())
}

pub(super) fn pagetypeinfo(values: &[(&str, String)]) -> Option<String> {
    let mut read = PageTypeInfo::default();
    for (key, value) in values {
        match *key {
            "order" => read.pageblock_order = value.parse().ok()?,
            "pages" => read.pages_per_block = value.parse().ok()?,
            "sections" => read.by_node = value == "1",
            "orders" => read.orders = numbers(value)?,
            "types" => {
                let named: Vec<&str> = value.split(',').collect();
                if !named.iter().all(|t| known::TYPES.contains(t)) {
                    return None;
                }
                read.blocks.migratetypes = named.into_iter().map(str::to_owned).collect();
            }
            key => match zone_of(key) {
                Some((node, zone)) => read.blocks.rows.push(BlockRow {
                    node,
                    zone,
                    blocks: numbers(value)?,
                }),
                None => {
                    let (zone, name) = key.rsplit_once('.')?;
                    let (node, zone) = zone_of(zone)?;
                    let name = known::TYPES.iter().find(|t| **t == name)?;
                    let count = |n: &str| {
                        Some(Count {
                            capped: n.ends_with('+'),
                            blocks: n.trim_end_matches('+').parse().ok()?,
                        })
                    };
                    let counts: Option<Vec<Count>> = value.split(',').map(count).collect();
                    read.free.push(FreeRow {
                        node,
                        zone,
                        migratetype: (*name).to_owned(),
                        counts: counts?,
                    });
                }
            },
        }
    }
    Some(read.write())
}

/// The text; and that of the earlier reading, with how long before it was.
pub(super) fn slabinfo(values: &[(&str, String)]) -> Option<(String, Option<(String, u64)>)> {
    let (over, rest) = match values.split_first() {
        Some((first, rest)) if first.0 == "over" => (Some(seconds_of(first, "over")?), rest),
        _ => (None, values),
    };
    let (mut read, mut before) = (SlabInfo::default(), SlabInfo::default());
    for (key, value) in rest {
        let numbers = numbers(value)?;
        let (now, earlier) = numbers.split_at_checked(7)?;
        let &[
            active_objs,
            num_objs,
            size,
            objects,
            pages,
            active_slabs,
            num_slabs,
        ] = now
        else {
            return None;
        };
        let cache = Cache {
            name: known::cache_of(key),
            active_objs,
            num_objs,
            objsize: size.try_into().ok()?,
            objperslab: objects.try_into().ok()?,
            pagesperslab: pages.try_into().ok()?,
            active_slabs,
            num_slabs,
            ..Cache::default()
        };
        if over.is_some() {
            // Told in slabs of the usual size, whatever they were.
            let num_slabs = *earlier.first()?;
            before.caches.push(Cache {
                num_slabs,
                num_objs: num_slabs.saturating_mul(cache.objperslab.into()),
                ..cache.clone()
            });
        }
        read.caches.push(cache);
    }
    Some((read.write(), over.map(|ns| (before.write(), ns))))
}
