//! Numbers of the heap.

/// Where the memory of the heap is, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStats {
    /// Of slabs, objects in use and free ones.
    pub slab_bytes: u64,
    /// Of free objects of slabs, and of what threads share of free objects and runs. What each thread keeps for itself counts as in
    /// use.
    pub kept_bytes: u64,
    /// Free, and not given back to the system.
    pub free_bytes: u64,
    /// Given back to the system, and not used again since.
    pub released_bytes: u64,
    /// Usable addresses: all of the above, runs of frames, and the records.
    pub usable_bytes: u64,
    /// Requests that got a mapping of their own.
    pub mapped_bytes: u64,
    /// How many of them there are.
    pub mappings: u64,
    /// Free, in blocks of 2 MiB that are free as a whole.
    pub whole_bytes: u64,
}
