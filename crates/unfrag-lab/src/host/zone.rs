//! A zone as the files together show it: free lists from whichever file tells them, and what zoneinfo says.
//!
//! Invariant: what no file says is `None` or empty, never a number. Derived numbers are functions of the one zone.

use super::whole;
use crate::usable::{ZoneView, kept};
use std::ops::Range;
use unfrag_eras::stat::{extfrag_for_order, fragmentation_index, unusable_index};
use unfrag_eras::{Gfp, Order, ZoneKind};
use unfrag_linux::procfs::{ZoneInfo, zoneinfo};

/// What is known of a zone, in base pages. Lists stand at the number of their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Zone {
    /// Node id.
    pub node: u32,
    /// Zone name, such as `DMA32`.
    pub name: String,
    /// Free blocks of each order.
    pub blocks: Option<Vec<u64>>,
    /// Free blocks of the first orders, where no file tells those of the others.
    pub beginning: Vec<u64>,
    /// Free blocks of each order by migrate type, where pagetypeinfo tells them.
    pub by_type: Vec<TypeBlocks>,
    /// Whether pagetypeinfo tells those of all types.
    pub has_all_types: bool,
    /// Whether the kernel stopped counting, so that more may be free.
    pub is_capped: bool,
    /// Free pages.
    pub free_pages: Option<u64>,
    /// The kernel's unusable index by order, in thousandths, where the blocks are not known.
    pub unusable: Option<Vec<i32>>,
    /// The kernel's fragmentation index by order, in thousandths, where the blocks are not known.
    pub fragmentation: Option<Vec<i32>>,
    /// Pageblocks by type, in the order of pagetypeinfo; `None` without it.
    pub pageblocks: Option<Vec<(String, u64)>>,
    /// What zoneinfo says: extent, marks with their boost, counters and per-CPU lists.
    pub info: Option<zoneinfo::Zone>,
    /// Order of a huge page.
    pub huge_order: u8,
    /// Pages that the allocator manages (`present` in kernels before 3.9).
    pub managed: Option<u64>,
    /// Pages on per-CPU lists; `None` where zoneinfo is missing, or does not tell them to their end.
    pub pcp: Option<u64>,
    /// Watermarks with their boost: min, low, high; `None` without zoneinfo.
    pub marks: Option<[u64; 3]>,
    /// Pages kept from requests that could use any zone (`protection`, last number); `None` without zoneinfo.
    pub protection: Option<u64>,
    /// Pages kept from requests of the kernel, whose highest zone is Normal; `None` without zoneinfo, or where it lacks a
    /// zone of the node.
    pub protection_from_kernel: Option<u64>,
    /// Whether its node has a higher zone: then it may keep pages from requests that could use that.
    pub is_below_another: bool,
    /// Pages of page cache and reclaimable slab; `None` if the kernel does not count them by zone.
    pub reclaimable: Option<u64>,
    /// Pages of slab that cannot be reclaimed; `None` if the kernel does not count them by zone.
    pub unreclaimable_slab: Option<u64>,
    /// Free pages of contiguous memory areas; `None` if no file tells them.
    pub cma_pages: Option<u64>,
}

impl Zone {
    /// Number of orders that are known of.
    pub fn orders(&self) -> Option<usize> {
        let indexes = || self.unusable.as_ref().or(self.fragmentation.as_ref());
        let blocks = self.blocks.as_ref().map(Vec::len);
        blocks.or_else(|| indexes().map(Vec::len))
    }

    /// The unusable index of an order, in thousandths. `spec: 7.5`
    pub fn unusable_index(&self, order: u8) -> Option<i64> {
        match &self.blocks {
            Some(blocks) if usize::from(order) < blocks.len() => {
                i64::try_from(unusable_index(blocks, Order(order))).ok()
            }
            Some(_) => None,
            None => self
                .unusable
                .as_ref()?
                .get(usize::from(order))
                .map(|&n| n.into()),
        }
    }

