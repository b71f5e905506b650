//! Memory that is free, or could be, and still is not for everybody: contiguous areas, high-order reserves, pools, page cache
//! that some programs do not count, blocks that cannot be unplugged.
//!
//! Invariant: what is withheld is counted by the kernel's own files; without them there is no entry, and a sum over zones of
//! which one does not tell is `null`.

use super::evidence::Evidence;
use super::hugetlb::{self, Pool};
use super::memory_blocks::{self, Unpluggable};
use crate::host::{Host, Zone};
use crate::report::number::{bytes, percent, thousands};
use serde::Serialize;
use unfrag_eras::ZoneKind;

/// Share of memory from which page cache is worth a word to those that do not count it.
const MUCH: u64 = 10;

/// Memory that is withheld.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Withheld {
    /// A name for programs: `long_term_pins`, `kexec_handover`, `highatomic`, `hugetlb_idle`, `hugetlb_reserved`,
    /// `page_cache`, `memory_blocks`; with the size for pools, and the place for zones.
    pub name: String,
    /// How much.
    pub bytes: u64,
    /// What, from whom, and why, as a sentence.
    pub text: String,
    /// What gives it back; `null` where no command does.
    pub command: Option<String>,
}

/// How much can be pinned for long: by RDMA, VFIO, `io_uring`, CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Pins {
    /// Free memory outside contiguous areas and zone Movable; `null` where a zone does not tell.
    pub free_bytes: Option<u64>,
    /// Free memory in them, closed to such pins; `null` where a zone does not tell.
    pub closed_bytes: Option<u64>,
    /// All memory outside zone Movable and contiguous areas, which no such pin can exceed; `null` where it is not told.
    pub at_most_bytes: Option<u64>,
}

/// Everything that is withheld.
pub(super) fn withheld(e: &Evidence, pins: &Pins, blocks: Option<&Unpluggable>) -> Vec<Withheld> {
    let mut all = vec![];
    all.extend(closed_to_pins(e, pins));
    all.extend(handed_over(&e.host));
    all.extend(e.host.zones.iter().filter_map(|z| highatomic(&e.host, z)));
    let default = hugetlb::by_meminfo(&e.host);
    let pools = hugetlb::known(&e.pools, &default);
    all.extend(pools.filter(|p| p.agrees()).flat_map(pool));
    all.extend(page_cache(&e.host));
    all.extend(blocks.and_then(kept_blocks));
    all
}

fn is_movable(zone: &Zone) -> bool {
    matches!(ZoneKind::from_name(&zone.name), Some(ZoneKind::Movable))
}

/// What can be pinned for long.
pub(super) fn pins(host: &Host) -> Pins {
    let size = |pages: u64| pages.saturating_mul(host.geometry.page_size);
    let is_whole = !host.zones.is_empty() && host.gaps().is_empty() && host.zoneinfo.is_some();
    let sum = |of: &dyn Fn(&Zone) -> Option<u64>| -> Option<u64> {
        let each: Option<u64> = host.zones.iter().map(of).sum();
        each.filter(|_| is_whole).map(size)
    };
    let closed = |z: &Zone| match is_movable(z) {
        true => z.free_pages,
        false => z.cma_pages,
    };
    let open = |z: &Zone| match is_movable(z) {
        true => Some(0),
        false => Some(z.free_pages?.saturating_sub(z.cma_pages?)),
    };
    let managed = |z: &Zone| match is_movable(z) {
        true => Some(0),
        false => z.managed,
    };
    let at_most = || Some(sum(&managed)?.saturating_sub(cma_bytes(host)?));
    let free = sum(&open);
    Pins {
        free_bytes: free,
        closed_bytes: sum(&closed),
        // Less than is free: the files are not of one moment.
        at_most_bytes: at_most().filter(|&n| free.is_none_or(|free| n >= free)),
    }
}

/// Contiguous areas, used or free, by their pageblocks; by meminfo where that does not count less than is free.
fn cma_bytes(host: &Host) -> Option<u64> {
    let total = host.meminfo_bytes("CmaTotal");
    let free = host.meminfo_bytes("CmaFree").unwrap_or(0);
    let per_block = host.types.as_ref().map(|t| t.pages_per_block);
    let blocks = host.zones.iter().map(|z| {
        z.pageblocks_of("CMA").or_else(|| {
            // A table of types without such a column is that of a kernel without areas.
            z.pageblocks.as_ref().map(|_| 0)
        })
    });
    let blocks: Option<u64> = blocks.sum();
    let by_blocks = || {
        Some(
            blocks?
                .saturating_mul(per_block?)
                .saturating_mul(host.geometry.page_size),
        )
    };
    by_blocks().or(total.filter(|&total| total >= free))
}

fn closed_to_pins(e: &Evidence, pins: &Pins) -> Option<Withheld> {
    let closed = pins.closed_bytes.filter(|&n| n > 0)?;
    let open = pins.free_bytes?;
    let most = pins.at_most_bytes.map_or(String::new(), |n| {
        format!("; {} could be at most", bytes(n))
    });
    let held = e.pinned().map_or(String::new(), |pages| {
        let size = pages.saturating_mul(e.host.geometry.page_size);
        format!("; {} are pinned by now", bytes(size))
    });
    Some(Withheld {
        name: "long_term_pins".into(),
        bytes: closed,
        text: format!(
            "memory that stays pinned (RDMA, VFIO, io_uring's buffers, CUDA) may have {} of the {} that are free: {} are in contiguous areas (CMA) or zone Movable{most}{held}",
            bytes(open),
            bytes(open.saturating_add(closed)),
            bytes(closed),
        ),
        command: None,
    })
}

