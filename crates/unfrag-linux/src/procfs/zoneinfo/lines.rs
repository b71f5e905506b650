//! zoneinfo read line by line, by `name value`: for kernels and vendors whose lines vary, and for
//! texts that are cut off or pasted.
//!
//! Invariant: a zone is given only where its free pages are known. A number that may lack digits,
//! because the text ends in it, is not used.

use super::zone::{MAX_WIDTH, Pageset, Zone, read_protection};
use crate::procfs::counters::Counters;
use crate::procfs::notes::{Notes, Unknown, read_lines};
use crate::procfs::row::read_zone;
use crate::procfs::scan::Scan;

/// Names of the lines below `pages free`.
const PAGES: [&str; 13] = [
    "boost",
    "min",
    "low",
    "high",
    "promo",
    "scanned",
    "node_scanned",
    "active",
    "inactive",
    "spanned",
    "present",
    "managed",
    "cma",
];

/// The part of a zone that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    PerNode,
    Zone,
    Pagesets,
}

struct Reader {
    zones: Vec<(Zone, bool)>,
    part: Part,
    /// Whether the per-CPU list is a second one of its CPU, as in kernels to 2.6.24.
    second_list: bool,
}

/// Reads what is understood; `None` if there is no zone.
pub(super) fn read(source: &str) -> Option<(Vec<Zone>, Notes)> {
    let mut reader = Reader {
        zones: vec![],
        part: Part::Zone,
        second_list: false,
    };
    let mut headers = vec![];
    let mut notes = read_lines(source, |line, ended| {
        let before = reader.zones.len();
        let read = reader.line(line, ended);
        if reader.zones.len() > before {
            headers.push(line.to_owned());
        }
        read
    });
    let mut zones = vec![];
    let mut lines = source.lines().enumerate();
    for ((zone, has_free), header) in reader.zones.into_iter().zip(headers) {
        let place = lines.find(|(_, line)| line.trim_end_matches('\r') == header);
        if has_free {
            zones.push(zone);
        } else {
            // Its free pages are not known, so neither is it.
            notes.not_understood.push(Unknown {
                line: place.map_or(0, |(n, _)| n + 1),
                text: header,
            });
        }
    }
    notes.not_understood.sort_by_key(|u| u.line);
    (!zones.is_empty()).then_some((zones, notes))
}

impl Reader {
    fn line(&mut self, whole: &str, ended: bool) -> Option<()> {
        let line = whole.trim();
        let indent = whole.len() - whole.trim_start().len();
        let text = format!("{line}\n");
        let mut scan = Scan::new("zoneinfo", text.as_bytes());
        if scan.sees("Node") {
            let (node, name) = read_zone(&mut scan).ok()?;
            scan.line_end().ok().filter(|()| ended)?;
            let zone = Zone {
                node,
                name,
                ..Zone::default()
            };
            self.zones.push((zone, false));
            self.part = Part::Zone;
            return Some(());
        }
        let (zone, has_free) = self.zones.last_mut()?;
        match line {
            // They come before a zone's free pages, so this is the next zone, and the line that names it is missing.
            "per-node stats" if *has_free => {
                self.zones.push((Zone::default(), false));
                self.part = Part::PerNode;
                return Some(());
            }
            "per-node stats" => {
                zone.per_node.get_or_insert_default();
                self.part = Part::PerNode;
                return Some(());
            }
            "pagesets" => {
                zone.pagesets.get_or_insert_default();
                self.part = Part::Pagesets;
                return Some(());
            }
            _ => {}
        }
        if scan.sees("protection:") {
            zone.protection = read_protection(&mut scan).ok()?;
            zone.layout.counters_before_protection = !zone.counters.0.is_empty();
            return Some(());
        }
        if !ended {
            return None;
        }
        if let Some(free) = line.strip_prefix("pages free") {
            let free = free.trim().parse().ok()?;
            if *has_free {
                // The line that names the next zone is missing.
                self.zones.push((Zone::default(), false));
                return Some(());
            }
            (zone.free, *has_free) = (free, true);
            self.part = Part::Zone;
            return Some(());
        }
        if let Some(cpu) = line.strip_prefix("cpu:") {
            let mut words = cpu.split_ascii_whitespace();
            let cpu = words.next()?.parse().ok()?;
            self.second_list = words.next() == Some("pcp:") && words.next() != Some("0");
            let sets = zone.pagesets.get_or_insert_default();
            self.part = Part::Pagesets;
            if !(self.second_list && sets.last().is_some_and(|s| s.cpu == cpu)) {
                self.second_list = false;
                sets.push(Pageset {
                    cpu,
                    ..Pageset::default()
                });
            }
            return Some(());
        }
        if let Some(threshold) = line.strip_prefix("vm stats threshold:") {
            let set = zone.pagesets.as_mut()?.last_mut()?;
            set.stat_threshold = Some(threshold.trim().parse().ok()?);
            return Some(());
        }
        if let Some((name, value)) = line.split_once(':')
            && is_name(name)
        {
            let width = line.len() - value.trim_start().len();
            let value = value.trim().parse().ok()?;
            self.named(name, value, width.min(MAX_WIDTH));
            return Some(());
        }
        // Some kernels, such as 4.19, print a counter without its name.
        let (name, rest) = line.split_once([' ', '\t']).unwrap_or(("", line));
        let rest = rest.trim();
        let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
        let alone = !rest.contains(' ') || rest.ends_with(')');
        if !(name.is_empty() || is_name(name)) || !alone {
            return None;
        }
        match self.part {
            _ if name.starts_with("nr_") && matches!(indent, 4 | 6) => {
                zone.layout.counter_indent = indent;
                match (self.part, &mut zone.per_node) {
                    (Part::PerNode, Some(counters)) => counters.push(name, value),
                    _ => zone.counters.push(name, value),
                }
            }
            Part::PerNode => zone.per_node.get_or_insert_default().push(name, value),
            _ if PAGES.contains(&name) => zone.pages.push(name, value),
            _ => zone.counters.push(name, value),
        }
        Some(())
    }

    /// Takes a `name: value` line: of a per-CPU list, or one of the last lines.
    fn named(&mut self, name: &str, value: u64, width: usize) {
        const OF_A_LIST: [&str; 9] = [
            "count",
            "low",
            "high",
            "batch",
            "high_min",
            "high_max",
            "interleave_hit",
            "local_node",
            "other_node",
        ];
        let Some((zone, _)) = self.zones.last_mut() else {
            return;
        };
        let of_a_list = OF_A_LIST.contains(&name) || name.starts_with("numa_");
        let set = zone.pagesets.as_mut().and_then(|s| s.last_mut());
        match set.filter(|_| of_a_list && self.part == Part::Pagesets) {
            Some(set) if self.second_list => add(&mut set.fields, name, value),
            Some(set) => {
                zone.layout.pageset_width = width;
                set.fields.push(name, value);
            }
            None => {
                zone.layout.last_width = width;
                zone.last.push(name, value);
            }
        }
    }
}

/// A CPU's two lists count as one: their pages and limits are added, the batch is that of the first.
fn add(fields: &mut Counters, name: &str, value: u64) {
    match fields.get(name) {
        Some(first) if name != "batch" => fields.set(name, first.saturating_add(value)),
        Some(_) => {}
        None => fields.push(name, value),
    }
}

fn is_name(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_()-".contains(&b))
}