    /// The fragmentation index of an order, in thousandths. `spec: 5.2`
    pub fn fragmentation_index(&self, order: u8) -> Option<i64> {
        match &self.blocks {
            Some(blocks) if usize::from(order) < blocks.len() => {
                Some(fragmentation_index(blocks, Order(order)))
            }
            Some(_) => None,
            None => {
                let row = self.fragmentation.as_ref()?;
                row.get(usize::from(order)).map(|&n| n.into())
            }
        }
    }

    /// Percent of free memory outside blocks of `order`. `spec: 5.5`
    pub fn outside(&self, order: u8) -> Option<u64> {
        match &self.blocks {
            Some(blocks) => Some(extfrag_for_order(blocks, Order(order))),
            // Both are the same share, cut off.
            None => u64::try_from(self.unusable_index(order)? / 10).ok(),
        }
    }

    /// Free blocks of `order`, larger ones counted as several.
    pub fn whole_blocks(&self, order: u8) -> Option<u64> {
        let order = usize::from(order);
        let large = self.blocks.as_ref()?.iter().enumerate().skip(order);
        Some(large.map(|(o, &n)| n << (o - order)).sum())
    }

    /// Base pages in a huge page.
    pub fn huge_pages_size(&self) -> u64 {
        1 << self.huge_order
    }

    /// Free huge pages, without those withheld; at most so many if [`Self::withheld_huge`] does not tell. `None` if no
    /// file tells free blocks.
    pub fn free_huge(&self) -> Option<u64> {
        let whole = self.whole_blocks(self.huge_order)?;
        Some(whole.saturating_sub(self.withheld_huge().unwrap_or(0)))
    }

    /// How many huge pages can be taken from `free` pages above the min watermark: each one needs
    /// `free - 511 > min + protection` before it, where it has 512 pages. What is not known is taken to keep nothing
    /// back, so the number is one of at most unless [`Self::tells_what_is_kept`]. `spec: 1.5`
    pub fn huge_pages_above_min(&self, free: u64) -> u64 {
        let size = self.huge_pages_size();
        let min = self.marks.map_or(0, |m| m[0]);
        let kept = [
            self.withheld().unwrap_or(0),
            min,
            self.protection.unwrap_or(0),
        ];
        let kept = kept.into_iter().fold(size - 1, u64::saturating_add);
        free.saturating_sub(kept).div_ceil(size)
    }

    /// Whether all is known that the zone keeps from requests for huge pages.
    pub fn tells_what_is_kept(&self) -> bool {
        self.marks.is_some() && self.protection.is_some() && self.has_all_types
    }

    /// Whether it may keep its memory from requests for huge pages, and no file says how much.
    pub fn may_be_protected(&self) -> bool {
        self.protection.is_none() && self.is_below_another
    }

    /// The zone as a request of the kernel sees it; `None` if its free blocks are not known, or its kind is none that is
    /// known. What is not known keeps nothing from the request: see [`Self::tells_atomic`].
    pub fn view(&self) -> Option<ZoneView> {
        let free_by_order = self.blocks.clone()?;
        let lists = |name| self.special(name).unwrap_or_default();
        let (highatomic, isolated) = (lists("HighAtomic"), lists("Isolate"));
        let cma = self.special("CMA");
        Some(ZoneView {
            kind: ZoneKind::from_name(&self.name)?,
            // Isolated blocks are on the lists, and not in the sum.
            free_pages: self.free_pages?.saturating_sub(pages(&isolated)),
            free_by_order,
            cma_by_order: match self.cma_pages {
                None | Some(0) => Some(cma.unwrap_or_default()),
                Some(_) => cma,
            },
            highatomic_pages: pages(&highatomic),
            highatomic_by_order: highatomic,
            isolated_by_order: isolated,
            cma_pages: self.cma_pages.unwrap_or(0),
            min: self.marks.map_or(0, |m| m[0]),
            protection: self.protection_from_kernel.unwrap_or(0),
        })
    }