/// Areas that the kernel does not count in `CmaTotal`.
fn handed_over(host: &Host) -> Option<Withheld> {
    let (total, free) = (
        host.meminfo_bytes("CmaTotal")?,
        host.meminfo_bytes("CmaFree")?,
    );
    let beyond = free.checked_sub(total).filter(|&n| n > 0)?;
    Some(Withheld {
        name: "kexec_handover".into(),
        bytes: beyond,
        text: format!(
            "CmaFree ({}) is more than CmaTotal ({}): {} at least are areas that no CMA made, as the scratch area of a kexec handover (KHO), which is closed to memory that stays pinned. With it on, the first pin of 4 KiB was published to fail under load; with it off, 4,096 pins of 1 MiB passed",
            bytes(free),
            bytes(total),
            bytes(beyond)
        ),
        command: Some(
            "kho=off on the kernel's command line, where nothing is handed over to a next kernel"
                .into(),
        ),
    })
}

/// Free huge blocks that are kept for atomic requests, where they are half or more of a zone's.
fn highatomic(host: &Host, zone: &Zone) -> Option<Withheld> {
    let kept = zone.highatomic_huge().filter(|&n| n > 0)?;
    let all = zone.whole_blocks(zone.huge_order)?;
    let size = host.geometry.huge_page_bytes();
    // More than all of them: the two files are not of one moment.
    let is_part = kept <= all;
    (is_part && kept.saturating_mul(2) >= all).then(|| Withheld {
        name: format!("highatomic of zone {}, node {}", zone.name, zone.node),
        bytes: kept.saturating_mul(size),
        text: format!(
            "HighAtomic blocks hold {} of the {} that are free in whole {} blocks in zone {} of node {}: requests for huge pages do not get them, and need not be short of memory to fail; no setting gives them back, the kernel does one by one where reclaim brought pages and the request still failed, and all before it ends a process",
            bytes(kept.saturating_mul(size)),
            bytes(all.saturating_mul(size)),
            bytes(size),
            zone.name,
            zone.node
        ),
        command: None,
    })
}

fn pool(pool: &Pool) -> Vec<Withheld> {
    let size = bytes(pool.size);
    let mut all = vec![];
    if pool.idle() > 0 {
        let nodes: Vec<String> = pool
            .nodes
            .iter()
            .filter(|(_, total, _)| pool.nodes.len() > 1 && *total > 0)
            .map(|(node, total, free)| {
                format!(
                    "node {node}: {} free of {}",
                    thousands(*free),
                    thousands(*total)
                )
            })
            .collect();
        let nodes = match nodes.is_empty() {
            true => String::new(),
            false => format!(" ({})", nodes.join(", ")),
        };
        let reserved = match pool.reserved {
            0 => String::new(),
            n => format!(", {} are reserved and not used yet", thousands(n)),
        };
        all.push(Withheld {
            name: format!("hugetlb_idle of {size}"),
            bytes: pool.idle().saturating_mul(pool.size),
            text: format!(
                "{} of {} huge pages of {size} in the hugetlb pool are idle{nodes}{reserved}: nobody else can use them",
                thousands(pool.idle()),
                thousands(pool.total)
            ),
            command: Some(format!("echo {} > {}", pool.without_idle(), pool.file())),
        });
    } else if pool.reserved > 0 {
        all.push(Withheld {
            name: format!("hugetlb_reserved of {size}"),
            bytes: pool.reserved.saturating_mul(pool.size),
            text: format!(
                "{} of {} huge pages of {size} in the hugetlb pool are free but reserved: a mapping has a right to them and has not used them yet",
                thousands(pool.reserved),
                thousands(pool.total)
            ),
            command: None,
        });
    }
    all
}

/// Page cache that a program which reads `MemFree` takes for used.
fn page_cache(host: &Host) -> Option<Withheld> {
    let (free, available) = (
        host.meminfo_bytes("MemFree")?,
        host.meminfo_bytes("MemAvailable")?,
    );
    let total = host.meminfo_bytes("MemTotal")?;
    let cache = available.checked_sub(free)?;
    (cache >= total / MUCH && cache > 0).then(|| Withheld {
        name: "page_cache".into(),
        bytes: cache,
        text: format!(
            "MemAvailable is {}, MemFree {}: drivers and programs that go by MemFree (a GPU with unified memory: cudaMemGetInfo) take {} of page cache and slab for used; the kernel gives it to whoever asks",
            bytes(available),
            bytes(free),
            bytes(cache)
        ),
        command: Some("sync; echo 3 > /proc/sys/vm/drop_caches".into()),
    })
}

fn kept_blocks(found: &Unpluggable) -> Option<Withheld> {
    let kept = found.online.saturating_sub(found.can_go);
    let (number, pages, kind) = found.least?;
    let by: Vec<String> = found
        .kept_by
        .iter()
        .map(|(kind, n)| format!("{} in {}", memory_blocks::name(*kind), thousands(*n)))
        .collect();
    Some(Withheld {
        name: "memory_blocks".into(),
        bytes: kept.saturating_mul(found.block_bytes),
        text: format!(
            "{} of {} memory blocks of {} ({}) cannot be unplugged: {}; the least is in memory{number}: {}, mostly {}",
            thousands(kept),
            thousands(found.online),
            bytes(found.block_bytes),
            percent(kept as f64 / found.online.max(1) as f64),
            by.join(", "),
            match pages {
                1 => "1 page".into(),
                n => format!("{} pages", thousands(n)),
            },
            memory_blocks::name(kind)
        ),
        command: None,
    })
}
