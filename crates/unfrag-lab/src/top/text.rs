//! A view as text: the blocks as a coloured map, then numbers.

use super::show::Shown;
use super::{Area, View};
use crate::report::number::{bytes, thousands};
use crate::report::screen::{Screen, Style as Look, Text, printable};
use std::fmt::Write as _;
use unfrag_pool::cells::{Cell, Kind};

/// What can be shown.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// What the terminal can show.
    pub screen: Screen,
    /// Rows of all areas together, at most.
    pub rows: usize,
}

const FILLED: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The view, after `before`.
pub fn render(view: &View, before: Option<&View>, style: &Style) -> Text {
    let shown = Shown::new(view, before);
    let mut out = Text::new();
    let _ = write!(
        out,
        "{}: {} free",
        printable(&view.title),
        bytes(view.sizes.bytes(shown.free_frames))
    );
    if let Some(frames) = shown.frames.filter(|n| *n > 0) {
        let percent = shown.free_frames.saturating_mul(100) / frames;
        let _ = write!(out, " of {} ({percent} %)", bytes(view.sizes.bytes(frames)));
    }
    if let Some(beside) = view.memory.beside() {
        let _ = write!(out, " in zones + {beside}");
    }
    let large = view.sizes.of_order(view.sizes.large_order());
    let _ = writeln!(
        out,
        ", {} free blocks of {large}",
        thousands(shown.free_huge)
    );
    for area in &view.areas {
        map(view, area, style, &mut out);
    }
    if !view.areas.is_empty() {
        legend(&style.screen, &mut out);
    }
    if let Some(w) = &shown.waits {
        let _ = writeln!(
            out,
            "{} allocations waited: half of them less than {}, 99 % less than {}, all less than {}",
            thousands(w.count),
            time(w.half_below_ns),
            time(w.p99_below_ns),
            time(w.all_below_ns)
        );
    }
    if !shown.per_second.is_empty() {
        let name = shown.per_second.keys().map(|n| n.len()).max().unwrap_or(0);
        let columns = (style.screen.width / (name + 16)).max(1);
        let cells: Vec<String> = shown
            .per_second
            .iter()
            .map(|(n, rate)| format!("{n:<name$} {:>10}/s", per_second(*rate)))
            .collect();
        for row in cells.chunks(columns) {
            let _ = writeln!(out, "{}", row.join("   ").trim_end());
        }
    }
    out
}

fn per_second(rate: f64) -> String {
    match rate {
        r if r >= 10.0 => thousands(r.round() as u64),
        r => format!("{r:.1}"),
    }
}

fn time(ns: u64) -> String {
    match ns {
        n if n < 10_000 => format!("{n} ns"),
        n if n < 10_000_000 => format!("{} us", n / 1000),
        n => format!("{} ms", n / 1_000_000),
    }
}

/// A cell of the picture for so many blocks: the worst kind among them, and how full they are together.
fn together(cells: &[Cell]) -> Cell {
    let kind = cells.iter().map(|c| c.kind).max().unwrap_or(Kind::Absent);
    let sum: usize = cells.iter().map(|c| usize::from(c.eighths)).sum();
    Cell {
        kind,
        eighths: sum.div_ceil(cells.len().max(1)) as u8,
    }
}

fn map(view: &View, area: &Area, style: &Style, out: &mut Text) {
    let areas = view.areas.len();
    let pageblock = view.sizes.bytes(1 << view.sizes.pageblock_order);
    let block = area.block_bytes.unwrap_or(pageblock);
    let screen = &style.screen;
    let room = screen.width * (style.rows / areas).max(1);
    let each = area.cells.len().div_ceil(room).max(1);
    let of = bytes((each as u64).saturating_mul(block));
    let _ = writeln!(out, "{}: a cell is {of}", printable(&area.name));
    let cells: Vec<Cell> = area.cells.chunks(each).map(together).collect();
    for row in cells.chunks(screen.width) {
        let mut before = Look::Plain;
        for cell in row {
            let look = screen.style(Look::Ink(color(cell.kind)));
            if look != before {
                out.end(before);
                out.begin(look);
                before = look;
            }
            out.push(glyph(*cell, screen));
        }
        out.end(before);
        out.push('\n');
    }
}

fn color(kind: Kind) -> u8 {
    match kind {
        Kind::Absent => 240,
        Kind::Free => 34,
        Kind::Movable => 39,
        Kind::Reclaimable => 214,
        Kind::Unmovable => 160,
    }
}

/// With colours the height says how full a block is, and the colour of what; without, a letter says of what, in upper case
/// from half on.
fn glyph(cell: Cell, screen: &Screen) -> char {
    let letter = match cell.kind {
        Kind::Absent => return ' ',
        Kind::Free => return '.',
        Kind::Movable => 'm',
        Kind::Reclaimable => 'r',
        Kind::Unmovable => 'u',
    };
    if screen.color && screen.unicode {
        FILLED[usize::from(cell.eighths.clamp(1, 8))]
    } else if cell.eighths > 4 {
        letter.to_ascii_uppercase()
    } else {
        letter
    }
}

fn legend(screen: &Screen, out: &mut Text) {
    let kinds = [
        (Kind::Free, "free"),
        (Kind::Movable, "movable"),
        (Kind::Reclaimable, "reclaimable"),
        (Kind::Unmovable, "unmovable"),
    ];
    for (kind, name) in kinds {
        let eighths = if kind == Kind::Free { 0 } else { 8 };
        let sign = glyph(Cell { kind, eighths }, screen);
        let look = screen.style(Look::Ink(color(kind)));
        out.push_styled(look, sign.encode_utf8(&mut [0; 4]));
        let _ = write!(out, " {name}  ");
    }
    out.drop_blanks();
    let half = if screen.color && screen.unicode {
        ""
    } else {
        "; small letters are less than half full"
    };
    let _ = writeln!(out, "{half}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_has_a_letter_for_each_block_without_colours() {
        let cell = |text: &str| Cell::parse(text.as_bytes()).expect("a block");
        let view = View {
            title: "a pool".into(),
            areas: vec![Area {
                name: "Node 0".into(),
                cells: ["--", "..", "m8", "m1", "u2", "r5"].map(cell).into(),
                block_bytes: None,
            }],
            free: vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            frames: Some(2560),
            ..View::default()
        };
        let style = Style {
            screen: Screen {
                width: 4,
                color: false,
                unicode: true,
            },
            rows: 10,
        };
        let text = render(&view, None, &style).into_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "a pool: 2 MiB free of 10 MiB (20 %), 1 free blocks of 2 MiB"
        );
        assert_eq!(&lines[1..4], ["Node 0: a cell is 2 MiB", " .Mm", "uR"]);
        let small = Style { rows: 1, ..style };
        let text = render(&view, None, &small).into_string();
        assert_eq!(
            text.lines().nth(2),
            Some(".Mu"),
            "two blocks a cell: {text}"
        );
    }
}
