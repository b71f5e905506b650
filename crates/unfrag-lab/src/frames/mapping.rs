//! All that is asked of one mapping, in one pass over its pages.
//!
//! Invariant: a page that is in memory is in one run of pages, and in one folio.

use super::blocks::Blocks;
use super::collapse::{Collapse, Forecast, Kind, kind};
use super::flags::Flags;
use super::process::Process;
use super::window::Window;
use crate::error::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use unfrag_linux::procfs::pagemap::Entry;
use unfrag_linux::procfs::smaps::Mapping;

/// Sizes that pages are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Bytes in a page.
    pub page: u64,
    /// Order of a huge page.
    pub huge_order: u32,
    /// Order of a gibibyte.
    pub gib_order: u32,
}

impl Sizes {
    /// Pages in a huge page.
    pub fn huge_pages(self) -> u64 {
        1 << self.huge_order
    }

    /// Bytes in a huge page.
    pub fn huge_bytes(self) -> u64 {
        self.page << self.huge_order
    }
}

/// What faults of memory that is mapped anew, such as a virtual machine that is restored from its snapshot: ranges of addresses of
/// which a page is in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resume {
    /// In pages.
    pub pages: u64,
    /// In ranges of a huge page.
    pub huge: u64,
    /// In ranges of a gibibyte.
    pub gib: u64,
}

/// Frames that memory lies in; all `null` where whoever asks may not see their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Frames {
    /// Different frames of pages.
    pub pages: Option<u64>,
    /// Different frames of a huge page's size that they lie in.
    pub huge: Option<u64>,
    /// How few it could be.
    pub huge_fewest: Option<u64>,
    /// Different gibibytes.
    pub gib: Option<u64>,
    /// How few it could be.
    pub gib_fewest: Option<u64>,
    /// Pages that have to move, at least, before all lie in the fewest.
    pub moves: Option<u64>,
}

impl Frames {
    pub(super) fn of(blocks: Option<&Blocks>, sizes: Sizes) -> Frames {
        Frames {
            pages: blocks.map(Blocks::frames),
            huge: blocks.map(Blocks::number),
            huge_fewest: blocks.map(|b| b.fewest(sizes.huge_order)),
            gib: blocks.map(|b| b.number_of(sizes.gib_order)),
            gib_fewest: blocks.map(|b| b.fewest(sizes.gib_order)),
            moves: blocks.map(Blocks::moves),
        }
    }
}

/// A mapping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MappingFrames {
    /// Its first address, in hexadecimal.
    pub begin: String,
    /// Bytes of addresses.
    pub bytes: u64,
    /// What it is of.
    pub name: String,
    /// Its rights.
    pub rights: String,
    /// Whose memory it is.
    pub kind: Kind,
    /// Pages in memory.
    pub present: u64,
    /// Pages that are swapped out.
    pub swapped: u64,
    /// Pages in memory that nobody else maps.
    pub exclusive: u64,
    /// Pages of zeroes that are shared; `null` without page flags.
    pub zeroes: Option<u64>,
    /// The frames that they lie in.
    pub frames: Frames,
    /// Pages by the order of the run of pages that they are in: consecutive and aligned, in addresses and in frames.
    pub runs: BTreeMap<u32, u64>,
    /// Pages by the order of the folio that they are in; empty without page flags.
    pub folios: BTreeMap<u32, u64>,
    /// Bytes that huge pages map.
    pub huge_bytes: u64,
    /// What `MADV_COLLAPSE` would make of it.
    pub collapse: Collapse,
    /// What faults if it is mapped anew.
    pub resume: Resume,
}

/// Pages that are read at a time.
const STEP: u64 = 1 << 16;

