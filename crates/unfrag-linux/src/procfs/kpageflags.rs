//! `/proc/kpageflags`: one 64-bit word of flags for each page frame, from frame 0 on.
//!
//! A host of a terabyte has two gigabytes of them, so whoever can reads them as a stream ([`each`]).
//!
//! Invariant: the word at index n belongs to page frame n. Bits are kept raw; their numbers are the
//! kernel's stable interface, and those that fragmentation work needs have names here.

use crate::content::{STEP, read_some};
use crate::error::{Error, Result};
use crate::recording::Snapshot;
use std::io::Read;

/// The page is locked, as while it is read.
pub const LOCKED: u64 = 1;
/// Its content is that of its file, or of swap.
pub const UPTODATE: u64 = 1 << 3;
/// It has to be written before it can be dropped.
pub const DIRTY: u64 = 1 << 4;
/// It is being written.
pub const WRITEBACK: u64 = 1 << 8;
/// It is kept in swap, not in a file: anonymous memory, tmpfs and memory that processes share.
pub const SWAPBACKED: u64 = 1 << 14;
/// It belongs to the pool of huge pages (hugetlb).
pub const HUGE: u64 = 1 << 17;
/// It may not be reclaimed.
pub const UNEVICTABLE: u64 = 1 << 18;
/// It is broken.
pub const HWPOISON: u64 = 1 << 19;
/// It is not there to be used: a balloon took it, or it is unplugged.
pub const OFFLINE: u64 = 1 << 23;
/// It holds zeroes for all who only read.
pub const ZERO_PAGE: u64 = 1 << 24;
/// The allocator does not manage it.
pub const RESERVED: u64 = 1 << 32;
/// A process locked it into memory.
pub const MLOCKED: u64 = 1 << 33;
/// Page belongs to a free block on a buddy list; each page of the block has the flag. Pages on per-CPU
/// lists have no flag at all.
pub const BUDDY: u64 = 1 << 10;
/// Page is on an LRU list.
pub const LRU: u64 = 1 << 5;
/// Page belongs to a slab.
pub const SLAB: u64 = 1 << 7;
/// Page is mapped by a process.
pub const MMAP: u64 = 1 << 11;
/// Page is anonymous memory.
pub const ANON: u64 = 1 << 12;
/// Page is the first of a compound page.
pub const COMPOUND_HEAD: u64 = 1 << 15;
/// Page is a further page of a compound page.
pub const COMPOUND_TAIL: u64 = 1 << 16;
/// There is no page at this frame.
pub const NOPAGE: u64 = 1 << 20;
/// Page belongs to a transparent huge page.
pub const THP: u64 = 1 << 22;
/// Page holds page tables.
pub const PGTABLE: u64 = 1 << 26;

/// Name of the file.
pub const NAME: &str = "kpageflags";

/// Reads the file of a little-endian host in pieces: gives each piece's first page frame and the words of it and the
/// frames after it. Returns the number of words.
///
/// # Errors
/// If it cannot be read, or its length is no multiple of eight bytes: the copy was cut off.
pub fn each(from: &mut dyn Read, mut piece: impl FnMut(u64, &[u64])) -> Result<u64> {
    let mut room = vec![0; STEP];
    let mut words = Vec::with_capacity(STEP / 8);
    let mut first = 0;
    loop {
        let n = read_some(from, &mut room)?;
        let (whole, rest) = room[..n].as_chunks::<8>();
        words.clear();
        words.extend(whole.iter().map(|&w| u64::from_le_bytes(w)));
        piece(first, &words);
        first += words.len() as u64;
        if !rest.is_empty() {
            return Err(
                Error::truncated("a word of kpageflags", 8, rest.len() as u64).at(8 * first),
            );
        }
        if n < STEP {
            return Ok(first);
        }
    }
}

/// The flags of all page frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageFlags {
    /// Word n belongs to page frame n.
    pub words: Vec<u64>,
}

impl PageFlags {
    /// Reads the file of a little-endian host.
    ///
    /// # Errors
    /// As [`each`].
    pub fn read(from: &mut dyn Read) -> Result<Self> {
        let mut words = vec![];
        each(from, |_, piece| words.extend_from_slice(piece))?;
        Ok(Self { words })
    }

    /// The flags of a snapshot; `None` if it has none.
    ///
    /// # Errors
    /// As [`each`].
    pub fn of(snapshot: &Snapshot) -> Result<Option<Self>> {
        let content = snapshot.content(NAME);
        content.map(|c| Self::read(&mut c.reader())).transpose()
    }

    /// The bytes of the file.
    pub fn write(&self) -> Vec<u8> {
        self.words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    /// Flags of page frame `pfn`; beyond the end, [`NOPAGE`].
    pub fn frame(&self, pfn: u64) -> u64 {
        usize::try_from(pfn)
            .ok()
            .and_then(|i| self.words.get(i))
            .copied()
            .unwrap_or(NOPAGE)
    }

    /// Whether page frame `pfn` holds memory that compaction could move: it is on an LRU list.
    pub fn is_movable(&self, pfn: u64) -> bool {
        self.frame(pfn) & (LRU | NOPAGE) == LRU
    }
}
