//! What a zone has for needs: its free blocks by order, beyond the largest block as aligned runs of them.
//!
//! Invariant: lists are disjoint, each page is in one block or run. What is taken leaves them; the rest of a larger block stays.
//! Every request is tested by the one watermark formula ([`usable`]).

use crate::usable::{self, Request, ZoneView};
use unfrag_eras::kernel::MarkCheck;
use unfrag_eras::{AllocFlags, Gfp, Rules, ZoneKind};

/// Orders that are counted: runs of up to 16 GiB of pages of 4 KiB.
pub(super) const ORDERS: usize = 23;

/// The largest order that CPUs keep lists of, huge pages aside, which they take one by one. `spec: 3.1`
const LISTED: u8 = 3;

/// Free blocks and runs by order.
pub(super) type Lists = [u64; ORDERS];

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// A process, or the pool of huge pages: memory that can be moved, so that no zone and no area is closed to it.
    Process,
    /// The kernel, or a driver for somebody: contiguous areas and zone Movable are closed to it.
    Kernel,
}

/// A zone's free memory.
#[derive(Clone, Debug)]
pub(super) struct Supply {
    /// Node id.
    pub node: u32,
    /// Ordinary blocks and runs of them.
    pub blocks: Lists,
    /// All else that the watermark test looks at; `protection` is not used.
    pub view: ZoneView,
    /// Pages that the zone keeps from processes and from the kernel.
    pub kept: [u64; 2],
    /// Pages that a CPU may take onto its lists with the last request that is let pass, and that others then lack.
    pub on_lists: u64,
    /// The watermark tests that all have to pass; two where the release is not known.
    pub checks: Vec<MarkCheck>,
}

impl Supply {
    /// Whether the asker may use the zone.
    pub fn is_open_to(&self, asker: Asker) -> bool {
        usable::may_use(self.view.kind, asker.gfp())
    }

    /// The largest order of a block.
    fn largest(&self) -> u8 {
        (self.view.free_by_order.len() as u8).saturating_sub(1)
    }

    /// How many pieces of an order an asker can have, one after the other.
    pub fn capacity(&self, order: u8, asker: Asker, rules: &Rules) -> u64 {
        if !self.is_open_to(asker) {
            return 0;
        }
        let (mut all, mut none) = (self.pieces(order, asker) + 1, 0);
        // `none` of them succeed, `all` do not.
        while all - none > 1 {
            let n = none.midpoint(all);
            let mut before = self.clone();
            before.take(order, asker, n - 1);
            match before.passes(order, asker, rules) {
                true => none = n,
                false => all = n,
            }
        }
        match order <= LISTED {
            true => none.saturating_sub(self.on_lists >> order),
            false => none,
        }
    }

    /// Pieces of an order, watermarks aside.
    pub fn pieces(&self, order: u8, asker: Asker) -> u64 {
        let areas = self.areas(asker);
        let lists = self.blocks.iter().zip(&areas).enumerate();
        let larger = lists.skip(order.into());
        let each = larger.map(|(o, (n, area))| n.saturating_add(*area) << (o - usize::from(order)));
        each.fold(0, u64::saturating_add)
    }

    /// Blocks of contiguous areas that the asker may use.
    fn areas(&self, asker: Asker) -> Lists {
        let mut lists = [0; ORDERS];
        if asker == Asker::Process {
            let areas = self.view.cma_by_order.iter().flatten();
            lists.iter_mut().zip(areas).for_each(|(l, n)| *l = *n);
        }
        lists
    }

    /// Whether the watermarks let one more request pass.
    fn passes(&self, order: u8, asker: Asker, rules: &Rules) -> bool {
        // A run is taken as the largest blocks are.
        let order = order.min(self.largest());
        let mut request = Request::new(order, asker.gfp(), rules);
        if asker == Asker::Kernel {
            request.rights = without_areas(request.rights);
        }
        let view = self.seen_by(asker);
        self.checks
            .iter()
            .all(|&check| usable::passes(&view, &request, check))
    }

