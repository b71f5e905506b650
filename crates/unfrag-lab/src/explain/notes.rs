//! What else a report shows beside its verdict.
//!
//! Invariant: fields of a zone's line that are not known here are named, as one may decide.

use super::case::Case;
use super::reasons::must_keep;
use super::sentences::{kib, name};
use super::verdict::Verdict;
use super::zones::Judged;
use crate::report::number::bytes;
use unfrag_linux::kernel_log::{Kind, Zone};

/// What else the text shows.
pub fn notes(case: &Case) -> Vec<String> {
    let r = case.report;
    let mut notes = vec![];
    if r.suppressed > 0 {
        notes.push(format!(
            "the kernel kept back {} more reports beside this one",
            r.suppressed
        ));
    }
    if r.no_compaction {
        notes.push("the kernel was built without compaction (COMPACTION is disabled)".into());
    }
    if case.zones.iter().any(|z| z.is_nonsense) {
        notes.push("numbers of this report are beyond all memory, some near 2^64: nonsense by a bug of that kernel, and not shown".into());
    }
    if let Some(memory) = &r.memory {
        let drifted = memory.zones.iter().filter(|z| {
            let sum = z.blocks.as_ref().and_then(|b| b.total_kib);
            z.kib("free")
                .zip(sum)
                .is_some_and(|(free, sum)| sum < free - free / 10)
        });
        let drifted: Vec<String> = drifted
            .map(|z| format!("node {} {}", z.node, z.name))
            .collect();
        if !drifted.is_empty() {
            notes.push(format!("the counter of free memory is more than a tenth above the sum of the free lists in {}; the lists are believed", drifted.join(", ")));
        }
        notes.extend(memory.zones.iter().filter_map(shortened));
        let cut: Vec<String> = memory
            .zones
            .iter()
            .filter(|z| z.blocks.as_ref().is_none_or(|b| !b.is_whole()))
            .map(|z| format!("node {} {}", z.node, z.name))
            .collect();
        if !cut.is_empty() {
            notes.push(format!(
                "the free blocks of {} are missing or cut off",
                cut.join(", ")
            ));
        }
    }
    notes.extend(marks(case));
    notes.extend(full_of_files(case));
    notes.extend(reserve_that_is_not_the_cause(case));
    notes.extend(kept_whole(case));
    notes
}

/// The high-atomic reserve where it looks like the cause: taken off whole, as kernels did before they printed what is free
/// of it, it would leave too little.
fn reserve_that_is_not_the_cause(case: &Case) -> Option<String> {
    let memory = case.report.memory.as_ref()?;
    let looks_so = |(z, zone): &(&Judged, &Zone)| {
        let reserved = zone.kib("reserved_highatomic").filter(|k| *k > 0);
        let left = zone
            .kib("free")
            .zip(reserved)
            .map(|(free, r)| free.saturating_sub(r));
        z.passes == Some(true)
            && z.is_allowed
            && zone.kib("free_highatomic").is_some()
            && left
                .zip(must_keep(z))
                .is_some_and(|(left, keep)| left <= keep)
    };
    let (z, zone) = case.zones.iter().zip(&memory.zones).find(looks_so)?;
    Some(format!(
        "the high-atomic reserve of {} ({}, reserved_highatomic) is not the cause: this kernel takes off only what is free of it ({}, free_highatomic)",
        name(z),
        kib(zone.kib("reserved_highatomic")),
        kib(zone.kib("free_highatomic"))
    ))
}

/// Zones that keep all that they have, which is how they are closed to requests that can use a higher one.
fn kept_whole(case: &Case) -> Option<String> {
    let is_closed = |z: &&Judged| {
        let kept = z.answer.protection_kib.zip(z.size_kib);
        z.is_allowed && kept.is_some_and(|(kept, size)| kept > size)
    };
    let mut zones: Vec<&str> = case
        .zones
        .iter()
        .filter(is_closed)
        .map(|z| z.answer.zone.as_str())
        .collect();
    zones.dedup();
    let keep = match zones.as_slice() {
        [] => return None,
        [zone] => format!("{zone} keeps all that it has"),
        zones => format!("{} keep all that they have", zones.join(" and ")),
    };
    Some(format!(
        "{keep} for requests that can use no other zone (lowmem_reserve)"
    ))
}

