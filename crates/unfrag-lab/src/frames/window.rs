//! The pages of the addresses that one huge page could map.
//!
//! Invariant: a run of pages is one where its addresses and its frames are consecutive and both aligned to its size, as a TLB
//! can use it.

use unfrag_linux::procfs::pagemap::Entry;

/// The pages from an address on that is aligned to a huge page; those outside of the mapping are not present.
pub(super) struct Window<'a> {
    /// Number of its first page.
    pub first: u64,
    /// Its pages.
    pub pages: &'a [Entry],
    /// Whether the mapping has all of them.
    pub is_whole: bool,
}

impl Window<'_> {
    /// Pages in memory.
    pub fn present(&self) -> u64 {
        self.count(|e| e.is_present())
    }

    /// Pages that so many are.
    pub fn count(&self, is_one: impl Fn(Entry) -> bool) -> u64 {
        self.pages.iter().filter(|e| is_one(**e)).count() as u64
    }

    /// Calls `run` for each run of pages with its order; nothing where frames are hidden.
    pub fn runs(&self, run: &mut impl FnMut(u32)) {
        halve(self.pages, run);
    }
}

/// The runs of pages whose number is a power of two.
fn halve(pages: &[Entry], run: &mut impl FnMut(u32)) {
    let size = pages.len() as u64;
    let first = pages.first().and_then(|e| e.frame());
    let is_run = first.is_some_and(|first| {
        let all = pages.iter().zip(first..);
        first.is_multiple_of(size) && all.into_iter().all(|(e, frame)| e.frame() == Some(frame))
    });
    if is_run {
        run(size.ilog2());
    } else if size > 1 {
        let (low, high) = pages.split_at(pages.len() / 2);
        halve(low, run);
        halve(high, run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(frames: &[Option<u64>]) -> Vec<u32> {
        let pages: Vec<Entry> = frames
            .iter()
            .map(|f| Entry(f.map_or(0, |f| 1 << 63 | f)))
            .collect();
        let mut out = vec![];
        let window = Window {
            first: 0,
            pages: &pages,
            is_whole: true,
        };
        window.runs(&mut |order| out.push(order));
        out
    }

    #[test]
    fn a_run_is_aligned_in_addresses_and_in_frames() {
        let from = |first: u64| (first..first + 8).map(Some).collect::<Vec<_>>();
        assert_eq!(runs(&from(64)), [3]);
        assert_eq!(runs(&from(68)), [2, 2], "frames of four are aligned");
        assert_eq!(runs(&from(65)), [0; 8], "consecutive, and not aligned");
        let mut holes = from(64);
        holes[5] = None;
        assert_eq!(runs(&holes), [2, 0, 1]);
        assert!(runs(&[Some(0); 8]).is_empty(), "hidden frames are none");
    }
}
