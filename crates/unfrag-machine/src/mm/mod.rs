//! The memory of the simulated kernel: who owns which page, and what happens when pages are touched,
//! shared, given back or taken away.
//!
//! - [`frames`]: the owner of each frame. [`object`]: ranges of pages by index. [`swap`]: slots.
//! - [`process`]: processes and their areas.
//! - [`alloc`]: pages and slab objects, waiting for them if need be. [`meet`]: what reclaim needs.
//! - [`touch`], [`fault`], [`swapin`]: touching memory. `mapped`: pages of files that areas map.
//! - [`space`]: areas come and go. [`fork`]: processes do.
//! - [`owner`]: what the core's reclaim asks of owners. [`kswapd`]: the daemon. [`oom`]: the last resort.
//!   [`workers`]: what CPUs do from time to time.
//! - `bios`: what transfers hold. [`crypt`]: pages that encrypting layers write from.
//! - [`check`]: every frame accounted for.
//! - `prefetch`: records of pages, before they are needed.
//! - [`config`]: sizes, era, costs.
//!
//! [`Memory`] is the state; it lives in the [`World`], where the core's callbacks reach
//! it. What must enter the allocator is a method of [`Sim`], what must wait one of
//! [`Cx`]. A page fault on the fast path takes one step of each, and no coroutine switch.

pub mod alloc;
pub(crate) mod bios;
pub mod bits;
pub mod check;
pub mod config;
pub mod crypt;
pub mod fault;
pub mod fork;
pub mod frames;
pub mod kswapd;
mod mapped;
pub mod meet;
pub mod object;
pub mod oom;
pub mod owner;
pub(crate) mod prefetch;
pub mod process;
pub mod space;
pub mod swap;
pub mod swapin;
#[cfg(test)]
mod tests;
pub mod touch;
pub mod workers;

use crate::engine::{Channel, Nanos, Rng, TaskId};
use crate::fs::Vfs;
use crate::kmem::caches::Caches;
use crate::kmem::{Kmem, Obj};
use crate::net::Net;
use crate::{Cx, MachineConfig, Sim, World};
use bios::Bios;
pub use config::{DirtyConfig, FlusherForm, MemConfig, MemCosts};
use crypt::CryptPool;
use frames::{Frames, Use};
use object::Objects;
use process::Processes;
use std::collections::VecDeque;
use swap::Swap;
use unfrag::page_alloc::FreeError;
use unfrag::{Order, Pfn};

/// Channel of a page: its transfer ends.
pub(crate) const PAGE: u16 = Channel::FIRST_FREE;
/// Channel of reclaimers that are throttled, by reason.
pub(crate) const THROTTLE: u16 = Channel::FIRST_FREE + 1;
/// Channel of the flushers.
pub(crate) const FLUSH: u16 = Channel::FIRST_FREE + 2;
/// Channel of a loop device's thread.
pub(crate) const LOOP: u16 = Channel::FIRST_FREE + 3;
/// Channel of a journal's thread.
pub(crate) const JOURNAL: u16 = Channel::FIRST_FREE + 4;
/// Channel of a network device's reader.
pub(crate) const NET: u16 = Channel::FIRST_FREE + 5;
/// Channel of a program's own meeting points.
pub(crate) const PROGRAM: u16 = Channel::FIRST_FREE + 6;

/// The page channel of a frame.
pub(crate) fn page_channel(pfn: Pfn) -> Channel {
    Channel::new(PAGE, pfn.0)
}

/// Why an operation on memory or files did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// No page is to be had.
    NoMemory,
    /// The file system is full.
    NoSpace,
    /// A device could not read or write.
    Io,
    /// The task was told to end.
    Killed,
}

impl std::fmt::Display for Fail {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Fail::NoMemory => "no memory",
            Fail::NoSpace => "no space on the file system",
            Fail::Io => "I/O error",
            Fail::Killed => "killed",
        })
    }
}

impl std::error::Error for Fail {}

/// Events of memory since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the names are those of /proc/vmstat, or say it"
)]
pub struct VmCounters {
    pub pgfault: u64,
    pub pgmajfault: u64,
    pub cow_copies: u64,
    pub pswpin: u64,
    pub pswpout: u64,
    pub pgpgin: u64,
    pub pgpgout: u64,
    pub read_errors: u64,
    /// Objects of transfers that free memory did not give: their pools did.
    pub mempool_used: u64,
    pub write_errors: u64,
    pub slabs_scanned: u64,
    pub inode_pages_dropped: u64,
    pub oom_victims: u64,
    pub busy_injected: u64,
    /// Time that tasks spent waiting for congestion to end.
    pub congestion_wait: Nanos,
    /// Time that tasks spent throttled by reclaim.
    pub throttled: Nanos,
    /// Time that writers were held back.
    pub dirty_pause: Nanos,
    /// Time spent in direct reclaim, waits included.
    pub direct_reclaim: Nanos,
}

