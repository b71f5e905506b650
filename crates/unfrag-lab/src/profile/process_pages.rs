//! Sums of pages of one process, and how the processes of a program differ.
//!
//! Invariant: what [`ProcessPages::take`] adds, [`ProcessPages::give_back`] takes away.

use super::class::Class;
use super::process::Process;
use super::spread::Spread;
use super::usage::PerProcess;

/// Pages that one process took.
#[derive(Clone, Debug, Default)]
pub struct ProcessPages {
    anonymous_taken: u64,
    anonymous_live: u64,
    anonymous_high: u64,
    tables_live: u64,
    tables_high: u64,
    read: u64,
    written: u64,
    /// Anonymous pages in use after each change, by time.
    anonymous_over_time: Vec<(u64, u32)>,
}

impl ProcessPages {
    /// Counts pages that are taken at a time.
    pub fn take(&mut self, class: Class, pages: u64, time: u64) {
        if let Some(taken) = self.taken(class) {
            *taken += pages;
        }
        self.change_live(class, pages as i64, time);
    }

    /// Counts pages that are given back at a time.
    pub fn give_back(&mut self, class: Class, pages: u64, time: u64) {
        self.change_live(class, -(pages as i64), time);
    }

    fn taken(&mut self, class: Class) -> Option<&mut u64> {
        match class {
            Class::Anonymous => Some(&mut self.anonymous_taken),
            Class::FileRead => Some(&mut self.read),
            Class::FileWritten => Some(&mut self.written),
            _ => None,
        }
    }

    fn change_live(&mut self, class: Class, change: i64, time: u64) {
        match class {
            Class::Anonymous => {
                self.anonymous_live = self.anonymous_live.saturating_add_signed(change);
                self.anonymous_high = self.anonymous_high.max(self.anonymous_live);
                let now = u32::try_from(self.anonymous_live).unwrap_or(u32::MAX);
                self.anonymous_over_time.push((time, now));
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
        let after = self.anonymous_over_time.partition_point(|l| l.0 <= time);
        after
            .checked_sub(1)
            .map_or(0, |i| self.anonymous_over_time[i].1.into())
    }
}

/// How the processes of a program differ; `until` is the end of the recording, in nanoseconds of the trace clock.
pub fn per_process(of: &[(&Process, &ProcessPages)], timed: bool, until: u64) -> PerProcess {
    let life = |p: &Process| p.ended.unwrap_or(until).saturating_sub(p.started);
    let spread = |value: &dyn Fn(&Process, &ProcessPages) -> u64| {
        Spread::of(of.iter().map(|(p, u)| value(p, u)).collect())
    };
    let percent = |tenth: u64| {
        let at = |(p, u): &(&Process, &ProcessPages)| {
            // The last moment before the tenth's end: at its exit a process frees everything at once.
            let time = p.started + (life(p) / 10).saturating_mul(tenth);
            u.at(time.saturating_sub(1))
        };
        let most: u64 = of.iter().map(|(_, u)| u.anonymous_high).sum();
        let held: u64 = of.iter().map(at).sum();
        (100 * held).checked_div(most).unwrap_or(0).min(100) as u8
    };
    PerProcess {
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
