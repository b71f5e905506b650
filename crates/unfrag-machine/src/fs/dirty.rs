//! Counts of dirty pages, and their limits.

/// Counts of dirty pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Dirty pages of files and devices.
    pub nr_dirty: u64,
    /// Pages under writeback.
    pub nr_writeback: u64,
    /// Pages that reclaim has asked the flushers for.
    pub wanted: u64,
}

/// Thresholds of dirty pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Writers are throttled.
    pub dirty: u64,
    /// Flushers start.
    pub background: u64,
}
