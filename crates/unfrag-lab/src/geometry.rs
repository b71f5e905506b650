//! Sizes of a host's pages, huge pages and largest blocks, as its own files tell them.
//!
//! No file of procfs names the page size. What is surest comes first: what is asked for on the command line; the names of
//! DirectMap lines; MemTotal over the pages that zones manage, which do not change with time; Hugepagesize over the pages
//! of a pageblock; a Hugepagesize that hosts of one page size alone have; MemFree over the pages that are free, as
//! two files may be of two moments; what all slabs are multiples of last.
//!
//! Invariant: what was assumed is told apart from what was derived ([`PageSizeFrom`]), and two files that
//! contradict each other are named in [`Found::notes`].

pub mod recorded;
mod sizes;

use crate::report::number::bytes;
use serde::Serialize;
pub use sizes::{Sizes, large_order};
use unfrag_linux::procfs::MemInfo;

/// Page sizes of Linux hosts, in bytes.
pub const PAGE_SIZES: [u64; 4] = [4 << 10, 8 << 10, 16 << 10, 64 << 10];

/// Orders that kernels are built with at least and at most.
pub const ORDERS: std::ops::RangeInclusive<usize> = 7..=24;

/// Orders of nearly every kernel: 0 to 10.
const USUAL_ORDERS: usize = 11;

/// A factor between two counts of the same memory that reading them at different times does not explain.
const CONTRADICTION: f64 = 1.5;

/// How the page size is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageSizeFrom {
    /// It was given.
    Asked,
    /// The host's files tell it.
    Derived,
    /// Nothing tells it: that of most hosts.
    #[default]
    Assumed,
}

/// Sizes of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Geometry {
    /// Bytes in a page.
    pub page_size: u64,
    /// How that is known.
    pub page_size_from: PageSizeFrom,
    /// Order of a huge page: of one that the allocator gives as one block.
    pub huge_order: u8,
    /// Bytes in a page of the default hugetlb pool; `None` without meminfo.
    pub default_huge_page: Option<u64>,
}

impl Default for Geometry {
    fn default() -> Geometry {
        Geometry {
            page_size: PAGE_SIZES[0],
            page_size_from: PageSizeFrom::Assumed,
            huge_order: 9,
            default_huge_page: None,
        }
    }
}

impl Geometry {
    /// Bytes in a huge page.
    pub fn huge_page_bytes(&self) -> u64 {
        self.page_size << self.huge_order
    }

    /// Base pages in a huge page.
    pub fn huge_page_pages(&self) -> u64 {
        1 << self.huge_order
    }

    /// Pages in this many bytes.
    pub fn pages(&self, bytes: u64) -> u64 {
        bytes / self.page_size
    }
}

/// What the files say, in base pages.
#[derive(Clone, Debug, Default)]
pub struct Counts<'a> {
    /// The page size that was asked for, in bytes.
    pub asked: Option<u64>,
    /// Amounts.
    pub meminfo: Option<&'a MemInfo>,
    /// Pages that all zones manage.
    pub managed: Option<u64>,
    /// Pages that all zones have.
    pub present: Option<u64>,
    /// Free pages of all zones.
    pub free: Option<u64>,
    /// Order of a pageblock.
    pub pageblock_order: Option<u32>,
    /// Number of orders.
    pub orders: Option<usize>,
    /// Bytes that the slabs of all caches are multiples of.
    pub slab_unit: Option<u64>,
}

/// A geometry, and what a reader must know of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The sizes.
    pub geometry: Geometry,
    /// Assumptions and contradictions, a clause each.
    pub notes: Vec<String>,
}

