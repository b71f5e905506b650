//! The model's state as trees of procfs files, one a snapshot, for tools that read `/proc`.
//!
//! - [`Exporter`]: watches a replay, and writes the trees.
//! - [`tree`](fn@tree): the files of one moment. `zones` and `tables`: the parts of them that the model alone says.
//! - [`provenance`]: the list of what the model computed and what it did not.
//!
//! Invariant: every value in a tree is the model's, or listed in its `PROVENANCE` as taken from the
//! recorded snapshot; nothing is passed through silently.

mod exporter;
pub mod provenance;
mod tables;
pub mod tree;
mod zones;

pub use exporter::Exporter;
pub use tree::{Tree, tree};
