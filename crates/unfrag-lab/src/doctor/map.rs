//! The memory map: every pageblock by what holds it.
//!
//! - terminal: two cells a character (half blocks) in colour, a letter a cell without;
//! - HTML: one page that opens without a network.
//!
//! Invariant: a cell is one pageblock wherever the picture has room; where it has not, it is a run of
//! neighbours drawn as the worst among them, and the heading says of how many.

mod html;

pub use html::render as html;

use super::Examined;
use super::frames::{BLOCK, Block, Kind};
use crate::report::number::{bytes, thousands};
use std::fmt::Write as _;

/// What a block is drawn as, from the best to the worst for huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    /// No memory of the allocator.
    None,
    /// Wholly free.
    Free,
    /// A huge page in use.
    Huge,
    /// Clean page cache above all.
    Cache,
    /// Memory of processes above all.
    User,
    /// Unevictable memory above all.
    Unevictable,
    /// Holds something kept back at boot.
    Reserved,
    /// Holds page tables.
    PageTables,
    /// Holds other memory of the kernel.
    Kernel,
    /// Holds slab.
    Slab,
}

/// All, in order: letter, colour (of 256), colour in the page, name.
pub const CELLS: [(Cell, char, u8, &str, &str); 10] = [
    (Cell::None, ' ', 234, "#8885", "no memory"),
    (Cell::Free, '.', 253, "#dfe7ee", "wholly free"),
    (Cell::Huge, 'H', 33, "#1f6fd6", "a huge page in use"),
    (Cell::Cache, 'c', 151, "#9ccf9a", "clean page cache"),
    (Cell::User, 'u', 71, "#3f9447", "processes, other cache"),
    (
        Cell::Unevictable,
        'm',
        136,
        "#a98600",
        "unevictable, mlocked",
    ),
    (Cell::Reserved, 'r', 243, "#7b7f86", "reserved at boot"),
    (Cell::PageTables, 'p', 141, "#a06bd8", "page tables"),
    (Cell::Kernel, 'k', 208, "#f08a24", "other kernel memory"),
    (Cell::Slab, 'S', 160, "#d3322c", "slab"),
];

/// What a block is drawn as: fixed memory decides, however little of it there is, since it spoils the
/// block; else what there is most of.
pub fn cell(b: &Block) -> Cell {
    let most = |kinds: &[(Kind, Cell)]| {
        kinds
            .iter()
            .map(|&(k, c)| (b.of(k), c))
            .filter(|&(n, _)| n > 0)
            .max_by_key(|&(n, _)| n)
    };
    if b.is_absent() {
        return Cell::None;
    }
    let fixed = most(&[
        (Kind::Reserved, Cell::Reserved),
        (Kind::Absent, Cell::Reserved),
        (Kind::PageTables, Cell::PageTables),
        (Kind::Kernel, Cell::Kernel),
        (Kind::Slab, Cell::Slab),
    ]);
    let movable = [
        (Kind::Thp, Cell::Huge),
        (Kind::Hugetlb, Cell::Huge),
        (Kind::CleanCache, Cell::Cache),
        (Kind::User, Cell::User),
        (Kind::PerCpu, Cell::User),
        (Kind::Unevictable, Cell::Unevictable),
    ];
    match fixed.or_else(|| most(&movable)) {
        Some((_, cell)) => cell,
        None => Cell::Free,
    }
}

/// How the terminal map is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Whether colours may be used.
    pub color: bool,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

/// Rows of text that a zone takes at most.
const MOST_ROWS: usize = 48;

/// The map for a terminal; says what is missing where there are no page flags.
pub fn terminal(x: &Examined, look: Look) -> String {
    if x.blocks.is_empty() {
        return "There is no map without page flags: /proc/kpageflags, which only root may read.\n"
            .into();
    }
    let halves = look.color && look.unicode;
    let mut out = String::new();
    for (z, blocks) in x.diagnosis.zones.iter().zip(&x.blocks) {
        let cells: Vec<Cell> = blocks.blocks.iter().map(cell).collect();
        let room = look.width * MOST_ROWS * if halves { 2 } else { 1 };
        let each = cells.len().div_ceil(room).max(1);
        let cells: Vec<Cell> = cells
            .chunks(each)
            .map(|c| c.iter().copied().max().unwrap_or(Cell::None))
            .collect();
        let _ = writeln!(
            out,
            "Node {}, zone {}: from {:#x}, a cell is {} ({})",
            z.node,
            z.zone,
            blocks.first_pfn * 4096,
            match each {
                1 => "a pageblock".into(),
                n => format!("{n} pageblocks, drawn as the worst of them"),
            },
            bytes((each * BLOCK * 4096) as u64)
        );
        match halves {
            true => draw_halves(&cells, look.width, &mut out),
            false => draw_letters(&cells, look, &mut out),
        }
        out.push('\n');
    }
    legend(x, look, &mut out);
    out
}