/// The geometry that the counts tell.
pub fn find(counts: &Counts) -> Found {
    let mut notes = vec![];
    let kib = |name: &str| Some(counts.meminfo?.get(name)?.saturating_mul(1024));
    let by_free = nearest(kib("MemFree"), counts.free);
    let by_total = page_sizes_by_total(counts);
    let default_huge_page = kib("Hugepagesize").filter(|&n| n > 0);
    let by_huge = page_size_by_huge(counts);
    let by_total = match by_total.as_slice() {
        [] => None,
        several => by_free
            .filter(|size| several.contains(size))
            .or(several.first().copied()),
    };
    let sure = by_direct_map(counts)
        .or(by_total)
        .or(by_huge)
        .or_else(|| by_usual_huge_page(default_huge_page, counts));
    // No page is larger than a slab; where all slabs are larger than a page, these are the pages of other hosts.
    let by_slabs = counts.slab_unit.filter(|n| PAGE_SIZES.contains(n));
    let derived = sure.or(by_free).or(by_slabs);
    let (page_size, page_size_from) = match (counts.asked, derived) {
        (Some(asked), derived) => {
            if let Some(told) = derived.filter(|&told| told != asked) {
                notes.push(format!(
                    "the files tell pages of {}, and {} were asked for",
                    bytes(told),
                    bytes(asked)
                ));
            }
            (asked, PageSizeFrom::Asked)
        }
        (None, Some(told)) => (told, PageSizeFrom::Derived),
        (None, None) => (PAGE_SIZES[0], PageSizeFrom::Assumed),
    };
    if page_size_from == PageSizeFrom::Assumed
        && let Some(orders) = counts.orders.filter(|&n| n != USUAL_ORDERS)
    {
        notes.push(format!(
            "these lists have {orders} orders, and nothing tells the page size: {} are assumed for every size; give --page-size SIZE",
            bytes(page_size)
        ));
    }
    if let Some(unit) = by_slabs.filter(|unit| unit % page_size != 0) {
        notes.push(format!(
            "pages of {} are larger than the smallest slabs ({}): the table of slab caches is of another host",
            bytes(page_size),
            bytes(unit)
        ));
    }
    if let (Some(free), Some(pages)) = (kib("MemFree"), counts.free)
        && differ(free, pages.saturating_mul(page_size), 4 << 20)
        && differ(
            free,
            with_late_memory(counts, page_size, free, pages),
            4 << 20,
        )
    {
        notes.push(format!(
            "meminfo counts {} free, the zones' files {}: they are not of one moment, or not of one host",
            bytes(free),
            bytes(pages.saturating_mul(page_size))
        ));
    }
    let (huge_order, assumed) = huge_order(page_size, default_huge_page, counts);
    notes.extend(assumed);
    Found {
        geometry: Geometry {
            page_size,
            page_size_from,
            huge_order,
            default_huge_page,
        },
        notes,
    }
}

/// Whether two counts of the same memory contradict each other. A difference up to `small` never does.
pub(crate) fn differ(a: u64, b: u64, small: u64) -> bool {
    a.abs_diff(b) > small && a.max(b) as f64 > CONTRADICTION * a.min(b) as f64
}

/// The page size for which this many pages come closest to this many bytes, if any comes close.
fn nearest(bytes: Option<u64>, pages: Option<u64>) -> Option<u64> {
    let ratio = bytes? as f64 / pages.filter(|&n| n > 0)? as f64;
    let off = |size: u64| (ratio / size as f64).log2().abs();
    // Half the way to a size that is twice as large.
    PAGE_SIZES.into_iter().find(|&size| off(size) < 0.5)
}

/// Bytes of these free pages and of what MemFree may count beside them: memory that MemTotal has and no zone manages yet.
fn with_late_memory(counts: &Counts, page_size: u64, free: u64, pages: u64) -> u64 {
    let in_zones = pages.saturating_mul(page_size);
    let total = counts.meminfo.and_then(|m| m.get("MemTotal"));
    let late = total.zip(counts.managed).map_or(0, |(kib, managed)| {
        kib.saturating_mul(1024)
            .saturating_sub(managed.saturating_mul(page_size))
    });
    in_zones.saturating_add(late.min(free.saturating_sub(in_zones)))
}

/// The page sizes for which MemTotal lies between what zones manage and what they have. Kernels that add memory on demand
/// count it in MemTotal before a zone manages it; old ones do not say how much is managed.
fn page_sizes_by_total(counts: &Counts) -> Vec<u64> {
    let most = counts.present.or(counts.managed);
    let total = counts.meminfo.and_then(|m| m.get("MemTotal"));
    let (Some(total), Some(most)) = (total, most.filter(|&n| n > 0)) else {
        return vec![];
    };
    let total = total.saturating_mul(1024);
    let least = counts.managed.unwrap_or(most / 4 * 3);
    let fits = |size: &u64| {
        let pages = total / size;
        pages >= least / 100 * 95 && pages <= most.saturating_add(most / 50)
    };
    PAGE_SIZES.into_iter().filter(fits).collect()
}

