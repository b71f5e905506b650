//! The frame of a paste: its first and its last word, its parts and its size.

/// Bytes of the text at most.
pub const MOST: usize = 8 << 10;

/// Characters of a line at most: mailers break longer ones at 72, with the marks of two quotes before it.
pub(super) const WIDTH: usize = 66;

/// The first word.
pub(super) const BEGIN: &str = "unfragpaste:1";
/// The key of the word before each part, which has its name.
pub(super) const PART: &str = "part";
/// The key of the last word, which has the number of parts.
pub(super) const END: &str = "unfragend";

/// The parts, those first without which the others tell least.
pub(super) const PARTS: [&str; 10] = [
    "host",
    "buddyinfo",
    "zoneinfo",
    "meminfo",
    "vmstat",
    "settings",
    "nodes",
    "pagetypeinfo",
    "before",
    "slabinfo",
];
