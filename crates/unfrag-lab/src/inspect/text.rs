//! An inspection as text.

use super::{Inspection, Moment, ZoneState};
use crate::report::number::{bytes, thousands};
use crate::report::screen::{Screen, Text, printable};
use std::fmt::Write as _;

/// The last order that kernels consider cheap.
const CHEAP: u8 = 3;

/// The whole inspection: in full if it is of one moment, else a line for each zone and moment.
pub fn render(inspection: &Inspection, screen: &Screen) -> Text {
    let mut out = Text::new();
    if let Some(moment) = inspection.snapshots.iter().rfind(|m| !m.zones.is_empty()) {
        let _ = writeln!(out, "{}", in_words(moment, inspection));
    }
    match inspection.snapshots.as_slice() {
        [moment] => full(moment, &inspection.source, screen, &mut out),
        moments => {
            overview(moments, &inspection.source, screen, &mut out);
            by_type(moments, screen, &mut out);
        }
    }
    for unread in &inspection.not_read {
        let _ = writeln!(
            out,
            "{}: {}",
            printable(&unread.file),
            printable(&unread.why)
        );
    }
    out
}

/// How fragmented memory is, in a sentence; of several moments the last.
fn in_words(moment: &Moment, inspection: &Inspection) -> String {
    let source = match inspection.source.as_str() {
        "/proc" => "this host".to_owned(),
        source => printable(source),
    };
    let at = match inspection.snapshots.len() {
        1 => String::new(),
        _ => format!(", at the end ({})", printable(&moment.name)),
    };
    let huge = bytes(moment.huge_page_bytes);
    // Zones with a twentieth of what is free or less say little, as DMA.
    let free = |z: &ZoneState| z.free_pages.unwrap_or(0);
    let all = moment.zones.iter().map(free).fold(0, u64::saturating_add);
    let told = moment
        .zones
        .iter()
        .filter(|z| z.free_pages.is_none_or(|n| n > all / 20));
    let worst = told
        .filter_map(|z| Some((z, z.extfrag_for_order_9?)))
        .max_by_key(|(_, outside)| *outside);
    let Some((zone, outside)) = worst else {
        return format!(
            "{source}{at}: how fragmented it is is not known, as no file tells free blocks"
        );
    };
    let blocks: Option<u64> = moment.zones.iter().map(|z| z.free_huge_blocks).sum();
    let memory = &moment.memory;
    let added = memory.added_when_asked().unwrap_or(0);
    // All that is free decides: a zone in pieces does no harm where others have enough.
    let whole = blocks.and_then(|n| {
        let whole = n.saturating_mul(moment.huge_page_bytes);
        Some((whole.saturating_add(added), memory.free()?))
    });
    let of_all = whole.and_then(|(whole, free)| {
        let outside = free.saturating_sub(whole).saturating_mul(100);
        outside.checked_div(free)
    });
    let how = match of_all.unwrap_or(outside) {
        0..20 => "little fragmented",
        20..60 => "fragmented",
        _ => "badly fragmented",
    };
    let size = memory.whole().map_or(String::new(), |n| format!(", {n}"));
    let blocks = blocks.map_or(String::new(), |n| {
        let is = if n == 1 { "is" } else { "are" };
        let more = match added / moment.huge_page_bytes.max(1) {
            0 => String::new(),
            more => format!(" in zones, {} more when asked", thousands(more)),
        };
        format!(
            "; {} of {huge} {is} free{more} (how many can be had: unfrag doctor)",
            thousands(n)
        )
    });
    let at_worst = match moment.zones.len() {
        1 => "",
        _ => "at worst ",
    };
    format!(
        "{source}{at}{size}: {how}: {at_worst}{outside} % of the free memory of zone {} (node {}) is in pieces smaller than {huge}{blocks}",
        zone.zone, zone.node
    )
}