/// The page size for which a pageblock is a huge page of the default size.
fn page_size_by_huge(counts: &Counts) -> Option<u64> {
    let huge = counts.meminfo?.get("Hugepagesize")?.saturating_mul(1024);
    let size = huge.checked_shr(counts.pageblock_order?)?;
    Some(size).filter(|size| PAGE_SIZES.contains(size))
}

/// The page size that the names of meminfo's DirectMap lines tell: those of hosts with pages of 4 KiB begin with
/// DirectMap4k; some with larger ones have that line beside their own.
fn by_direct_map(counts: &Counts) -> Option<u64> {
    let meminfo = counts.meminfo?;
    let has = |name: &str| meminfo.get(name).is_some();
    (has("DirectMap4k") && !has("DirectMap64k") && !has("DirectMap16k")).then_some(PAGE_SIZES[0])
}

/// The page size of hosts that have a default huge page of this size.
fn by_usual_huge_page(huge: Option<u64>, counts: &Counts) -> Option<u64> {
    let orders = counts.orders?;
    let size = match (huge? >> 10, orders) {
        // 64 KiB pages with nine orders have it, too.
        (1024 | 2048, 10..) => 4,
        (32_768, 10..) => 16,
        (16_384, ..10) | (524_288, _) => 64,
        _ => return None,
    };
    Some(size << 10)
}

