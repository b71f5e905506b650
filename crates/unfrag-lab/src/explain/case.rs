//! A report with what was found out about it, from which its sentences and its advice are made.
//!
//! Invariant: nothing here is text for people.

use super::kernel::Kernel;
use super::missing;
use super::verdict::Verdict;
use super::zones::{Judged, Lacking};
use unfrag_eras::Gfp;
use unfrag_linux::kernel_log::Report;

/// What a judge of one kind of failure found, beside the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Nothing more.
    None,
    /// A virtual request exceeds all memory.
    ExceedsPages,
    /// A virtual request: a size of memory or of addresses, which is not said.
    VirtualNotSaid,
    /// A large page for a virtual request, which takes single pages next.
    HugeTry,
    /// A slab's spare objects were to be filled up.
    Refill,
    /// kswapd asked for itself without using reserves.
    KswapdTry,
    /// The same code asked for less next.
    SmallerNext,
    /// A page fault's handler said "out of memory".
    FaultHandler,
    /// A slab cache of a control group.
    CacheOfCgroup,
    /// The high-atomic reserve is taken off whole, and that decides.
    WholeReserve,
}

/// A report with its verdict.
pub struct Case<'a> {
    /// The report.
    pub report: &'a Report,
    /// Whose rules hold.
    pub kernel: Kernel,
    /// The zones, judged for the request.
    pub zones: Vec<Judged>,
    /// Which zones are not in the text.
    pub lacking_zones: Lacking,
    /// `vm.min_free_kbytes` at that time; `None` unless all zones are in the text.
    pub setting: Option<u64>,
    /// KiB of a page; `None` if the text does not tell.
    pub page_kib: Option<u64>,
    /// The flags of the request.
    pub gfp: Option<Gfp>,
    /// Whether the request could wait for memory.
    pub may_wait: Option<bool>,
    /// Whether the same task asked for a smaller block right after it.
    pub has_smaller_next: bool,
    /// The verdict; `None` where no allocation failed.
    pub verdict: Option<Verdict>,
    /// What its judge found beside it.
    pub finding: Finding,
    /// The verdict that the zones give where another one stands for a harmless try.
    pub by_zones: Option<Verdict>,
    /// Why numbers are missing that decide.
    pub lacking: Option<&'static str>,
}

impl Case<'_> {
    /// Whether kswapd asked, which cannot wait for itself.
    pub fn is_kswapd(&self) -> bool {
        let number = self
            .report
            .task
            .as_deref()
            .and_then(|t| t.strip_prefix("kswapd"));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    }

    /// Whether an allowed zone that matters has a free block of the order that the request may use: one of a twentieth of
    /// memory or more, as DMA keeps its blocks from ordinary requests at all times.
    pub fn has_open_block(&self) -> bool {
        let sizes = self.zones.iter().filter_map(|z| z.size_kib);
        let small = sizes.fold(0, u64::saturating_add) / 20;
        let matters = |z: &Judged| z.size_kib.is_some_and(|s| s >= small);
        self.zones
            .iter()
            .any(|z| z.is_allowed && matters(z) && z.has_block == Some(true))
    }

    /// An amount of the whole machine in bytes, by its count of pages, or by the line of its only node.
    pub fn amount(&self, name: &str) -> Option<u64> {
        let memory = self.report.memory.as_ref()?;
        if let Some(pages) = memory.pages.get(name) {
            return Some(pages.saturating_mul(self.page_kib?).saturating_mul(1024));
        }
        let is_only = memory.node_lines == 1 && missing::has_all(memory);
        let kib = memory.node_kib.get(name).filter(|_| is_only)?;
        Some(kib.saturating_mul(1024))
    }

    /// Whether the text shows a contiguous memory area.
    pub fn has_cma(&self) -> bool {
        self.report.memory.as_ref().is_some_and(|m| {
            m.cma_pages.is_some_and(|n| n > 0)
                || m.pages.get("free_cma").is_some_and(|n| *n > 0)
                || m.zones
                    .iter()
                    .any(|z| z.kib("free_cma").is_some_and(|n| n > 0))
        })
    }
}