/// What the columns of indexes mean.
fn legend(screen: &Screen, huge: &str) -> String {
    format!(
        "unusable: share of free memory in pieces too small for that size, 0 to 1. fragmentation: why a request of that size would\n\
         fail: near 0 too little is free, near 1 it is in pieces. {} marks what drivers and networks ask for, and a huge page ({huge}).",
        mark(screen)
    )
}

fn full(moment: &Moment, source: &str, screen: &Screen, out: &mut Text) {
    let title = match moment.name.as_str() {
        // The only one of a text has no name of its own.
        name if name == source || name == "." => printable(source),
        name => format!("{}, snapshot {}", printable(source), printable(name)),
    };
    out.push_head(screen, &title);
    let has_index = |z: &ZoneState| !z.unusable_index.is_empty();
    if moment.zones.iter().any(has_index) {
        let _ = writeln!(out, "{}", legend(screen, &bytes(moment.huge_page_bytes)));
    }
    for zone in &moment.zones {
        full_zone(zone, moment, screen, out);
    }
    unread(moment, out);
}

fn full_zone(zone: &ZoneState, moment: &Moment, screen: &Screen, out: &mut Text) {
    let mib = |pages: u64| format!("{} MiB", number_of_mib(pages, moment.page_size));
    let _ = write!(out, "\nNode {}, zone {}: ", zone.node, zone.zone);
    let _ = match zone.free_pages {
        Some(free) if zone.is_capped => write!(out, "{} free at least", mib(free)),
        Some(free) => write!(out, "{} free", mib(free)),
        None => write!(out, "free memory not known"),
    };
    if let Some(managed) = zone.managed_pages {
        let _ = match zone.free_pages.is_some_and(|free| free > managed) {
            true => write!(out, " by one file, and {} in all by another", mib(managed)),
            false => write!(out, " of {}", mib(managed)),
        };
    }
    if let Some(pcp) = zone.pcp_pages {
        let _ = write!(
            out,
            ", {} kept by CPUs for their next requests (per-CPU lists)",
            mib(pcp)
        );
    }
    out.push('\n');
    if !zone.watermarks.is_empty() {
        let mut marks: Vec<String> = ["min", "low", "high"]
            .iter()
            .filter_map(|&m| Some(format!("{m} {}", thousands(*zone.watermarks.get(m)?))))
            .collect();
        if let Some(boost) = zone.watermarks.get("boost").filter(|&&n| n > 0) {
            marks.push(format!(
                "of each {} for a short time, after types were mixed in a pageblock (boost)",
                thousands(*boost)
            ));
        }
        let _ = writeln!(out, "watermarks in pages: {}", marks.join(", "));
    }
    let head = format!(
        "{:>5} {:>8} {:>12} {:>10} {:>9} {:>14}",
        "order", "size", "free blocks", "free MiB", "unusable", "fragmentation"
    );
    let listed = zone.free_blocks.as_ref().map_or(0, Vec::len);
    let orders = listed
        .max(zone.unusable_index.len())
        .max(zone.fragmentation_index.len());
    if orders > 0 {
        out.push_head(screen, &head);
    }
    for order in 0..orders {
        let blocks = zone.free_blocks.as_ref().and_then(|b| b.get(order));
        let dash = || "-".to_owned();
        let line = format!(
            "{order:>5} {:>8} {:>12} {:>10} {:>9} {:>14}",
            bytes(moment.page_size << order),
            blocks.map_or_else(dash, |&n| thousands(n)),
            blocks.map_or_else(dash, |&n| number_of_mib(n << order, moment.page_size)),
            zone.unusable_index
                .get(order)
                .map_or_else(dash, |n| format!("{n:.3}")),
            zone.fragmentation_index
                .get(order)
                .map_or_else(dash, |&n| index(n)),
        );
        if [CHEAP, moment.huge_order].map(usize::from).contains(&order) {
            out.push_head(screen, &format!("{line} {}", mark(screen)));
        } else {
            let _ = writeln!(out, "{line}");
        }
    }
    if let (Some(blocks), Some(outside)) = (zone.free_huge_blocks, zone.extfrag_for_order_9) {
        let _ = writeln!(
            out,
            "free {} blocks: {}; free memory outside them: {outside} %",
            bytes(moment.huge_page_bytes),
            thousands(blocks)
        );
    } else if let Some(outside) = zone.extfrag_for_order_9 {
        let _ = writeln!(
            out,
            "free memory outside {} blocks: {outside} %",
            bytes(moment.huge_page_bytes)
        );
    }
    if !zone.first_free_blocks.is_empty() {
        let blocks: Vec<String> = zone
            .first_free_blocks
            .iter()
            .map(|&n| thousands(n))
            .collect();
        let _ = writeln!(
            out,
            "free blocks of the first orders: {}; of the others nothing is known",
            blocks.join(", ")
        );
    }
    if let Some(types) = &zone.free_by_type {
        let types: Vec<String> = types
            .iter()
            .filter(|(_, free)| free.pages > 0)
            .map(|(name, free)| {
                let least = if free.is_capped { " at least" } else { "" };
                format!("{} {}{least}", printable(name), mib(free.pages))
            })
            .collect();
        let _ = writeln!(out, "free by type: {}", types.join(", "));
    }
    if let Some(blocks) = &zone.pageblocks {
        let blocks: Vec<String> = blocks
            .iter()
            .filter(|(_, n)| **n > 0)
            .map(|(name, n)| format!("{name} {}", thousands(*n)))
            .collect();
        let _ = writeln!(out, "pageblocks by type: {}", blocks.join(", "));
    }
}

