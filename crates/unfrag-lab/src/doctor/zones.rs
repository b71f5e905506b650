//! A zone as the files together show it.
//!
//! Invariant: what no file says is `None` or empty, never a number.

use super::evidence::Evidence;
use crate::geometry::Geometry;
use crate::inspect::files::pcp_pages;
use crate::inspect::free_rows::FreeRow;
use crate::usable::{ZoneView, kept};
use unfrag::{Gfp, ZoneKind};
use unfrag_linux::procfs::{PageTypeInfo, zoneinfo};

/// What is known of a zone, in base pages. Lists stand at the number of their order.
#[derive(Clone, Debug, Default)]
pub struct ZoneFacts {
    /// Its free blocks, and who they are from.
    pub row: FreeRow,
    /// Order of a huge page.
    pub huge_order: u8,
    /// First frame.
    pub start: u64,
    /// Frames from there on, holes included.
    pub spanned: u64,
    /// Pages that the allocator manages (`present` in kernels before 3.9).
    pub managed: Option<u64>,
    /// Pages on per-CPU lists.
    pub pcp: u64,
    /// Watermarks with their boost: min, low, high; `None` without zoneinfo.
    pub marks: Option<[u64; 3]>,
    /// The boost in them.
    pub boost: u64,
    /// Pages kept from requests that could use any zone (`protection`, last number); `None` without zoneinfo.
    pub protection: Option<u64>,
    /// Pages kept from requests of the kernel, whose highest zone is Normal.
    pub protection_from_kernel: u64,
    /// Whether its node has a higher zone: then it may keep pages from requests that could use that.
    pub is_below_another: bool,
    /// Pages of page cache and reclaimable slab; `None` if the kernel does not count them by zone.
    pub reclaimable: Option<u64>,
    /// Pages of slab that cannot be reclaimed; `None` if the kernel does not count them by zone.
    pub unreclaimable_slab: Option<u64>,
    /// Free pages of contiguous memory areas.
    pub cma_pages: u64,
    /// Free blocks of contiguous memory areas; `None` without pagetypeinfo.
    pub cma: Option<Vec<u64>>,
    /// Free blocks of the high-order atomic reserve.
    pub highatomic: Vec<u64>,
    /// Free blocks that are isolated.
    pub isolated: Vec<u64>,
    /// Free pages in high-atomic, isolated and reserve blocks.
    pub withheld: u64,
    /// Free blocks in them, in units of huge pages.
    pub withheld_huge: u64,
    /// Huge pages in free blocks of the high-order atomic reserve; `None` without pagetypeinfo.
    pub highatomic_huge: Option<u64>,
    /// Pageblocks that are not Movable or CMA; `None` without pagetypeinfo.
    pub unmovable_blocks: Option<u64>,
}

impl ZoneFacts {
    /// Free pages; 0 if not known.
    pub fn free(&self) -> u64 {
        self.row.free_pages.unwrap_or(0)
    }

    /// Base pages in a huge page.
    pub fn huge_pages_size(&self) -> u64 {
        1 << self.huge_order
    }

    /// Free huge pages, without those withheld.
    pub fn free_huge(&self) -> u64 {
        let whole = self.row.whole_blocks(self.huge_order).unwrap_or(0);
        whole.saturating_sub(self.withheld_huge)
    }

    /// How many huge pages can be taken from `free` pages above the watermark `mark`: each one needs
    /// `free - 511 > mark + protection` before it, where it has 512 pages. `spec: 1.5`
    pub fn huge_pages_above(&self, free: u64, mark: u64) -> u64 {
        let size = self.huge_pages_size();
        let kept = self.withheld + mark + self.protection.unwrap_or(0) + size - 1;
        free.saturating_sub(kept).div_ceil(size)
    }

    /// The min watermark, 0 if unknown.
    pub fn min(&self) -> u64 {
        self.marks.map_or(0, |m| m[0])
    }

