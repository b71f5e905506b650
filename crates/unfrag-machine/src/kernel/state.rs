//! The state of the simulated kernel.

use crate::config::MachineConfig;
use crate::engine::{Nanos, Rng, TaskId};
use crate::fs::Vfs;
use crate::kmem::caches::Caches;
use crate::kmem::{Kmem, Obj};
use crate::mm::bio_pool::Bios;
use crate::mm::config::MemConfig;
use crate::mm::counters::VmCounters;
use crate::mm::crypt_pool::CryptPool;
use crate::mm::frames::Frames;
use crate::mm::object::Objects;
use crate::mm::process::Processes;
use crate::mm::swap::Swap;
use crate::net::Net;
use std::collections::VecDeque;
use unfrag_eras::Pfn;

/// The state of the simulated kernel.
pub struct KernelState {
    /// Sizes, era, costs.
    pub config: MemConfig,
    /// The owner of each frame.
    pub frames: Frames,
    /// Ranges of pages.
    pub objects: Objects,
    /// Swap.
    pub swap: Option<Swap>,
    /// Processes.
    pub procs: Processes,
    /// Slab caches.
    pub kmem: Kmem,
    /// The kernel's own caches among them.
    pub caches: Caches,
    /// Files.
    pub vfs: Vfs,
    /// Network streams.
    pub net: Net,
    /// Events.
    pub counters: VmCounters,
    /// CPU time of kernel work that no task or interrupt has spent yet.
    pub(crate) owed: Nanos,
    /// Tasks that run kswapd, one for each node.
    pub(crate) kswapd: Vec<TaskId>,
    /// Tasks that run kcompactd, one for each node.
    pub(crate) kcompactd: Vec<TaskId>,
    /// Pages written since a task began to be throttled for writeback.
    pub(crate) written: u32,
    pub(crate) busy_rng: Rng,
    /// Frames that lost their owner while the allocator was locked; to be freed.
    pub(crate) to_free: Vec<Pfn>,
    /// Huge pages that reclaim has asked about; to be split.
    pub(crate) to_split: Vec<Pfn>,
    /// Processes that the OOM killer has chosen and that have not ended.
    pub(crate) dying: u32,
    pub(crate) crypt: CryptPool,
    pub(crate) bios: Bios,
    /// Nodes of the page cache's index that were allocated ahead, where waiting was allowed.
    pub(crate) radix_stash: Vec<Obj>,
    /// Objects to be freed after a grace period, with the end of that period.
    pub(crate) rcu: VecDeque<(Nanos, Obj)>,
}

impl KernelState {
    /// The state at boot.
    pub fn new(machine: &MachineConfig) -> KernelState {
        let config = &machine.mem;
        let ends = machine.zones.iter().map(|z| z.start.0 + z.spanned);
        let mut kmem = Kmem::new(config.slab, machine.cpus);
        let caches = Caches::create(&mut kmem, config.word, config.radix_reclaimable);
        KernelState {
            frames: Frames::new(ends.max().unwrap_or(0)),
            objects: Objects::default(),
            swap: config.swap.map(Swap::new),
            procs: Processes::default(),
            kmem,
            caches,
            vfs: Vfs::default(),
            net: Net::default(),
            counters: VmCounters::default(),
            owed: 0,
            kswapd: vec![],
            kcompactd: vec![],
            written: 0,
            busy_rng: Rng::named(machine.seed, "busy"),
            to_free: vec![],
            to_split: vec![],
            dying: 0,
            crypt: CryptPool::default(),
            bios: Bios::default(),
            radix_stash: vec![],
            rcu: VecDeque::new(),
            config: config.clone(),
        }
    }

    /// Adds the cost of zeroing a block.
    #[inline]
    pub(crate) fn owe_zeroing(&mut self, order: u8) {
        self.owed += self.config.costs.zero_page << order;
    }

    /// Free slots of swap.
    #[inline]
    pub(crate) fn free_slots(&self) -> u64 {
        self.swap.as_ref().map_or(0, |s| s.free().into())
    }

    /// Adds CPU time of kernel work.
    #[inline]
    pub(crate) fn owe(&mut self, ns: Nanos) {
        self.owed += ns;
    }
}
