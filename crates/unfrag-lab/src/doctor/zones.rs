//! A zone as the files together show it.
//!
//! Invariant: what no file says is `None` or empty, never a number.

use super::evidence::Evidence;
use crate::geometry::Geometry;
use crate::inspect::files::pcp_pages;
use crate::inspect::free_rows::FreeRow;
use crate::inspect::whole;
use crate::usable::{ZoneView, kept};
use unfrag::{Gfp, ZoneKind};
use unfrag_linux::procfs::{PageTypeInfo, ZoneInfo, zoneinfo};

/// What is known of a zone, in base pages. Lists stand at the number of their order.
#[derive(Clone, Debug, Default)]
pub struct ZoneFacts {
    /// Its free blocks, and who they are from.
    pub row: FreeRow,
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
    /// Free blocks of contiguous memory areas; `None` without pagetypeinfo.
    pub cma: Option<Vec<u64>>,
    /// Free blocks of the high-order atomic reserve.
    pub highatomic: Vec<u64>,
    /// Free blocks that are isolated.
    pub isolated: Vec<u64>,
    /// Free pages in high-atomic, isolated and reserve blocks; `None` without pagetypeinfo.
    pub withheld: Option<u64>,
    /// Free blocks in them, in units of huge pages; `None` without pagetypeinfo.
    pub withheld_huge: Option<u64>,
    /// Huge pages in free blocks of the high-order atomic reserve; `None` without pagetypeinfo.
    pub highatomic_huge: Option<u64>,
    /// Pageblocks that are not Movable or CMA; `None` without pagetypeinfo.
    pub unmovable_blocks: Option<u64>,
}

impl ZoneFacts {
    /// Base pages in a huge page.
    pub fn huge_pages_size(&self) -> u64 {
        1 << self.huge_order
    }

    /// Free huge pages, without those withheld; at most so many if [`Self::withheld_huge`] is not known. `None` if no
    /// file tells free blocks.
    pub fn free_huge(&self) -> Option<u64> {
        let whole = self.row.whole_blocks(self.huge_order)?;
        Some(whole.saturating_sub(self.withheld_huge.unwrap_or(0)))
    }

    /// How many huge pages can be taken from `free` pages above the min watermark: each one needs
    /// `free - 511 > min + protection` before it, where it has 512 pages. What is not known is taken to keep nothing
    /// back, so the number is one of at most unless [`Self::tells_what_is_kept`]. `spec: 1.5`
    pub fn huge_pages_above_min(&self, free: u64) -> u64 {
        let size = self.huge_pages_size();
        let min = self.marks.map_or(0, |m| m[0]);
        let kept = [
            self.withheld.unwrap_or(0),
            min,
            self.protection.unwrap_or(0),
        ];
        let kept = kept.into_iter().fold(size - 1, u64::saturating_add);
        free.saturating_sub(kept).div_ceil(size)
    }

    /// Whether all is known that the zone keeps from requests for huge pages.
    pub fn tells_what_is_kept(&self) -> bool {
        self.marks.is_some() && self.protection.is_some() && self.withheld.is_some()
    }

    /// Whether it may keep its memory from requests for huge pages, and no file says how much.
    pub fn may_be_protected(&self) -> bool {
        self.protection.is_none() && self.is_below_another
    }

    /// The zone as a request of the kernel sees it; `None` if its free blocks are not known, or its kind is none that is
    /// known. What is not known keeps nothing from the request: see [`Self::tells_atomic`].
    pub fn view(&self) -> Option<ZoneView> {
        let free_by_order = self.row.blocks.clone()?;
        let pages = |blocks: &[u64]| {
            let each = blocks.iter().enumerate();
            each.map(|(o, &n)| n << o).sum::<u64>()
        };
        Some(ZoneView {
            kind: ZoneKind::from_name(&self.row.zone)?,
            // Isolated blocks are on the lists, and not in the sum.
            free_pages: self.row.free_pages?.saturating_sub(pages(&self.isolated)),
            free_by_order,
            cma_by_order: match self.cma_pages {
                None | Some(0) => Some(self.cma.clone().unwrap_or_default()),
                Some(_) => self.cma.clone(),
            },
            highatomic_by_order: self.highatomic.clone(),
            isolated_by_order: self.isolated.clone(),
            cma_pages: self.cma_pages.unwrap_or(0),
            highatomic_pages: pages(&self.highatomic),
            min: self.marks.map_or(0, |m| m[0]),
            protection: self.protection_from_kernel.unwrap_or(0),
        })
    }

