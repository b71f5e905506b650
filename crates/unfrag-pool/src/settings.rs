//! What a pool was told, and what its compaction may cost.

use std::time::Duration;
use unfrag::Order;
use unfrag::moves::Limits;

/// What a pool was told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How long an allocation waits for others to give frames back.
    pub patience: Duration,
    /// Whole free blocks of 2 MiB that kcompactd keeps ready.
    pub keep_huge: u32,
}

/// An allocation waits for it.
pub(crate) const DIRECT: Limits = Limits::NONE.copies(4096).most(480);
/// Somebody asked for it.
pub(crate) const ALL: Limits = Limits::NONE;
/// Ahead of demand only what is cheap.
pub(crate) const AHEAD: Limits = Limits::NONE.copies(16384).most(256);

/// An allocation waits for a run of an order above that of a huge page.
pub(crate) const fn run(order: Order) -> Limits {
    Limits::NONE.copies(order.frames() as u64)
}
