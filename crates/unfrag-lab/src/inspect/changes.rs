//! A comparison as text: a table of what differs.
//!
//! Invariant: a number that only one side knows has no difference; numbers that are equal stand in one line, together, but
//! for those that are 0.

use super::compare::{Change, Comparison, ZoneChange};
use crate::report::number::{bytes, thousands};
use crate::report::screen::{Screen, Text, printable};
use std::fmt::Write as _;

/// The whole comparison.
pub fn render(c: &Comparison, screen: &Screen) -> Text {
    let mut out = Text::new();
    let title = format!("{} -> {}", printable(&c.before), printable(&c.after));
    out.push_head(screen, &title);
    for zone in &c.zones {
        let _ = writeln!(out, "\nNode {}, zone {}", zone.node, zone.zone);
        let (table, equal) = rows(zone, c);
        if table.is_empty() {
            out.push_str("no differences\n");
        } else {
            let columns = format!(
                "{:<34} {:>14} {:>14} {:>14}",
                "", "before", "after", "difference"
            );
            out.push_head(screen, &columns);
            out.push_str(&table);
        }
        if !equal.is_empty() {
            let _ = writeln!(out, "equal: {}", equal.join("; "));
        }
    }
    for (which, zones) in [("before", &c.only_before), ("after", &c.only_after)] {
        if !zones.is_empty() {
            let _ = writeln!(out, "\nonly {which}: {}", zones.join("; "));
        }
    }
    if !c.notes.is_empty() {
        out.push('\n');
    }
    for note in &c.notes {
        let _ = writeln!(out, "note: {}", printable(note));
    }
    out
}

/// Rows of what differs, and what is equal.
fn rows(z: &ZoneChange, c: &Comparison) -> (String, Vec<String>) {
    let mut out = String::new();
    let mut equal: Vec<String> = vec![];
    let mut row =
        |name: String, before: Option<String>, after: Option<String>, change: Option<String>| {
            let dash = || "-".to_owned();
            if before.is_none() && after.is_none() {
                return;
            }
            if change.as_deref() == Some("0") {
                let after = after.unwrap_or_default();
                // What there is none of on either side tells nothing.
                if after.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
                    equal.push(format!("{name} {after}"));
                }
                return;
            }
            let _ = writeln!(
                out,
                "{name:<34} {:>14} {:>14} {:>14}",
                before.unwrap_or_else(dash),
                after.unwrap_or_else(dash),
                change.unwrap_or_default()
            );
        };
    let mut count = |name: String, n: &Change<u64>| {
        row(
            name,
            n.before.map(thousands),
            n.after.map(thousands),
            n.change.map(whole),
        );
    };
    count("free pages".into(), &z.free_pages);
    count("pages kept by CPUs (per-CPU lists)".into(), &z.pcp_pages);
    let huge = bytes(c.page_size << c.huge_order);
    count(format!("free {huge} blocks"), &z.free_huge_blocks);
    count(
        format!("% free outside {huge} blocks"),
        &z.extfrag_for_order_9,
    );
    for (order, n) in z.free_blocks.iter().enumerate() {
        let size = bytes(c.page_size << order);
        count(format!("free blocks, order {order} ({size})"), n);
    }
    for (mark, n) in &z.watermarks {
        count(format!("watermark {mark}"), n);
    }
    for (kind, n) in &z.pageblocks {
        count(format!("pageblocks, {kind}"), n);
    }
    for (kind, n) in &z.free_by_type {
        count(format!("free pages, {kind}"), n);
    }
    for (order, n) in z.unusable_index.iter().enumerate() {
        let share = |n: f64| format!("{n:.3}");
        let change = n.change.map(|n| match n {
            0.0 => "0".into(),
            n => format!("{n:+.3}"),
        });
        row(
            format!("share too small for order {order}"),
            n.before.map(share),
            n.after.map(share),
            change,
        );
    }
    (out, equal)
}

/// A difference with its sign.
fn whole(n: f64) -> String {
    match n {
        0.0 => "0".into(),
        n if n < 0.0 => format!("-{}", thousands(n.abs() as u64)),
        n => format!("+{}", thousands(n as u64)),
    }
}
