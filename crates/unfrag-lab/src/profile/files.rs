//! Files in page cache: which ones a program read, wrote and removed, and how large they are.
//!
//! Invariant: a file is one inode of one device, and belongs to the program that first brought a page of it into page
//! cache. What page cache holds already leaves no event: record with cold caches where that matters.

use super::spread::Spread;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Files in page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Files of which pages were read.
    pub read_files: u64,
    /// Their sizes, by the last page read.
    pub read_file_pages: Spread,
    /// Files of which pages were written.
    pub written_files: u64,
    /// Their sizes, by the last page written.
    pub written_file_pages: Spread,
    /// Pages that the program itself took out of page cache, by removing or shortening files.
    pub removed_pages: u64,
}

/// A file.
#[derive(Clone, Copy, Debug)]
struct File {
    program: usize,
    /// Page after the last one that was read.
    read_end: u64,
    /// Page after the last one that was written.
    written_end: u64,
}

/// The files of a recording while it is walked.
#[derive(Debug, Default)]
pub struct Inodes {
    known: HashMap<(u64, u64), File>,
    removed: HashMap<usize, u64>,
}

impl Inodes {
    /// Pages of a file, up to page `end`, enter page cache for `program`.
    pub fn enter(&mut self, device: u64, inode: u64, end: u64, written: bool, program: usize) {
        let file = self.known.entry((device, inode)).or_insert(File {
            program,
            read_end: 0,
            written_end: 0,
        });
        let up_to = match written {
            true => &mut file.written_end,
            false => &mut file.read_end,
        };
        *up_to = end.max(*up_to);
    }

    /// `program` takes pages out of page cache.
    pub fn remove(&mut self, pages: u64, program: usize) {
        *self.removed.entry(program).or_default() += pages;
    }

    /// What one program did, or all of them.
    pub fn of(&self, program: Option<usize>) -> Files {
        let mine = |p: usize| program.is_none_or(|program| program == p);
        let sizes = |end: &dyn Fn(&File) -> u64| -> Vec<u64> {
            let files = self.known.values().filter(|f| mine(f.program));
            files.map(end).filter(|&end| end > 0).collect()
        };
        let read = sizes(&|f| f.read_end);
        let written = sizes(&|f| f.written_end);
        Files {
            read_files: read.len() as u64,
            read_file_pages: Spread::of(read),
            written_files: written.len() as u64,
            written_file_pages: Spread::of(written),
            removed_pages: self
                .removed
                .iter()
                .filter(|(p, _)| mine(**p))
                .map(|(_, n)| n)
                .sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_its_first_program() {
        let mut inodes = Inodes::default();
        inodes.enter(1, 7, 4, false, 0);
        inodes.enter(1, 7, 9, false, 1);
        inodes.enter(1, 7, 2, true, 1);
        inodes.enter(2, 7, 1, true, 1);
        inodes.remove(3, 1);
        let first = inodes.of(Some(0));
        assert_eq!((first.read_files, first.read_file_pages.max), (1, 9));
        assert_eq!((first.written_files, first.removed_pages), (1, 0));
        let second = inodes.of(Some(1));
        assert_eq!(
            (
                second.read_files,
                second.written_files,
                second.removed_pages
            ),
            (0, 1, 3)
        );
        assert_eq!(inodes.of(None).written_files, 2);
    }
}