/// An index of -1 says that a block is free: there is no failure to explain.
fn index(value: f64) -> String {
    if value <= -1.0 {
        "would succeed".into()
    } else {
        format!("{value:.3}")
    }
}

fn overview(moments: &[Moment], source: &str, screen: &Screen, out: &mut Text) {
    // The sizes are those of the first that tells something; of one host they are the same in all.
    let first = moments.iter().find(|m| !m.zones.is_empty());
    let huge_order = first.map_or(9, |m| m.huge_order);
    let huge = bytes(first.map_or(2 << 20, |m| m.huge_page_bytes));
    let _ = writeln!(
        out,
        "{}: {} snapshots. unus. {CHEAP} and unus. {huge_order}: share of free memory in pieces too small for a block of order {CHEAP} (8 pages) and\n\
         {huge_order} (the unusable index, 0 to 1); extfrag: percent of it in pieces smaller than {huge}; then pageblocks by type",
        printable(source),
        moments.len()
    );
    let names = moments.iter().map(|m| m.name.chars().count());
    let width = names.max().unwrap_or(0).max("snapshot".len());
    let head = format!(
        "{:<width$} {:>4} {:>8} {:>10} {:>10} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7}",
        "snapshot",
        "node",
        "zone",
        "free MiB",
        huge,
        format!("unus. {CHEAP}"),
        format!("unus. {huge_order}"),
        "extfrag",
        "unmov.",
        "mov.",
        "recl."
    );
    out.push('\n');
    out.push_head(screen, &head);
    for moment in moments {
        for zone in &moment.zones {
            let dash = || "-".to_owned();
            let at = |order: u8| {
                let n = zone.unusable_index.get(usize::from(order));
                n.map_or_else(dash, |n| format!("{n:.3}"))
            };
            let blocks = |name: &str| {
                let n = zone.pageblocks.as_ref().and_then(|b| b.get(name));
                n.map_or_else(dash, |n| thousands(*n))
            };
            let _ = writeln!(
                out,
                "{:<width$} {:>4} {:>8} {:>10} {:>10} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7}",
                printable(&moment.name),
                zone.node,
                zone.zone,
                zone.free_pages
                    .map_or_else(dash, |n| number_of_mib(n, moment.page_size)),
                zone.free_huge_blocks.map_or_else(dash, thousands),
                at(CHEAP),
                at(huge_order),
                zone.extfrag_for_order_9
                    .map_or_else(dash, |n| n.to_string()),
                blocks("Unmovable"),
                blocks("Movable"),
                blocks("Reclaimable"),
            );
        }
    }
    let mut told = vec![];
    for unread in moments.iter().flat_map(|m| &m.unread) {
        if !told.contains(&(&unread.file, &unread.why)) {
            told.push((&unread.file, &unread.why));
        }
    }
    if !told.is_empty() {
        out.push('\n');
    }
    for (file, why) in told {
        let n = moments
            .iter()
            .filter(|m| m.unread.iter().any(|u| &u.file == file && &u.why == why))
            .count();
        let _ = writeln!(
            out,
            "{} of {n} snapshots: {}",
            printable(file),
            printable(why)
        );
    }
    let mut notes: Vec<&String> = moments.iter().flat_map(|m| &m.notes).collect();
    notes.sort();
    notes.dedup();
    for note in notes {
        let _ = writeln!(out, "note: {}", printable(note));
    }
}

