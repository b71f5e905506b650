//! The files of the simulated kernel, as state.

pub mod blocks;
pub mod dirty;
pub mod journal;
pub mod loopdev;
pub mod node;
pub mod readahead;
pub(crate) mod transfer;
pub mod tree;
pub mod vfs;

pub use node::{Node, NodeId};
pub use readahead::Readahead;
pub use vfs::{FsConfig, FsId, FsKind, Store, Vfs};
