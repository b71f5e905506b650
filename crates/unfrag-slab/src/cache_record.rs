//! The records of a cache: its descriptor, one record for each CPU, one for each node. They live in the bootstrap
//! cache as long as the cache does.
//!
//! Invariant: the cells of a [`CpuRecord`] are used only by the holder of that CPU's token, or by a
//! caller with exclusive access to the cache. What others may use is atomic or locked.

use crate::array_cache::ArrayCache;
use crate::fault::Name;
use crate::formulas::{ArrayLimits, SlqbLimits};
use crate::list::List;
use crate::lock::{Counter, Locked};
use crate::object::{CacheFlags, Constructor, ObjectLayout};
use crate::remote::RemoteQueue;
use crate::rules::Design;
use crate::sync::{AtomicU32, AtomicU64, Ordering, spin};
use core::cell::Cell;
use core::ptr::null_mut;
use lock_api::RawMutex;
use unfrag::frame::NR_ORDERS;

/// The record of a CPU in a cache.
#[repr(C, align(64))]
pub(crate) struct CpuRecord<R: RawMutex> {
    // The fast paths touch the first cache line only.
    /// Chain of free objects, by address.
    pub head: Cell<*mut u8>,
    /// Objects on it.
    pub nr: Cell<u32>,
    /// Most of them (SLQB).
    pub hiwater: Cell<u32>,
    /// Place of the link in an object.
    pub next_at: Cell<usize>,
    pub alloc_fast: Counter,
    pub free_fast: Counter,
    /// The owner tag of this CPU's slabs: the address of this record, plus one in a checked cache, so that its
    /// frees never take the fast path.
    pub tag: Cell<usize>,
    /// Number of the record of the CPU's slab (SLUB); 0 is none.
    pub slab: Cell<u32>,
    pub node: Cell<u8>,

    pub alloc_slow: Counter,
    pub free_slow: Counter,
    /// The chain of a checked cache outside of its slow paths.
    pub hidden: Cell<*mut u8>,
    /// Partial slabs of this CPU (SLUB), linked by `next`.
    pub partial: Cell<u32>,
    pub partial_nr: Cell<u32>,
    /// Objects of other CPUs, all of one target (SLQB).
    pub remote_list: RemoteList,

    /// Slabs of this CPU with free objects (SLQB).
    pub own_slabs: Locked<List, R>,
    /// The CPU's array (SLAB).
    pub array: Cell<*mut ArrayCache>,

    /// Another CPU asked this one to empty its lists.
    pub drain_requested: AtomicU32,
    /// The remote queue has crossed `freebatch`.
    pub claim_requested: AtomicU32,
    /// Objects that other CPUs freed (SLQB).
    pub remote: RemoteQueue,
}

impl<R: RawMutex> CpuRecord<R> {
    /// Empty lists.
    pub fn new(node: u8, hiwater: u32, next_at: usize, array: *mut ArrayCache) -> CpuRecord<R> {
        CpuRecord {
            head: Cell::new(null_mut()),
            nr: Cell::new(0),
            hiwater: Cell::new(hiwater),
            next_at: Cell::new(next_at),
            alloc_fast: Counter::default(),
            free_fast: Counter::default(),
            tag: Cell::new(0),
            slab: Cell::new(0),
            node: Cell::new(node),
            alloc_slow: Counter::default(),
            free_slow: Counter::default(),
            hidden: Cell::new(null_mut()),
            partial: Cell::new(0),
            partial_nr: Cell::new(0),
            remote_list: RemoteList {
                head: Cell::new(null_mut()),
                tail: Cell::new(null_mut()),
                nr: Cell::new(0),
                target: Cell::new(0),
            },
            own_slabs: Locked::new(List::default()),
            array: Cell::new(array),
            drain_requested: AtomicU32::new(0),
            claim_requested: AtomicU32::new(0),
            remote: RemoteQueue::new(),
        }
    }
}

/// Objects to be spliced onto another CPU's queue.
pub(crate) struct RemoteList {
    pub head: Cell<*mut u8>,
    pub tail: Cell<*mut u8>,
    pub nr: Cell<u32>,
    /// Tag of the target's record.
    pub target: Cell<usize>,
}

/// The record of a node in a cache.
pub(crate) struct NodeRecord<R: RawMutex> {
    pub lists: Locked<NodeLists, R>,
    /// Slabs.
    pub slabs: AtomicU64,
    /// Objects that they have room for.
    pub objects: AtomicU64,
    /// Objects freed here that belong to another node, an array for each (SLAB).
    pub aliens: *const Locked<*mut ArrayCache, R>,
}

