//! The numbers that a what-if compares.
//!
//! Invariant: the names are part of the report's format, and of the table of measured errors.

use crate::geometry::Sizes;
use crate::replay::answer::report::{Sample, ZoneSample};
use std::collections::BTreeMap;

/// On which scale an error of a number is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// A count: by its ratio, after this was added, so that few more of few are no large error.
    Ratio(f64),
    /// An index from 0 to 1: by the difference.
    Index,
}

impl Scale {
    /// A value on the scale on which errors add up.
    pub fn up(self, value: f64) -> f64 {
        match self {
            Scale::Ratio(floor) => (value.max(0.0) + floor).ln(),
            Scale::Index => value,
        }
    }

    /// A value of that scale, as far as the number can have it.
    pub fn down(self, value: f64) -> f64 {
        match self {
            Scale::Ratio(floor) => (value.exp() - floor).max(0.0),
            Scale::Index => value.clamp(0.0, 1.0),
        }
    }

    /// As exact as it is shown.
    pub fn rounded(self, value: f64) -> f64 {
        match self {
            Scale::Ratio(_) => value.round(),
            Scale::Index => (value * 1000.0).round() / 1000.0,
        }
    }

    /// Differences from `of` up to this one are none.
    pub fn negligible(self, of: f64) -> f64 {
        match self {
            Scale::Ratio(floor) => (of * 0.05).max(floor / 4.0),
            Scale::Index => 0.02,
        }
    }
}

/// Which state of memory a level is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The last snapshot.
    End,
    /// The mean of all.
    Mean,
}

/// Where the value of a number is found.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A total of the replay; its name.
    Total(&'static str),
    /// A level: that of all zones together.
    Level(When, fn(&Whole) -> Option<f64>),
}

/// A number of a what-if.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// Its name in JSON.
    pub name: &'static str,
    /// What it counts, as in "fewer ..."; [`words`](Quantity::words) has it with the sizes of a host.
    what: &'static str,
    /// Scale of its errors.
    pub scale: Scale,
    /// Where it is found.
    pub source: Source,
}

/// All zones together.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    free_pages: u64,
    free_blocks: Vec<u64>,
    free_huge_blocks: u64,
    unmovable: Option<u64>,
    large: usize,
}

impl Whole {
    /// Of these zones; `large` is the order of a huge page.
    fn of(zones: &[ZoneSample], large: u8) -> Whole {
        let orders = zones.iter().map(|z| z.free_blocks.len()).max().unwrap_or(0);
        let blocks = |o: usize| zones.iter().filter_map(move |z| z.free_blocks.get(o)).sum();
        Whole {
            free_pages: zones.iter().map(|z| z.free_pages).sum(),
            free_blocks: (0..orders).map(blocks).collect(),
            free_huge_blocks: zones.iter().map(|z| z.free_huge_blocks).sum(),
            // A source without types of pageblocks has none.
            unmovable: zones
                .iter()
                .map(|z| z.pageblocks.get("Unmovable").copied())
                .sum(),
            large: large.into(),
        }
    }

    fn unusable(&self, order: usize) -> Option<f64> {
        let pages = |from: usize| -> u64 {
            let all = self.free_blocks.iter().enumerate().skip(from);
            all.map(|(o, n)| n << o).sum()
        };
        let all = pages(0);
        (all > 0).then(|| (all - pages(order)) as f64 / all as f64)
    }
}

const fn total(name: &'static str, what: &'static str, floor: f64) -> Quantity {
    Quantity {
        name,
        what,
        scale: Scale::Ratio(floor),
        source: Source::Total(name),
    }
}

const fn level(
    name: &'static str,
    what: &'static str,
    scale: Scale,
    when: When,
    of: fn(&Whole) -> Option<f64>,
) -> Quantity {
    Quantity {
        name,
        what,
        scale,
        source: Source::Level(when, of),
    }
}

fn free(w: &Whole) -> Option<f64> {
    Some(w.free_pages as f64)
}

fn huge(w: &Whole) -> Option<f64> {
    Some(w.free_huge_blocks as f64)
}

fn unusable_3(w: &Whole) -> Option<f64> {
    w.unusable(3)
}

fn unusable_huge(w: &Whole) -> Option<f64> {
    w.unusable(w.large)
}

fn unmovable(w: &Whole) -> Option<f64> {
    w.unmovable.map(|n| n as f64)
}

/// Some requests, and some pages.
const REQUESTS: f64 = 20.0;
const PAGES: f64 = 1024.0;
const BLOCKS: f64 = 8.0;

