//! A zone of zoneinfo, and how kernels lay it out.
//!
//! Invariant: fields go by their names and keep their order; units are base pages unless a name says otherwise.

use crate::error::Error;
use crate::procfs::counters::Counters;
use crate::procfs::scan::Scan;

/// Characters from a name to its value at most.
pub(super) const MAX_WIDTH: usize = 80;

/// A zone. Everything is in base pages unless the kernel's name for it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// NUMA node.
    pub node: u32,
    /// Zone, such as `DMA32`.
    pub name: String,
    /// Counters of the whole node, printed with its first populated zone.
    pub per_node: Option<Counters>,
    /// Free pages.
    pub free: u64,
    /// The lines below `pages free`: boost, min, low, high, spanned, present, managed and so on.
    /// The watermarks include the boost.
    pub pages: Counters,
    /// Pages that requests for a higher zone must leave here, by zone.
    pub protection: Vec<u64>,
    /// Counters of the zone; empty if it is unpopulated.
    pub counters: Counters,
    /// Per-CPU lists; `None` if it is unpopulated.
    pub pagesets: Option<Vec<Pageset>>,
    /// The last lines: node_unreclaimable, start_pfn and so on.
    pub last: Counters,
    /// How the kernel lays the zone out.
    pub layout: Layout,
}

/// Per-CPU lists of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pageset {
    /// The CPU.
    pub cpu: u32,
    /// count, high, batch and, in new kernels, high_min and high_max.
    pub fields: Counters,
    /// Difference at which the CPU's share of a counter is added to the sum; `None` on a host of one CPU.
    pub stat_threshold: Option<u64>,
}

/// Indents, widths and the order of parts in a zone's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Spaces before a counter.
    pub counter_indent: usize,
    /// Whether the zone's counters come before `protection`.
    pub counters_before_protection: bool,
    /// Characters from a pageset's field name to its value.
    pub pageset_width: usize,
    /// Characters from a name of the last lines to its value.
    pub last_width: usize,
}

impl Layout {
    /// Of kernel 6.1.
    pub const LINUX_6_1: Self = Self {
        counter_indent: 6,
        counters_before_protection: false,
        pageset_width: 7,
        last_width: 21,
    };
    /// Of kernels with high_min and high_max in their pagesets.
    pub const LINUX_6_18: Self = Self {
        pageset_width: 10,
        ..Self::LINUX_6_1
    };
    /// Of kernel 2.6.32.
    pub const LINUX_2_6_32: Self = Self {
        counter_indent: 4,
        counters_before_protection: true,
        pageset_width: 7,
        last_width: 19,
    };
}

impl Default for Layout {
    fn default() -> Self {
        Self::LINUX_6_1
    }
}

impl Zone {
    /// A number that stands below `pages free`, such as `min` or `managed`.
    pub fn pages(&self, name: &str) -> Option<u64> {
        self.pages.get(name)
    }
    /// First page frame, where the zone is populated.
    pub fn start_pfn(&self) -> Option<u64> {
        self.last.get("start_pfn")
    }
}

/// Reads a line `protection: (0, 1, 2)`.
pub(super) fn read_protection(scan: &mut Scan) -> Result<Vec<u64>, Error> {
    scan.expect("protection:")?;
    scan.expect("(")?;
    let mut pages = vec![];
    while !scan.accept(")") {
        if !pages.is_empty() {
            scan.expect(",")?;
        }
        pages.push(scan.number()?);
    }
    scan.line_end()?;
    Ok(pages)
}
