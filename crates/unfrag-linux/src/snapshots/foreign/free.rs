//! Tables of free blocks: of the debuggers `crash` and drgn, of hotsos, and rows without a zone.
//!
//! Invariant: an order that a table does not tell is not told to have no blocks: a row that ends before the orders of a
//! kernel do, or before other rows of its table, is written as one that goes on.

use super::kinds::{COUNTS, CRASH, NESTED, TABLE};
use crate::procfs::buddyinfo::{BuddyInfo, Row};
use std::collections::BTreeMap;

/// Orders that every kernel has at least.
const FEWEST: usize = 7;
/// Orders that a kernel has at most.
const MOST: usize = 24;

/// The kind of a line, and its key.
pub(super) fn claim(
    text: &str,
    current: Option<&'static str>,
) -> Option<(&'static str, Option<String>)> {
    let words: Vec<&str> = text.split_ascii_whitespace().take(32).collect();
    if words.starts_with(&["ZONE", "NAME", "SIZE", "FREE"])
        || words.starts_with(&["AREA", "SIZE"])
        || words == ["NODE"]
        || (current == Some(CRASH) && is_of_area(&words))
    {
        return Some((CRASH, None));
    }
    if let (Some(CRASH), [number]) = (current, &words[..])
        && is_number(number)
    {
        return Some((CRASH, Some(format!("node {number}"))));
    }
    if current == Some(CRASH)
        && let [number, name, _, _, _, address, ..] = words[..]
        && is_number(number)
        && is_zone(name)
    {
        // Zones of several nodes have one name, and their own addresses.
        return Some((CRASH, Some(format!("{name}/{address}"))));
    }
    if let Some(row) = table_row(text) {
        return Some((TABLE, Some(format!("{}/{}", row.node, row.zone))));
    }
    if words.starts_with(&["Node", "ID", "Zone"]) || text.starts_with("Per-zone buddy allocator") {
        return Some((TABLE, None));
    }
    if let Some((label, _)) = count_row(text).filter(|(label, _)| label.is_some()) {
        return Some((COUNTS, label));
    }
    match words[..] {
        ["nodes:"] => Some((NESTED, Some(String::new()))),
        [key, ref value @ ..] if current == Some(NESTED) && value.len() <= 1 => {
            let name = key.strip_suffix(':')?;
            let are_numbers = is_number(name) && value.iter().all(|v| is_number(v));
            let is_place = value.is_empty() && (name == "zones" || is_zone(name));
            (are_numbers || is_place).then_some((NESTED, None))
        }
        _ => None,
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

fn is_zone(word: &str) -> bool {
    crate::procfs::ZONES.contains(&word)
}

fn is_of_area(words: &[&str]) -> bool {
    match *words {
        [order, size, address, blocks, pages] => {
            [order, blocks, pages].iter().all(|w| is_number(w))
                && size.ends_with('k')
                && address.bytes().all(|b| b.is_ascii_hexdigit())
        }
        _ => false,
    }
}

/// A row `Node 0   DMA   0 0 1 …`, with bars or without.
fn table_row(line: &str) -> Option<Row> {
    let line = line.replace(['|', ','], " ");
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let ["Node", node, ref rest @ ..] = words[..] else {
        return None;
    };
    let [zone, ref counts @ ..] = *rest else {
        return None;
    };
    let free: Option<Vec<u64>> = counts.iter().map(|n| n.parse().ok()).collect();
    let free = free.filter(|free| (FEWEST..=MOST).contains(&free.len()))?;
    is_zone(zone).then_some(Row {
        node: node.parse().ok()?,
        zone: zone.to_owned(),
        free,
        goes_on: false,
    })
}

/// A table with a row a zone as buddyinfo.
pub(super) fn of_table(text: &str) -> Option<String> {
    written(text.lines().filter_map(table_row).collect())
}

/// A number alone is a node, as it stands below `NODE`; a row with a zone's name is that zone, and a row with a size in KiB
/// an order of it, with blocks last but one.
pub(super) fn of_crash(text: &str) -> Option<String> {
    let (mut zones, mut node): (Vec<Row>, u32) = (vec![], 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [number] if is_number(number) => node = number.parse().ok()?,
            [number, name, size, _, ..]
                if is_number(number) && is_zone(name) && is_number(size) =>
            {
                zones.push(Row {
                    node,
                    zone: name.to_owned(),
                    ..Row::default()
                });
            }
            [order, _, _, blocks, _] if is_of_area(&words) => {
                let free = &mut zones.last_mut()?.free;
                if order.parse() == Ok(free.len()) {
                    free.push(blocks.parse().ok()?);
                }
            }
            _ => {}
        }
    }
    written(zones)
}

/// `nodes:`, below it `N:`, below it `zones:`, below it `NAME:`, below it `ORDER: BLOCKS`.
pub(super) fn of_nested(text: &str) -> Option<String> {
    let mut found: BTreeMap<(u32, String), BTreeMap<usize, u64>> = BTreeMap::new();
    let (mut node, mut zone) = (None, None);
    for line in text.lines() {
        let (key, value) = line.trim().split_once(':')?;
        match (key.parse::<u32>(), value.trim().parse::<u64>()) {
            (Ok(order), Ok(blocks)) => {
                let place = (node?, zone.clone()?);
                found
                    .entry(place)
                    .or_default()
                    .insert(order as usize, blocks);
            }
            (Ok(n), Err(_)) => node = Some(n),
            _ if is_zone(key) => zone = Some(key.to_owned()),
            _ => {}
        }
    }
    of_orders(found)
}

/// Free blocks by zone and order as buddyinfo. Of a zone, orders above one that is missing are not used.
pub(super) fn of_orders(found: BTreeMap<(u32, String), BTreeMap<usize, u64>>) -> Option<String> {
    let row = |((node, zone), orders): ((u32, String), BTreeMap<usize, u64>)| {
        let free: Vec<u64> = (0..MOST).map_while(|o| orders.get(&o).copied()).collect();
        Row {
            node,
            zone,
            goes_on: free.len() < orders.len(),
            free,
        }
    };
    let mut zones: Vec<Row> = found.into_iter().map(row).collect();
    // Zones of a node come from the lowest up, as in the kernel's file.
    let rank = |zone: &str| {
        ["DMA", "DMA32", "Normal"]
            .iter()
            .position(|z| *z == zone)
            .unwrap_or(3)
    };
    zones.sort_by_key(|r| (r.node, rank(&r.zone)));
    written(zones)
}

/// A row of free blocks that names no zone: its label, and the numbers.
fn count_row(line: &str) -> Option<(Option<String>, Vec<u64>)> {
    let line = line.replace(['|', ','], " ");
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let at = words.iter().position(|w| is_number(w))?;
    let (label, counts) = words.split_at(at);
    let free: Option<Vec<u64>> = counts.iter().map(|n| n.parse().ok()).collect();
    let free = free.filter(|free| (10..=MOST).contains(&free.len()))?;
    let label = label.join(" ").to_ascii_lowercase();
    let label = label.trim_end_matches([':', '=']).trim();
    let labels = [
        "count",
        "counts",
        "free",
        "free blocks",
        "blocks",
        "nr_free",
    ];
    match label {
        "" => Some((None, free)),
        label => labels
            .contains(&label)
            .then(|| (Some(label.to_owned()), free)),
    }
}

/// Rows without a zone as buddyinfo, each as a zone without a name.
pub(super) fn of_counts(text: &str) -> Option<String> {
    let rows: Vec<Vec<u64>> = text.lines().filter_map(|l| Some(count_row(l)?.1)).collect();
    let several = rows.len() > 1;
    let row = |(n, free): (usize, Vec<u64>)| Row {
        node: 0,
        zone: match several {
            true => format!("unnamed-{}", n + 1),
            false => "unnamed".to_owned(),
        },
        free,
        goes_on: false,
    };
    written(rows.into_iter().enumerate().map(row).collect())
}

/// A text of nothing but one row of eleven numbers, or of one below the numbers of the orders.
pub(super) fn bare_counts(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let rows: Option<Vec<Vec<u64>>> = lines.iter().map(|l| Some(count_row(l)?.1)).collect();
    let is_orders = |row: &[u64]| row.iter().enumerate().all(|(o, &n)| o as u64 == n);
    match &rows?[..] {
        [only] if only.len() == 11 && !is_orders(only) => of_counts(lines[0]),
        [orders, row] if is_orders(orders) && row.len() == orders.len() => of_counts(lines[1]),
        _ => None,
    }
}

fn written(mut zones: Vec<Row>) -> Option<String> {
    zones.retain(|zone| !zone.free.is_empty());
    let most = zones.iter().map(|z| z.free.len()).max()?;
    for zone in &mut zones {
        zone.goes_on |= zone.free.len() < most || most < FEWEST;
    }
    let info = BuddyInfo {
        zones,
        ..BuddyInfo::default()
    };
    Some(info.write())
}
