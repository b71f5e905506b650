//! What the kernel's own counters say of its frames: of a zone, of a node, of the host.
//!
//! zoneinfo is asked first, since it is read at once and tells zones and nodes; then vmstat, then meminfo. `spec: 7.2, 7.3`
//!
//! Invariant: pages; a counter that no file tells is not there, and never 0.

use crate::geometry::Geometry;
use crate::host::{Host, whole};
use serde::Serialize;
use std::collections::BTreeMap;
use unfrag_linux::procfs::{VmStat, zoneinfo};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// On buddy lists.
    Free,
    /// On per-CPU lists.
    PerCpu,
    /// Page cache, shared memory and swap cache.
    Files,
    /// Shared memory.
    Shmem,
    /// Swap cache.
    SwapCache,
    /// Dirty page cache.
    Dirty,
    /// Page cache that is being written.
    Writeback,
    /// Anonymous memory that is mapped.
    Anon,
    /// Transparent huge pages of it.
    AnonHuge,
    /// Slabs, and large blocks of `kmalloc`.
    Slab,
    /// Page tables.
    PageTables,
    /// Page tables of virtual machines and devices.
    SecondaryTables,
    /// The pool of huge pages.
    Hugetlb,
    /// Taken by a balloon.
    Balloon,
    /// Compressed pages of zswap and zram.
    Compressed,
    /// Other memory of the kernel that it can reclaim.
    Misc,
    /// `vmalloc`, with the stacks of tasks where these are there.
    Vmalloc,
    /// Stacks of tasks.
    Stacks,
    /// Per-CPU areas.
    PerCpuAreas,
    /// The memory map of memory that came after boot.
    MemoryMap,
    /// Broken pages.
    Broken,
    /// Memory that a guest has not accepted yet.
    Unaccepted,
    /// Contiguous memory areas.
    Cma,
    /// Free pages in them.
    FreeCma,
    /// Never given to the allocator.
    Reserved,
}

/// How a counter is found: its names in zoneinfo and vmstat, of which those that are there are added, pages in each of its units
/// (0: in a huge page), and its line in meminfo.
type Source = (Counter, &'static [&'static str], u64, &'static str);

const SOURCES: [Source; 19] = [
    (Counter::Free, &["nr_free_pages"], 1, "MemFree"),
    (Counter::Files, &["nr_file_pages"], 1, ""),
    (Counter::Shmem, &["nr_shmem"], 1, "Shmem"),
    (Counter::SwapCache, &["nr_swapcached"], 1, "SwapCached"),
    (Counter::Dirty, &["nr_dirty"], 1, "Dirty"),
    (Counter::Writeback, &["nr_writeback"], 1, "Writeback"),
    (Counter::Anon, &["nr_anon_pages"], 1, "AnonPages"),
    (
        Counter::AnonHuge,
        &["nr_anon_transparent_hugepages"],
        0,
        "AnonHugePages",
    ),
    (
        Counter::Slab,
        &["nr_slab_reclaimable", "nr_slab_unreclaimable", "nr_slab"],
        1,
        "Slab",
    ),
    (
        Counter::PageTables,
        &["nr_page_table_pages"],
        1,
        "PageTables",
    ),
    (
        Counter::SecondaryTables,
        &["nr_sec_page_table_pages"],
        1,
        "SecPageTables",
    ),
    // vmstat's counter of them leaves out those that nobody uses.
    (Counter::Hugetlb, &[], 1, "Hugetlb"),
    (Counter::Balloon, &["nr_balloon_pages"], 1, "Balloon"),
    (Counter::Compressed, &["nr_zspages"], 1, ""),
    (Counter::Misc, &["nr_kernel_misc_reclaimable"], 1, ""),
    (Counter::MemoryMap, &["nr_memmap_pages"], 1, ""),
    (Counter::FreeCma, &["nr_free_cma"], 1, "CmaFree"),
    (Counter::Unaccepted, &["nr_unaccepted"], 1, "Unaccepted"),
    (Counter::Vmalloc, &[], 1, "VmallocUsed"),
];