/// Reads a mapping; adds its frames to those of others. `None` if nothing of it is in memory.
pub(super) fn read(
    process: &Process,
    m: &Mapping,
    sizes: Sizes,
    flags: &mut Flags,
    others: &mut Blocks,
) -> Result<Option<MappingFrames>> {
    let amount = |name| m.bytes(name).unwrap_or(0);
    let resident = ["Rss", "Swap", "Private_Hugetlb", "Shared_Hugetlb"].map(amount);
    // Pages of zeroes count as none, so what can have some is read.
    let may_have_zeroes = kind(m) == Kind::Anonymous && m.addresses.end - m.addresses.start < MANY;
    if resident.iter().all(|n| *n == 0) && !may_have_zeroes || m.name == "[vsyscall]" {
        return Ok(None);
    }
    let mut pass = Pass {
        sizes,
        blocks: Blocks::new(sizes.huge_order),
        hidden: 0,
        forecast: Forecast::new(m, process.rule, sizes.huge_bytes()),
        last_gib: None,
        zeroes: 0,
        found: MappingFrames {
            begin: format!("{:#x}", m.addresses.start),
            bytes: m.addresses.end - m.addresses.start,
            name: m.name.clone(),
            rights: m.rights.clone(),
            kind: kind(m),
            present: 0,
            swapped: 0,
            exclusive: 0,
            zeroes: None,
            frames: Frames::default(),
            runs: BTreeMap::new(),
            folios: BTreeMap::new(),
            huge_bytes: 0,
            collapse: Collapse::default(),
            resume: Resume::default(),
        },
    };
    let huge = sizes.huge_pages();
    let (begin, end) = (m.addresses.start / sizes.page, m.addresses.end / sizes.page);
    let step = STEP.max(huge);
    let mut words = vec![];
    let mut at = begin / huge * huge;
    while at < end {
        let (from, to) = (at.max(begin), (at + step).min(end));
        process.pages(from, &mut words, (to - from) as usize)?;
        for first in (at..to).step_by(huge as usize) {
            let (low, high) = (first.max(from), (first + huge).min(to));
            let pages = &words[(low - from) as usize..(high - from) as usize];
            let is_whole = high - low == huge;
            // What is outside of the mapping is not present.
            let mut padded;
            let pages = match is_whole {
                true => pages,
                false => {
                    padded = vec![Entry(0); huge as usize];
                    padded[(low - first) as usize..(high - first) as usize].copy_from_slice(pages);
                    &padded[..]
                }
            };
            let window = Window {
                first,
                pages,
                is_whole,
            };
            pass.window(&window, flags);
        }
        at += step;
    }
    Ok(pass.finish(m, flags.are_there(), others))
}

/// Bytes of addresses beyond which an anonymous mapping of which nothing counts as in memory is not searched for pages of
/// zeroes.
const MANY: u64 = 1 << 36;

struct Pass {
    sizes: Sizes,
    blocks: Blocks,
    /// Pages in memory whose frames may not be seen.
    hidden: u64,
    forecast: Forecast,
    last_gib: Option<u64>,
    zeroes: u64,
    found: MappingFrames,
}

impl Pass {
    fn window(&mut self, window: &Window, flags: &mut Flags) {
        if window.pages.iter().all(|e| e.0 == 0) {
            return;
        }
        let found = &mut self.found;
        let present = window.present();
        found.present += present;
        found.swapped += window.count(|e| e.is_swapped() && !e.is_present());
        found.exclusive += window.count(|e| e.is_present() && e.is_exclusive());
        let mut zeroes = 0;
        for frame in window.pages.iter().filter_map(|e| e.frame()) {
            if flags.is_zeroes(frame) == Some(true) {
                zeroes += 1;
            }
            if let Some(order) = flags.folio_order(frame) {
                *found.folios.entry(order).or_default() += 1;
            }
            self.blocks.add(frame);
        }
        self.hidden += window.count(|e| e.is_present() && e.frame().is_none());
        window.runs(&mut |order| *found.runs.entry(order).or_default() += 1 << order);
        if present > 0 {
            found.resume.pages += present;
            found.resume.huge += 1;
            let gib = window.first >> self.sizes.gib_order;
            found.resume.gib += u64::from(self.last_gib != Some(gib));
            self.last_gib = Some(gib);
        }
        self.forecast.add(window, zeroes);
        self.zeroes += zeroes;
    }

    fn finish(self, m: &Mapping, has_flags: bool, others: &mut Blocks) -> Option<MappingFrames> {
        let mut found = self.found;
        if found.present == 0 && found.swapped == 0 {
            return None;
        }
        let is_known = self.hidden == 0;
        if is_known {
            others.merge(&self.blocks);
        } else {
            found.runs.clear();
            found.folios.clear();
        }
        found.frames = Frames::of(is_known.then_some(&self.blocks), self.sizes);
        found.zeroes = (is_known && has_flags).then_some(self.zeroes);
        let amount = |name| m.bytes(name).unwrap_or(0);
        found.huge_bytes = [
            "AnonHugePages",
            "ShmemPmdMapped",
            "FilePmdMapped",
            "Private_Hugetlb",
            "Shared_Hugetlb",
        ]
        .map(amount)
        .iter()
        .sum();
        found.collapse = self.forecast.finish(self.sizes.huge_pages());
        Some(found)
    }
}
