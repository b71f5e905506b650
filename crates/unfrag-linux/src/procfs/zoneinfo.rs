//! `/proc/zoneinfo`: watermarks, counters and per-CPU lists of each zone (`spec: 7.2`).
//!
//! Kernels differ in which fields they print, where the zone's counters stand and how far names are
//! padded. Fields are therefore kept by name and in order, and [`Layout`] holds the rest.

use super::counters::Counters;
use super::notes::{self, Notes};
use super::row::{read_zone, text_of, write_zone};
use super::scan::Scan;
use crate::error::Error;
use std::fmt::Write;

mod lines;
mod zone;

pub use zone::{Layout, Pageset, Zone};
use zone::{MAX_WIDTH, read_protection};

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneInfo {
    /// The zones, in order; newer kernels list unpopulated ones too.
    pub zones: Vec<Zone>,
    /// What was not understood, and how the text differs from the canonical one.
    pub notes: Notes,
}

impl ZoneInfo {
    /// Reads the text: strictly if it is as the kernel writes it, else line by line.
    ///
    /// # Errors
    /// If no line of it is understood; names the first byte that does not fit the format.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        notes::read(
            bytes,
            Self::parse_strictly,
            Self::parse_leniently,
            Self::write,
            |read| &mut read.notes,
        )
    }

    fn parse_strictly(bytes: &[u8]) -> Result<Self, Error> {
        let mut scan = Scan::new("zoneinfo", bytes);
        let mut zones = vec![];
        while !scan.is_at_end() {
            zones.push(read(&mut scan)?);
        }
        Ok(Self {
            zones,
            ..Self::default()
        })
    }

    fn parse_leniently(source: &str) -> Option<Self> {
        let (zones, notes) = lines::read(source)?;
        Some(Self { zones, notes })
    }

    /// The text.
    pub fn write(&self) -> String {
        let text = text_of(|out| self.zones.iter().try_for_each(|zone| write(out, zone)));
        self.notes.apply(text)
    }

    /// The zone called `name` on `node`.
    pub fn zone(&self, node: u32, name: &str) -> Option<&Zone> {
        self.zones.iter().find(|z| z.node == node && z.name == name)
    }
}

fn read(scan: &mut Scan) -> Result<Zone, Error> {
    let (node, name) = read_zone(scan)?;
    scan.line_end()?;
    let mut zone = Zone {
        node,
        name,
        ..Zone::default()
    };
    if scan.accept("per-node stats") {
        scan.line_end()?;
        zone.per_node = Some(read_counters(scan, &mut zone.layout)?);
    }
    zone.free = scan.labelled("pages free")?;
    scan.line_end()?;
    while scan.indent() == 8 && !scan.sees("protection:") {
        read_counter(scan, &mut zone.pages)?;
    }
    zone.counters = read_counters(scan, &mut zone.layout)?;
    zone.layout.counters_before_protection = !zone.counters.0.is_empty();
    zone.protection = read_protection(scan)?;
    if !zone.layout.counters_before_protection {
        zone.counters = read_counters(scan, &mut zone.layout)?;
    }
    if scan.accept("pagesets") {
        scan.line_end()?;
        let mut pagesets = vec![];
        while scan.sees("cpu:") {
            pagesets.push(read_pageset(scan, &mut zone.layout)?);
        }
        zone.pagesets = Some(pagesets);
    }
    while scan.indent() == 2 {
        zone.layout.last_width = read_named(scan, &mut zone.last)?;
    }
    Ok(zone)
}

/// `name value` lines, indented as counters are.
fn read_counters(scan: &mut Scan, layout: &mut Layout) -> Result<Counters, Error> {
    let mut counters = Counters::default();
    while matches!(scan.indent(), 4 | 6) {
        layout.counter_indent = scan.indent();
        read_counter(scan, &mut counters)?;
    }
    Ok(counters)
}

fn read_counter(scan: &mut Scan, counters: &mut Counters) -> Result<(), Error> {
    let name = scan.word(b"")?;
    counters.push(name, scan.number()?);
    scan.line_end()
}

/// Reads a `name: value` line; gives the distance from the beginning of the name to the value.
fn read_named(scan: &mut Scan, counters: &mut Counters) -> Result<usize, Error> {
    scan.spaces();
    let from = scan.offset();
    let name = scan.word(b":")?;
    scan.expect(":")?;
    scan.spaces();
    let width = scan.offset() - from;
    if width > MAX_WIDTH {
        return Err(scan.error_at(from, "no kernel pads a name that far"));
    }
    counters.push(name, scan.number()?);
    scan.line_end()?;
    Ok(width)
}

fn read_pageset(scan: &mut Scan, layout: &mut Layout) -> Result<Pageset, Error> {
    let mut set = Pageset {
        cpu: scan.labelled("cpu:")?,
        ..Pageset::default()
    };
    scan.line_end()?;
    while scan.indent() == 14 {
        layout.pageset_width = read_named(scan, &mut set.fields)?;
    }
    if scan.sees("vm stats threshold:") {
        set.stat_threshold = Some(scan.labelled("vm stats threshold:")?);
        scan.line_end()?;
    }
    Ok(set)
}

fn write(out: &mut String, zone: &Zone) -> std::fmt::Result {
    let layout = &zone.layout;
    write_zone(out, zone.node, &zone.name)?;
    out.push('\n');
    if let Some(counters) = &zone.per_node {
        out.push_str("  per-node stats\n");
        write_counters(out, counters, layout)?;
    }
    writeln!(out, "  pages free     {}", zone.free)?;
    for (name, value) in zone.pages.iter() {
        writeln!(out, "        {name:<8} {value}")?;
    }
    if layout.counters_before_protection {
        write_counters(out, &zone.counters, layout)?;
    }
    out.push_str("        protection: (");
    for (i, pages) in zone.protection.iter().enumerate() {
        write!(out, "{}{pages}", if i > 0 { ", " } else { "" })?;
    }
    out.push_str(")\n");
    if !layout.counters_before_protection {
        write_counters(out, &zone.counters, layout)?;
    }
    if let Some(pagesets) = &zone.pagesets {
        out.push_str("  pagesets\n");
        pagesets
            .iter()
            .try_for_each(|set| write_pageset(out, set, layout))?;
    }
    zone.last.iter().try_for_each(|(name, value)| {
        writeln!(
            out,
            "  {:<width$}{value}",
            format!("{name}:"),
            width = layout.last_width
        )
    })
}

fn write_counters(out: &mut String, counters: &Counters, layout: &Layout) -> std::fmt::Result {
    let indent = layout.counter_indent;
    counters
        .iter()
        .try_for_each(|(n, value)| writeln!(out, "{:indent$}{n:<12} {value}", ""))
}

fn write_pageset(out: &mut String, set: &Pageset, layout: &Layout) -> std::fmt::Result {
    writeln!(out, "    cpu: {}", set.cpu)?;
    for (name, value) in set.fields.iter() {
        let width = layout.pageset_width;
        writeln!(out, "{:14}{:<width$}{value}", "", format!("{name}:"))?;
    }
    match set.stat_threshold {
        Some(threshold) => writeln!(out, "  vm stats threshold: {threshold}"),
        None => Ok(()),
    }
}
