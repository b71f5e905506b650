//! A report of a kernel log as data: what was asked for, by whom, and the memory report beside it.
//!
//! Invariant: what the text does not say is `None`; amounts keep the unit of the text, which their names tell.

use std::collections::BTreeMap;

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The page allocator found no pages.
    AllocationFailure,
    /// The OOM killer ran.
    Oom,
    /// SLAB or SLUB got no pages for a cache.
    Slab,
    /// A virtual allocation failed.
    Vmalloc,
    /// A contiguous memory area gave no range.
    Cma,
    /// An allocation waited for long.
    Stall,
    /// A memory report without a failure.
    ShowMemory,
}

impl Kind {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::AllocationFailure => "allocation-failure",
            Kind::Oom => "oom",
            Kind::Slab => "slab",
            Kind::Vmalloc => "vmalloc",
            Kind::Cma => "cma",
            Kind::Stall => "stall",
            Kind::ShowMemory => "show-memory",
        }
    }
}

/// A time as the log writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamp {
    /// The text.
    pub text: String,
    /// Seconds on the clock of the log: since boot, or of the day.
    pub seconds: f64,
    /// Whether the clock counts from boot.
    pub since_boot: bool,
}

impl Stamp {
    /// Seconds from `earlier` to this one; `None` if their clocks differ.
    pub fn since(&self, earlier: &Stamp) -> Option<f64> {
        (self.since_boot == earlier.since_boot).then_some(self.seconds - earlier.seconds)
    }
}

/// A request's mask as the log writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// The number.
    pub raw: Option<u64>,
    /// The names beside it; kernels from 4.6 on.
    pub names: Option<String>,
}

/// A slab cache that got no pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cache {
    /// Its name.
    pub name: String,
    /// Bytes of an object.
    pub object_bytes: Option<u64>,
    /// Order of its slabs.
    pub order: Option<i32>,
    /// Order of its slabs when memory is fragmented; SLUB.
    pub min_order: Option<i32>,
}

/// A report.
#[derive(Clone, Debug)]
pub struct Report {
    /// What it is about.
    pub kind: Kind,
    /// Line on which it begins, from 1.
    pub line: u64,
    /// When.
    pub time: Option<Stamp>,
    /// The task that asked.
    pub task: Option<String>,
    /// Order of the request; -1 where the OOM killer was run by hand.
    pub order: Option<i32>,
    /// Its flags.
    pub mask: Mask,
    /// Bytes asked for, where the text says so: virtual requests, kernels without an MMU.
    pub bytes: Option<u64>,
    /// Pages asked for from a contiguous memory area, and the error number.
    pub cma: Option<(u64, Option<i64>)>,
    /// Nodes that the request is limited to; `None` if to none.
    pub nodemask: Option<Vec<u32>>,
    /// Nodes that the task's cpuset has.
    pub mems_allowed: Option<Vec<u32>>,
    /// How long it waited, in milliseconds.
    pub stall_ms: Option<u64>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Whether the limit of a control group was reached.
    pub is_cgroup: bool,
    /// The control group whose limit it was.
    pub cgroup: Option<String>,
    /// Whether somebody ran the OOM killer.
    pub is_manual: bool,
    /// The cache, if it is about one.
    pub cache: Option<Cache>,
    /// Functions of the call trace, the innermost first, with their module: `alloc_ring [driver]`.
    pub calls: Vec<String>,
    /// The task that was killed.
    pub killed: Option<String>,
    /// Reports that the kernel kept back beside this one.
    pub suppressed: u64,
    /// Whether the kernel has no compaction.
    pub no_compaction: bool,
    /// The memory report.
    pub memory: Option<Memory>,
    /// Whether the form is that of kernels before 2.6.39 (`failure.` with a full stop).
    pub is_old_form: bool,
}

impl Report {
    /// Functions of a call trace that are kept.
    pub const MOST_CALLS: usize = 64;

    /// A report that says nothing yet.
    pub fn new(kind: Kind, line: u64, time: Option<Stamp>) -> Report {
        Report {
            kind,
            line,
            time,
            task: None,
            order: None,
            mask: Mask::default(),
            bytes: None,
            cma: None,
            nodemask: None,
            mems_allowed: None,
            stall_ms: None,
            kernel: None,
            is_cgroup: false,
            cgroup: None,
            is_manual: false,
            cache: None,
            calls: vec![],
            killed: None,
            suppressed: 0,
            no_compaction: false,
            memory: None,
            is_old_form: false,
        }
    }
}

