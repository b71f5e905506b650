//! Where the memory is: every frame that exists once, beside what the kernel's counters say.
//!
//! Invariant: the uses add up to the frames that exist, exactly. What no counter has is told by two bounds where the counters
//! themselves leave it open, never by a guess between them.

use super::compared::{Compared, apart, compared};
use super::counters::{Counter, Pages};
use super::look::{Drift, Look};
use super::sites::{CallSite, call_sites};
use super::tally::{ORDERS, Tally};
use super::uses::Use;
use crate::geometry::PageSizeFrom;
use crate::host::files::Unread;
use serde::Serialize;
use std::collections::BTreeMap;

/// Frames of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UseFrames {
    /// The use.
    #[serde(rename = "use")]
    pub kind: Use,
    /// Its frames.
    pub frames: u64,
}

/// A part of the kernel's memory that has no flag, as one of its counters has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Which.
    pub part: &'static str,
    /// Its frames.
    pub frames: u64,
}

/// A number that is known by its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// At least so much.
    pub at_least: u64,
    /// What is likely: what is left if each counter has what it says, and nothing twice.
    pub likely: u64,
    /// At most so much.
    pub at_most: u64,
}

/// Frames of a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ZoneFrames {
    /// Its node.
    pub node: u32,
    /// Its name.
    pub zone: String,
    /// All that it spans.
    pub spanned: u64,
    /// Those that do not exist.
    pub holes: u64,
    /// Those that exist.
    pub exist: u64,
    /// By use; only those that are there.
    pub uses: Vec<UseFrames>,
    /// The kernel's frames that no counter has. Most counters are the host's, so that the bounds of a zone are wide.
    pub in_no_counter: Bounds,
}

/// What lies across uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Across {
    /// Frames that may not be reclaimed, by page flags.
    pub unevictable: Option<u64>,
    /// Frames that processes locked, by page flags.
    pub mlocked: Option<u64>,
    /// Frames in contiguous memory areas (CMA).
    pub cma: Option<u64>,
    /// Those of them that are free.
    pub cma_free: Option<u64>,
}

/// What uses are known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The flags of each frame.
    PageFlags,
    /// Counters alone: what they do not have is what is left.
    Counters,
}

/// Which frames are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All that exist.
    All,
    /// Those of the zones that zoneinfo lists, which lacks some.
    ListedZones,
    /// Those of MemTotal, which has not what was reserved at boot.
    MemTotal,
}

/// Where the memory is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Account {
    /// What it is of.
    pub source: String,
    /// The kernel's release.
    pub kernel_release: Option<String>,
    /// Bytes in a frame.
    pub page_size: u64,
    /// How that is known.
    pub page_size_from: PageSizeFrom,
    /// What uses are known by.
    pub basis: Basis,
    /// What `exist` is the sum of.
    pub extent: Extent,
    /// Frames that all zones span; `null` without zoneinfo.
    pub spanned: Option<u64>,
    /// Frames of them that do not exist.
    pub holes: Option<u64>,
    /// Frames that exist; without zoneinfo those of MemTotal.
    pub exist: u64,
    /// Frames of each use: the sum is `exist`. A use that nothing tells is not there, and its frames are the kernel's.
    pub uses: Vec<UseFrames>,
    /// What the kernel's counters say of its frames without flags (`kernel` of `uses`).
    pub kernel: Vec<Part>,
    /// The rest of them.
    pub in_no_counter: Bounds,
    /// Frames by which that may be off, since not all was read at one moment; `null` where that is not known.
    pub off_by: Option<u64>,
    /// Page flags beside counters; empty without page flags.
    pub compared: Vec<Compared>,
    /// Anonymous frames by the order of their block; empty without page flags.
    pub anon_by_order: BTreeMap<usize, u64>,
    /// Shared memory likewise.
    pub shmem_by_order: BTreeMap<usize, u64>,
    /// Page cache likewise.
    pub cache_by_order: BTreeMap<usize, u64>,
    /// What lies across uses.
    pub across: Across,
    /// Frames of each zone; empty without page flags.
    pub zones: Vec<ZoneFrames>,
    /// The nodes, with the same; empty with one node.
    pub nodes: Vec<ZoneFrames>,
    /// The counters of the host, in frames.
    pub counters: Pages,
    /// What changed while page flags were read; `null` of a copy.
    pub drift: Option<Drift>,
    /// Places of the kernel's source that hold most; `null` without allocinfo.
    pub call_sites: Option<Vec<CallSite>>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// What contradicts itself, and what was not understood.
    pub notes: Vec<String>,
}