fn style(cell: Cell) -> (char, u8) {
    let (_, letter, color, ..) = CELLS[cell as usize];
    (letter, color)
}

/// Two rows of cells in one of text: the upper half in the foreground, the lower in the background.
fn draw_halves(cells: &[Cell], width: usize, out: &mut String) {
    for rows in cells.chunks(2 * width) {
        let (upper, lower) = rows.split_at(rows.len().min(width));
        let mut last = None;
        for (i, &u) in upper.iter().enumerate() {
            let colors = (style(u).1, lower.get(i).map(|&l| style(l).1));
            if last != Some(colors) {
                let _ = match colors {
                    (u, Some(l)) => write!(out, "\x1b[38;5;{u};48;5;{l}m"),
                    (u, None) => write!(out, "\x1b[0;38;5;{u}m"),
                };
                last = Some(colors);
            }
            out.push('▀');
        }
        out.push_str("\x1b[0m\n");
    }
}

fn draw_letters(cells: &[Cell], look: Look, out: &mut String) {
    for row in cells.chunks(look.width) {
        let mut line = String::new();
        for &c in row {
            let (letter, color) = style(c);
            match look.color {
                true => {
                    let _ = write!(line, "\x1b[38;5;{color}m{letter}\x1b[0m");
                }
                false => line.push(letter),
            }
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Blocks drawn as each cell, over all zones.
fn totals(x: &Examined) -> [u64; CELLS.len()] {
    let mut n = [0; CELLS.len()];
    for b in x.blocks.iter().flat_map(|z| &z.blocks) {
        n[cell(b) as usize] += 1;
    }
    n
}

fn legend(x: &Examined, look: Look, out: &mut String) {
    let totals = totals(x);
    for (cell, letter, color, _, name) in CELLS {
        let n = totals[cell as usize];
        if n == 0 || cell == Cell::None {
            continue;
        }
        let sample = match (look.color, look.unicode) {
            (true, true) => format!("\x1b[38;5;{color}m██\x1b[0m"),
            (true, false) => format!("\x1b[38;5;{color}m{letter}\x1b[0m "),
            _ => format!("{letter} "),
        };
        let _ = writeln!(
            out,
            "{sample} {name:<24} {:>10} blocks {:>12}",
            thousands(n),
            bytes(n << 21)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(parts: &[(Kind, u16)]) -> Block {
        let mut b = Block::default();
        for &(k, n) in parts {
            b.0[k as usize] = n;
        }
        b
    }

    #[test]
    fn the_table_stands_in_the_order_of_the_cells() {
        for (i, (cell, ..)) in CELLS.iter().enumerate() {
            assert_eq!(*cell as usize, i);
        }
    }

    #[test]
    fn one_slab_page_decides() {
        assert_eq!(
            cell(&block(&[(Kind::Free, 511), (Kind::Slab, 1)])),
            Cell::Slab
        );
        assert_eq!(
            cell(&block(&[(Kind::Free, 100), (Kind::User, 412)])),
            Cell::User
        );
        assert_eq!(cell(&block(&[(Kind::Free, 512)])), Cell::Free);
        assert_eq!(cell(&block(&[(Kind::Absent, 512)])), Cell::None);
        assert_eq!(
            cell(&block(&[(Kind::Absent, 100), (Kind::Free, 412)])),
            Cell::Reserved
        );
    }

    #[test]
    fn two_rows_of_cells_share_a_row_of_text() {
        let mut out = String::new();
        draw_halves(&[Cell::Free, Cell::Slab, Cell::User], 2, &mut out);
        assert_eq!(out, "\x1b[38;5;253;48;5;71m▀\x1b[0;38;5;160m▀\x1b[0m\n");
    }
}