    /// Whether all is known that the zone keeps from requests that may not wait. The high-atomic reserve is theirs.
    pub fn tells_atomic(&self) -> bool {
        self.marks.is_some() && self.protection_from_kernel.is_some() && self.cma_pages.is_some()
    }

    fn add_zoneinfo(&mut self, all: &ZoneInfo, info: &zoneinfo::Zone) {
        let page = |name| info.pages(name);
        self.managed = whole::managed(all, info);
        self.pcp = pcp_pages(info);
        if let (Some(min), Some(low), Some(high)) = (page("min"), page("low"), page("high")) {
            self.marks = Some([min, low, high]);
        }
        self.protection = info.protection.last().copied();
        let of_node = all.zones.iter().filter(|z| z.node == self.row.node);
        let names: Vec<&str> = of_node.map(|z| z.name.as_str()).collect();
        let is_known = whole::has_all_zones(all, self.row.node) && !info.protection.is_empty();
        self.protection_from_kernel = is_known.then(|| kept(&info.protection, &names, Gfp::KERNEL));
        let count = |names: &[&str]| {
            names
                .iter()
                .find_map(|n| info.counters.get(n))
                .map(|n| n.min(1 << 52))
        };
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
    }

    fn add_types(&mut self, types: &PageTypeInfo) {
        let lists = |name: &str| {
            let row = types.row(self.row.node, &self.row.zone, name);
            let counts = row.iter().flat_map(|r| &r.counts);
            counts.map(|c| c.blocks).collect::<Vec<u64>>()
        };
        let pages = |blocks: &[u64], least: usize| {
            let each = blocks.iter().enumerate().skip(least);
            each.map(|(o, &n)| n << o).sum::<u64>()
        };
        if whole::has_all_types(types, self.row.node, &self.row.zone) {
            let cma = lists("CMA");
            // The sum is exact where zoneinfo has it; the lists are of the moment when they were read.
            self.cma_pages = self.cma_pages.or_else(|| Some(pages(&cma, 0)));
            self.cma = Some(cma);
            self.highatomic = lists("HighAtomic");
            self.isolated = lists("Isolate");
            let reserve = lists("Reserve");
            let huge = usize::from(self.huge_order);
            self.highatomic_huge = Some(pages(&self.highatomic, huge) >> huge);
            let withheld = [&self.highatomic, &self.isolated, &reserve];
            self.withheld = Some(withheld.iter().map(|w| pages(w, 0)).sum());
            self.withheld_huge = Some(withheld.iter().map(|w| pages(w, huge) >> huge).sum());
        }
        let names = &types.blocks.migratetypes;
        let rows = &types.blocks.rows;
        self.unmovable_blocks = rows
            .iter()
            .find(|r| (r.node, &r.zone) == (self.row.node, &self.row.zone))
            .map(|r| {
                let typed = names.iter().zip(&r.blocks);
                typed
                    .filter(|(n, _)| !matches!(n.as_str(), "Movable" | "CMA"))
                    .fold(0, |sum: u64, (_, &b)| sum.saturating_add(b))
            });
    }
}

/// The populated zones, in the order of `rows`.
pub fn zones(e: &Evidence, rows: Vec<FreeRow>, geometry: &Geometry) -> Vec<ZoneFacts> {
    let kind = |name: &str| ZoneKind::from_name(name).map(|k| k as usize);
    let all = rows.clone();
    let is_below_another = |row: &FreeRow| {
        all.iter()
            .any(|o| o.node == row.node && kind(&o.zone) > kind(&row.zone))
    };
    let one = |row: FreeRow| {
        let mut z = ZoneFacts {
            is_below_another: is_below_another(&row),
            huge_order: geometry.huge_order,
            row,
            ..ZoneFacts::default()
        };
        if let Some(all) = &e.zones
            && let Some(info) = all.zone(z.row.node, &z.row.zone)
        {
            z.add_zoneinfo(all, info);
        }
        if let Some(types) = &e.types {
            z.add_types(types);
        }
        z
    };
    rows.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_huge_page_leaves_more_than_the_mark() {
        let z = ZoneFacts {
            huge_order: 9,
            protection: Some(100),
            marks: Some([200, 250, 300]),
            ..ZoneFacts::default()
        };
        // 1023 - 511 = 512 > 200 + 100; then 511 - 511 = 0 is not.
        assert_eq!(z.huge_pages_above_min(1023), 1);
        assert_eq!(z.huge_pages_above_min(811), 0);
        assert_eq!(z.huge_pages_above_min(812), 1);
        assert_eq!(z.huge_pages_above_min(812 + 512), 2);
    }
}
