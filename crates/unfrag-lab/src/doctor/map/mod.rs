//! The memory map: every pageblock by what holds it.
//!
//! - `cell`: what a pageblock is drawn as.
//! - [`terminal`]: two cells a character (half blocks) in colour, a letter a cell without.
//! - [`html`]: one page that opens without a network.

mod cell;
mod memory_blocks;
mod page;
mod terminal;

pub use cell::{CELLS, Cell, cell};
pub use page::html;
pub use terminal::terminal;
