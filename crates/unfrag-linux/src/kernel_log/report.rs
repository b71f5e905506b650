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

/// What a virtual allocation failed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Virtual {
    /// No room of that size in the range of addresses.
    NoRoom,
    /// The size exceeds all pages of the machine.
    ExceedsPages,
    /// Pages of the order that the text names.
    Pages,
    /// The array of pointers to its pages, of so many bytes.
    PageArray(Option<u64>),
    /// The page tables.
    Mapping,
    /// Not said: kernels to 5.12 print one line for a size of 0, one that exceeds memory, and addresses that are used up.
    NotSaid,
}

/// What holds memory, as far as tables beside a memory report tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// Tasks by name: how many, and their resident pages; `None` if the table is not there from its head to its end.
    pub tasks: Option<BTreeMap<String, (u64, u64)>>,
    /// Unreclaimable slab caches with their KiB; `None` as with tasks.
    pub caches: Option<BTreeMap<String, u64>>,
    /// Places in the code that allocate most, with bytes and number of allocations, the largest first (6.10 and later).
    pub allocations: Vec<(String, u64, u64)>,
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

impl Cache {
    /// Whether it is a control group's own: `name(id:group)`.
    pub fn is_of_cgroup(&self) -> bool {
        let Some((_, group)) = self.name.split_once('(') else {
            return false;
        };
        let id = group.split(':').next().unwrap_or("");
        group.contains(':') && !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit())
    }

    /// The control group that it is of.
    pub fn cgroup(&self) -> Option<&str> {
        let (_, group) = self.name.split_once(':').filter(|_| self.is_of_cgroup())?;
        Some(group.trim_end_matches(')')).filter(|g| !g.is_empty())
    }
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
    /// The host, and the task or CPU, that printed it, as far as the log names them; empty if it does not.
    pub source: String,
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
    /// Free pages of that area, and all of it.
    pub cma_pages: Option<(u64, u64)>,
    /// Name of that area.
    pub cma_name: Option<String>,
    /// What a virtual allocation failed at.
    pub at: Option<Virtual>,
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
    /// Whether a slab cache's line names the CPU that asked, as kernels have done since 2024.
    pub names_cpu: bool,
    /// What holds memory.
    pub holders: Holders,
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
            source: String::new(),
            task: None,
            order: None,
            mask: Mask::default(),
            bytes: None,
            cma: None,
            cma_pages: None,
            cma_name: None,
            at: None,
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
            names_cpu: false,
            holders: Holders::default(),
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
    /// Page frames of contiguous memory areas.
    pub cma_pages: Option<u64>,
    /// Amounts of the lines of whole nodes in KiB, added up.
    pub node_kib: BTreeMap<String, u64>,
    /// Lines of whole nodes.
    pub node_lines: u32,
    /// Memory of huge page pools in KiB; `None` where no line tells.
    pub hugetlb_kib: Option<u64>,
    /// Free swap in KiB.
    pub swap_free_kib: Option<u64>,
    /// Swap in KiB.
    pub swap_total_kib: Option<u64>,
    /// Whether the counts are those of kernels before 2.6.28 (`Active:N inactive:N`).
    pub is_old_form: bool,
    /// Free memory in KiB, which kernels to 2.6.27 print beside its pages.
    pub free_kib: Option<u64>,
    /// Whether the nodes have lines of their own; kernels from 4.8 on.
    pub has_node_lines: bool,
}

impl Memory {
    /// KiB of a page, by the first column of the free blocks, or by free memory in both units.
    pub fn page_kib(&self) -> Option<u64> {
        let by_blocks = self.zones.iter().find_map(|z| z.blocks.as_ref()?.page_kib);
        by_blocks.or_else(|| {
            let pages = *self.pages.get("free").filter(|n| **n > 0)?;
            let kib = self.free_kib?.checked_div(pages)?;
            (kib.is_power_of_two() && pages.checked_mul(kib) == self.free_kib).then_some(kib)
        })
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
    /// Whether the text names the node, as kernels built for NUMA do.
    pub is_node_named: bool,
    /// Zone.
    pub name: String,
    /// The amounts by their names, `free` and `min` among them.
    pub kib: BTreeMap<String, u64>,
    /// Whether amounts were left out of its line by whoever pasted it.
    pub is_elided: bool,
    /// `lowmem_reserve`, in pages; `None` too where numbers were left out of it.
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
    /// Whether columns were left out of the row: those stand as 0 and are not known.
    pub is_elided: bool,
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