impl Account {
    /// Frames of a use.
    pub fn frames(&self, kind: Use) -> u64 {
        let of = self.uses.iter().find(|u| u.kind == kind);
        of.map_or(0, |u| u.frames)
    }

    /// Bytes of so many frames.
    pub fn bytes(&self, frames: u64) -> u64 {
        frames.saturating_mul(self.page_size)
    }
}

/// The account of what was read.
pub fn account(look: &Look) -> Account {
    let counters = &look.counters.host;
    let mut notes = look.notes.clone();
    let all = look.zones.as_ref().map(|zones| {
        let mut all = Tally::default();
        zones.iter().for_each(|z| all.add(z));
        all
    });
    let rows = all.as_ref().map_or(vec![], |t| compared(t, counters));
    let apart = apart(&rows);
    let unsettled = match look.drift {
        Some(_) => look.unsettled.saturating_add(apart),
        None => apart,
    };
    let (uses, kernel, in_no_counter, exist, off_by) = match &all {
        Some(all) => {
            let kernel = parts(counters, Some(all));
            let bounds = not_counted(all, &kernel, counters, unsettled);
            let (bounds, is_known) = with_doubt(bounds, look, all, &kernel, unsettled, &mut notes);
            let bounds = with_lacking(bounds, counters, false, &mut notes);
            let off_by = bounds.lacks_none.then_some(unsettled).filter(|_| is_known);
            (uses(all), kernel, bounds.bounds, all.exist(), off_by)
        }
        None => {
            let (uses, parts, bounds, exist) = by_counters(look, &mut notes);
            (uses, parts, bounds, exist, None)
        }
    };
    let by_order = |of: fn(&Tally) -> &[u64; ORDERS]| {
        let of = all.iter().flat_map(|t| of(t).iter().enumerate());
        of.filter(|(_, n)| **n > 0).map(|(o, n)| (o, *n)).collect()
    };
    let zones = zones(look, apart);
    let has_zones = look.host.of_all(|z| z.pages("present")).is_some();
    Account {
        source: look.source.clone(),
        kernel_release: look.host.release.clone(),
        page_size: look.host.geometry.page_size,
        page_size_from: look.host.geometry.page_size_from,
        extent: match (all.is_some() || has_zones, look.lacks_zones) {
            (true, false) => Extent::All,
            (true, true) if all.is_some() || look.host.meminfo_bytes("MemTotal").is_none() => {
                Extent::ListedZones
            }
            _ => Extent::MemTotal,
        },
        basis: match all {
            Some(_) => Basis::PageFlags,
            None => Basis::Counters,
        },
        spanned: all.as_ref().map(|t| t.exist().saturating_add(t.holes)),
        holes: all.as_ref().map(|t| t.holes),
        exist,
        uses,
        kernel,
        in_no_counter,
        off_by,
        compared: rows,
        anon_by_order: by_order(|t| &t.anon),
        shmem_by_order: by_order(|t| &t.shmem),
        cache_by_order: by_order(|t| &t.cache),
        across: Across {
            unevictable: all.as_ref().map(|t| t.unevictable),
            mlocked: all.as_ref().map(|t| t.mlocked),
            cma: counters.get(&Counter::Cma).copied(),
            cma_free: counters.get(&Counter::FreeCma).copied(),
        },
        nodes: nodes(look, &zones, apart),
        zones,
        counters: counters.clone(),
        drift: look.drift,
        call_sites: look.sites.as_ref().map(call_sites),
        unread: look.unread.clone(),
        notes,
    }
}

