//! What a pageblock is drawn as.
//!
//! Invariant: [`CELLS`] stands in the order of [`Cell`], from the best to the worst for huge pages.

use crate::doctor::examined::Examined;
use crate::doctor::frames::{BlockUse, FrameUse};

/// What a pageblock is drawn as, from the best to the worst for huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    /// No memory of the allocator.
    None,
    /// Wholly free.
    Free,
    /// A huge page in use.
    Huge,
    /// Clean page cache above all.
    Cache,
    /// Memory of processes above all.
    User,
    /// Unevictable memory above all.
    Unevictable,
    /// Holds memory reserved at boot.
    Reserved,
    /// Holds page tables.
    PageTables,
    /// Holds other memory of the kernel.
    Kernel,
    /// Holds slab.
    Slab,
}

/// All cells, in order: letter, terminal colour (of 256), colour in the page, name.
pub const CELLS: [(Cell, char, u8, &str, &str); 10] = [
    (Cell::None, ' ', 234, "#8885", "no memory"),
    (Cell::Free, '.', 253, "#dfe7ee", "wholly free"),
    (Cell::Huge, 'H', 33, "#1f6fd6", "a huge page in use"),
    (Cell::Cache, 'c', 151, "#9ccf9a", "clean page cache"),
    (Cell::User, 'u', 71, "#3f9447", "processes, other cache"),
    (
        Cell::Unevictable,
        'm',
        136,
        "#a98600",
        "unevictable, mlocked",
    ),
    (Cell::Reserved, 'r', 243, "#7b7f86", "reserved at boot"),
    (Cell::PageTables, 'p', 141, "#a06bd8", "page tables"),
    (Cell::Kernel, 'k', 208, "#f08a24", "other kernel memory"),
    (Cell::Slab, 'S', 160, "#d3322c", "slab"),
];

/// What a pageblock is drawn as. Fixed memory decides, however little of it there is, since it spoils the block; else
/// the most frequent use.
pub fn cell(b: &BlockUse) -> Cell {
    let most = |kinds: &[(FrameUse, Cell)]| {
        kinds
            .iter()
            .map(|&(k, c)| (b.of(k), c))
            .filter(|&(n, _)| n > 0)
            .max_by_key(|&(n, _)| n)
    };
    if b.is_absent() {
        return Cell::None;
    }
    let fixed = most(&[
        (FrameUse::Reserved, Cell::Reserved),
        (FrameUse::Absent, Cell::Reserved),
        (FrameUse::PageTables, Cell::PageTables),
        (FrameUse::Kernel, Cell::Kernel),
        (FrameUse::Slab, Cell::Slab),
    ]);
    let movable = [
        (FrameUse::Thp, Cell::Huge),
        (FrameUse::Hugetlb, Cell::Huge),
        (FrameUse::CleanCache, Cell::Cache),
        (FrameUse::User, Cell::User),
        (FrameUse::PerCpu, Cell::User),
        (FrameUse::Unevictable, Cell::Unevictable),
    ];
    match fixed.or_else(|| most(&movable)) {
        Some((_, cell)) => cell,
        None => Cell::Free,
    }
}

/// Blocks drawn as each cell, over all zones.
pub(super) fn totals(x: &Examined) -> [u64; CELLS.len()] {
    let mut n = [0; CELLS.len()];
    for b in x.blocks.iter().flat_map(|z| &z.blocks) {
        n[cell(b) as usize] += 1;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(parts: &[(FrameUse, u16)]) -> BlockUse {
        let mut b = BlockUse::default();
        for &(k, n) in parts {
            b.0[k as usize] = n;
        }
        b
    }

    #[test]
    fn cells_are_in_order() {
        for (i, (cell, ..)) in CELLS.iter().enumerate() {
            assert_eq!(*cell as usize, i);
        }
    }

    #[test]
    fn fixed_memory_decides() {
        assert_eq!(
            cell(&block(&[(FrameUse::Free, 511), (FrameUse::Slab, 1)])),
            Cell::Slab
        );
        assert_eq!(
            cell(&block(&[(FrameUse::Free, 100), (FrameUse::User, 412)])),
            Cell::User
        );
        assert_eq!(cell(&block(&[(FrameUse::Free, 512)])), Cell::Free);
        assert_eq!(cell(&block(&[(FrameUse::Absent, 512)])), Cell::None);
        assert_eq!(
            cell(&block(&[(FrameUse::Absent, 100), (FrameUse::Free, 412)])),
            Cell::Reserved
        );
    }
}
