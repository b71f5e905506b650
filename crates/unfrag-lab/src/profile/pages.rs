//! Sums of pages by class, of the whole command and of each program.
//!
//! Invariant: what [`Tally::take`] adds, [`Tally::give_back`] takes away, at the end of the recording at the latest;
//! `live` never exceeds `high`, nor `high` what was taken.

use super::class::Class;
use super::spread::Spread;
use super::zero::is_zero;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use unfrag_eras::frame::NR_ORDERS;

/// Pages of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// Allocated.
    pub taken_pages: u64,
    /// Allocations by order, up to the largest that occurred.
    pub taken_by_order: Vec<u64>,
    /// Most at one time.
    pub high_water_pages: u64,
    /// Freed, by who freed them.
    pub freed_pages: Freed,
    /// In use at the end of the recording.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_pages: u64,
    /// Time from allocation to free, of each page whose free is an event; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_us: Option<Spread>,
}

/// Freed pages, by who freed them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Freed {
    /// By the process that took them, before it ended.
    #[serde(skip_serializing_if = "is_zero")]
    pub running: u64,
    /// By the process that took them, as it ended.
    #[serde(skip_serializing_if = "is_zero")]
    pub at_exit: u64,
    /// By another process, or later by the kernel.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_others: u64,
    /// By the kernel's reclaim.
    #[serde(skip_serializing_if = "is_zero")]
    pub reclaimed: u64,
    /// Without an event.
    #[serde(skip_serializing_if = "is_zero")]
    pub unseen: u64,
}

/// How the use of a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEnd {
    /// Freed by the process that took it.
    Running,
    /// Freed by the process that took it, as it exits.
    AtExit,
    /// Freed by another task.
    ByOthers,
    /// Freed by reclaim.
    Reclaimed,
    /// Freed without an event.
    Unseen,
    /// In use at the end of the recording.
    Held,
}

/// Pages of a class while they are summed.
#[derive(Clone, Default)]
struct Sum {
    taken: u64,
    by_order: [u64; NR_ORDERS],
    live: u64,
    high: u64,
    ended: [u64; 6],
    lifetimes: Option<Histogram<u64>>,
}

/// Longest lifetime that is recorded: 12 days. Longer ones count as this.
const LONGEST_US: u64 = 1 << 40;

/// Pages of a program, or of all.
#[derive(Clone, Default)]
pub struct Tally {
    sums: [Sum; Class::ALL.len()],
    /// Pages in use of all classes but those of page cache; and the most at one time.
    live: u64,
    high: u64,
}

impl Tally {
    /// Counts an allocated block.
    pub fn take(&mut self, class: Class, order: u8) {
        let sum = &mut self.sums[class as usize];
        sum.taken += 1 << order;
        sum.by_order[usize::from(order)] += 1;
        self.add_live(class, 1 << order);
    }

    fn add_live(&mut self, class: Class, pages: u64) {
        let sum = &mut self.sums[class as usize];
        sum.live += pages;
        sum.high = sum.high.max(sum.live);
        if !class.is_page_cache() {
            self.live += pages;
            self.high = self.high.max(self.live);
        }
    }

    /// Counts the end of a page's use, `life_ns` nanoseconds after its allocation.
    pub fn give_back(&mut self, class: Class, how: PageEnd, life_ns: u64) {
        let sum = &mut self.sums[class as usize];
        sum.live -= 1;
        sum.ended[how as usize] += 1;
        if !class.is_page_cache() {
            self.live -= 1;
        }
        if !matches!(how, PageEnd::Unseen | PageEnd::Held) {
            let all = sum.lifetimes.get_or_insert_with(|| {
                Histogram::new_with_bounds(1, LONGEST_US, 2).expect("the bounds are in order")
            });
            all.saturating_record((life_ns / 1000).max(1));
        }
    }

    /// Counts pages as freed at an exit that were counted as freed while running.
    pub fn recount_as_exit(&mut self, class: Class, pages: u64) {
        let ended = &mut self.sums[class as usize].ended;
        ended[PageEnd::Running as usize] -= pages;
        ended[PageEnd::AtExit as usize] += pages;
    }

    /// Most pages at one time that were not in page cache.
    pub fn high_water(&self) -> u64 {
        self.high
    }

    /// The sums by class.
    pub fn pages(&self) -> BTreeMap<Class, Pages> {
        let all = Class::ALL.iter().zip(&self.sums);
        all.filter(|(_, s)| s.taken > 0)
            .map(|(c, s)| (*c, s.pages()))
            .collect()
    }
}

impl Sum {
    fn pages(&self) -> Pages {
        let ended = |how: PageEnd| self.ended[how as usize];
        let orders = self
            .by_order
            .iter()
            .rposition(|&n| n > 0)
            .map_or(0, |o| o + 1);
        Pages {
            taken_pages: self.taken,
            taken_by_order: self.by_order[..orders].to_vec(),
            high_water_pages: self.high,
            freed_pages: Freed {
                running: ended(PageEnd::Running),
                at_exit: ended(PageEnd::AtExit),
                by_others: ended(PageEnd::ByOthers),
                reclaimed: ended(PageEnd::Reclaimed),
                unseen: ended(PageEnd::Unseen),
            },
            held_pages: ended(PageEnd::Held),
            lifetime_us: self.lifetimes.as_ref().map(|h| Spread {
                p10: h.value_at_quantile(0.1),
                median: h.value_at_quantile(0.5),
                p90: h.value_at_quantile(0.9),
                max: h.max(),
            }),
        }
    }
}
