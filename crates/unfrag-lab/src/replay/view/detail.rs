//! How much of a report a view shows.

/// How much a view shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// What the answer rests on.
    #[default]
    Short,
    /// Every number, zeros too.
    All,
}
