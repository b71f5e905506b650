//! Kernel stacks: taken in bulk, without an event.

use unfrag_eras::Gfp;

/// Pages of a kernel stack.
pub(super) const STACK_PAGES: usize = 4;

/// Whether an allocation's flags are those of a kernel stack's neighbour: the page directory of a
/// new process.
pub fn is_page_directory(order: u8, gfp: Gfp) -> bool {
    order == 1 && gfp.bits() == 0x40_0dc0
}