fn uses(tally: &Tally) -> Vec<UseFrames> {
    let one = |kind| UseFrames {
        kind,
        frames: tally.of(kind),
    };
    Use::ALL.map(one).to_vec()
}

/// What counters say of frames without flags. Of slab and page tables that is what they have beyond the frames whose flags say
/// so: large blocks of `kmalloc` are no slab, and some kernels do not mark the tables of their own.
fn parts(counters: &Pages, tally: Option<&Tally>) -> Vec<Part> {
    let told = |counter| counters.get(&counter).copied();
    let beyond = |counter, kind| {
        let marked = tally?.of(kind);
        Some(told(counter)?.saturating_sub(marked))
    };
    let vmalloc = told(Counter::Vmalloc);
    // Kernels without CONFIG_VMAP_STACK have stacks elsewhere.
    let stacks = told(Counter::Stacks).filter(|s| vmalloc.is_none_or(|v| v < *s));
    let all = [
        ("vmalloc, with the stacks of tasks", vmalloc),
        ("stacks of tasks", stacks),
        ("per-CPU areas", told(Counter::PerCpuAreas)),
        ("large blocks of kmalloc", beyond(Counter::Slab, Use::Slab)),
        (
            "page tables without a mark",
            beyond(Counter::PageTables, Use::PageTables),
        ),
        (
            "page tables of virtual machines and devices",
            told(Counter::SecondaryTables),
        ),
        ("compressed pages (zswap, zram)", told(Counter::Compressed)),
        ("reclaimable, of drivers", told(Counter::Misc)),
        (
            "memory map of memory that came later",
            told(Counter::MemoryMap),
        ),
        ("not accepted yet", told(Counter::Unaccepted)),
    ];
    let told = all.into_iter().filter_map(|(part, n)| Some((part, n?)));
    told.filter(|(_, n)| *n > 0)
        .map(|(part, frames)| Part { part, frames })
        .collect()
}

/// Counters without which what they would have is in what is left, with their names.
const NEEDED: [(Counter, &str); 3] = [
    (Counter::Vmalloc, "vmalloc (VmallocUsed)"),
    (Counter::PerCpuAreas, "per-CPU areas (Percpu)"),
    (Counter::Slab, "slab"),
];

/// Those that are needed where there are no page flags.
const NEEDED_ALONE: [(Counter, &str); 5] = [
    (Counter::Free, "free pages"),
    (Counter::PerCpu, "per-CPU lists"),
    (Counter::Files, "page cache"),
    (Counter::Anon, "anonymous memory"),
    (Counter::PageTables, "page tables"),
];

/// Says which counters are not there, and that nothing is known to be in none of them then.
fn with_lacking(bounds: Bounds, counters: &Pages, alone: bool, notes: &mut Vec<String>) -> Lacking {
    let needed = NEEDED.iter().chain(NEEDED_ALONE.iter().filter(|_| alone));
    let lacking: Vec<&str> = needed
        .filter(|(counter, _)| !counters.contains_key(counter))
        .map(|(_, name)| *name)
        .collect();
    if lacking.is_empty() {
        return Lacking {
            bounds,
            lacks_none: true,
        };
    }
    notes.push(format!(
        "no file counts {}: that is part of what is in no counter here",
        lacking.join(", ")
    ));
    Lacking {
        bounds: Bounds {
            at_least: 0,
            ..bounds
        },
        lacks_none: false,
    }
}

/// Bounds, and whether all counters that they need are there.
struct Lacking {
    bounds: Bounds,
    lacks_none: bool,
}

