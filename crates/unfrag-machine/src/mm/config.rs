//! The configuration of the simulated kernel's memory: sizes, rules of the era, costs.

use super::swap::SwapConfig;
use super::thp::Thp;
use crate::engine::Nanos;
use crate::kmem::caches::Word;
use unfrag_eras::Gfp;
use unfrag_eras::Rules;
use unfrag_eras::kernel::{LruShape, ReclaimRules};
use unfrag_slab::Rules as SlabRules;

/// CPU time of the kernel's work on memory and files, in nanoseconds.
///
/// The defaults are of a machine of 2009 at some 2 GHz; a scenario may replace any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each name says what is paid for")]
pub struct MemCosts {
    pub alloc: Nanos,
    pub alloc_slow: Nanos,
    pub free: Nanos,
    pub fault: Nanos,
    pub minor_fault: Nanos,
    pub zero_page: Nanos,
    pub copy_page: Nanos,
    pub scan_page: Nanos,
    pub reclaim_page: Nanos,
    pub unmap_page: Nanos,
    pub compact_frame: Nanos,
    pub move_page: Nanos,
    pub remap_page: Nanos,
    pub prep_page: Nanos,
    pub flush_tlb: Nanos,
    pub split_page: Nanos,
    pub slab_fast: Nanos,
    pub slab_slow: Nanos,
    pub syscall: Nanos,
    pub path_component: Nanos,
    pub page_lookup: Nanos,
    pub read_page: Nanos,
    pub write_page: Nanos,
    pub submit: Nanos,
    pub fork: Nanos,
    pub fork_page: Nanos,
    pub exec: Nanos,
    pub exit: Nanos,
    pub exit_page: Nanos,
    pub shrink_object: Nanos,
    pub receive: Nanos,
}

impl Default for MemCosts {
    fn default() -> Self {
        MemCosts {
            alloc: 120,
            alloc_slow: 1_000,
            free: 80,
            fault: 700,
            minor_fault: 450,
            zero_page: 700,
            copy_page: 900,
            scan_page: 150,
            reclaim_page: 350,
            unmap_page: 250,
            compact_frame: 20,
            move_page: 400,
            remap_page: 200,
            prep_page: 8,
            flush_tlb: 2_000,
            split_page: 50,
            slab_fast: 40,
            slab_slow: 200,
            syscall: 150,
            path_component: 300,
            page_lookup: 100,
            read_page: 1_000,
            write_page: 1_200,
            submit: 1_500,
            fork: 50_000,
            fork_page: 20,
            exec: 200_000,
            exit: 30_000,
            exit_page: 60,
            shrink_object: 250,
            receive: 3_000,
        }
    }
}

/// When writers of files are held back. `spec: 4.5`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyConfig {
    /// `vm.dirty_ratio`, in percent.
    pub ratio: u64,
    /// `vm.dirty_background_ratio`, in percent.
    pub background_ratio: u64,
    /// Time between two rounds of a flusher (`dirty_writeback_centisecs`).
    pub interval: Nanos,
    /// Age from which dirty pages are written (`dirty_expire_centisecs`).
    pub expire: Nanos,
    /// Form of the flusher threads.
    pub flusher: FlusherForm,
}

impl Default for DirtyConfig {
    fn default() -> Self {
        DirtyConfig {
            ratio: 20,
            background_ratio: 10,
            interval: 5_000_000_000,
            expire: 30_000_000_000,
            flusher: FlusherForm::PerDevice,
        }
    }
}

/// Form of the flusher threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlusherForm {
    /// Threads that serve all devices, and pass over a congested one (to 2.6.31). Writers above the
    /// limit wait for congestion to end.
    Pdflush,
    /// A thread for each device, which waits for requests (2.6.32 and later). Writers above the
    /// limit pause.
    PerDevice,
}

/// Configuration of the simulated kernel's memory.
#[derive(Clone, Debug)]
pub struct MemConfig {
    /// Word size.
    pub word: Word,
    /// Slab allocator.
    pub slab: SlabRules,
    /// Swap, if there is any.
    pub swap: Option<SwapConfig>,
    /// Page tables come from high memory (`CONFIG_HIGHPTE`).
    pub highpte: bool,
    /// Order of a kernel stack; 0 where stacks are mapped page by page.
    pub stack_order: u8,
    /// Pages that a fault on a file maps around the one it is for, if they are cached.
    pub fault_around: u32,
    /// Nodes of the page cache's index are marked as reclaimable.
    pub radix_reclaimable: bool,
    /// Whether there is an OOM killer. Without one large requests fail, and others retry.
    pub oom_killer: bool,
    /// Reclaim gives a page of tmpfs a slot of swap and rotates it once more before it is written (to 2.6.29).
    pub shmem_second_round: bool,
    /// Readahead from swap continues behind a free slot (3.4 and later); before 3.4 it ends there.
    /// Source: the change log of 3.4. `spec: 4.9`
    pub swap_skips_holes: bool,
    /// Transparent huge pages. Machines with 32 bits have none.
    pub thp: Thp,
    /// Dirty pages.
    pub dirty: DirtyConfig,
    /// Costs.
    pub costs: MemCosts,
    /// Fault injection: owners answer `Busy` with this probability, as numerator and denominator.
    pub busy: (u64, u64),
}

impl MemConfig {
    /// The configuration of a kernel with these rules.
    pub fn of(rules: &Rules) -> MemConfig {
        let r: ReclaimRules = rules.reclaim;
        let modern = r.lru.shape() == LruShape::PerNode;
        let pdflush = !modern && !r.isolated_throttle;
        let v19_or_older = rules.pageblocks().is_none();
        MemConfig {
            word: Word::W64,
            slab: match (modern, v19_or_older) {
                (true, _) => SlabRules::MODERN,
                (false, true) => SlabRules::SLAB,
                (false, false) => SlabRules::S2,
            },
            swap: None,
            highpte: false,
            stack_order: if modern { 0 } else { 1 },
            fault_around: if modern { 16 } else { 1 },
            radix_reclaimable: !v19_or_older,
            oom_killer: true,
            shmem_second_round: false,
            swap_skips_holes: modern,
            thp: if modern { Thp::STANDARD } else { Thp::OFF },
            dirty: DirtyConfig {
                flusher: if pdflush {
                    FlusherForm::Pdflush
                } else {
                    FlusherForm::PerDevice
                },
                ..DirtyConfig::default()
            },
            costs: MemCosts::default(),
            busy: (0, 1),
        }
    }

    /// Pages that one page of page tables maps.
    pub fn table_span(&self) -> u32 {
        match self.word {
            Word::W64 => 512,
            Word::W32 => 1024,
        }
    }

    /// Flags of requests for page tables.
    pub fn table_gfp(&self) -> Gfp {
        let gfp = Gfp::KERNEL | Gfp::ZERO;
        if self.highpte {
            gfp | Gfp::HIGHMEM
        } else {
            gfp
        }
    }
}

/// Flags of requests for pages of users: anonymous, copied on write, swapped in.
pub const USER_PAGE: Gfp = Gfp::HIGHUSER_MOVABLE;
/// Flags of requests for anonymous pages that were never touched.
pub const NEW_PAGE: Gfp = USER_PAGE.union(Gfp::ZERO);
/// Flags of requests for page cache.
pub const CACHE_PAGE: Gfp = Gfp::HIGHUSER_MOVABLE;
/// Flags of requests for a device's own blocks (bitmaps, inode tables): low memory, movable (`spec: 2.1`).
pub const BUFFER_PAGE: Gfp = Gfp::USER.union(Gfp::MOVABLE);