/// A node's lists.
pub(crate) struct NodeLists {
    /// Slabs with objects both free and in use (SLUB: also empty ones that are kept).
    pub partial: List,
    /// Slabs without a free object (SLAB).
    pub full: List,
    /// Slabs without an object in use (SLAB).
    pub free: List,
    /// Free objects on the lists (SLAB).
    pub free_objects: u64,
    /// Array shared by the node's CPUs (SLAB); null if there is none.
    pub shared: *mut ArrayCache,
    /// Objects were taken since the last run of the reaper (SLAB).
    pub touched: bool,
}

/// Damaged objects that are not handed out again, chained by their state word.
pub(crate) struct Quarantine(pub *mut u8);

// SAFETY: the objects are reached under the lock alone.
#[allow(unsafe_code)]
unsafe impl Send for Quarantine {}

// SAFETY: the arrays that the pointers name are reached under the lock that holds the pointer.
#[allow(unsafe_code)]
unsafe impl Send for NodeLists {}

/// A cache.
pub(crate) struct CacheRecord<R: RawMutex> {
    /// How many records there are of each kind.
    pub cpu_count: u16,
    pub node_count: u8,
    pub cpus: *const CpuRecord<R>,
    pub nodes: *const NodeRecord<R>,
    pub name: Name,
    pub design: Design,
    pub flags: CacheFlags,
    /// Bytes that a user sees.
    pub object_size: u32,
    pub layout: ObjectLayout,
    pub ctor: Option<Constructor>,
    /// Order of slabs, and the least that holds an object.
    pub order: u8,
    pub min_order: u8,
    /// Objects of a slab of each of the two.
    pub objects: u16,
    pub min_objects: u16,
    /// Bytes before the first object of a slab, without its lead.
    pub head: u32,
    /// Colours and their step in bytes.
    pub colours: u32,
    pub colour_step: u32,
    pub colour_next: AtomicU32,
    /// SLUB: slabs a node keeps, slabs a CPU keeps.
    pub min_partial: u32,
    pub cpu_partial: u32,
    pub arrays: ArrayLimits,
    pub slqb: SlqbLimits,
    /// Handles; merged caches have several.
    pub handles: AtomicU32,
    /// Slabs of each order.
    pub slabs_of: [AtomicU32; NR_ORDERS],
    /// Slabs that got the least order only.
    pub order_fallbacks: AtomicU64,
    /// Misuses found.
    pub faults: AtomicU64,
    /// Free objects taken out of use because they were written to.
    pub quarantine: Locked<Quarantine, R>,
    /// Allocations and frees without a CPU.
    pub alloc_apart: AtomicU64,
    pub free_apart: AtomicU64,
    /// Walks over the list of caches that have this one in hand without its lock.
    pub kept: AtomicU32,
    /// Next in the list of all caches, and number by age; the list's lock guards both.
    pub next: Cell<*mut CacheRecord<R>>,
    pub born: Cell<u64>,
}

impl<R: RawMutex> CacheRecord<R> {
    /// Record of a CPU.
    #[inline]
    pub fn cpu(&self, cpu: u16) -> &CpuRecord<R> {
        assert!(cpu < self.cpu_count, "no such CPU");
        // SAFETY: there is a record for each CPU.
        #[allow(unsafe_code)]
        unsafe {
            &*self.cpus.add(cpu.into())
        }
    }
    /// All records of CPUs.
    pub fn all_cpus(&self) -> impl Iterator<Item = &CpuRecord<R>> {
        (0..self.cpu_count).map(|c| self.cpu(c))
    }
    /// Record of a node.
    #[inline]
    pub fn node(&self, node: u8) -> &NodeRecord<R> {
        assert!(node < self.node_count, "no such node");
        // SAFETY: there is a record for each node.
        #[allow(unsafe_code)]
        unsafe {
            &*self.nodes.add(node.into())
        }
    }
    /// Waits until no walk has the cache in hand. The caller took it off the list, so that none begins.
    pub fn wait_until_let_go(&self) {
        // Acquire: pairs with the release of whoever lets the cache go.
        while self.kept.load(Ordering::Acquire) != 0 {
            spin();
        }
    }
    /// Whether objects are checked.
    pub fn is_checked(&self) -> bool {
        self.flags.intersects(CacheFlags::DEBUG)
    }
    /// Place of the link in an object.
    #[inline]
    pub fn next_at(&self) -> usize {
        self.layout.next_at as usize
    }
    /// Whether SLAB keeps the management data of its slabs apart.
    pub fn off_slab(&self) -> bool {
        self.head == 0
    }
}