/// Widens the bounds where counters are of more than the zones, or have more than there is; and whether how far they may be off is
/// known.
fn with_doubt(
    bounds: Bounds,
    look: &Look,
    all: &Tally,
    parts: &[Part],
    unsettled: u64,
    notes: &mut Vec<String>,
) -> (Bounds, bool) {
    let kernel = all.of(Use::Kernel).saturating_add(unsettled);
    let areas = look.counters.host.get(&Counter::PerCpuAreas).copied();
    let twice = areas.unwrap_or(0).min(all.of(Use::Reserved));
    let counted: u64 = parts.iter().map(|p| p.frames).sum();
    let is_more = counted.saturating_sub(twice) > kernel;
    if is_more {
        notes.push(format!(
            "counters have {counted} frames of the kernel, and page flags leave {} for it: one of them is wrong, or they are not of one moment",
            all.of(Use::Kernel)
        ));
    }
    if !is_more && !look.lacks_zones {
        return (bounds, true);
    }
    let wide = Bounds {
        at_least: 0,
        at_most: kernel.min(all.exist()),
        ..bounds
    };
    (wide, false)
}

/// What the counters do not have of the kernel's frames. The areas of CPUs that were there at boot lie in reserved memory, and
/// their counter does not tell them from the others. `unsettled`: frames that may be
/// counted amiss, as not all was read at one moment.
fn not_counted(all: &Tally, parts: &[Part], counters: &Pages, unsettled: u64) -> Bounds {
    let counted: u64 = parts.iter().map(|p| p.frames).sum();
    let areas = counters.get(&Counter::PerCpuAreas).copied().unwrap_or(0);
    let twice = areas.min(all.of(Use::Reserved)).min(counted);
    let kernel = all.of(Use::Kernel);
    Bounds {
        at_least: kernel.saturating_sub(counted.saturating_add(unsettled)),
        likely: kernel.saturating_sub(counted),
        at_most: kernel
            .saturating_add(unsettled)
            .saturating_sub(counted - twice)
            .min(all.exist()),
    }
}

type ByCounters = (Vec<UseFrames>, Vec<Part>, Bounds, u64);

/// The uses as counters tell them, and what is left.
fn by_counters(look: &Look, notes: &mut Vec<String>) -> ByCounters {
    let counters = &look.counters.host;
    let told = |counter| counters.get(&counter).copied().unwrap_or(0);
    let host = &look.host;
    let present = host.of_all(|z| z.pages("present"));
    let present = present.filter(|_| !look.lacks_zones || host.meminfo.is_none());
    let total = host
        .meminfo_bytes("MemTotal")
        .map(|b| host.geometry.pages(b));
    let reserved = present.and(counters.get(&Counter::Reserved).copied());
    let exist = present.or(total).unwrap_or(0);
    let parts = parts(counters, None);
    let is_told = |counter| counters.get(&counter).copied();
    let no_cache = told(Counter::Shmem) + told(Counter::SwapCache);
    let changed = told(Counter::Dirty) + told(Counter::Writeback);
    let clean = is_told(Counter::Files).map(|n| n.saturating_sub(no_cache + changed));
    let single = is_told(Counter::Anon).map(|n| n.saturating_sub(told(Counter::AnonHuge)));
    let free = is_told(Counter::Free).map(|n| n.saturating_sub(told(Counter::Unaccepted)));
    let mut uses: Vec<UseFrames> = [
        (Use::Free, free),
        (Use::PerCpu, is_told(Counter::PerCpu)),
        (Use::CleanCache, clean),
        (Use::DirtyCache, is_told(Counter::Dirty)),
        (Use::Writeback, is_told(Counter::Writeback)),
        (Use::Shmem, is_told(Counter::Shmem)),
        (Use::Anon, single),
        (Use::AnonHuge, is_told(Counter::AnonHuge)),
        (Use::Hugetlb, is_told(Counter::Hugetlb)),
        (Use::Slab, is_told(Counter::Slab)),
        (Use::PageTables, is_told(Counter::PageTables)),
        (Use::Offline, is_told(Counter::Balloon)),
        (Use::Broken, is_told(Counter::Broken)),
        (Use::Reserved, reserved),
    ]
    .into_iter()
    .filter_map(|(kind, frames)| {
        Some(UseFrames {
            kind,
            frames: frames?,
        })
    })
    .collect();
    let known: u64 = uses.iter().map(|u| u.frames).sum();
    if known > exist {
        notes.push(format!(
            "the counters have {} frames more than there are: they are not of one moment, or count some twice",
            known - exist
        ));
        // The sum stays: free memory and page cache change most.
        let mut over = known - exist;
        for u in &mut uses {
            let cut = over.min(u.frames);
            u.frames -= cut;
            over -= cut;
        }
    }
    let kernel = exist.saturating_sub(known);
    let counted: u64 = parts.iter().map(|p| p.frames).sum();
    // Counters leave pages out, such as anonymous ones that nobody maps, so that all of what is left may be such pages. What may
    // be counted twice: the swap cache with what is mapped of it, a balloon with what is not managed, areas of CPUs with what is
    // reserved, and all that the counters have more than there is.
    let either = told(Counter::Balloon).min(reserved.unwrap_or(0));
    let areas = told(Counter::PerCpuAreas).min(reserved.unwrap_or(0));
    let bounds = Bounds {
        at_least: 0,
        likely: kernel.saturating_sub(counted),
        at_most: (kernel + either + areas + told(Counter::SwapCache) + known.saturating_sub(exist))
            .saturating_sub(counted.min(kernel))
            .min(exist),
    };
    let bounds = with_lacking(bounds, counters, true, notes).bounds;
    uses.push(UseFrames {
        kind: Use::Kernel,
        frames: kernel,
    });
    (uses, parts, bounds, exist)
}

