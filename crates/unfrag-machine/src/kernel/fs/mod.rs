//! The kernel's work on files.

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