    /// Whether all is known that the zone keeps from requests that may not wait. The high-atomic reserve is theirs.
    pub fn tells_atomic(&self) -> bool {
        self.marks.is_some() && self.protection_from_kernel.is_some() && self.cma_pages.is_some()
    }

    /// Free blocks of a migrate type, where pagetypeinfo tells them.
    pub fn free_of(&self, name: &str) -> Option<&[u64]> {
        let of_type = self.by_type.iter().find(|t| t.name == name);
        of_type.map(|t| t.blocks.as_slice())
    }

    /// Free blocks of a migrate type that not every kernel has; `None` unless pagetypeinfo tells all types.
    fn special(&self, name: &str) -> Option<Vec<u64>> {
        self.has_all_types
            .then(|| self.free_of(name).unwrap_or_default().to_vec())
    }

    /// Pageblocks of a migrate type.
    pub fn pageblocks_of(&self, name: &str) -> Option<u64> {
        let all = self.pageblocks.as_ref()?;
        all.iter().find(|(t, _)| t == name).map(|(_, n)| *n)
    }

    /// Pageblocks that `is_wanted` takes, by the name of their type.
    pub fn pageblocks_where(&self, is_wanted: impl Fn(&str) -> bool) -> Option<u64> {
        let wanted = self.pageblocks.as_ref()?.iter();
        let wanted = wanted.filter(|(name, _)| is_wanted(name));
        Some(wanted.fold(0, |sum: u64, (_, n)| sum.saturating_add(*n)))
    }

    /// Pages in free blocks of at least an order that are withheld from all ordinary requests: those of the high-atomic and
    /// of old kernels' reserve, and isolated ones.
    fn withheld_from(&self, order: u8) -> Option<u64> {
        let lists = ["HighAtomic", "Isolate", "Reserve"];
        let each = lists.map(|name| Some(pages_from(&self.special(name)?, order)));
        each.into_iter().sum()
    }

    /// Free pages in high-atomic, isolated and reserve blocks; `None` without pagetypeinfo.
    pub fn withheld(&self) -> Option<u64> {
        self.withheld_from(0)
    }

    /// Free blocks in them, in units of huge pages; `None` without pagetypeinfo.
    pub fn withheld_huge(&self) -> Option<u64> {
        Some(self.withheld_from(self.huge_order)? >> self.huge_order)
    }

    /// Huge pages in free blocks of the high-order atomic reserve; `None` without pagetypeinfo.
    pub fn highatomic_huge(&self) -> Option<u64> {
        let reserve = self.special("HighAtomic")?;
        Some(pages_from(&reserve, self.huge_order) >> self.huge_order)
    }

    /// Pageblocks that are not Movable or CMA; `None` without pagetypeinfo.
    pub fn unmovable_blocks(&self) -> Option<u64> {
        self.pageblocks_where(|name| !matches!(name, "Movable" | "CMA"))
    }

    /// What is told of it where only the first orders are.
    pub fn beginning_alone(&self) -> Option<String> {
        let blocks: Vec<String> = self.beginning.iter().map(u64::to_string).collect();
        (!blocks.is_empty()).then(|| {
            format!(
                "node {}, zone {}: free blocks of the first {} orders alone are told ({}); of the others nothing is known",
                self.node,
                self.name,
                blocks.len(),
                blocks.join(", ")
            )
        })
    }

    /// Its frames; none where zoneinfo does not tell them.
    pub fn span(&self) -> Range<u64> {
        let start = self.info.as_ref().and_then(zoneinfo::Zone::start_pfn);
        let start = start.unwrap_or(0);
        start..start.saturating_add(self.told("spanned").unwrap_or(0))
    }

