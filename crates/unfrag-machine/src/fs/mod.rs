//! The files of the simulated kernel, as state.
//!
//! - [`node`]: files and directories. [`blocks`]: which blocks of a device hold what.
//! - [`vfs`]: all file systems and nodes. [`tree`]: shapes and plans of trees of files.
//! - [`readahead`]: the window of an open file. `transfer`: runs of blocks.
//! - [`dirty`]: counts of dirty pages. [`journal`], [`loopdev`]: the state of journals and loop devices.
//!
//! The code that works on them is in [`kernel`](crate::kernel). `spec: 4.5, 6.4, 8.5, 8.6`

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