    /// The zone as the watermark test sees it.
    fn seen_by(&self, asker: Asker) -> ZoneView {
        let largest = usize::from(self.largest());
        let mut free_by_order = vec![0u64; largest + 1];
        for (o, &n) in self.blocks.iter().enumerate() {
            let at = o.min(largest);
            free_by_order[at] = free_by_order[at].saturating_add(n << (o - at));
        }
        let areas = self.view.cma_by_order.as_deref().unwrap_or_default();
        let reserve = &self.view.highatomic_by_order;
        for list in [areas, reserve, &self.view.isolated_by_order] {
            let pairs = free_by_order.iter_mut().zip(list);
            pairs.for_each(|(sum, n)| *sum = sum.saturating_add(*n));
        }
        ZoneView {
            free_by_order,
            protection: self.kept[asker as usize],
            ..self.view.clone()
        }
    }

    /// Takes pieces of an order by smallest fit; no more than there are.
    pub fn take(&mut self, order: u8, asker: Asker, n: u64) {
        let taken = take(&mut self.blocks, order, n);
        let mut of_areas = 0;
        if asker == Asker::Process
            && let Some(areas) = &mut self.view.cma_by_order
        {
            of_areas = take(areas, order, n - taken);
        }
        let cut = |pages: u64, n: u64| pages.saturating_sub(n << order);
        self.view.cma_pages = cut(self.view.cma_pages, of_areas);
        self.view.free_pages = cut(self.view.free_pages, taken + of_areas);
    }
}

impl Asker {
    fn gfp(self) -> Gfp {
        match self {
            Asker::Process => Gfp::HIGHUSER_MOVABLE,
            Asker::Kernel => Gfp::KERNEL,
        }
    }
}

fn without_areas(rights: AllocFlags) -> AllocFlags {
    rights.difference(AllocFlags::CMA)
}

/// Takes pieces of an order from lists, the smallest blocks that fit first; how many there were, `n` at most.
pub(super) fn take(lists: &mut [u64], order: u8, n: u64) -> u64 {
    let order = usize::from(order);
    let mut left = n;
    for o in order..lists.len() {
        let each = 1u64 << (o - order);
        let got = left.min(lists[o].saturating_mul(each));
        lists[o] -= got.div_ceil(each);
        // What is left of the last block that was split.
        let rest = (each - got % each) % each;
        (0..o - order)
            .filter(|bit| rest >> bit & 1 == 1)
            .for_each(|bit| lists[order + bit] += 1);
        left -= got;
        if left == 0 {
            break;
        }
    }
    n - left
}

/// Takes pieces of an order away where they hurt most: each from another of the largest blocks and runs.
pub(super) fn spoil(lists: &mut [u64], order: u8, n: u64) {
    let order = usize::from(order);
    let mut left = n;
    for o in (order..lists.len()).rev() {
        let hit = left.min(lists[o]);
        lists[o] -= hit;
        // What is left of each that is hit.
        lists[order..o].iter_mut().for_each(|l| *l += hit);
        left -= hit;
    }
}

/// Pages in blocks of at least an order.
pub(super) fn pages(lists: &[u64], order: u8) -> u64 {
    let each = lists.iter().enumerate().skip(order.into());
    each.fold(0, |sum: u64, (o, n)| sum.saturating_add(n << o))
}

/// So many pages in as large blocks as there can be.
pub(super) fn perfect(pages: u64) -> Lists {
    let largest = ORDERS - 1;
    std::array::from_fn(|o| match o == largest {
        true => pages >> largest,
        false => pages >> o & 1,
    })
}

