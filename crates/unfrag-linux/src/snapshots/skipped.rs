//! What a source holds and is not read.

/// A file that may belong to a snapshot, and was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path in the source.
    pub file: String,
    /// Why.
    pub why: String,
}
