//! Rules of the watermarks. `spec: 1.3, 1.5, 1.6`

/// How the marks are computed and held against what is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MarkRules {
    /// Form of the check.
    pub check: MarkCheck,
    /// Distance between the marks.
    pub gap: MarkGap,
    /// Which pages of a zone count when marks, reserves and per-CPU lists are sized.
    pub pages: ZonePages,
    /// Most that the kernel takes for `min_free_kbytes` by itself.
    pub min_free_kbytes_cap: u64,
    /// A `lowmem_reserve_ratio` of 0 means no reserve; else it counts as 1.
    pub zero_ratio_is_none: bool,
    /// `ZONE_MOVABLE` shares in `min_free_kbytes` like low memory (all but 6.18).
    pub movable_is_lowmem: bool,
    /// khugepaged raises `min_free_kbytes` when it starts.
    pub khugepaged: bool,
    /// Each CPU keeps small changes of the count of free pages to itself, so that the marks are held
    /// against a count that is late (2.6.18 and later).
    pub late_free_count: bool,
}

/// Form of the watermark check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkCheck {
    /// Free pages of too small orders do not count, the mark halves with each order (to 4.3).
    PerOrder,
    /// One block must exist (4.4 and later).
    BlockExists,
}

/// Distance between the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkGap {
    /// A quarter of the min mark.
    Quarter,
    /// The larger of a quarter of min and `watermark_scale_factor` of the zone.
    Scaled,
}

/// Which pages of a zone count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZonePages {
    /// All that are there (to 3.7).
    Present,
    /// Those that the boot did not keep (3.8 and later).
    Managed,
}
