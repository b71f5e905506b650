//! Why there is no pool, or no arena.

use std::io;

/// Why there is no pool, or no arena.
#[derive(Debug)]
#[non_exhaustive]
pub enum PoolError {
    /// More frames than a pool or its limit has room for.
    TooLarge {
        /// Frames that were asked for.
        frames: u64,
    },
    /// A pool without an arena, or an arena without a whole block of 2 MiB.
    Empty,
    /// The system has no memory on a NUMA node with this number, or the pool has no part there.
    NoSuchNode {
        /// The number of the node.
        node: usize,
    },
    /// The owner has been removed, or is registered with another pool.
    NoSuchOwner,
    /// The watermarks are not in order, or above the memory.
    Watermarks,
    /// The system refused.
    System {
        /// What it refused.
        what: &'static str,
        /// Its reason.
        source: io::Error,
    },
}

impl PoolError {
    pub(crate) fn system(what: &'static str, e: rustix::io::Errno) -> PoolError {
        PoolError::System {
            what,
            source: e.into(),
        }
    }
}

impl std::fmt::Display for PoolError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            PoolError::TooLarge { frames } => write!(
                f,
                "there is no room for {frames} frames; raise the limit of the pool, or ask for less"
            ),
            PoolError::Empty => f.write_str(
                "a pool needs an arena, and an arena at least 2 MiB; give the builder one with arena()",
            ),
            PoolError::NoSuchNode { node } => write!(
                f,
                "the pool has no memory on NUMA node {node}; name one of the system's nodes with memory to the builder, or none"
            ),
            PoolError::NoSuchOwner => f.write_str(
                "the owner is not registered with this pool; remove it once, from the pool that it was registered with",
            ),
            PoolError::Watermarks => f.write_str(
                "the watermarks must rise from min to low to high, and stay below the memory",
            ),
            PoolError::System { what, source } => write!(f, "{what}: {source}"),
        }
    }
}

impl std::error::Error for PoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PoolError::System { source, .. } => Some(source),
            _ => None,
        }
    }
}