    /// Whether it may keep its memory from requests for huge pages, and no file says how much.
    pub fn may_be_protected(&self) -> bool {
        self.protection.is_none() && self.is_below_another
    }

    /// The zone as a request of the kernel sees it; `None` if its free blocks are not known, or it is none that a
    /// request of the kernel may use.
    pub fn view(&self) -> Option<ZoneView> {
        let free_by_order = self.row.blocks.clone()?;
        let pages = |blocks: &[u64]| {
            let each = blocks.iter().enumerate();
            each.map(|(o, &n)| n << o).sum::<u64>()
        };
        Some(ZoneView {
            kind: ZoneKind::from_name(&self.row.zone)?,
            // Isolated blocks are on the lists, and not in the sum.
            free_pages: self.free().saturating_sub(pages(&self.isolated)),
            free_by_order,
            cma_by_order: match self.cma_pages {
                0 => Some(self.cma.clone().unwrap_or_default()),
                _ => self.cma.clone(),
            },
            highatomic_by_order: self.highatomic.clone(),
            isolated_by_order: self.isolated.clone(),
            cma_pages: self.cma_pages,
            highatomic_pages: pages(&self.highatomic),
            min: self.min(),
            protection: self.protection_from_kernel,
        })
    }

    fn add_zoneinfo(&mut self, e: &Evidence, info: &zoneinfo::Zone) {
        let page = |name| info.pages(name);
        self.start = info.start_pfn().unwrap_or(0);
        self.spanned = page("spanned").unwrap_or(0);
        self.managed = page("managed").or_else(|| page("present"));
        self.pcp = pcp_pages(info);
        self.boost = page("boost").unwrap_or(0);
        if let (Some(min), Some(low), Some(high)) = (page("min"), page("low"), page("high")) {
            self.marks = Some([min, low, high]);
        }
        self.protection = Some(info.protection.last().copied().unwrap_or(0));
        let names: Vec<&str> = e
            .zones
            .iter()
            .flat_map(|i| &i.zones)
            .filter(|z| z.node == self.row.node)
            .map(|z| z.name.as_str())
            .collect();
        self.protection_from_kernel = kept(&info.protection, &names, Gfp::KERNEL);
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
        let slab = count(&["nr_slab_reclaimable"]).unwrap_or(0);
        self.reclaimable = file.map(|n| n + slab);
        self.unreclaimable_slab = count(&["nr_slab_unreclaimable"]);
        self.cma_pages = count(&["nr_free_cma"]).unwrap_or(0);
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
        let has_lists = types
            .free
            .iter()
            .any(|r| (r.node, &r.zone) == (self.row.node, &self.row.zone));
        if has_lists {
            let cma = lists("CMA");
            // The sum is exact where zoneinfo has it; the lists are of the moment when they were read.
            if self.marks.is_none() {
                self.cma_pages = pages(&cma, 0);
            }
            self.cma = Some(cma);
            self.highatomic = lists("HighAtomic");
            self.isolated = lists("Isolate");
            let reserve = lists("Reserve");
            let huge = usize::from(self.huge_order);
            self.highatomic_huge = Some(pages(&self.highatomic, huge) >> huge);
            for withheld in [&self.highatomic, &self.isolated, &reserve] {
                self.withheld += pages(withheld, 0);
                self.withheld_huge += pages(withheld, huge) >> huge;
            }
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
        let info = e.zones.as_ref();
        if let Some(info) = info.and_then(|i| i.zone(z.row.node, &z.row.zone)) {
            z.add_zoneinfo(e, info);
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
            ..ZoneFacts::default()
        };
        // 1023 - 511 = 512 > 200 + 100; then 511 - 511 = 0 is not.
        assert_eq!(z.huge_pages_above(1023, 200), 1);
        assert_eq!(z.huge_pages_above(811, 200), 0);
        assert_eq!(z.huge_pages_above(812, 200), 1);
        assert_eq!(z.huge_pages_above(812 + 512, 200), 2);
    }
}
