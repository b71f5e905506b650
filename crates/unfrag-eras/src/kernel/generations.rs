//! Rules of reclaim by generations (multi-gen LRU). `spec: 4.10`

/// What holds where pages stand in generations.
///
/// A kernel that has them uses them only where its administrator says so:
/// [`Sysctl::lru_gen`](super::Sysctl::lru_gen). All that is not said here is as with active and inactive lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GenerationRules {
    /// How many generations behind the youngest a page of a file enters that is read or written through a descriptor.
    pub read_enters: u8,
    /// How many behind it a page of a file enters that a mapping brought in.
    pub mapped_enters: u8,
    /// How many behind it an anonymous page enters.
    pub anon_enters: u8,
    /// kswapd begins at the priority at which its first pass is about to free what it is to free (between 6.1 and 6.12);
    /// else at the first one, as with active and inactive lists.
    pub starts_by_size: bool,
    /// A pass of kswapd ends as soon as it has freed its goal and the marks hold (6.7 and later).
    pub stops_at_marks: bool,
    /// How many pages a pass looks at.
    pub budget: ScanBudget,
    /// When a new generation begins.
    pub aging: Aging,
}

/// How many pages a pass looks at: `pages >> priority`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanBudget {
    /// Of what is left before each batch. A batch is never cut short, and at the first priority nothing ages (to 7.0).
    EachBatch,
    /// Of what there is when the pass begins, to the page. At the first priority, what cannot be scanned ages (7.2).
    Once,
}

/// When a new generation begins, other than for want of anything that can be scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aging {
    /// When two are left of anonymous pages, or of page cache where anonymous pages stay; when three are left, and more than
    /// half of the pages are in the youngest (that share is a guess). The oldest generation of
    /// anonymous pages is never younger than that of page cache (to 6.13).
    TwoLeft,
    /// When there are fewer than four, counted from the older of the two oldest (6.14 and later).
    FewerThanFour,
}
