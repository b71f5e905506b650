//! The blocks in which memory is unplugged, as part of the map: which could go, and what keeps the others.
//!
//! Invariant: a block that one page keeps is drawn as kept, by whatever keeps most of it.

use super::cell::{CELLS, Cell};
use crate::doctor::frames::FrameUse;
use crate::doctor::memory_blocks::{Block, Unpluggable, name};
use crate::report::columns;
use crate::report::number::{bytes, counted, thousands};
use crate::report::screen::{Screen, Style, Text};
use std::fmt::Write as _;

/// Blocks that are listed: those that the fewest pages keep.
const LISTED: usize = 8;

/// What a block is drawn as.
fn cell(block: &Block) -> Cell {
    match block.kept_by.first() {
        Some((FrameUse::Slab, _)) => Cell::Slab,
        Some((FrameUse::PageTables, _)) => Cell::PageTables,
        Some((FrameUse::Reserved, _)) => Cell::Reserved,
        Some(_) => Cell::Kernel,
        None if block.to_move == 0 => Cell::Free,
        None => Cell::User,
    }
}

/// The blocks as text; `page_size` is the host's.
pub(super) fn terminal(found: &Unpluggable, page_size: u64, screen: &Screen) -> Text {
    let mut out = Text::new();
    let size = bytes(found.block_bytes);
    let _ = writeln!(
        out,
        "Memory blocks of {size}, as they are unplugged: {} of {} could go",
        thousands(found.can_go),
        thousands(found.online)
    );
    for row in found.blocks.chunks(screen.width.min(64)) {
        for block in row {
            let (_, letter, color, ..) = CELLS[cell(block) as usize];
            let mut text = [0; 4];
            let text = letter.encode_utf8(&mut text);
            out.push_styled(screen.style(Style::Ink(color)), text);
        }
        let _ = writeln!(out, "  from block {}", row[0].number);
    }
    let letter = |c: Cell| CELLS[c as usize].1;
    let _ = writeln!(
        out,
        "{} can go as it is, {} after its pages have moved or were dropped; kept by slab {}, page tables {}, what was reserved at boot {}, other kernel memory {}",
        letter(Cell::Free),
        letter(Cell::User),
        letter(Cell::Slab),
        letter(Cell::PageTables),
        letter(Cell::Reserved),
        letter(Cell::Kernel)
    );
    let mut kept: Vec<&Block> = found.blocks.iter().filter(|b| b.kept() > 0).collect();
    kept.sort_by_key(|b| (b.kept(), b.number));
    if kept.is_empty() {
        return out;
    }
    let mut rows = vec![["block", "kept by", "to move"].map(String::from).to_vec()];
    for block in kept.iter().take(LISTED) {
        let by: Vec<String> = block
            .kept_by
            .iter()
            .map(|(kind, n)| format!("{} ({})", name(*kind), counted(*n, "page")))
            .collect();
        rows.push(vec![
            block.number.to_string(),
            by.join(", "),
            bytes(block.to_move.saturating_mul(page_size)),
        ]);
    }
    let _ = writeln!(out, "Those that the fewest pages keep:");
    columns::push(&mut out, "  ", 2, &rows);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_drawn_as_what_keeps_most_of_it() {
        let block = |number, kept_by: &[(FrameUse, u64)], to_move| Block {
            number,
            to_move,
            free: 10,
            kept_by: kept_by.to_vec(),
        };
        let found = Unpluggable {
            block_bytes: 128 << 20,
            online: 4,
            can_go: 2,
            kept_by: vec![],
            least: None,
            blocks: vec![
                block(0, &[(FrameUse::Reserved, 100), (FrameUse::Slab, 3)], 5),
                block(1, &[], 0),
                block(2, &[], 7),
                block(9, &[(FrameUse::Slab, 1)], 0),
            ],
        };
        let text = terminal(&found, 4096, &Screen::default()).into_string();
        assert!(text.contains("\nr.uS  from block 0\n"), "{text}");
        assert!(text.contains("2 of 4 could go"), "{text}");
        let listed: Vec<&str> = text
            .lines()
            .skip_while(|l| !l.contains("kept by  "))
            .collect();
        assert!(
            listed[1].trim_start().starts_with("9 "),
            "the fewest first: {text}"
        );
    }
}
