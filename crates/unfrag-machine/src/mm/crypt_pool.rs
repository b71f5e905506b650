//! The pool of pages that encrypting layers encrypt into.

use unfrag_eras::Pfn;

/// Pages that the pool keeps.
pub(crate) const KEPT: usize = 32;

/// The pool, and the pages in use by token.
#[derive(Default)]
pub struct CryptPool {
    pub(crate) kept: Vec<Pfn>,
    pub(crate) taken: Vec<Vec<Pfn>>,
    pub(crate) vacant: Vec<u32>,
}

impl CryptPool {
    /// A token with no page yet.
    pub(crate) fn token(&mut self) -> u32 {
        self.vacant.pop().unwrap_or_else(|| {
            self.taken.push(vec![]);
            (self.taken.len() - 1) as u32
        })
    }

    /// Pages of the pool, and those in use.
    pub fn pages(&self) -> usize {
        self.kept.len() + self.taken.iter().map(Vec::len).sum::<usize>()
    }
}