/// A zone's view without free blocks.
pub(super) fn empty_view(kind: ZoneKind, orders: usize) -> ZoneView {
    ZoneView::new(kind, vec![0; orders])
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_eras::preset;

    #[test]
    fn what_is_left_of_a_block_stays() {
        let mut lists = [0, 3, 0, 0, 2];
        assert_eq!(take(&mut lists, 1, 4), 4);
        assert_eq!(lists, [0, 1, 1, 1, 1]);
        assert_eq!(pages(&lists, 0), 2 * 3 + 16 * 2 - 4 * 2);
        assert_eq!(take(&mut lists, 0, 1000), 2 + 4 + 8 + 16);
        assert_eq!(lists, [0; 5]);
    }

    #[test]
    fn spoiled_blocks_are_the_largest_and_their_rest_stays() {
        let mut lists = [0, 1, 0, 2];
        spoil(&mut lists, 1, 1);
        assert_eq!(lists, [0, 2, 1, 1]);
        spoil(&mut lists, 1, 100);
        assert!(pages(&lists, 0) < 18, "{lists:?}");
    }

    fn supply(blocks: &[u64], min: u64) -> Supply {
        let mut lists = [0; ORDERS];
        lists[..blocks.len()].copy_from_slice(blocks);
        let mut view = empty_view(ZoneKind::Normal, 11);
        (view.free_pages, view.min) = (pages(blocks, 0), min);
        Supply {
            node: 0,
            blocks: lists,
            view,
            kept: [0, 0],
            on_lists: 0,
            checks: vec![MarkCheck::BlockExists],
        }
    }

    #[test]
    fn the_mark_is_kept_before_each_request() {
        let rules = &preset("6.18").unwrap().rules;
        // 3 blocks of 8 pages and 40 single ones: 64 - 7 > 50, then 56 - 7 = 49.
        let s = supply(&[40, 0, 0, 3], 50);
        assert_eq!(s.capacity(3, Asker::Kernel, rules), 1);
        assert_eq!(
            supply(&[40, 0, 0, 3], 0).capacity(3, Asker::Kernel, rules),
            3
        );
        assert_eq!(s.capacity(4, Asker::Kernel, rules), 0);
    }

    #[test]
    fn what_a_cpu_may_keep_of_small_blocks_is_not_counted() {
        let rules = &preset("6.18").unwrap().rules;
        let mut s = supply(&[0, 0, 0, 100, 10], 0);
        s.on_lists = 320;
        assert_eq!(s.capacity(3, Asker::Kernel, rules), 120 - 40);
        assert_eq!(s.capacity(4, Asker::Kernel, rules), 10);
    }

    #[test]
    fn an_old_kernel_tests_each_order() {
        let rules = &preset("2.6.36").unwrap().rules;
        let mut s = supply(&[1000, 0, 0, 3], 16);
        s.checks = vec![MarkCheck::PerOrder];
        // Without the single pages more than 16 >> 1 have to be left beside 7 of the request's own: 24 - 7, then 16 - 7.
        assert_eq!(s.capacity(3, Asker::Kernel, rules), 2);
    }

    #[test]
    fn areas_are_open_to_processes_alone() {
        let rules = &preset("6.18").unwrap().rules;
        let mut s = supply(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 4], 0);
        let mut areas = vec![0; 11];
        areas[9] = 3;
        (s.view.cma_by_order, s.view.cma_pages) = (Some(areas), 3 << 9);
        s.view.free_pages += 3 << 9;
        assert_eq!(s.capacity(9, Asker::Kernel, rules), 4);
        assert_eq!(s.capacity(9, Asker::Process, rules), 7);
        s.take(9, Asker::Process, 6);
        assert_eq!(s.capacity(9, Asker::Process, rules), 1);
        assert_eq!(s.capacity(9, Asker::Kernel, rules), 0);
    }

    #[test]
    fn a_run_is_of_largest_blocks() {
        let rules = &preset("6.18").unwrap().rules;
        let mut s = supply(&[0; 11], 0);
        (s.blocks[13], s.view.free_pages) = (2, 2 << 13);
        assert_eq!(s.capacity(13, Asker::Kernel, rules), 2);
        assert_eq!(s.capacity(10, Asker::Kernel, rules), 16);
        s.take(10, Asker::Kernel, 1);
        assert_eq!(s.capacity(13, Asker::Kernel, rules), 1);
        assert_eq!(s.capacity(12, Asker::Kernel, rules), 3);
    }
}
