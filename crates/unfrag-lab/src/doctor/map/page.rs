//! The map as one HTML page: a canvas a zone, a square a pageblock; the pointer shows what it holds.
//!
//! Invariant: the page loads nothing, and nothing from the evidence reaches it unescaped.

use super::cell::{CELLS, Cell, cell, totals};
use super::memory_blocks;
use crate::doctor::examined::Examined;
use crate::doctor::frames::FrameUse;
use crate::doctor::text;
use crate::report::html_page::{self, STYLE, escape, escape_lines, fill};
use crate::report::number::thousands;
use crate::report::screen::Screen;
use serde::Serialize;
use std::fmt::Write as _;

const PAGE: &str = include_str!("../../../assets/page/memory_map.html");
const SCRIPT: &str = include_str!("../../../assets/page/memory_map.js");

#[derive(Serialize)]
struct Data<'a> {
    cells: Vec<CellData<'a>>,
    zones: Vec<ZoneData<'a>>,
}

#[derive(Serialize)]
struct CellData<'a> {
    color: &'a str,
    name: &'a str,
    /// Whether it can be moved or dropped.
    moves: bool,
}

#[derive(Serialize)]
struct ZoneData<'a> {
    node: u32,
    zone: &'a str,
    first_pfn: u64,
    /// A digit a block: index into `cells`.
    blocks: String,
    /// Free frames of each block.
    free: Vec<u16>,
}

/// The map as a page.
pub fn html(x: &Examined) -> String {
    let d = &x.diagnosis;
    let title = format!("Memory map of {}", d.source);
    fill(PAGE, |name| match name {
        "title" => escape(&title),
        "css" => STYLE.into(),
        "summary" => summary(x),
        "legend" => legend(x),
        "zones" => zones(x),
        "report" => escape_lines(&text::render(d, &Screen::default())),
        "data" => data(x),
        "script" => SCRIPT.into(),
        other => unreachable!("the page's template has no {other}"),
    })
}

fn summary(x: &Examined) -> String {
    let f = &x.diagnosis.huge_pages;
    let count = |n: Option<u64>| n.map_or("not known".into(), thousands);
    let sentence = match x.blocks.is_empty() {
        true => {
            "There is no map without page flags: /proc/kpageflags, which only root may read.".into()
        }
        false => format!(
            "A square is a pageblock of 2 MiB, in the order of addresses, coloured by what holds it. A single \
             page of the kernel is in the way of a huge page, so it decides the colour; what can be moved is the paler the less of it \
             there is. Huge pages to be had: {} at once, {} \
             after compaction, {} by writing vm.nr_hugepages until it grows no more.",
            f.now.map_or_else(|| "not known".into(), thousands),
            count(f.after_compaction),
            count(f.by_asking_again)
        ),
    };
    format!("<p>{}</p>", escape(&sentence))
}

fn legend(x: &Examined) -> String {
    let totals = totals(x);
    let mut out = String::new();
    for (cell, _, color, name) in CELLS.map(|(c, l, _, color, name)| (c, l, color, name)) {
        let n = totals[cell as usize];
        if n > 0 {
            let _ = writeln!(
                out,
                "<li><span class=\"swatch\" style=\"background:{color}\"></span>{name} <small>{} blocks</small></li>",
                thousands(n)
            );
        }
    }
    out
}

fn zones(x: &Examined) -> String {
    let mut out = String::new();
    for (i, z) in x.diagnosis.zones.iter().enumerate().take(x.blocks.len()) {
        let _ = writeln!(
            out,
            "<section><h2>Node {}, zone {}</h2><p>{}</p><canvas data-zone=\"{i}\" role=\"img\" \
             aria-label=\"map of zone {}\"></canvas><p class=\"under\" data-under=\"{i}\">&nbsp;</p></section>",
            z.node,
            escape(&z.zone),
            escape(&z.verdict),
            escape(&z.zone)
        );
    }
    if let Some(found) = &x.diagnosis.memory_blocks {
        let text = memory_blocks::terminal(found, x.diagnosis.page_size, &Screen::default());
        let _ = writeln!(
            out,
            "<section><h2>Memory blocks</h2><pre>{}</pre></section>",
            escape_lines(&text)
        );
    }
    out
}

fn data(x: &Examined) -> String {
    let data = Data {
        cells: CELLS
            .iter()
            .map(|&(cell, _, _, color, name)| CellData {
                color,
                name,
                moves: matches!(cell, Cell::Cache | Cell::User | Cell::Unevictable),
            })
            .collect(),
        zones: x
            .diagnosis
            .zones
            .iter()
            .zip(&x.blocks)
            .map(|(z, b)| ZoneData {
                node: z.node,
                zone: &z.zone,
                first_pfn: b.first_pfn,
                blocks: b
                    .blocks
                    .iter()
                    .map(|b| char::from(b'0' + cell(b) as u8))
                    .collect(),
                free: b.blocks.iter().map(|b| b.of(FrameUse::Free)).collect(),
            })
            .collect(),
    };
    html_page::json(&data)
}
