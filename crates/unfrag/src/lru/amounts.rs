//! How much reclaim looks at and wants, with lists and with generations.
//!
//! Invariant: none; these are constants of every era. `spec: 4`

/// Reclaim begins at this priority and scans `size >> priority` of each list.
pub(crate) const DEF_PRIORITY: u8 = 12;

/// Pages that one reclaim wants, and the size of a batch.
pub(crate) const SWAP_CLUSTER_MAX: u64 = 32;
