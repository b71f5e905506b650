//! Samples of a run at equal intervals of virtual time.
//!
//! Sampling changes no counter. Amounts are pages of 4 KiB, times nanoseconds; all but the amounts are sums
//! since the start.

use crate::Sim;
use crate::engine::Nanos;
use serde::Serialize;
use unfrag_eras::frame::ORDER_SLOTS;
use unfrag_eras::reclaim::Lru;

/// Orders of free blocks.
const ORDERS: usize = unfrag_eras::MAX_ORDER as usize + 1;

/// The machine at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// Time.
    pub at_ns: Nanos,
    /// Memory by use.
    pub memory: MemoryByUse,
    /// Free blocks by order, for each zone in order.
    pub free_blocks: Vec<[u64; ORDERS]>,
    /// Tasks that have not ended, threads of the kernel among them.
    pub tasks: u64,
    /// All CPUs' time.
    pub cpu: CpuUse,
    /// CPU time of kswapd.
    pub kswapd_cpu_ns: Nanos,
    /// Time that tasks spent in direct reclaim, waits included.
    pub direct_reclaim_ns: Nanos,
    /// Direct reclaims.
    pub allocstall: u64,
    /// Time that tasks waited for congestion to end.
    pub congestion_wait_ns: Nanos,
    /// Page faults.
    pub pgfault: u64,
    /// Page faults that had to read.
    pub pgmajfault: u64,
    /// Pages read from swap.
    pub pswpin: u64,
    /// Pages written to swap.
    pub pswpout: u64,
    /// KiB read from files.
    pub pgpgin: u64,
    /// KiB written to files.
    pub pgpgout: u64,
    /// Allocations that failed.
    pub alloc_failed: u64,
}

/// A zone of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ZoneSize {
    /// Its name.
    pub name: &'static str,
    /// Pages that it manages.
    pub managed: u64,
}

/// The zones, in the order of [`Sample::free_blocks`].
pub(super) fn zones(sim: &Sim) -> Vec<ZoneSize> {
    let m = sim.manager_ref().inspect();
    let zone = |z| ZoneSize {
        name: m.zone_config(z).kind.name(),
        managed: m.zone_config(z).managed,
    };
    m.zones().map(zone).collect()
}

/// Memory by use, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryByUse {
    /// Free, on buddy and per-CPU lists.
    pub free: u64,
    /// Anonymous memory and tmpfs, on LRU lists.
    pub anon: u64,
    /// Page cache, on LRU lists.
    pub file: u64,
    /// Page tables.
    pub page_tables: u64,
    /// Kernel stacks.
    pub stacks: u64,
    /// Slabs.
    pub slab: u64,
    /// Network buffers.
    pub network: u64,
    /// Held by a module.
    pub pinned: u64,
    /// Everything else.
    pub other: u64,
    /// Dirty pages of files (part of `file`).
    pub dirty: u64,
    /// Pages being written to files (part of `file`).
    pub writeback: u64,
    /// Pages being written to swap (part of `anon`).
    pub swap_writeback: u64,
    /// Used slots of swap.
    pub swap_used: u64,
}

/// Time of CPUs by what it was spent on, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as in `CpuTimes`")]
pub struct CpuUse {
    pub user_ns: Nanos,
    pub system_ns: Nanos,
    pub irq_ns: Nanos,
    pub switching_ns: Nanos,
    pub iowait_ns: Nanos,
    pub idle_ns: Nanos,
}

/// Time of all CPUs so far.
pub(super) fn cpu_use(sim: &Sim) -> CpuUse {
    let mut sum = CpuUse::default();
    for t in (0..sim.cpus()).map(|c| sim.cpu_times(c)) {
        sum.user_ns += t.user;
        sum.system_ns += t.system;
        sum.irq_ns += t.irq;
        sum.switching_ns += t.switching;
        sum.iowait_ns += t.iowait;
        sum.idle_ns += t.idle;
    }
    sum
}

/// CPU time of kswapd so far, of all nodes'.
pub(super) fn kswapd_cpu(sim: &Sim) -> Nanos {
    let tasks = sim.kernel_ref().kswapd.iter();
    let times = tasks.filter_map(|&t| sim.task_times(t));
    times.map(|t| t.user + t.system).sum()
}

impl MemoryByUse {
    /// The present use.
    pub fn of(sim: &Sim) -> MemoryByUse {
        let (m, kernel) = (sim.manager_ref().inspect(), sim.kernel_ref());
        let mut u = MemoryByUse::default();
        let mut managed = 0;
        for z in m.zones() {
            managed += m.zone_config(z).managed;
            u.free += m.zone(z).free_pages + m.pcp_pages(z);
            let lru = m.lru(z);
            let on = |list: Lru| lru.pages[list as usize - 1];
            u.anon += on(Lru::InactiveAnon) + on(Lru::ActiveAnon) + lru.isolated[0];
            u.file += on(Lru::InactiveFile) + on(Lru::ActiveFile) + lru.isolated[1];
        }
        use crate::mm::frames::Use;
        let uses = kernel.frames.uses();
        let of = |what: Use| uses[what as usize];
        u.page_tables = of(Use::Table);
        u.stacks = of(Use::Stack);
        u.slab = of(Use::Slab);
        u.network = of(Use::Net);
        u.pinned = of(Use::Pinned);
        let named = u.free + u.anon + u.file + u.page_tables + u.stacks + u.slab + u.network;
        u.other = managed.saturating_sub(named + u.pinned);
        u.dirty = kernel.vfs.dirty.nr_dirty;
        u.writeback = kernel.vfs.dirty.nr_writeback;
        if let Some(s) = &kernel.swap {
            u.swap_writeback = s.writeback;
            u.swap_used = u64::from(s.config.pages - s.free());
        }
        u
    }
}

/// The orders that exist with pages of 4 KiB.
fn free_blocks(nr_free: &[u64; ORDER_SLOTS]) -> [u64; ORDERS] {
    std::array::from_fn(|order| nr_free[order])
}

impl Sample {
    /// A sample of the machine now.
    pub fn of(sim: &Sim) -> Sample {
        let (m, vm) = (sim.manager_ref().inspect(), &sim.kernel_ref().counters);
        Sample {
            at_ns: sim.now(),
            memory: MemoryByUse::of(sim),
            free_blocks: m.zones().map(|z| free_blocks(&m.zone(z).nr_free)).collect(),
            tasks: sim.live_tasks() as u64,
            cpu: cpu_use(sim),
            kswapd_cpu_ns: kswapd_cpu(sim),
            direct_reclaim_ns: vm.direct_reclaim,
            allocstall: m.reclaim_counters().allocstall,
            congestion_wait_ns: sim.block.congestion().waited.iter().sum(),
            pgfault: vm.pgfault,
            pgmajfault: vm.pgmajfault,
            pswpin: vm.pswpin,
            pswpout: vm.pswpout,
            pgpgin: 4 * vm.pgpgin,
            pgpgout: 4 * vm.pgpgout,
            alloc_failed: m.counters().alloc_failed,
        }
    }
}
