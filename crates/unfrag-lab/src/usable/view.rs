//! A zone's free memory, and a request, as plain data.
//!
//! Invariant: lists by order that are shorter than [`ZoneView::free_by_order`] are 0 beyond their end.

use unfrag_eras::rights::alloc_flags;
use unfrag_eras::{AllocFlags, Gfp, Order, Rules, ZoneKind};

/// A zone's free memory. Blocks stand at the number of their order; everything else is in base pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneView {
    /// Kind of the zone.
    pub kind: ZoneKind,
    /// Free pages as the watermark test counts them.
    pub free_pages: u64,
    /// Free blocks of all types.
    pub free_by_order: Vec<u64>,
    /// Those of contiguous memory areas; `None` if only their sum is known.
    pub cma_by_order: Option<Vec<u64>>,
    /// Those of the high-order atomic reserve (4.4 and later).
    pub highatomic_by_order: Vec<u64>,
    /// Those that are isolated: nobody gets them.
    pub isolated_by_order: Vec<u64>,
    /// Free pages of contiguous memory areas.
    pub cma_pages: u64,
    /// Pages of the high-order atomic reserve that the watermark test hides from ordinary requests.
    pub highatomic_pages: u64,
    /// The min mark, with its boost.
    pub min: u64,
    /// Pages kept from the request; see [`kept`](super::kept).
    pub protection: u64,
}

/// A request, and its rights in the slow path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its order.
    pub order: u8,
    /// Its flags, with the bits of Linux 6.1.
    pub gfp: Gfp,
    /// How far it may go; without a `WMARK` bit the min mark is tested.
    pub rights: AllocFlags,
}

impl Request {
    /// A request with the rights that a kernel with `rules` derives from its flags. `spec: 1.4`
    pub fn new(order: u8, gfp: Gfp, rules: &Rules) -> Request {
        let mut rights = alloc_flags(gfp, Order(order), rules);
        if gfp.contains(Gfp::MOVABLE) {
            rights |= AllocFlags::CMA;
        }
        Request { order, gfp, rights }
    }

    /// A request of a driver that may not wait (`GFP_ATOMIC`).
    pub fn atomic(order: u8, rules: &Rules) -> Request {
        Request::new(order, Gfp::ATOMIC_MASK, rules)
    }
}

impl ZoneView {
    /// A zone with these free blocks, none of them set aside, no marks and no protection.
    pub fn new(kind: ZoneKind, free_by_order: Vec<u64>) -> ZoneView {
        ZoneView {
            kind,
            free_pages: pages(&free_by_order),
            free_by_order,
            cma_by_order: Some(vec![]),
            highatomic_by_order: vec![],
            isolated_by_order: vec![],
            cma_pages: 0,
            highatomic_pages: 0,
            min: 0,
            protection: 0,
        }
    }

    /// Blocks of contiguous memory areas; where only their sum is known, those that hide most: the largest.
    pub(super) fn cma(&self) -> Vec<u64> {
        match &self.cma_by_order {
            Some(blocks) => blocks.clone(),
            None => self.guess_cma(true),
        }
    }

    /// [`cma_pages`](Self::cma_pages) as blocks: the largest that there are, or the smallest.
    pub fn guess_cma(&self, largest: bool) -> Vec<u64> {
        let orders = self.free_by_order.len();
        let mut guess = vec![0; orders];
        let mut left = self.cma_pages;
        let mut take = |o: usize| {
            guess[o] = (left >> o).min(self.free_by_order[o]);
            left -= guess[o] << o;
        };
        if largest {
            (0..orders).rev().for_each(&mut take);
        } else {
            (0..orders).for_each(&mut take);
        }
        guess
    }

    /// The zone with no more blocks set aside than there are free ones. Files of two moments may tell of more; then those
    /// count first that fewest requests get.
    pub(super) fn within_free(&self) -> ZoneView {
        let mut left = self.free_by_order.clone();
        let mut cap = |list: &[u64]| -> Vec<u64> {
            let pairs = list.iter().zip(&mut left);
            pairs
                .map(|(&n, left)| {
                    let n = n.min(*left);
                    *left -= n;
                    n
                })
                .collect()
        };
        ZoneView {
            isolated_by_order: cap(&self.isolated_by_order),
            cma_by_order: Some(cap(&self.cma())),
            highatomic_by_order: cap(&self.highatomic_by_order),
            ..self.clone()
        }
    }

    /// Blocks of Unmovable, Movable and Reclaimable pageblocks.
    pub fn ordinary(&self) -> Vec<u64> {
        let cma = self.cma();
        let set_aside = [&cma, &self.highatomic_by_order, &self.isolated_by_order];
        let left = |(o, &n): (usize, &u64)| {
            let lists = set_aside.iter().filter_map(|l| l.get(o));
            lists.fold(n, |n, &aside| n.saturating_sub(aside))
        };
        self.free_by_order.iter().enumerate().map(left).collect()
    }

    /// The lists that a request with these rights is served from, in the order in which they are tried. All are as
    /// long as [`free_by_order`](Self::free_by_order).
    pub(super) fn lists(&self, rights: AllocFlags) -> Vec<Vec<u64>> {
        let mut lists = vec![];
        if rights.contains(AllocFlags::HIGHATOMIC) {
            lists.push(self.highatomic_by_order.clone());
        }
        lists.push(self.ordinary());
        if rights.contains(AllocFlags::CMA) {
            lists.push(self.cma());
        }
        for list in &mut lists {
            list.resize(self.free_by_order.len(), 0);
        }
        lists
    }
}

/// Pages in blocks by order.
pub(super) fn pages(blocks: &[u64]) -> u64 {
    let each = blocks.iter().enumerate();
    each.fold(0, |sum: u64, (o, &n)| sum.saturating_add(n << o))
}
