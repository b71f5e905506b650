//! Requests for huge pages: those of faults and of khugepaged, not those of page cache.

use unfrag_eras::{Gfp, Order};

/// Flags that each request for a huge page of a process has. Those of a block of page cache, which may be as large, lack
/// `__GFP_NOMEMALLOC`.
const OF_PROCESS: Gfp = Gfp::HIGHMEM
    .union(Gfp::MOVABLE)
    .union(Gfp::COMP)
    .union(Gfp::HARDWALL)
    .union(Gfp::NOMEMALLOC)
    .union(Gfp::NOWARN);

/// Whether a request is one for a huge page of a process, which is of order `huge`: by a fault, or by khugepaged, which collapses small pages. Only
/// the task tells these two apart.
#[inline]
pub fn is_huge_page(order: u8, gfp: Gfp, huge: Order) -> bool {
    order == huge.0 && gfp.contains(OF_PROCESS)
}
