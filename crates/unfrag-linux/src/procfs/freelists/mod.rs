//! The exact state of a kernel's page allocator: its free lists, recorded by a walk through its memory.
//!
//! No kernel has this file; the recorder of a ground-truth recording writes it. With it, an error of a
//! model can be told from an error of the state that the model started with. The text has one record
//! a line, zone by zone; see [`FreeLists::parse`].
//!
//! Invariant: every list is in the kernel's order (its first page is the next to be allocated), and
//! [`FreeLists::write`] gives back, byte for byte, what [`FreeLists::parse`] read.

mod text;

/// Pages in a pageblock of the kernels that the recorder knows (x86-64, 4 KiB pages).
pub const PAGEBLOCK_PAGES: u64 = 512;

/// State of a whole node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeLists {
    /// Its populated zones, lowest first.
    pub zones: Vec<Zone>,
    /// Its pageblocks, in runs.
    pub pageblocks: Vec<PageblockRun>,
}

/// State of a zone. Everything is in pages of 4 KiB unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// Name, such as `DMA32`.
    pub name: String,
    /// Its first page frame.
    pub start_pfn: u64,
    /// Page frames from first to last, holes included.
    pub spanned: u64,
    /// Page frames that exist.
    pub present: u64,
    /// Page frames that the allocator was given.
    pub managed: u64,
    /// Watermarks without the boost.
    pub watermarks: Watermarks,
    /// What is added to the watermarks at present.
    pub boost: u64,
    /// Pages in high-atomic pageblocks.
    pub highatomic: u64,
    /// What compaction remembers.
    pub compact: Compact,
    /// Per-CPU lists, one entry a CPU.
    pub pcps: Vec<Pcp>,
    /// The buddy lists, one entry an order, lowest first.
    pub orders: Vec<FreeArea>,
}

/// Watermarks of a zone in pages, without the boost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermarks {
    /// Below it, direct reclaim.
    pub min: u64,
    /// Below it, kswapd wakes.
    pub low: u64,
    /// Above it, kswapd sleeps.
    pub high: u64,
    /// For promotion between memory tiers.
    pub promo: u64,
}

/// What compaction remembers of a zone between two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compact {
    /// Where the free scanner goes on.
    pub cached_free_pfn: u64,
    /// Where the migration scanner goes on in asynchronous runs.
    pub cached_migrate_pfn_async: u64,
    /// Where the migration scanner goes on in synchronous runs.
    pub cached_migrate_pfn_sync: u64,
    /// Where the migration scanner starts after a reset.
    pub init_migrate_pfn: u64,
    /// Where the free scanner starts after a reset.
    pub init_free_pfn: u64,
    /// Attempts deferred since the last failure.
    pub considered: u32,
    /// Attempts to defer, as a power of two.
    pub defer_shift: u32,
    /// Lowest order that failed.
    pub order_failed: i32,
}

/// Per-CPU lists of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pcp {
    /// The CPU.
    pub cpu: u32,
    /// Pages on all its lists.
    pub count: i32,
    /// Above it, pages go back to the buddy lists.
    pub high: i32,
    /// Pages moved at a time.
    pub batch: i32,
    /// Doublings of the batch while pages are only freed.
    pub free_factor: i16,
    /// Rounds until a remote node's lists are drained.
    pub expire: i16,
    /// The lists that hold anything, in the order of their indexes.
    pub lists: Vec<PcpList>,
}

/// One per-CPU list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcpList {
    /// Order of its blocks.
    pub order: u8,
    /// Whom it serves.
    pub kind: PcpKind,
    /// First page frame of each block; the first is the next to be allocated.
    pub pfns: Vec<u64>,
    /// Set where the walk had to stop early; the list is then incomplete.
    pub torn: Option<Torn>,
}

/// Whom a per-CPU list serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PcpKind {
    /// One migratetype (0 unmovable, 1 movable, 2 reclaimable).
    MigrateType(u8),
    /// Huge pages; the number is the list's index among all lists of the CPU.
    Thp(u8),
}

/// The buddy lists of one order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeArea {
    /// The order.
    pub order: u8,
    /// The kernel's own count of blocks in `lists`.
    pub nr_free: u64,
    /// The lists that hold anything, in the order of their migratetypes.
    pub lists: Vec<FreeList>,
}

/// One buddy list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeList {
    /// Migratetype: 0 unmovable, 1 movable, 2 reclaimable, 3 high-atomic, 4 isolated.
    pub migratetype: u8,
    /// First page frame of each block; the first is the next to be allocated.
    pub pfns: Vec<u64>,
    /// Set where the walk had to stop early; the list is then incomplete.
    pub torn: Option<Torn>,
}

/// Why the recorder stopped in the middle of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torn {
    /// A link led to what is no page.
    Bad,
    /// The list changed while it was read.
    Race,
    /// The recorder's buffer was full.
    Cut,
}

/// Pageblocks that lie side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageblockRun {
    /// First page frame of the first pageblock; the n-th begins [`PAGEBLOCK_PAGES`] × n further on.
    pub start_pfn: u64,
    /// Type of each pageblock, numbered as in [`FreeList::migratetype`].
    pub types: Vec<u8>,
    /// Whether compaction is to skip it.
    pub skip: Vec<bool>,
}

impl FreeLists {
    /// Type and skip bit of the pageblock that holds page frame `pfn`, if it was recorded.
    pub fn pageblock(&self, pfn: u64) -> Option<(u8, bool)> {
        self.pageblocks.iter().find_map(|run| {
            let i = usize::try_from(pfn.checked_sub(run.start_pfn)? / PAGEBLOCK_PAGES).ok()?;
            Some((*run.types.get(i)?, *run.skip.get(i)?))
        })
    }

    /// The zone called `name`.
    pub fn zone(&self, name: &str) -> Option<&Zone> {
        self.zones.iter().find(|z| z.name == name)
    }
}

#[cfg(test)]
mod tests;