/// Free memory of each zone by type, a line for each type and a column for each of up to four moments, with the difference
/// between the first and the last.
fn by_type(moments: &[Moment], screen: &Screen, out: &mut Text) {
    /// Moments that fit on a line.
    const MOST: usize = 4;
    let telling: Vec<&Moment> = moments
        .iter()
        .filter(|m| m.zones.iter().any(|z| z.free_by_type.is_some()))
        .collect();
    let (Some(first), Some(last)) = (telling.first(), telling.last()) else {
        return;
    };
    if telling.len() < 2 {
        return;
    }
    let shown: Vec<&Moment> = match telling.len() {
        ..=MOST => telling.clone(),
        n => [&telling[..1], &telling[n - 1..]].concat(),
    };
    let free = |m: &Moment, zone: &ZoneState, name: &str| {
        let is_it = |z: &&ZoneState| (z.node, &z.zone) == (zone.node, &zone.zone);
        let free = m
            .zones
            .iter()
            .find(is_it)?
            .free_by_type
            .as_ref()?
            .get(name)?;
        Some(free.pages as f64 * m.page_size as f64 / f64::from(1 << 20))
    };
    out.push('\n');
    let mut head = format!("{:<36}", "free by type, MiB");
    for moment in &shown {
        let _ = write!(head, " {:>12}", printable(&moment.name));
    }
    out.push_head(screen, &format!("{head} {:>12}", "difference"));
    for zone in &last.zones {
        for name in zone.free_by_type.iter().flat_map(|t| t.keys()) {
            let place = format!("Node {}, zone {}, {name}", zone.node, zone.zone);
            let all: Vec<Option<f64>> = shown.iter().map(|m| free(m, zone, name)).collect();
            if all.iter().all(|n| *n == Some(0.0)) {
                continue;
            }
            let number = |n: &Option<f64>| n.map_or_else(|| "-".to_owned(), |n| format!("{n:.1}"));
            let cells: String = all.iter().map(|n| format!(" {:>12}", number(n))).collect();
            let change = free(first, zone, name).zip(free(last, zone, name));
            let change = change.map_or_else(String::new, |(b, a)| format!("{:+.1}", a - b));
            let line = format!("{:<36}{cells} {change:>12}", printable(&place));
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
}

fn unread(moment: &Moment, out: &mut Text) {
    if !moment.unread.is_empty() {
        out.push('\n');
    }
    for unread in &moment.unread {
        let _ = writeln!(
            out,
            "{}: {}",
            printable(&unread.file),
            printable(&unread.why)
        );
    }
    for note in &moment.notes {
        let _ = writeln!(out, "note: {}", printable(note));
    }
}

fn mark(screen: &Screen) -> &'static str {
    if screen.unicode { "◂" } else { "<" }
}

fn number_of_mib(pages: u64, page_size: u64) -> String {
    format!(
        "{:.1}",
        pages as f64 * page_size as f64 / f64::from(1 << 20)
    )
}