/// All of them, in the order in which they are shown.
pub const QUANTITIES: [Quantity; 19] = [
    total(
        "thp_fault_alloc",
        "huge pages given at page faults",
        REQUESTS,
    ),
    total(
        "thp_fault_fallback",
        "page faults refused a huge page",
        REQUESTS,
    ),
    total(
        "fallbacks",
        "requests served from another type (fallbacks)",
        REQUESTS,
    ),
    total("allocstall", "waits for reclaim", REQUESTS),
    total("compact_stall", "waits for compaction", REQUESTS),
    total("compact_success", "compactions that succeeded", REQUESTS),
    total("compact_fail", "compactions in vain", REQUESTS),
    total("pgmigrate_success", "pages moved by compaction", PAGES),
    total(
        "pgsteal_kswapd",
        "pages freed in the background (kswapd)",
        PAGES,
    ),
    total(
        "pgsteal_direct",
        "pages freed while waiting (direct reclaim)",
        PAGES,
    ),
    level(
        "free_pages_end",
        "free pages at the end",
        Scale::Ratio(PAGES),
        When::End,
        free,
    ),
    level(
        "free_pages_mean",
        "free pages over time",
        Scale::Ratio(PAGES),
        When::Mean,
        free,
    ),
    level(
        "free_huge_blocks_end",
        "free huge pages ({huge} blocks) at the end",
        Scale::Ratio(BLOCKS),
        When::End,
        huge,
    ),
    level(
        "free_huge_blocks_mean",
        "free huge pages ({huge} blocks) over time",
        Scale::Ratio(BLOCKS),
        When::Mean,
        huge,
    ),
    level(
        "unusable_3_end",
        "share of free memory in pieces below {3} at the end",
        Scale::Index,
        When::End,
        unusable_3,
    ),
    level(
        "unusable_3_mean",
        "share of free memory in pieces below {3} over time",
        Scale::Index,
        When::Mean,
        unusable_3,
    ),
    level(
        "unusable_huge_end",
        "share of free memory in pieces below {huge} at the end",
        Scale::Index,
        When::End,
        unusable_huge,
    ),
    level(
        "unusable_huge_mean",
        "share of free memory in pieces below {huge} over time",
        Scale::Index,
        When::Mean,
        unusable_huge,
    ),
    level(
        "unmovable_blocks_end",
        "pageblocks of unmovable kernel memory at the end",
        Scale::Ratio(BLOCKS),
        When::End,
        unmovable,
    ),
];

/// Whether a number is of free memory, its pieces, or the huge pages that it gives.
pub fn is_of_free_memory(name: &str) -> bool {
    ["free_", "unusable_", "thp_fault_"]
        .iter()
        .any(|of| name.starts_with(of))
}

impl Quantity {
    /// What it counts, as in "fewer ...", on a host of these sizes.
    pub fn words(&self, sizes: &Sizes) -> String {
        let huge = sizes.of_order(sizes.large_order());
        let words = self.what.replace("{huge}", &huge);
        words.replace("{3}", &sizes.of_order(3))
    }

    /// Its value at the beginning, which only levels have.
    pub fn begin(&self, samples: &[Sample], large: u8) -> Option<f64> {
        match self.source {
            Source::Total(_) => None,
            Source::Level(_, of) => of(&Whole::of(&samples.first()?.zones, large)),
        }
    }

    /// Its value in a replay.
    pub fn of(
        &self,
        totals: &BTreeMap<String, Option<u64>>,
        samples: &[Sample],
        large: u8,
    ) -> Option<f64> {
        match self.source {
            Source::Total(name) => totals.get(name).copied()?.map(|n| n as f64),
            Source::Level(when, of) => level_of(samples, large, when, of),
        }
    }

    /// Its value on the recorded host, if that shows it. `totals` are those of any replay.
    pub fn recorded(
        &self,
        totals: &BTreeMap<String, Option<u64>>,
        samples: &[Sample],
        large: u8,
    ) -> Option<f64> {
        match self.source {
            Source::Total(name) => {
                let n = totals.get(&format!("{name}_recorded")).copied()?;
                n.map(|n| n as f64)
            }
            Source::Level(when, of) => level_of(samples, large, when, of),
        }
    }
}

fn level_of(
    samples: &[Sample],
    large: u8,
    when: When,
    of: fn(&Whole) -> Option<f64>,
) -> Option<f64> {
    let at = |s: &Sample| of(&Whole::of(&s.zones, large));
    match when {
        When::End => at(samples.last()?),
        When::Mean => {
            let all: Vec<f64> = samples.iter().filter_map(at).collect();
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
        }
    }
}
