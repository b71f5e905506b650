//! Sums of pages: by class, of the whole command, of each program and of each process.
//!
//! Invariant: what [`Tally::take`] adds, [`Tally::give_back`] takes away, at the end of the recording at the latest;
//! `live` never exceeds `high`, nor `high` what was taken.

use super::class::Class;
use super::process::Process;
use super::spread::Spread;
use super::{Each, is_zero};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use unfrag::frame::NR_ORDERS;

/// Pages of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// Allocated.
    pub taken_pages: u64,
    /// Allocations by order, up to the largest that occurred.
    pub taken_by_order: Vec<u64>,
    /// Most at one time.
    pub high_water_pages: u64,
    /// Given back, by whom.
    pub freed_pages: Freed,
    /// In use at the end of the recording.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_pages: u64,
    /// From allocation to free of those that were seen freed, page by page; left out if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_us: Option<Spread>,
}

/// Pages given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Freed {
    /// By the process that took them, before it ended.
    #[serde(skip_serializing_if = "is_zero")]
    pub running: u64,
    /// By the process that took them, as it ended.
    #[serde(skip_serializing_if = "is_zero")]
    pub at_exit: u64,
    /// By another process, or later by the kernel on behalf of nobody.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_others: u64,
    /// By the kernel's reclaim.
    #[serde(skip_serializing_if = "is_zero")]
    pub reclaimed: u64,
    /// Without an event.
    #[serde(skip_serializing_if = "is_zero")]
    pub unseen: u64,
}

/// How a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By the process that took them.
    Running,
    /// The same, as it ends.
    AtExit,
    /// By another task.
    ByOthers,
    /// By reclaim.
    Reclaimed,
    /// With no event.
    Unseen,
    /// Not at all.
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

/// Longest life that is told from longer ones: 12 days.
const LONGEST_US: u64 = 1 << 40;

/// Pages of a program, or of all.
#[derive(Clone, Default)]
pub struct Tally {
    sums: [Sum; Class::ALL.len()],
    /// Of all classes but those of page cache.
    live: u64,
    high: u64,
}

impl Tally {
    /// A block of an order is taken for a class.
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

    /// A page ends so, after so many nanoseconds.
    pub fn give_back(&mut self, class: Class, how: End, life_ns: u64) {
        let sum = &mut self.sums[class as usize];
        sum.live -= 1;
        sum.ended[how as usize] += 1;
        if !class.is_page_cache() {
            self.live -= 1;
        }
        if !matches!(how, End::Unseen | End::Held) {
            let all = sum.lifetimes.get_or_insert_with(|| {
                Histogram::new_with_bounds(1, LONGEST_US, 2).expect("the bounds are in order")
            });
            all.saturating_record((life_ns / 1000).max(1));
        }
    }

    /// Pages that were counted as freed while running were freed at an exit.
    pub fn were_at_exit(&mut self, class: Class, pages: u64) {
        let ended = &mut self.sums[class as usize].ended;
        ended[End::Running as usize] -= pages;
        ended[End::AtExit as usize] += pages;
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
        let ended = |how: End| self.ended[how as usize];
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
                running: ended(End::Running),
                at_exit: ended(End::AtExit),
                by_others: ended(End::ByOthers),
                reclaimed: ended(End::Reclaimed),
                unseen: ended(End::Unseen),
            },
            held_pages: ended(End::Held),
            lifetime_us: self.lifetimes.as_ref().map(|h| Spread {
                p10: h.value_at_quantile(0.1),
                median: h.value_at_quantile(0.5),
                p90: h.value_at_quantile(0.9),
                max: h.max(),
            }),
        }
    }
}

/// What one process took.
#[derive(Clone, Debug, Default)]
pub struct OfProcess {
    anonymous_taken: u64,
    anonymous_live: u64,
    anonymous_high: u64,
    tables_live: u64,
    tables_high: u64,
    read: u64,
    written: u64,
    /// Anonymous pages in use after each change, by time.
    line: Vec<(u64, u32)>,
}

impl OfProcess {
    /// Pages of a class are taken at a time.
    pub fn take(&mut self, class: Class, pages: u64, time: u64) {
        if let Some(taken) = self.taken(class) {
            *taken += pages;
        }
        self.live(class, pages as i64, time);
    }

    /// Pages of a class are given back at a time.
    pub fn give_back(&mut self, class: Class, pages: u64, time: u64) {
        self.live(class, -(pages as i64), time);
    }

    fn taken(&mut self, class: Class) -> Option<&mut u64> {
        match class {
            Class::Anonymous => Some(&mut self.anonymous_taken),
            Class::FileRead => Some(&mut self.read),
            Class::FileWritten => Some(&mut self.written),
            _ => None,
        }
    }

    fn live(&mut self, class: Class, change: i64, time: u64) {
        match class {
            Class::Anonymous => {
                self.anonymous_live = self.anonymous_live.saturating_add_signed(change);
                self.anonymous_high = self.anonymous_high.max(self.anonymous_live);
                let now = u32::try_from(self.anonymous_live).unwrap_or(u32::MAX);
                self.line.push((time, now));
            }
            Class::PageTables => {
                self.tables_live = self.tables_live.saturating_add_signed(change);
                self.tables_high = self.tables_high.max(self.tables_live);
            }
            _ => {}
        }
    }

    /// Anonymous pages in use at a time.
    fn at(&self, time: u64) -> u64 {
        let after = self.line.partition_point(|l| l.0 <= time);
        after.checked_sub(1).map_or(0, |i| self.line[i].1.into())
    }
}

/// How the processes of a program differ; `until` is the end of the recording, in nanoseconds of the trace clock.
pub fn each(of: &[(&Process, &OfProcess)], timed: bool, until: u64) -> Each {
    let life = |p: &Process| p.ended.unwrap_or(until).saturating_sub(p.started);
    let spread = |value: &dyn Fn(&Process, &OfProcess) -> u64| {
        Spread::of(of.iter().map(|(p, u)| value(p, u)).collect())
    };
    let percent = |tenth: u64| {
        let at = |(p, u): &(&Process, &OfProcess)| {
            // The last moment of the tenth: an exit gives everything back in no time.
            let time = p.started + (life(p) / 10).saturating_mul(tenth);
            u.at(time.saturating_sub(1))
        };
        let most: u64 = of.iter().map(|(_, u)| u.anonymous_high).sum();
        let held: u64 = of.iter().map(at).sum();
        (100 * held).checked_div(most).unwrap_or(0).min(100) as u8
    };
    Each {
        life_us: spread(&|p, _| life(p) / 1000),
        cpu_us: timed.then(|| spread(&|p, _| p.cpu_ns / 1000)),
        blocked_us: timed.then(|| spread(&|p, _| p.blocked_ns / 1000)),
        anonymous_taken_pages: spread(&|_, u| u.anonymous_taken),
        anonymous_high_water_pages: spread(&|_, u| u.anonymous_high),
        page_tables_high_water_pages: spread(&|_, u| u.tables_high),
        file_read_pages: spread(&|_, u| u.read),
        file_written_pages: spread(&|_, u| u.written),
        anonymous_percent_by_tenth: (1..=10).map(percent).collect(),
    }
}
