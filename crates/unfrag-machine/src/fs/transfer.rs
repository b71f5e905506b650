//! Transfers between a file system's blocks and pages.

use crate::block::{BIO_PAGES, Dir, Done};
use unfrag_eras::Pfn;

/// A run of blocks to transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockRun {
    pub fs: u8,
    pub block: u32,
    pub dir: Dir,
    pub sync: bool,
    pub done: Done,
    /// See [`Bio::room`].
    pub room: u8,
}

/// Pages of one transfer.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    pages: [u32; BIO_PAGES],
    pub len: u8,
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            pages: [0; BIO_PAGES],
            len: 0,
        }
    }
}

impl Batch {
    pub fn push(&mut self, pfn: Pfn) {
        self.pages[usize::from(self.len)] = pfn.0 as u32;
        self.len += 1;
    }
    pub fn pages(&self) -> &[u32] {
        &self.pages[..usize::from(self.len)]
    }
    pub fn is_full(&self) -> bool {
        usize::from(self.len) == BIO_PAGES
    }
}