/// The order of a huge page that the allocator gives as one block: the default one if it is that small, else what hosts
/// with such pages usually have. Also a note, where it is an assumption that a reader might take for a fact.
fn huge_order(page_size: u64, default: Option<u64>, counts: &Counts) -> (u8, Option<String>) {
    /// Larger ones are set aside at boot.
    const LARGEST: u32 = 13;
    let most = counts.orders.unwrap_or(USUAL_ORDERS).saturating_sub(1) as u32;
    let of_default = default
        .map(|size| size / page_size)
        .filter(|pages| pages.is_power_of_two())
        .map(u64::ilog2);
    let usual = match page_size.ilog2() {
        12 => 9,
        13 => 10,
        14 => 11,
        _ => LARGEST,
    };
    if let Some(order) = of_default.filter(|&o| o > 0 && o <= most.min(LARGEST)) {
        return (order as u8, None);
    }
    let order = usual.min(most);
    let note = match (of_default, counts.pageblock_order) {
        (Some(o), _) if o > most => Some(format!(
            "a huge page of {} is larger than the largest block of the free lists ({}): it comes from a contiguous area or is set aside at boot, and blocks of {} are counted here",
            bytes(page_size << o),
            bytes(page_size << most),
            bytes(page_size << order)
        )),
        (None, Some(o)) if o != order && o <= 24 => Some(format!(
            "pageblocks have {} (order {o}); no file tells the size of huge pages (Hugepagesize of meminfo would): {} are assumed",
            bytes(page_size << o),
            bytes(page_size << order)
        )),
        (Some(o), _) if o != order => Some(format!(
            "the default huge page of this host has {}; all counts here are of {} blocks",
            bytes(page_size << o),
            bytes(page_size << order)
        )),
        _ => None,
    };
    (order as u8, note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meminfo(text: &str) -> MemInfo {
        MemInfo::parse(text.as_bytes()).unwrap()
    }

    fn of(counts: &Counts) -> (u64, PageSizeFrom, u8) {
        let g = find(counts).geometry;
        (g.page_size >> 10, g.page_size_from, g.huge_order)
    }

    #[test]
    fn total_over_managed_tells_the_page_size() {
        let m = meminfo("MemTotal:        4194304 kB\nHugepagesize:      32768 kB\n");
        let counts = Counts {
            meminfo: Some(&m),
            managed: Some(262_144),
            present: Some(264_000),
            orders: Some(12),
            ..Counts::default()
        };
        assert_eq!(of(&counts), (16, PageSizeFrom::Derived, 11));
        let asked = Counts {
            asked: Some(65536),
            ..counts
        };
        assert_eq!(of(&asked).1, PageSizeFrom::Asked);
        assert!(
            find(&asked).notes[0].contains("16 KiB"),
            "{:?}",
            find(&asked)
        );
    }

    #[test]
    fn free_memory_tells_it_where_nothing_else_does() {
        let m = meminfo("MemFree:           36288 kB\nHugepagesize:      16384 kB\n");
        let counts = Counts {
            meminfo: Some(&m),
            free: Some(567),
            orders: Some(9),
            ..Counts::default()
        };
        assert_eq!(of(&counts), (64, PageSizeFrom::Derived, 8));
        assert_eq!(find(&counts).notes, Vec::<String>::new());
    }

    #[test]
    fn a_huge_page_over_a_pageblock_tells_it_last() {
        let m = meminfo("Hugepagesize:       2048 kB\n");
        let counts = Counts {
            meminfo: Some(&m),
            pageblock_order: Some(9),
            ..Counts::default()
        };
        assert_eq!(of(&counts), (4, PageSizeFrom::Derived, 9));
    }

    #[test]
    fn an_assumption_is_said_where_the_orders_are_unusual() {
        let counts = |n| Counts {
            orders: Some(n),
            ..Counts::default()
        };
        assert_eq!(of(&counts(17)), (4, PageSizeFrom::Assumed, 9));
        assert!(find(&counts(17)).notes[0].contains("--page-size"));
        assert_eq!(find(&counts(11)).notes, Vec::<String>::new());
        assert_eq!(
            of(&counts(9)).2,
            8,
            "no huge page is larger than the largest block"
        );
    }

    #[test]
    fn memory_that_is_added_on_demand_is_no_larger_page() {
        let m = meminfo("MemTotal:          81920 kB\n");
        let counts = Counts {
            meminfo: Some(&m),
            managed: Some(10_240),
            present: Some(30_720),
            ..Counts::default()
        };
        assert_eq!(of(&counts).0, 4);
    }

    #[test]
    fn a_default_of_a_gibibyte_leaves_the_smaller_huge_page() {
        let m = meminfo("Hugepagesize:    1048576 kB\n");
        let counts = Counts {
            meminfo: Some(&m),
            orders: Some(11),
            ..Counts::default()
        };
        let g = find(&counts).geometry;
        assert_eq!(
            (g.huge_page_bytes(), g.default_huge_page),
            (2 << 20, Some(1 << 30))
        );
    }

    #[test]
    fn slabs_tell_the_page_size_where_nothing_else_does() {
        let of_slabs = |unit| Counts {
            slab_unit: Some(unit),
            ..Counts::default()
        };
        assert_eq!(of(&of_slabs(65_536)).0, 64);
        assert_eq!(of(&of_slabs(65_536)).1, PageSizeFrom::Derived);
        assert_eq!(of(&of_slabs(32_768)).1, PageSizeFrom::Assumed);
        let m = meminfo("DirectMap4k: 5 kB\n");
        let sure = Counts {
            meminfo: Some(&m),
            ..of_slabs(65_536)
        };
        assert_eq!(of(&sure).0, 4, "a slab may be larger than a page");
        let asked = Counts {
            asked: Some(65_536),
            ..of_slabs(4096)
        };
        let notes = find(&asked).notes.join("; ");
        assert!(notes.contains("of another host"), "{notes}");
    }

    #[test]
    fn one_note_says_that_the_default_huge_page_is_another() {
        for (kib, orders, said) in [
            (2048u64, 11, None),
            (1 << 20, 11, Some("larger than the largest block")),
            (524_288, 18, Some("all counts here are of")),
        ] {
            let m = meminfo(&format!("Hugepagesize: {kib} kB\n"));
            let counts = Counts {
                asked: Some(4096),
                meminfo: Some(&m),
                orders: Some(orders),
                ..Counts::default()
            };
            let notes = find(&counts).notes;
            let of_size = notes.iter().filter(|n| n.contains("huge page of"));
            let of_size: Vec<_> = of_size.collect();
            assert_eq!(of_size.len(), usize::from(said.is_some()), "{notes:?}");
            assert!(said.is_none_or(|s| of_size[0].contains(s)), "{notes:?}");
        }
    }

    #[test]
    fn free_memory_that_differs_too_much_is_a_contradiction() {
        let m = meminfo("MemTotal:        4194304 kB\nMemFree:         1000000 kB\n");
        let counts = Counts {
            meminfo: Some(&m),
            managed: Some(1_048_576),
            free: Some(17_000),
            ..Counts::default()
        };
        let found = find(&counts);
        assert_eq!(found.geometry.page_size, 4096);
        assert!(found.notes[0].starts_with("meminfo counts"), "{found:?}");
    }
}
