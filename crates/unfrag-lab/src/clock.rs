//! One offset between the clock of the trace and that of the snapshots.
//!
//! A snapshot's vmstat counts the pages freed since boot, and the trace shows each of them: the
//! counter dates the snapshot. The offset is the middle of what the snapshots say: one for a whole
//! recording, never one fitted to a snapshot.

use unfrag_linux::Result;
use unfrag_linux::procfs::vmstat::VmStat;
use unfrag_linux::recording::{Recording, Snapshot};

/// Farthest that the clocks may be apart, in nanoseconds.
const FARTHEST: u64 = 5_000_000_000;

/// A counter value that stood still for longer than this dates nothing, in nanoseconds.
const SHARP: u64 = 30_000_000;

/// Below this the clocks are the same, in nanoseconds: where each file of a snapshot has its own time,
/// and where one time stands for all of them.
const SAME: [i64; 2] = [100_000_000, 3_000_000];

/// Rounds in which offset and counter are brought together.
const ROUNDS: usize = 4;

/// The clock of a recording.
pub struct Clock {
    /// Nanoseconds to add to an event's time to get the time of the snapshots' clock.
    pub offset: i64,
    /// Time of each free in the trace, and pages freed up to it.
    freed: Vec<(u64, i64)>,
    /// `pgfree` before the first of them.
    before: Option<i64>,
}

impl Clock {
    /// The clock of `rec`, with the offset that its maker noted, if any.
    ///
    /// # Errors
    /// If a snapshot's vmstat cannot be read.
    pub fn of(rec: &Recording) -> Result<Clock> {
        let freed = pages_freed(rec);
        let mut clock = Clock {
            offset: rec.meta.snapshot_offset_ns,
            freed,
            before: None,
        };
        let mut seen = vec![];
        for s in &rec.snapshots {
            seen.extend(pgfree(s)?);
        }
        if is_of_one_command(rec) {
            return Ok(clock);
        }
        for _ in 0..ROUNDS {
            clock.before = clock.constant(&seen);
            if rec.meta.snapshot_offset_ns != 0 || is_one_clock(rec) {
                break;
            }
            let mut apart: Vec<i64> = seen
                .iter()
                .filter_map(|&(time, n)| {
                    let (a, b) = clock.span(n)?;
                    let middle = a / 2 + b / 2;
                    let close = middle.abs_diff(time) < FARTHEST && b - a < SHARP;
                    close.then_some(time as i64 - middle as i64)
                })
                .collect();
            apart.sort_unstable();
            match apart.get(apart.len() / 2) {
                Some(&o) if apart.len() >= 3 => clock.offset = o,
                _ => break,
            }
        }
        if clock.offset.abs() < SAME[usize::from(!is_finely_dated(rec))] {
            clock.offset = 0;
        }
        Ok(clock)
    }

    /// Whether no page was freed unseen between a mark and the first event.
    ///
    /// # Errors
    /// If the mark's vmstat cannot be read.
    pub fn begins_at(&self, mark: &Snapshot) -> Result<bool> {
        Ok(pgfree(mark)?
            .zip(self.before)
            .is_some_and(|((_, n), before)| n == before))
    }

    /// When a snapshot's vmstat was read, by its own counter, in nanoseconds of the trace's clock.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn date(&self, snap: &Snapshot) -> Result<Option<u64>> {
        let Some((_, n)) = pgfree(snap)? else {
            return Ok(None);
        };
        Ok(self
            .span(n)
            .filter(|(a, b)| b - a < SHARP)
            .map(|(a, b)| a / 2 + b / 2))
    }

    /// Pages freed in the trace up to a time.
    fn freed_at(&self, time: i64) -> i64 {
        let i = self.freed.partition_point(|&(t, _)| (t as i64) <= time);
        i.checked_sub(1).map_or(0, |i| self.freed[i].1)
    }

    /// What the counter is ahead of the trace, as the snapshots say under the present offset.
    fn constant(&self, seen: &[(u64, i64)]) -> Option<i64> {
        let (first, last) = (self.freed.first()?.0 as i64, self.freed.last()?.0 as i64);
        let mut all: Vec<i64> = seen
            .iter()
            .map(|&(t, n)| (t as i64 - self.offset, n))
            .filter(|(t, _)| (first..=last).contains(t))
            .map(|(t, n)| n - self.freed_at(t))
            .collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }

    /// From when to when the counter stood at `n`.
    fn span(&self, n: i64) -> Option<(u64, u64)> {
        let wanted = n - self.before?;
        let i = self.freed.partition_point(|&(_, sum)| sum <= wanted);
        Some((self.freed.get(i.checked_sub(1)?)?.0, self.freed.get(i)?.0))
    }
}

/// Whether the trace lacks others' frees, so that the counter dates nothing. Such recordings have one clock.
fn is_of_one_command(rec: &Recording) -> bool {
    is_one_clock(rec) && rec.meta.facts.get("scope").is_some_and(|s| s == "command")
}

/// Whether the recorder dated snapshots and events by the same clock, and says so.
fn is_one_clock(rec: &Recording) -> bool {
    let clock = rec.meta.facts.get("snapshot_clock");
    clock.is_some_and(|c| *c == rec.meta.clock)
}

/// Whether the files of a snapshot have times of their own.
fn is_finely_dated(rec: &Recording) -> bool {
    let apart = |s: &Snapshot| s.files.windows(2).any(|f| f[0].time != f[1].time);
    rec.snapshots.iter().any(apart)
}

/// Time of a snapshot's vmstat in the snapshots' clock, and its count of pages freed.
fn pgfree(snap: &Snapshot) -> Result<Option<(u64, i64)>> {
    let (Some(text), Some(time)) = (snap.file("vmstat"), snap.time_of("vmstat")) else {
        return Ok(None);
    };
    Ok(VmStat::parse(text)?.get("pgfree").map(|n| (time, n as i64)))
}

/// Time of each free, and pages freed up to it.
fn pages_freed(rec: &Recording) -> Vec<(u64, i64)> {
    let ev = &rec.events;
    let mut all = vec![];
    for (k, table) in ev.tables.iter().enumerate() {
        if !matches!(&table.name[..], "mm_page_free" | "mm_page_free_direct") {
            continue;
        }
        let Some(orders) = table.column("order") else {
            continue;
        };
        let times = ev
            .time
            .iter()
            .zip(&ev.kind)
            .filter(|(_, kind)| usize::from(**kind) == k);
        let mut sum = 0;
        all.reserve(orders.len());
        for ((&time, _), &order) in times.zip(orders) {
            sum += 1i64 << order.min(20);
            all.push((time, sum));
        }
    }
    all
}