/// Everything that the simulated kernel keeps about memory.
pub struct Memory {
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
    /// The kernel's own among them.
    pub caches: Caches,
    /// Files.
    pub vfs: Vfs,
    /// Network streams.
    pub net: Net,
    /// Events.
    pub counters: VmCounters,
    /// CPU time of kernel work done and not yet paid for by whoever runs.
    pub(crate) owed: Nanos,
    /// Tasks that run kswapd, one for each node.
    pub(crate) kswapd: Vec<TaskId>,
    /// Pages written since somebody began to wait for that.
    pub(crate) written: u32,
    pub(crate) busy_rng: Rng,
    /// Frames that lost their owner while the allocator was busy; to be freed.
    pub(crate) to_free: Vec<Pfn>,
    /// Chosen by the OOM killer, and not ended yet.
    pub(crate) dying: u32,
    pub(crate) crypt: CryptPool,
    pub(crate) bios: Bios,
    /// Nodes of the page cache's index that were set aside before anybody held a lock.
    pub(crate) radix_stash: Vec<Obj>,
    /// Objects to be freed when nobody can look at them any more, and from when on.
    pub(crate) rcu: VecDeque<(Nanos, Obj)>,
}

impl Memory {
    /// Nothing but the kernel itself.
    pub fn new(machine: &MachineConfig) -> Memory {
        let config = &machine.mem;
        let ends = machine.zones.iter().map(|z| z.start.0 + z.spanned);
        let mut kmem = Kmem::new(config.slab, machine.cpus);
        let caches = Caches::create(&mut kmem, config.word, config.radix_reclaimable);
        Memory {
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
            written: 0,
            busy_rng: Rng::named(machine.seed, "busy"),
            to_free: vec![],
            dying: 0,
            crypt: CryptPool::default(),
            bios: Bios::default(),
            radix_stash: vec![],
            rcu: VecDeque::new(),
            config: config.clone(),
        }
    }

    /// Zeroing a block takes time.
    #[inline]
    pub(crate) fn owe_zeroing(&mut self, order: u8) {
        self.owed += self.config.costs.zero_page << order;
    }

    /// Free slots of swap.
    #[inline]
    pub(crate) fn free_slots(&self) -> u64 {
        self.swap.as_ref().map_or(0, |s| s.free().into())
    }

    /// Puts work on the account of whoever runs.
    #[inline]
    pub(crate) fn owe(&mut self, ns: Nanos) {
        self.owed += ns;
    }
}

impl World {
    /// Memory.
    #[inline]
    pub fn mem(&self) -> &Memory {
        &self.mem
    }
}

impl Sim {
    #[inline]
    pub(crate) fn world_ref(&self) -> &World {
        self
    }

    /// Memory.
    #[inline]
    pub fn mem(&mut self) -> &mut Memory {
        &mut self.world().mem
    }

    /// Memory, to look at.
    #[inline]
    pub fn mem_ref(&self) -> &Memory {
        &self.world_ref().mem
    }

    /// Frees a block that the kernel itself used.
    pub(crate) fn free_kernel(&mut self, pfn: Pfn) {
        let mem = self.mem();
        let order = mem.frames.release(pfn);
        mem.owed += mem.config.costs.free;
        self.give_frame(pfn, order);
    }

    /// Gives a block without owner back to the allocator.
    pub(crate) fn give_frame(&mut self, pfn: Pfn, order: u8) {
        let cpu = self.cpu_id();
        own(self.manager().free(cpu, pfn, Order(order)));
    }

    /// Gives pages without owner back, in their order.
    pub(crate) fn give_pages(&mut self, pages: &[Pfn]) {
        let cpu = self.cpu_id();
        own(self.manager().free_bulk(cpu, pages));
    }

    /// Frees what lost its owner while the allocator was busy: pages of emptied slabs, and others.
    pub(crate) fn free_pending(&mut self) {
        while let Some((pfn, order)) = self.mem().kmem.freed() {
            let pfn = Pfn(pfn.into());
            self.mem().frames.release(pfn);
            self.give_frame(pfn, order);
        }
        while let Some(pfn) = self.mem().to_free.pop() {
            self.give_frame(pfn, 0);
        }
    }

    /// Records that the kernel uses a block just allocated.
    pub(crate) fn take_kernel(&mut self, pfn: Pfn, order: u8, what: Use) {
        self.mem().frames.take(pfn, order, what);
    }

    /// In an interrupt: uses the CPU time that is owed.
    pub(crate) fn pay_in_interrupt(&mut self) {
        let ns = std::mem::take(&mut self.mem().owed);
        if ns > 0 {
            self.spend_interrupt(ns);
        }
    }
}

/// What is freed has to be the simulated kernel's own.
fn own(freed: Result<(), FreeError>) {
    if let Err(e) = freed {
        panic!("the simulated kernel frees what is not its own: {e}");
    }
}

impl Cx<'_> {
    /// Uses the CPU time that kernel work on behalf of this task has taken since the last time.
    #[inline]
    pub(crate) fn pay(&mut self) {
        self.spend_and_pay(0);
    }

    /// Uses so much CPU time for the program's own work, and what kernel work for it has taken: in one
    /// piece, so that no other task comes in between and pays for this one.
    #[inline]
    pub(crate) fn spend_and_pay(&mut self, user: Nanos) {
        let system = self.with(|sim| std::mem::take(&mut sim.mem().owed));
        self.spend_both(user, system);
    }

    /// The same once it is worth a look at the clock: work in short pieces stays one piece.
    #[inline]
    pub(crate) fn pay_if_much(&mut self) {
        if self.with(|sim| sim.mem().owed) >= BATCH {
            self.pay();
        }
    }
}

/// CPU time from which on work of the kernel and runs of touches pause for others: what others see of
/// a task comes in pieces of this size. Far below a tick and a disk's access; each piece costs a switch
/// of coroutines.
pub(crate) const BATCH: Nanos = 50_000;
