//! Counts of dirty pages, and their limits.

/// Dirty pages and who writes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Dirty pages of files and devices.
    pub nr_dirty: u64,
    /// Pages of them that are being written.
    pub nr_writeback: u64,
    /// Pages that reclaim wants written.
    pub wanted: u64,
}

/// Dirty pages from which on something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Writers are held back.
    pub dirty: u64,
    /// Flushers begin.
    pub background: u64,
}
