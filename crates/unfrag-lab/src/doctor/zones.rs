//! A zone as buddyinfo, zoneinfo and pagetypeinfo together show it.
//!
//! Invariant: every zone has the eleven orders 0 to 10; what no file says is 0 or `None`.

use super::evidence::Evidence;
use crate::error::Result;
use crate::inspect;
use unfrag::frame::NR_ORDERS;

/// What is known of a zone, in base pages.
#[derive(Clone, Debug, Default)]
pub struct ZoneFacts {
    /// Node id.
    pub node: u32,
    /// Zone name.
    pub name: String,
    /// First frame.
    pub start: u64,
    /// Frames from there on, holes included.
    pub spanned: u64,
    /// Pages that the allocator manages (`present` in kernels before 3.9).
    pub managed: Option<u64>,
    /// Free blocks of each order.
    pub nr_free: [u64; NR_ORDERS],
    /// Pages on per-CPU lists.
    pub pcp: u64,
    /// Watermarks with their boost: min, low, high; `None` without zoneinfo.
    pub marks: Option<[u64; 3]>,
    /// The boost in them.
    pub boost: u64,
    /// Pages kept from requests that could use any zone (`protection`, last number).
    pub protection: u64,
    /// Pages kept from requests of the kernel, whose highest zone is Normal.
    pub protection_from_kernel: u64,
    /// Free pages in high-atomic and isolated blocks.
    pub withheld: u64,
    /// Free blocks of order 9 and more in them, in units of order 9.
    pub withheld_huge: u64,
    /// Pageblocks that are not Movable or CMA; `None` without pagetypeinfo.
    pub unmovable_blocks: Option<u64>,
}

impl ZoneFacts {
    /// Free pages.
    pub fn free(&self) -> u64 {
        let pages = self.nr_free.iter().enumerate().map(|(o, &n)| n << o);
        pages.sum()
    }

    /// Free huge pages, without those withheld.
    pub fn free_huge(&self) -> u64 {
        (self.nr_free[9] + 2 * self.nr_free[10]).saturating_sub(self.withheld_huge)
    }

    /// How many huge pages can be taken from `free` pages above the watermark `mark`: each one needs
    /// `free - 511 > mark + protection` before it. `spec: 1.5`
    pub fn huge_pages_above(&self, free: u64, mark: u64) -> u64 {
        let spare = free.saturating_sub(self.withheld + mark + self.protection + 511);
        spare.div_ceil(512)
    }

    /// The min watermark, 0 if unknown.
    pub fn min(&self) -> u64 {
        self.marks.map_or(0, |m| m[0])
    }
}

/// The populated zones.
///
/// # Errors
/// If buddyinfo holds numbers that no kernel has.
pub fn zones(e: &Evidence) -> Result<Vec<ZoneFacts>> {
    let mut all = vec![];
    for row in e.buddy.iter().flat_map(|b| &b.zones) {
        let mut z = ZoneFacts {
            node: row.node,
            name: row.zone.clone(),
            nr_free: inspect::blocks(row).map_err(|e| e.in_file("buddyinfo".as_ref()))?,
            ..ZoneFacts::default()
        };
        if let Some(info) = e.zones.as_ref().and_then(|i| i.zone(row.node, &row.zone)) {
            let page = |name| info.pages(name);
            z.start = info.start_pfn().unwrap_or(0);
            z.spanned = page("spanned").unwrap_or(0);
            z.managed = page("managed").or_else(|| page("present"));
            z.pcp = inspect::pcp_pages(info);
            z.boost = page("boost").unwrap_or(0);
            if let (Some(min), Some(low), Some(high)) = (page("min"), page("low"), page("high")) {
                z.marks = Some([min, low, high]);
            }
            z.protection = info.protection.last().copied().unwrap_or(0);
            z.protection_from_kernel = protection_from_kernel(e, row.node, &info.protection);
        }
        if let Some(types) = &e.types {
            for withheld in ["HighAtomic", "Isolate", "Reserve"] {
                let row = types.row(row.node, &row.zone, withheld);
                for (o, count) in row
                    .iter()
                    .flat_map(|r| r.counts.iter().enumerate())
                    .take(NR_ORDERS)
                {
                    z.withheld = z.withheld.saturating_add(count.blocks.min(1 << 40) << o);
                    if o >= 9 {
                        z.withheld_huge += count.blocks.min(1 << 40) << (o - 9);
                    }
                }
            }
            let names = &types.blocks.migratetypes;
            z.unmovable_blocks = types
                .blocks
                .rows
                .iter()
                .find(|r| r.node == row.node && r.zone == row.zone)
                .map(|r| {
                    let typed = names.iter().zip(&r.blocks);
                    typed
                        .filter(|(n, _)| !matches!(n.as_str(), "Movable" | "CMA"))
                        .map(|(_, b)| b)
                        .sum()
                });
        }
        all.push(z);
    }
    Ok(all)
}

/// The pages that a zone keeps from requests of the kernel. `protection` has a number for each configured kind of zone;
/// the last ones are those of Movable and Device.
fn protection_from_kernel(e: &Evidence, node: u32, protection: &[u64]) -> u64 {
    let zones = e
        .zones
        .iter()
        .flat_map(|i| &i.zones)
        .filter(|z| z.node == node);
    let names: Vec<&str> = zones.map(|z| z.name.as_str()).collect();
    // Kernels that print only populated zones leave Movable and Device out.
    let at = names
        .iter()
        .position(|n| *n == "Normal")
        .unwrap_or(names.len().saturating_sub(1));
    protection
        .get(at)
        .or(protection.last())
        .copied()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_huge_page_leaves_more_than_the_mark() {
        let z = ZoneFacts {
            protection: 100,
            ..ZoneFacts::default()
        };
        // 1023 - 511 = 512 > 200 + 100; then 511 - 511 = 0 is not.
        assert_eq!(z.huge_pages_above(1023, 200), 1);
        assert_eq!(z.huge_pages_above(811, 200), 0);
        assert_eq!(z.huge_pages_above(812, 200), 1);
        assert_eq!(z.huge_pages_above(812 + 512, 200), 2);
    }
}
