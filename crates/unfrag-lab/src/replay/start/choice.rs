//! The choice of a start.

/// Where a replay begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartChoice {
    /// At the kernel's own free lists where the recording has them, else from occupancy if it has
    /// page flags, else from counts.
    #[default]
    Auto,
    /// At the kernel's own free lists.
    Exact,
    /// With each frame free or in use as the page flags of the first snapshot say.
    Occupancy,
    /// From what any host shows.
    Counts,
    /// Where a kernel that boots with all memory free would put what was in use, by its own rules: what a fresh machine
    /// becomes, without the host's history.
    Boot,
}
