//! An inspection as text.

use crate::output::Screen;
use crate::quantity::thousands;
use crate::terminal::printable;
use std::fmt::Write as _;
use unfrag_lab::inspect::{Inspection, Moment, ZoneState};
use unfrag_lab::report::number::order_size;

/// Orders of special interest: the last cheap one, and that of a huge page.
const STRESSED: [usize; 2] = [3, 9];

/// The whole inspection: in full if it is of one moment, else a line for each zone and moment.
pub fn render(inspection: &Inspection, screen: &Screen) -> String {
    let mut out = String::new();
    match inspection.snapshots.as_slice() {
        [moment] => full(moment, &inspection.source, screen, &mut out),
        moments => overview(moments, &inspection.source, screen, &mut out),
    }
    out
}

fn full(moment: &Moment, source: &str, screen: &Screen, out: &mut String) {
    let title = match moment.name.as_str() {
        name if name == source => source.to_owned(),
        name => format!("{source}, snapshot {}", printable(name)),
    };
    let _ = writeln!(out, "{}", stressed(&title, screen));
    for zone in &moment.zones {
        full_zone(zone, screen, out);
    }
    unread(moment, out);
}

fn full_zone(zone: &ZoneState, screen: &Screen, out: &mut String) {
    let _ = write!(
        out,
        "\nNode {}, zone {}: {} free",
        zone.node,
        zone.zone,
        mib(zone.free_pages)
    );
    if let Some(managed) = zone.managed_pages {
        let _ = write!(out, " of {}", mib(managed));
    }
    if let Some(pcp) = zone.pcp_pages {
        let _ = write!(out, ", {} on per-CPU lists", mib(pcp));
    }
    out.push('\n');
    if !zone.watermarks.is_empty() {
        let marks: Vec<String> = ["min", "low", "high", "boost"]
            .iter()
            .filter_map(|&m| Some(format!("{m} {}", thousands(*zone.watermarks.get(m)?))))
            .collect();
        let _ = writeln!(
            out,
            "watermarks in pages, boost included: {}",
            marks.join(", ")
        );
    }
    let head = format!(
        "{:>5} {:>8} {:>12} {:>10} {:>9} {:>14}",
        "order", "size", "free blocks", "free MiB", "unusable", "fragmentation"
    );
    let _ = writeln!(out, "{}", stressed(&head, screen));
    for (order, &blocks) in zone.free_blocks.iter().enumerate() {
        let (Some(unusable), Some(fragmentation)) = (
            zone.unusable_index.get(order),
            zone.fragmentation_index.get(order),
        ) else {
            continue;
        };
        let line = format!(
            "{order:>5} {:>8} {:>12} {:>10} {unusable:>9.3} {:>14}",
            order_size(order),
            thousands(blocks),
            number_of_mib(blocks << order),
            index(*fragmentation),
        );
        if STRESSED.contains(&order) {
            let _ = writeln!(
                out,
                "{}",
                stressed(&format!("{line} {}", mark(screen)), screen)
            );
        } else {
            let _ = writeln!(out, "{line}");
        }
    }
    let _ = writeln!(
        out,
        "free 2 MiB blocks: {}; free memory outside them (extfrag_for_order 9): {} %",
        thousands(zone.free_huge_blocks),
        zone.extfrag_for_order_9
    );
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
        "block free".into()
    } else {
        format!("{value:.3}")
    }
}

fn overview(moments: &[Moment], source: &str, screen: &Screen, out: &mut String) {
    let _ = writeln!(
        out,
        "{}: {} snapshots; unusable index at orders 3 and 9, extfrag_for_order 9 in percent",
        source,
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
        "2 MiB",
        "unus. 3",
        "unus. 9",
        "extfrag",
        "unmov.",
        "mov.",
        "recl."
    );
    let _ = writeln!(out, "\n{}", stressed(&head, screen));
    for moment in moments {
        for zone in &moment.zones {
            let at = |order: usize| zone.unusable_index.get(order).copied().unwrap_or(1.0);
            let blocks = |name: &str| {
                let n = zone.pageblocks.as_ref().and_then(|b| b.get(name));
                n.map_or("-".into(), |n| thousands(*n))
            };
            let _ = writeln!(
                out,
                "{:<width$} {:>4} {:>8} {:>10} {:>10} {:>8.3} {:>8.3} {:>8} {:>7} {:>7} {:>7}",
                printable(&moment.name),
                zone.node,
                zone.zone,
                number_of_mib(zone.free_pages),
                thousands(zone.free_huge_blocks),
                at(3),
                at(9),
                zone.extfrag_for_order_9,
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
        let _ = writeln!(out, "{file} of {n} snapshots: {why}");
    }
}

fn unread(moment: &Moment, out: &mut String) {
    if !moment.unread.is_empty() {
        out.push('\n');
    }
    for unread in &moment.unread {
        let _ = writeln!(out, "{}: {}", unread.file, unread.why);
    }
}

fn stressed(text: &str, screen: &Screen) -> String {
    if screen.color {
        format!("\x1b[1m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

fn mark(screen: &Screen) -> &'static str {
    if screen.unicode { "◂" } else { "<" }
}

fn mib(pages: u64) -> String {
    format!("{} MiB", number_of_mib(pages))
}

fn number_of_mib(pages: u64) -> String {
    format!("{:.1}", pages as f64 / 256.0)
}
