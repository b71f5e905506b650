//! The map for a terminal.
//!
//! Invariant: a cell is one pageblock where the picture has room. Where it has not, a cell is a run of
//! neighbours drawn as the worst among them, and the heading says of how many.

use super::cell::{CELLS, Cell, cell, totals};
use super::memory_blocks;
use crate::doctor::examined::Examined;
use crate::doctor::frames::BLOCK_FRAMES;
use crate::report::number::{bytes, thousands};
use crate::report::screen::{Screen, Style, Text, printable};
use std::fmt::Write as _;

/// Rows of text that a zone takes at most.
const MOST_ROWS: usize = 48;

/// The map for a terminal; says what is missing where there are no page flags.
pub fn terminal(x: &Examined, screen: &Screen) -> Text {
    if x.blocks.is_empty() {
        return "There is no map without page flags: /proc/kpageflags, which only root may read.\n"
            .into();
    }
    let halves = screen.color && screen.unicode;
    let mut out = Text::new();
    for (z, blocks) in x.diagnosis.zones.iter().zip(&x.blocks) {
        let cells: Vec<Cell> = blocks.blocks.iter().map(cell).collect();
        let room = screen.width * MOST_ROWS * if halves { 2 } else { 1 };
        let each = cells.len().div_ceil(room).max(1);
        let cells: Vec<Cell> = cells
            .chunks(each)
            .map(|c| c.iter().copied().max().unwrap_or(Cell::None))
            .collect();
        let _ = writeln!(
            out,
            "Node {}, zone {}: from {:#x}, a cell is {} ({})",
            z.node,
            printable(&z.zone),
            blocks.first_pfn * 4096,
            match each {
                1 => "a pageblock".into(),
                n => format!("{n} pageblocks, drawn as the worst of them"),
            },
            bytes((each * BLOCK_FRAMES * 4096) as u64)
        );
        match halves {
            true => draw_halves(&cells, screen.width, &mut out),
            false => draw_letters(&cells, screen, &mut out),
        }
        out.push('\n');
    }
    legend(x, screen, &mut out);
    if let Some(found) = &x.diagnosis.memory_blocks {
        out.push('\n');
        out.append(&memory_blocks::terminal(
            found,
            x.diagnosis.page_size,
            screen,
        ));
    }
    out
}

/// The letter and the terminal colour of a cell.
fn glyph(cell: Cell) -> (char, u8) {
    let (_, letter, color, ..) = CELLS[cell as usize];
    (letter, color)
}

/// Two rows of cells in one of text: the upper half in the foreground, the lower in the background.
fn draw_halves(cells: &[Cell], width: usize, out: &mut Text) {
    for rows in cells.chunks(2 * width) {
        let (upper, lower) = rows.split_at(rows.len().min(width));
        let mut last = None;
        let mut before = Style::Plain;
        for (i, &u) in upper.iter().enumerate() {
            let colors = (glyph(u).1, lower.get(i).map(|&l| glyph(l).1));
            if last != Some(colors) {
                let style = match colors {
                    (u, Some(l)) => Style::InkUpon(u, l),
                    (u, None) => Style::Ink(u),
                };
                // A ground without its own end would go on below a row that has none.
                out.end(before);
                out.begin(style);
                before = style;
                last = Some(colors);
            }
            out.push('▀');
        }
        out.end(before);
        out.push('\n');
    }
}

/// A letter a cell.
fn draw_letters(cells: &[Cell], screen: &Screen, out: &mut Text) {
    for row in cells.chunks(screen.width) {
        let mut line = Text::new();
        for &c in row {
            let (letter, color) = glyph(c);
            line.push_styled(
                screen.style(Style::Ink(color)),
                letter.encode_utf8(&mut [0; 4]),
            );
        }
        line.drop_blanks();
        out.append(&line);
        out.push('\n');
    }
}

/// The cells that occur, with the blocks of each.
fn legend(x: &Examined, screen: &Screen, out: &mut Text) {
    let totals = totals(x);
    out.push_str("A block is drawn once, by what keeps it from being a huge page, however little of it that is:\n");
    for (cell, letter, color, _, name) in CELLS {
        let n = totals[cell as usize];
        if n == 0 || cell == Cell::None {
            continue;
        }
        let sample = match (screen.color, screen.unicode) {
            (true, true) => "██".to_owned(),
            _ => letter.to_string(),
        };
        out.push_styled(screen.style(Style::Ink(color)), &sample);
        let _ = writeln!(
            out,
            "{:pad$} {name:<24} {:>10} blocks",
            "",
            thousands(n),
            pad = 2 - sample.chars().count()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rows_of_cells_share_a_line() {
        let mut out = Text::new();
        draw_halves(&[Cell::Free, Cell::Slab, Cell::User], 2, &mut out);
        assert_eq!(
            &*out,
            "\x1b[38;5;253;48;5;71m▀\x1b[0m\x1b[38;5;160m▀\x1b[0m\n"
        );
    }
}
