//! What the kernel says of the frames of a process: the order of the folio that each is in, and pages of zeroes.
//!
//! A block's flags are read at once and kept as two bits a frame, since a process' pages lie in a block one after the other.
//!
//! Invariant: where flags cannot be read, nothing is said of any frame.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use unfrag_linux::kpageflags::{COMPOUND_HEAD, COMPOUND_TAIL, NAME, ZERO_PAGE};

/// Flags of frames, by block.
pub(super) struct Flags {
    file: Option<File>,
    /// Frames in a block, as a power of two.
    order: u32,
    blocks: HashMap<u64, Block>,
}

/// The frames of a block: where a folio begins, and pages of zeroes.
struct Block {
    begins: Vec<bool>,
    zeroes: Vec<bool>,
}

impl Flags {
    /// The flags of the host whose procfs this is.
    pub fn open(proc: &Path, order: u32) -> Flags {
        Flags {
            file: File::open(proc.join(NAME)).ok(),
            order,
            blocks: HashMap::new(),
        }
    }

    /// Whether they can be read.
    pub fn are_there(&self) -> bool {
        self.file.is_some()
    }

    /// Whether a frame holds the zeroes that all who only read share; `None` where nothing is known.
    pub fn is_zeroes(&mut self, frame: u64) -> Option<bool> {
        let (block, at) = self.block(frame)?;
        block.zeroes.get(at).copied()
    }

    /// Order of the folio that a frame is in, that of a block at most; `None` where nothing is known.
    pub fn folio_order(&mut self, frame: u64) -> Option<u32> {
        let (block, at) = self.block(frame)?;
        let begins = &block.begins;
        let first = begins.get(..=at)?.iter().rposition(|b| *b).unwrap_or(0);
        let end = begins[at + 1..].iter().position(|b| *b);
        let end = end.map_or(begins.len(), |n| at + 1 + n);
        Some((end - first).ilog2())
    }

    fn block(&mut self, frame: u64) -> Option<(&Block, usize)> {
        let (number, at) = (frame >> self.order, frame & ((1 << self.order) - 1));
        if !self.blocks.contains_key(&number) {
            let block = read(self.file.as_ref()?, number << self.order, 1 << self.order)?;
            self.blocks.insert(number, block);
        }
        Some((&self.blocks[&number], at as usize))
    }
}

fn read(file: &File, first: u64, frames: usize) -> Option<Block> {
    let mut bytes = vec![0; 8 * frames];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], 8 * first + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    let words = bytes[..filled].as_chunks::<8>().0;
    let words = || words.iter().map(|w| u64::from_le_bytes(*w));
    Some(Block {
        begins: words()
            .map(|w| w & COMPOUND_TAIL == 0 || w & COMPOUND_HEAD != 0)
            .collect(),
        zeroes: words().map(|w| w & ZERO_PAGE != 0).collect(),
    })
}