/// What a row of free blocks tells of which columns were left out.
fn shortened(z: &Zone) -> Option<String> {
    let blocks = z.blocks.as_ref().filter(|b| b.is_elided)?;
    let row = format!(
        "the row of free blocks of node {} {} is shortened",
        z.node, z.name
    );
    Some(match blocks.orders.iter().rposition(|(n, _)| *n > 0) {
        Some(order) => {
            let kib = blocks.page_kib.unwrap_or(4) << order.min(40);
            format!("{row}; the largest block in it has {}", bytes(kib * 1024))
        }
        None => format!("{row}, and has no block"),
    })
}

/// What of the marks and of the zones' lines needs a word.
fn marks(case: &Case) -> Vec<String> {
    let mut notes = vec![];
    for z in case.zones.iter().filter(|z| z.is_allowed) {
        let Some(boost) = z.answer.boost_kib.filter(|k| *k > 0) else {
            continue;
        };
        let effect = match z.passes_unboosted {
            Some(true) if z.passes != Some(true) => {
                "; without it the zone would serve the request (vm.watermark_boost_factor=0 keeps marks from rising)"
            }
            _ => "",
        };
        notes.push(format!(
            "the printed marks of {} hold a boost of {}{effect}",
            name(z),
            kib(Some(boost))
        ));
    }
    let Some(memory) = &case.report.memory else {
        return notes;
    };
    let mut unknown: Vec<&str> = memory
        .zones
        .iter()
        .flat_map(|z| z.kib.keys())
        .map(String::as_str)
        .filter(|name| is_unknown(name))
        .collect();
    unknown.sort_unstable();
    unknown.dedup();
    if !unknown.is_empty() {
        notes.push(format!(
            "zone lines have fields that are not known here and may decide: {}",
            unknown.join(", ")
        ));
    }
    notes
}

/// Zones that the OOM killer was called for though they are full of pages of files.
fn full_of_files(case: &Case) -> Vec<String> {
    let r = case.report;
    let (Kind::Oom, Some(memory)) = (r.kind, &r.memory) else {
        return vec![];
    };
    let is_shortage = matches!(
        case.verdict,
        Some(Verdict::Raced | Verdict::Short | Verdict::Zone | Verdict::Protected)
    );
    if !is_shortage {
        return vec![];
    }
    let of = |z: &Zone| {
        let files = z
            .kib("active_file")?
            .saturating_add(z.kib("inactive_file")?);
        let size = z.size_kib()?;
        (files > size / 2 && size > 0).then(|| {
            let waiting = z.kib("writepending").filter(|k| *k > 0);
            let waiting = waiting.map_or(String::new(), |k| {
                format!(", {} of them waiting to be written", kib(Some(k)))
            });
            format!(
                "node {} {} holds {} of file pages of its {}{waiting}: reclaim did not take them",
                z.node,
                z.name,
                kib(Some(files)),
                kib(Some(size))
            )
        })
    };
    memory.zones.iter().filter_map(of).collect()
}

/// Fields of zone lines of kernels from 2.6 to 7.
const FIELDS: [&str; 45] = [
    "free",
    "boost",
    "min",
    "low",
    "high",
    "promo",
    "reserved_highatomic",
    "free_highatomic",
    "active",
    "inactive",
    "active_anon",
    "inactive_anon",
    "active_file",
    "inactive_file",
    "unevictable",
    "isolated(anon)",
    "isolated(file)",
    "writepending",
    "zspages",
    "spanned",
    "present",
    "managed",
    "mlocked",
    "dirty",
    "writeback",
    "mapped",
    "shmem",
    "shmem_thp",
    "shmem_pmdmapped",
    "anon_thp",
    "slab_reclaimable",
    "slab_unreclaimable",
    "kernel_stack",
    "shadow_call_stack",
    "pagetables",
    "sec_pagetables",
    "unstable",
    "bounce",
    "free_pcp",
    "local_pcp",
    "free_cma",
    "writeback_tmp",
    "quicklist",
    "pages_scanned",
    "Balloon",
];

/// Whether a name of a zone's field is none of [`FIELDS`]; a piece of one, as of a line that was cut in two, is none either.
fn is_unknown(name: &str) -> bool {
    let is_name = name.len() > 2
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_()".contains(&b));
    is_name && !FIELDS.iter().any(|f| f.ends_with(name))
}