/// Lines of meminfo that stand in no other file.
const OF_MEMINFO: [(Counter, &str); 4] = [
    (Counter::PerCpuAreas, "Percpu"),
    (Counter::Broken, "HardwareCorrupted"),
    (Counter::Cma, "CmaTotal"),
    (Counter::Stacks, "KernelStack"),
];

/// Counters by what they count.
pub type Pages = BTreeMap<Counter, u64>;

/// Counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Of the host.
    pub host: Pages,
    /// Of each node.
    pub nodes: BTreeMap<u32, Pages>,
    /// Of each zone, in the order of the host's.
    pub zones: Vec<Pages>,
}

impl Counters {
    /// Those that the files of a host tell. `vmalloc`: its pages by node, where vmallocinfo could be read.
    pub fn read(
        host: &Host,
        vmstat: Option<&VmStat>,
        vmalloc: Option<&BTreeMap<u32, u64>>,
    ) -> Counters {
        let geometry = &host.geometry;
        let mut counters = Counters::default();
        for zone in &host.zones {
            let told = zone.info.as_ref().map(|info| {
                let told = |name: &str| info.counters.get(name);
                let mut pages = of(told, geometry);
                pages.insert(Counter::Free, info.free);
                insert(&mut pages, Counter::PerCpu, zone.pcp);
                insert(&mut pages, Counter::Cma, info.pages("cma"));
                insert(&mut pages, Counter::Reserved, reserved(host, info));
                pages
            });
            counters.zones.push(told.unwrap_or_default());
        }
        let infos = host.zoneinfo.iter().flat_map(|i| &i.zones);
        for node in infos.filter_map(|z| Some((z.node, z.per_node.as_ref()?))) {
            let (node, told) = node;
            let pages = of(|name| told.get(name), geometry);
            counters.nodes.entry(node).or_default().extend(pages);
        }
        // What zones tell is their node's as well, where all of them tell it.
        let mut by_node: BTreeMap<u32, Vec<&Pages>> = BTreeMap::new();
        for (zone, pages) in host.zones.iter().zip(&counters.zones) {
            by_node.entry(zone.node).or_default().push(pages);
        }
        for (node, zones) in by_node {
            let of_node = counters.nodes.entry(node).or_default();
            for (counter, pages) in sums(&zones) {
                of_node.entry(counter).or_insert(pages);
            }
        }
        let nodes: Vec<&Pages> = counters.nodes.values().collect();
        let is_told = host.zones.iter().all(|z| z.info.is_some());
        if is_told && host.gaps().is_empty() {
            counters.host = sums(&nodes);
        }
        if let Some(vmstat) = vmstat {
            for (counter, pages) in of(|name| vmstat.get(name), geometry) {
                counters.host.entry(counter).or_insert(pages);
            }
        }
        let meminfo = |line: &str| host.meminfo_bytes(line).map(|b| geometry.pages(b));
        let named = SOURCES
            .iter()
            .map(|(counter, _, _, line)| (*counter, *line));
        for (counter, line) in named.chain(OF_MEMINFO) {
            if let Some(pages) = meminfo(line) {
                counters.host.entry(counter).or_insert(pages);
            }
        }
        files_by_meminfo(&mut counters.host, meminfo);
        // Kernels 4.4 to 5.2 do not count it, and say 0.
        if counters.host.get(&Counter::Vmalloc) == Some(&0) {
            counters.host.remove(&Counter::Vmalloc);
        }
        if let Some(vmalloc) = vmalloc {
            for (node, pages) in vmalloc {
                if let Some(of_node) = counters.nodes.get_mut(node) {
                    of_node.insert(Counter::Vmalloc, *pages);
                }
            }
            let all = vmalloc
                .values()
                .fold(0, |sum: u64, n| sum.saturating_add(*n));
            counters.host.entry(Counter::Vmalloc).or_insert(all);
        }
        counters
    }