    /// A number of zoneinfo's, such as `present` or `min`.
    pub fn told(&self, name: &str) -> Option<u64> {
        self.info.as_ref()?.pages(name)
    }

    /// One of zoneinfo's counters, such as `nr_zone_active_file`.
    pub fn counted(&self, name: &str) -> Option<u64> {
        counted(self.info.as_ref()?, name)
    }

    pub(super) fn add_zoneinfo(&mut self, all: &ZoneInfo, info: &zoneinfo::Zone) {
        let page = |name| info.pages(name);
        self.managed = whole::managed(all, info);
        self.pcp = whole::pcp_pages(info);
        if let (Some(min), Some(low), Some(high)) = (page("min"), page("low"), page("high")) {
            self.marks = Some([min, low, high]);
        }
        self.protection = info.protection.last().copied();
        let of_node = all.zones.iter().filter(|z| z.node == self.node);
        let names: Vec<&str> = of_node.map(|z| z.name.as_str()).collect();
        let is_known = whole::has_all_zones(all, self.node) && !info.protection.is_empty();
        self.protection_from_kernel = is_known.then(|| kept(&info.protection, &names, Gfp::KERNEL));
        let count = |names: &[&str]| names.iter().find_map(|n| counted(info, n));
        // By kernel: since 4.8, since 2.6.28, before.
        let inactive = count(&["nr_zone_inactive_file", "nr_inactive_file"]);
        let active = count(&["nr_zone_active_file", "nr_active_file"]);
        let file = inactive.zip(active).map(|(i, a)| i + a);
        let file = file.or_else(|| count(&["nr_file_pages"]));
        let none = |name| whole::has_no_counter(all, info, name).then_some(0);
        // Since 4.8 slab is counted by node.
        let slab = "nr_slab_reclaimable";
        let slab = count(&[slab]).or_else(|| none(slab));
        self.reclaimable = file.zip(slab).map(|(n, slab)| n + slab);
        self.unreclaimable_slab = count(&["nr_slab_unreclaimable"]);
        // Kernels before 3.7 have neither the counter nor areas.
        self.cma_pages = count(&["nr_free_cma"]).or_else(|| none("nr_free_cma"));
        self.info = Some(info.clone());
    }
}

/// A counter of pages; no host has more than 2^52.
fn counted(info: &zoneinfo::Zone, name: &str) -> Option<u64> {
    info.counters.get(name).map(|n| n.min(1 << 52))
}

/// Free blocks of one migrate type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeBlocks {
    /// The type, such as `Movable`.
    pub name: String,
    /// Free blocks of each order.
    pub blocks: Vec<u64>,
    /// Whether the kernel stopped counting, so that more may be free.
    pub is_capped: bool,
}

impl TypeBlocks {
    /// Free pages of the type; at least so many if the kernel stopped counting.
    pub fn pages(&self) -> u64 {
        pages(&self.blocks)
    }
}

/// Pages in blocks of each order.
pub(super) fn pages(blocks: &[u64]) -> u64 {
    pages_from(blocks, 0)
}

/// Pages in blocks of at least an order.
fn pages_from(blocks: &[u64], order: u8) -> u64 {
    let each = blocks.iter().enumerate().skip(order.into());
    each.fold(0, |sum: u64, (o, n)| {
        sum.saturating_add(n.checked_mul(1 << o.min(63)).unwrap_or(u64::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_huge_page_leaves_more_than_the_mark() {
        let z = Zone {
            huge_order: 9,
            protection: Some(100),
            marks: Some([200, 250, 300]),
            ..Zone::default()
        };
        // 1023 - 511 = 512 > 200 + 100; then 511 - 511 = 0 is not.
        assert_eq!(z.huge_pages_above_min(1023), 1);
        assert_eq!(z.huge_pages_above_min(811), 0);
        assert_eq!(z.huge_pages_above_min(812), 1);
        assert_eq!(z.huge_pages_above_min(812 + 512), 2);
    }
}
