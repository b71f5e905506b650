//! What an event says.

use unfrag_eras::Pfn;

/// A block of frames that an event names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first frame, below [`MOST_FRAMES`].
    pub pfn: Pfn,
    /// Its order, below [`ORDERS`].
    pub order: u8,
}

/// Orders below this one may be in a trace. No kernel has larger ones; how many a host has is its own.
pub const ORDERS: u8 = 32;

/// Smallest order of a request whose kernel stack is recorded with it.
pub const STACK_ORDER: u8 = 3;

/// Frames that a computer can have, at most: addresses have 64 bits.
pub const MOST_FRAMES: u64 = 1 << 52;

impl Block {
    /// Its pages.
    pub fn pages(self) -> u64 {
        1 << self.order
    }

    /// Its frames.
    pub fn frames(self) -> std::ops::Range<u64> {
        self.pfn.0..self.pfn.0 + self.pages()
    }
}

/// Flags of a request, as the recorded kernel numbers them: its release says what a bit means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flags(pub u64);

/// A value that some recorders write by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Named<'a> {
    /// As a number.
    Number(u64),
    /// By name.
    Name(&'a str),
}

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Page<'a> {
    /// A request for a block.
    Alloc(Alloc),
    /// A block is freed.
    Free(Block),
    /// A block goes from a zone to a per-CPU list.
    Refill(Listed),
    /// A block goes from a per-CPU list to its zone.
    Drain(Listed),
    /// A request is served from a pageblock of another type.
    Fallback(Fallback),
    /// Compaction.
    Compaction(Compaction<'a>),
    /// A mapped page is migrated.
    Migration(Migration),
    /// Reclaim.
    Reclaim(Reclaim),
    /// Page cache.
    Cache(Cache),
    /// Objects of slab caches.
    Slab(Slab<'a>),
    /// khugepaged, or a task in its place, looked at small pages to make a huge one of.
    CollapseScan,
    /// A CPU switches to another task. Tasks are named by their numbers.
    Switch {
        /// The task that ran.
        from: u64,
        /// The task that runs.
        to: u64,
    },
    /// The kernel stack at the event before it, of the same task and CPU: functions from the outermost on, parted by `;`.
    Stack(Option<&'a str>),
}

/// A request for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alloc {
    /// Its first frame; `None` if the request failed.
    pub pfn: Option<Pfn>,
    /// Its order, below [`ORDERS`].
    pub order: u8,
    /// The request's flags.
    pub gfp: Option<Flags>,
    /// The type that was asked for, as the recorded kernel numbers it.
    pub migratetype: Option<u64>,
}

impl Alloc {
    /// The block; `None` if the request failed.
    #[inline]
    pub fn block(&self) -> Option<Block> {
        let order = self.order;
        self.pfn.map(|pfn| Block { pfn, order })
    }
}

/// A block on its way between a zone and a per-CPU list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The block; `None` where the zone had none.
    pub block: Option<Block>,
    /// The type of its list, as the recorded kernel numbers it.
    pub migratetype: Option<u64>,
}

/// A request that is served from a pageblock of another type. Types are as the recorded kernel numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// Order of the request.
    pub order: Option<u64>,
    /// Order of the block that serves it.
    pub fallback_order: Option<u64>,
    /// Type that was asked for.
    pub wanted: Option<u64>,
    /// Type of the block.
    pub from: Option<u64>,
    /// What the kernel writes of the pageblock's new owner.
    pub ownership: Option<u64>,
    /// Order of a pageblock.
    pub pageblock_order: Option<u64>,
}

/// Compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction<'a> {
    /// A request is about to compact.
    Try {
        /// Order of the request.
        order: Option<u64>,
        /// Its flags.
        gfp: Option<Flags>,
    },
    /// A run over a zone begins.
    Begin {
        /// First frame of the zone.
        zone_start: Option<u64>,
    },
    /// A run ends.
    End {
        /// How.
        status: Option<Named<'a>>,
        /// Where the scanner of pages to move is.
        migrate: Option<u64>,
        /// Where the scanner of free pages is.
        free: Option<u64>,
    },
    /// Whether a zone is worth it.
    Suitable {
        /// Order of the request.
        order: Option<u64>,
        /// The answer.
        result: Option<Named<'a>>,
    },
    /// Whether a run is done.
    Finished {
        /// Order of the request.
        order: Option<u64>,
        /// The answer.
        result: Option<Named<'a>>,
    },
    /// Pages are isolated to be moved.
    IsolateMigrate {
        /// Pages that were looked at.
        scanned: Option<u64>,
        /// Of these, taken.
        taken: Option<u64>,
    },
    /// Free pages are isolated as targets.
    IsolateFree {
        /// Pages that were looked at.
        scanned: Option<u64>,
        /// Of these, taken.
        taken: Option<u64>,
    },
    /// A batch of pages was moved.
    Migrated {
        /// Pages that were.
        moved: Option<u64>,
        /// Pages that could not be.
        failed: Option<u64>,
    },
    /// A request does not compact, as earlier runs were in vain.
    Deferred {
        /// Its order.
        order: Option<u64>,
    },
    /// A request, or kswapd, wakes kcompactd.
    Asked {
        /// Node of the kcompactd.
        node: Option<u64>,
        /// Order of the request.
        order: Option<u64>,
    },
    /// kcompactd wakes up.
    KcompactdWake {
        /// Its node.
        node: Option<u64>,
        /// For a request of this order.
        order: Option<u64>,
    },
    /// kcompactd goes to sleep.
    KcompactdSleep {
        /// Its node.
        node: Option<u64>,
    },
}

/// Entries of page tables when a mapped page is migrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// The entry is that of a page under migration.
    Leaves {
        /// Address of the page in its process.
        addr: u64,
        /// The entry.
        pte: u64,
    },
    /// The entry is that of the new frame.
    Arrives {
        /// Address of the page in its process.
        addr: u64,
        /// The entry.
        pte: u64,
    },
}

/// Reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// A request wakes kswapd.
    Asked {
        /// Node of the kswapd.
        node: Option<u64>,
        /// Order of the request.
        order: Option<u64>,
        /// The request's flags; 0 where it is the kernel's own affair.
        gfp: Option<Flags>,
    },
    /// kswapd wakes up.
    Wakes {
        /// Its node.
        node: Option<u64>,
        /// For this order.
        order: Option<u64>,
    },
    /// kswapd goes to sleep.
    Sleeps {
        /// Its node.
        node: Option<u64>,
    },
    /// A task begins to reclaim for its request.
    Begin {
        /// Order of the request.
        order: Option<u64>,
    },
    /// It ends.
    End {
        /// Pages that it reclaimed.
        reclaimed: Option<u64>,
    },
}

/// Page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// A block enters it.
    Add {
        /// The block.
        block: Block,
        /// Where in which file, if the event says it.
        place: Option<Place>,
    },
    /// A block leaves it.
    Delete {
        /// The block.
        block: Block,
    },
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Device of the file.
    pub device: u64,
    /// Number of its inode.
    pub inode: u64,
    /// Page of the file.
    pub index: u64,
}

/// Objects of slab caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slab<'a> {
    /// An object is allocated.
    Alloc {
        /// Whether it is by size, not from a named cache.
        by_size: bool,
        /// Bytes that the recorded kernel's slab has for the object.
        size: Option<u64>,
        /// Name of its cache.
        cache: Option<&'a str>,
        /// Who asked for what, if the event says it.
        call: Option<Call>,
    },
    /// An object is freed.
    Free {
        /// Its address; 0 for none.
        ptr: u64,
        /// Name of its cache.
        cache: Option<&'a str>,
    },
}

/// A call for a slab object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Address of the object; 0 for none.
    pub ptr: u64,
    /// Address of the calling code.
    pub site: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// The request's flags.
    pub gfp: Flags,
}