    /// Takes away counters of the host that have more pages than it has; a clause for each.
    pub fn refuse_more_than(&mut self, pages: u64) -> Vec<String> {
        let too_many = |(_, n): &(Counter, u64)| *n > pages;
        let all: Vec<(Counter, u64)> = self.host.iter().map(|(c, n)| (*c, *n)).collect();
        let refuse = |(counter, n): (Counter, u64)| {
            self.host.remove(&counter);
            format!(
                "{} has {n} frames, which is more than there are ({pages}): it is not used",
                name(counter)
            )
        };
        all.into_iter().filter(too_many).map(refuse).collect()
    }

    /// The mean of two readings; what only one of them tells is not known.
    pub fn mean(&self, other: &Counters) -> Counters {
        let mean = |a: &Pages, b: &Pages| -> Pages {
            let both = a.iter().filter_map(|(c, n)| Some((*c, (n, b.get(c)?))));
            both.map(|(c, (a, b))| (c, a.midpoint(*b))).collect()
        };
        Counters {
            host: mean(&self.host, &other.host),
            nodes: self
                .nodes
                .iter()
                .filter_map(|(n, a)| Some((*n, mean(a, other.nodes.get(n)?))))
                .collect(),
            zones: self
                .zones
                .iter()
                .zip(&other.zones)
                .map(|(a, b)| mean(a, b))
                .collect(),
        }
    }
}

/// What files call a counter.
fn name(counter: Counter) -> &'static str {
    let of_zones = SOURCES.iter().find(|(c, ..)| *c == counter);
    let of_zones = of_zones.map(|(_, names, _, line)| names.first().copied().unwrap_or(line));
    let of_meminfo = OF_MEMINFO.iter().find(|(c, _)| *c == counter);
    of_zones
        .or(of_meminfo.map(|(_, line)| *line))
        .unwrap_or("what per-CPU lists hold, or reserved memory,")
}

fn insert(pages: &mut Pages, counter: Counter, n: Option<u64>) {
    if let Some(n) = n {
        pages.insert(counter, n);
    }
}

/// What a zone has and does not manage.
fn reserved(host: &Host, info: &zoneinfo::Zone) -> Option<u64> {
    let managed = whole::managed(host.zoneinfo.as_ref()?, info)?;
    Some(info.pages("present")?.saturating_sub(managed))
}

fn of(told: impl Fn(&str) -> Option<u64>, geometry: &Geometry) -> Pages {
    /// More pages than any machine has.
    const MOST: u64 = 1 << 52;
    let one = |(counter, names, unit, _): &Source| {
        let mut each = names.iter().filter_map(|n| told(n)).peekable();
        each.peek()?;
        let unit = match unit {
            0 => geometry.huge_page_pages(),
            n => *n,
        };
        let sum = each.fold(0, |sum: u64, n| sum.saturating_add(n.saturating_mul(unit)));
        Some((*counter, sum.min(MOST)))
    };
    SOURCES.iter().filter_map(one).collect()
}

/// Sums of what all tell.
fn sums(all: &[&Pages]) -> Pages {
    let Some((first, rest)) = all.split_first() else {
        return Pages::new();
    };
    let sum = |(counter, n): (&Counter, &u64)| {
        let mut sum = *n;
        for other in rest {
            sum = sum.saturating_add(*other.get(counter)?);
        }
        Some((*counter, sum))
    };
    first.iter().filter_map(sum).collect()
}

/// meminfo has page cache in three lines.
fn files_by_meminfo(host: &mut Pages, meminfo: impl Fn(&str) -> Option<u64>) {
    let all = ["Cached", "Buffers", "SwapCached"].map(meminfo);
    if let [Some(cached), Some(buffers), Some(swap)] = all {
        host.entry(Counter::Files)
            .or_insert(cached.saturating_add(buffers).saturating_add(swap));
    }
}
