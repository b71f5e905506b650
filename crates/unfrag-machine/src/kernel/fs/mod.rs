//! The kernel's work on files.
//!
//! - `mount`: mounting, and pins of nodes. `lookup`: from a name to an inode in memory. `create`: new files,
//!   and their end. `shrink`: dentries and inodes that leave memory.
//! - `cache`: the page cache. `read`: reading and readahead. `write`: writing and throttling of writers.
//!   `writeback`: flushers. `shmem`: tmpfs.
//! - `submit`: where pages lie, and how their transfers reach a device. `loopdev`: loop devices.
//!   `journal`: commits of ext3.
//! - `tree`: many files at once.

mod cache;
mod create;
mod journal;
mod lookup;
mod loopdev;
mod mount;
mod read;
mod shmem;
mod shrink;
mod submit;
#[cfg(test)]
mod tests;
mod tree;
mod write;
mod writeback;
