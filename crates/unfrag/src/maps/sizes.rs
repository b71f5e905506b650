//! Sizes that all parts of the engine share.

use crate::frame::{MigrateType, Order};

/// Order of a block that has a map: 512 frames.
pub const BLOCK_ORDER: Order = Order(9);

/// Largest order: a gigabyte, where a page has 4 KiB.
pub const LARGEST_ORDER: Order = Order(18);

/// Types that blocks have: the ordinary ones, by their numbers.
pub(crate) const TYPES: usize = 3;

/// The number of a request's type; types that nobody requests count as unmovable.
#[inline]
pub(crate) fn type_index(mt: MigrateType) -> usize {
    if mt.is_ordinary() {
        mt as usize
    } else {
        MigrateType::Unmovable as usize
    }
}

pub(super) const UNMOVABLE: usize = MigrateType::Unmovable as usize;
pub(super) const MOVABLE: usize = MigrateType::Movable as usize;
pub(super) const RECLAIMABLE: usize = MigrateType::Reclaimable as usize;

/// Frames of a block.
pub(super) const FRAMES: u32 = BLOCK_ORDER.frames();

/// No block, and no gigabyte: there are fewer.
pub(super) const NIL: u32 = u32::MAX;

/// Blocks of a gigabyte that may be partly memory.
pub(super) const ABSENT: usize = 64;
