//! Page flags beside the kernel's own counters: what each of them says of the same memory.
//!
//! Invariant: a row stands only where both tell.

use super::counters::{Counter, Pages};
use super::tally::Tally;
use super::uses::Use;
use serde::Serialize;

/// Frames by page flags, and what counters say of the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// What is compared.
    pub what: &'static str,
    /// By page flags.
    pub frames: u64,
    /// The counters.
    pub counter: &'static str,
    /// What they say.
    pub counted: u64,
    /// Frames that the counters have and page flags have not; negative the other way round.
    pub difference: i64,
}

/// Frames by which flags and counters may be apart, as they were not read at one moment: all that they tell differently. What the counters of slabs and page tables have more is no sign of that: such pages need no mark.
pub(super) fn apart(rows: &[Compared]) -> u64 {
    let one = |row: &Compared| match row.what {
        part if part.starts_with(' ') => 0,
        "slab" | "page tables" => row.difference.min(0).unsigned_abs(),
        _ => row.difference.unsigned_abs(),
    };
    rows.iter().map(one).fold(0, u64::saturating_add)
}

/// The rows.
pub(super) fn compared(t: &Tally, counters: &Pages) -> Vec<Compared> {
    let told = |counter| counters.get(&counter).copied();
    let or_none = |counter| told(counter).unwrap_or(0);
    let sum = |kinds: &[Use]| kinds.iter().map(|k| t.of(*k)).sum();
    let rows: [(&str, &[Use], &str, Option<u64>); 10] = [
        (
            "free, on buddy lists",
            &[Use::Free],
            "nr_free_pages",
            told(Counter::Free).map(|n| n.saturating_sub(or_none(Counter::Unaccepted))),
        ),
        (
            "page cache",
            &[Use::CleanCache, Use::DirtyCache, Use::Writeback],
            "nr_file_pages - nr_shmem - nr_swapcached",
            told(Counter::Files)
                .zip(told(Counter::Shmem))
                .map(|(files, shmem)| files.saturating_sub(shmem + or_none(Counter::SwapCache))),
        ),
        (
            "  of that dirty",
            &[Use::DirtyCache],
            "nr_dirty",
            told(Counter::Dirty),
        ),
        (
            "shared memory, tmpfs",
            &[Use::Shmem],
            "nr_shmem",
            told(Counter::Shmem),
        ),
        (
            "anonymous",
            &[Use::Anon, Use::AnonLarge, Use::AnonHuge],
            "nr_anon_pages",
            told(Counter::Anon),
        ),
        (
            "  of that huge pages",
            &[Use::AnonHuge],
            "nr_anon_transparent_hugepages",
            told(Counter::AnonHuge),
        ),
        (
            "hugetlb pool",
            &[Use::Hugetlb],
            "Hugetlb",
            told(Counter::Hugetlb),
        ),
        (
            "slab",
            &[Use::Slab],
            "nr_slab_reclaimable + _unreclaimable",
            told(Counter::Slab),
        ),
        (
            "page tables",
            &[Use::PageTables],
            "nr_page_table_pages",
            told(Counter::PageTables),
        ),
        (
            "offline, balloon",
            &[Use::Offline],
            "nr_balloon_pages",
            told(Counter::Balloon),
        ),
    ];
    let row =
        |(what, kinds, counter, counted): (&'static str, &[Use], &'static str, Option<u64>)| {
            let (frames, counted) = (sum(kinds), counted?);
            Some(Compared {
                what,
                frames,
                counter,
                counted,
                difference: i64::try_from(i128::from(counted) - i128::from(frames))
                    .unwrap_or(i64::MAX),
            })
        };
    rows.into_iter().filter_map(row).collect()
}
