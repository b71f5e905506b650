//! A profile as a program of a scenario: what a recorded process does on the machine.

use super::class::Class;
use super::spread::Spread;
use super::usage::{PerProcess, Use};
use unfrag_machine::program::recorded::{Behaviour, Quantiles};

/// The behaviour of a process of a program; that of the whole command as one process, if it was not recorded by process.
///
/// A process keeps what it does not free while it runs, so the mean of its memory is that of pages taken and not
/// freed by the running process. Sizes beyond the ninth tenth follow from the mean.
pub fn behaviour(u: &Use) -> Behaviour {
    let pages = |class| u.pages.get(&class).cloned().unwrap_or_default();
    let [anonymous, read, written] =
        [Class::Anonymous, Class::FileRead, Class::FileWritten].map(pages);
    let Some(each) = &u.each else {
        let one = |n: u64| Quantiles::new(n, n, n, n, n);
        return Behaviour {
            anonymous: one(anonymous.high_water_pages),
            tenths: [10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
            cpu: one(u.cpu_us.unwrap_or(0) * 1000),
            read: one(read.taken_pages),
            written: one(written.taken_pages),
        };
    };
    let processes = u.processes.max(1);
    let of = |s: &Spread, sum: u64| Quantiles::new(s.p10, s.median, s.p90, s.max, sum / processes);
    let kept = anonymous
        .taken_pages
        .saturating_sub(anonymous.freed_pages.running);
    let cpu = each.cpu_us.unwrap_or_default();
    let ns = |us: u64| us * 1000;
    let cpu = Spread {
        p10: ns(cpu.p10),
        median: ns(cpu.median),
        p90: ns(cpu.p90),
        max: ns(cpu.max),
    };
    Behaviour {
        anonymous: of(&each.anonymous_high_water_pages, kept),
        tenths: tenths(each),
        cpu: of(&cpu, ns(u.cpu_us.unwrap_or(0))),
        read: of(&each.file_read_pages, read.taken_pages),
        written: of(&each.file_written_pages, written.taken_pages),
    }
}

/// Percent of its memory that a process holds at the end of each tenth of its life; 100 where none was recorded.
fn tenths(each: &PerProcess) -> [u8; 10] {
    let recorded = each.anonymous_percent_by_tenth.iter().copied();
    let mut all = recorded.chain(std::iter::repeat(100));
    std::array::from_fn(|_| all.next().unwrap_or(100))
}
