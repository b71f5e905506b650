//! How far the trace shows the order of the lists at the start.
//!
//! Invariant: a block counts as shown only by the first allocation of one of its frames.
//!
//! `spec: 7.6, 9`

use serde::Serialize;

/// The free blocks of a start, and those of them whose place on the lists the trace shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListOrder {
    /// Free blocks on buddy lists.
    pub blocks: u64,
    /// Their pages.
    pub pages: u64,
    /// Blocks in the order in which the trace first touches them; the others follow by address.
    pub blocks_shown: u64,
    /// Their pages.
    pub pages_shown: u64,
    /// Pages that refills before the start had moved to per-CPU lists, as the changes of CPU show.
    pub refilled_pages: u64,
}

impl ListOrder {
    /// Counts the blocks of a zone, each as its first frame and order. `is_shown` is whether the trace allocates a frame that nothing touched before.
    pub(super) fn add(
        &mut self,
        free: impl Iterator<Item = (u32, u8)>,
        is_shown: impl Fn(u32) -> bool,
    ) {
        for (pfn, order) in free {
            let pages = 1 << order;
            self.blocks += 1;
            self.pages += pages;
            if (pfn..pfn + (1 << order)).any(&is_shown) {
                self.blocks_shown += 1;
                self.pages_shown += pages;
            }
        }
    }

    /// What a reader is told.
    pub fn sentence(&self) -> String {
        format!(
            "The start's lists are in the order in which the trace first touches each block: {} of {} free blocks \
             ({} of {} pages). Nothing later than a block's first touch was used for that.",
            self.blocks_shown, self.blocks, self.pages_shown, self.pages
        )
    }
}

#[cfg(test)]
mod tests {
    //! `spec: 7.6, 9`
    use super::*;

    /// A block of which one page is touched has its place; one that nobody touches has none.
    #[test]
    fn blocks_are_shown_by_any_of_their_pages() {
        let mut order = ListOrder::default();
        order.add([(64, 4), (128, 3)].into_iter(), |p| p == 70);
        let counted = (
            order.blocks,
            order.pages,
            order.blocks_shown,
            order.pages_shown,
        );
        assert_eq!(counted, (2, 24, 1, 16));
        assert!(
            order
                .sentence()
                .contains("1 of 2 free blocks (16 of 24 pages)")
        );
    }
}
