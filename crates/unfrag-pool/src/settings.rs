//! What a pool was told, and what its compaction may cost.

use std::time::Duration;

/// What a pool was told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How long an allocation waits for others to give frames back.
    pub patience: Duration,
    /// Whole free blocks of 2 MiB that kcompactd keeps ready.
    pub keep_huge: u32,
}

/// What a compaction may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Frames that may be copied.
    pub copies: u32,
    /// Frames in use of a block that is emptied.
    pub most: u32,
}

/// An allocation waits for it.
pub(crate) const DIRECT: Cost = Cost {
    copies: 4096,
    most: 480,
};
/// Somebody asked for it.
pub(crate) const ALL: Cost = Cost {
    copies: u32::MAX,
    most: 511,
};
/// Ahead of demand only what is cheap.
pub(crate) const AHEAD: Cost = Cost {
    copies: 16384,
    most: 256,
};