/// The zones, each with the bounds of what no counter has of it.
fn zones(look: &Look, apart: u64) -> Vec<ZoneFrames> {
    let Some(tallies) = &look.zones else {
        return vec![];
    };
    let zones = look.host.zones.iter().zip(tallies).enumerate();
    zones
        .map(|(i, (zone, tally))| {
            let own = look.counters.zones.get(i).cloned().unwrap_or_default();
            let of_lists = look.drift.and(look.unsettled_by_zone.get(i).copied());
            let off = apart.saturating_add(of_lists.unwrap_or(0));
            of_part(look, (zone.node, zone.name.clone()), tally, &own, off)
        })
        .collect()
}

fn nodes(look: &Look, zones: &[ZoneFrames], apart: u64) -> Vec<ZoneFrames> {
    let mut numbers: Vec<u32> = zones.iter().map(|z| z.node).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() < 2 {
        return vec![];
    }
    let one = |&node: &u32| {
        let mut sum = Tally::default();
        let mut off = apart;
        let of = look.host.zones.iter().zip(look.zones.iter().flatten());
        for ((_, tally), n) in of
            .zip(&look.unsettled_by_zone)
            .filter(|((z, _), _)| z.node == node)
        {
            sum.add(tally);
            off = off.saturating_add(look.drift.map_or(0, |_| *n));
        }
        let own = look.counters.nodes.get(&node).cloned().unwrap_or_default();
        of_part(look, (node, String::new()), &sum, &own, off)
    };
    numbers.iter().map(one).collect()
}

/// A part of the host with counters of its own. What the host alone counts may lie in it, or not at all. `off`: frames that may be
/// counted amiss, as not all was read at one moment.
fn of_part(
    look: &Look,
    (node, zone): (u32, String),
    tally: &Tally,
    own: &Pages,
    off: u64,
) -> ZoneFrames {
    let here = parts(own, Some(tally));
    let counted: u64 = here.iter().map(|p| p.frames).sum();
    let mut all = Tally::default();
    look.zones.iter().flatten().for_each(|t| all.add(t));
    let of_host: u64 = parts(&look.counters.host, Some(&all))
        .iter()
        .map(|p| p.frames)
        .sum();
    let kernel = tally.of(Use::Kernel);
    ZoneFrames {
        node,
        zone,
        spanned: tally.exist().saturating_add(tally.holes),
        holes: tally.holes,
        exist: tally.exist(),
        uses: uses(tally).into_iter().filter(|u| u.frames > 0).collect(),
        in_no_counter: Bounds {
            at_least: kernel.saturating_sub(of_host.max(counted).saturating_add(off)),
            likely: kernel.saturating_sub(of_host.max(counted)),
            at_most: kernel
                .saturating_add(off)
                .saturating_sub(counted)
                .min(tally.exist().saturating_sub(tally.of(Use::Reserved))),
        },
    }
}