/// The state of memory in a report.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Line on which it begins.
    pub line: u64,
    /// When.
    pub time: Option<Stamp>,
    /// Counts of the whole machine in pages, by their names: `active_anon`, `free`, `free_cma`.
    pub pages: BTreeMap<String, u64>,
    /// The zones, in order.
    pub zones: Vec<Zone>,
    /// Page frames of the machine.
    pub ram_pages: Option<u64>,
    /// Page frames that the kernel keeps for itself.
    pub reserved_pages: Option<u64>,
    /// Free swap in KiB.
    pub swap_free_kib: Option<u64>,
    /// Swap in KiB.
    pub swap_total_kib: Option<u64>,
    /// Whether the counts are those of kernels before 2.6.28 (`Active:N inactive:N`).
    pub is_old_form: bool,
    /// Whether the nodes have lines of their own; kernels from 4.8 on.
    pub has_node_lines: bool,
}

impl Memory {
    /// KiB of a page, by the first column of the free blocks.
    pub fn page_kib(&self) -> Option<u64> {
        self.zones.iter().find_map(|z| z.blocks.as_ref()?.page_kib)
    }

    /// Number of orders, by the columns of the free blocks; `None` if no such line is whole.
    pub fn orders(&self) -> Option<usize> {
        let whole = |z: &Zone| {
            z.blocks
                .as_ref()
                .filter(|b| b.is_whole())
                .map(|b| b.orders.len())
        };
        self.zones.iter().filter_map(whole).max()
    }
}

/// A zone in a memory report; amounts in KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// NUMA node; 0 for kernels that name none.
    pub node: u32,
    /// Zone.
    pub name: String,
    /// The amounts by their names, `free` and `min` among them.
    pub kib: BTreeMap<String, u64>,
    /// `lowmem_reserve`, in pages.
    pub reserve: Option<Vec<u64>>,
    /// Free blocks.
    pub blocks: Option<Blocks>,
}

impl Zone {
    /// The amount called `name`, in KiB.
    pub fn kib(&self, name: &str) -> Option<u64> {
        self.kib.get(name).copied()
    }

    /// Its memory in KiB: managed, in old kernels present.
    pub fn size_kib(&self) -> Option<u64> {
        self.kib("managed").or_else(|| self.kib("present"))
    }
}

/// Free blocks of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// KiB of a block of order 0.
    pub page_kib: Option<u64>,
    /// Of each order: the number, and the letters of the lists that have some.
    pub orders: Vec<(u64, Letters)>,
    /// The sum in KiB that the line ends with.
    pub total_kib: Option<u64>,
}

impl Blocks {
    /// Whether the line is there to its end.
    pub fn is_whole(&self) -> bool {
        self.total_kib.is_some()
    }
}

/// Lists of free blocks, a letter each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Letters(u8);

impl Letters {
    const ALL: &[u8; 7] = b"UEMHCRI";
    /// Unmovable, reclaimable, movable.
    pub const ORDINARY: Letters = Letters(0b111);
    /// The high-atomic reserve.
    pub const HIGHATOMIC: Letters = Letters(1 << 3);
    /// Contiguous memory areas.
    pub const CMA: Letters = Letters(1 << 4);
    /// The reserve of kernels to 4.3.
    pub const RESERVE: Letters = Letters(1 << 5);

    /// The lists that `text` names, such as `UME`; `None` if one of its letters is none.
    pub fn parse(text: &str) -> Option<Letters> {
        text.bytes().try_fold(Letters(0), |all, b| {
            let at = Letters::ALL.iter().position(|l| *l == b)?;
            Some(Letters(all.0 | 1 << at))
        })
    }

    /// Whether no list is named, as by kernels before 3.9.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether one of `others` is among them.
    pub const fn has(self, others: Letters) -> bool {
        self.0 & others.0 != 0
    }

    /// All lists but these.
    #[must_use]
    pub const fn others(self) -> Letters {
        Letters(!self.0)
    }

    /// These and `others`.
    #[must_use]
    pub const fn with(self, others: Letters) -> Letters {
        Letters(self.0 | others.0)
    }
}
