//! One offset between the clock of the trace and that of the snapshots.
//!
//! A snapshot's vmstat counts the pages freed since boot, and the trace shows each free, so the counter
//! says how far the clocks are apart. The offset is the median over the snapshots. There is one for a whole
//! recording, never one fitted to a snapshot.
//!
//! Where each file of a snapshot has a time of its own, that time dates it. The counter does not: some kernels
//! trace a few frees more than they count, which moves a date by seconds where frees are rare.
//!
//! Where one time stands for all files of a snapshot, buddyinfo was read some time before vmstat: on a
//! busy host tens of milliseconds, in which thousands of pages are allocated and freed. That lead, too, is
//! one for a whole recording: the one under which the trace best explains the difference of the free pages
//! of the two files.

use crate::error::{Error, Result};
use crate::host::Host;
use crate::input::Input;
use crate::input::running_sum::RunningSum;
use unfrag_linux::event::{At, Kind, Page, Role, Tracker, Unreadable};
use unfrag_linux::procfs::vmstat::VmStat;
use unfrag_linux::recording::{Recording, Snapshot};

/// Largest offset between the clocks, in nanoseconds.
const MAX_OFFSET_NS: u64 = 5_000_000_000;

/// A counter that did not change for longer than this does not date a snapshot, in nanoseconds.
const MAX_SPAN_NS: u64 = 30_000_000;

/// An offset below this is taken as none, in nanoseconds: where each file of a snapshot has its own time,
/// and where one time stands for all of them.
const SAME_CLOCK_NS: [i64; 2] = [100_000_000, 3_000_000];

/// Farthest that the counter may lead from the time of its snapshot, in nanoseconds.
const FARTHEST_NS: u64 = 500_000_000;

/// Snapshots from which the counter at the beginning of the trace is taken: so few that a kernel that counts less than
/// it traces is not off by then.
const NEAR_THE_BEGINNING: usize = 3;

/// Rounds in which offset and counter are brought together.
const ROUNDS: usize = 4;

/// Longest lead of buddyinfo before vmstat that is looked for, and its steps, in nanoseconds.
const LEADS: (u64, usize) = (300_000_000, 1_000_000);

/// The clock of a recording.
pub struct Clock {
    /// Nanoseconds to add to an event's time to get the time of the snapshots' clock.
    pub offset: i64,
    /// Nanoseconds by which buddyinfo was read before the time that its snapshot gives.
    lead: u64,
    /// Pages freed in the trace.
    freed: RunningSum,
    /// `pgfree` before the first of them.
    before: Option<i64>,
    /// Whether each file of a snapshot has a time of its own.
    fine: bool,
    /// `pgfree` before the first of them by each of the first snapshots within the trace: the least and the most.
    before_first: Vec<(i64, i64)>,
}

impl Clock {
    /// The clock of a recording, with the offset that its maker noted, if any.
    ///
    /// # Errors
    /// If its events or a snapshot's vmstat cannot be read.
    pub fn of<'r>(input: impl Into<Input<'r>>) -> Result<Clock> {
        let input = input.into();
        let rec = input.recording;
        let fine = is_finely_dated(rec);
        let (freed, net) = pages_freed(&input, !fine)?;
        let mut clock = Clock {
            offset: rec.meta.snapshot_offset_ns,
            lead: 0,
            freed,
            before: None,
            fine,
            before_first: vec![],
        };
        let mut seen = vec![];
        if is_whole(rec) {
            for s in &rec.snapshots {
                seen.extend(pgfree(s)?);
            }
        }
        for _ in 0..ROUNDS {
            clock.before = clock.constant(&seen)?;
            if rec.meta.snapshot_offset_ns != 0 || is_one_clock(rec) {
                break;
            }
            let mut apart = vec![];
            for &(time, n) in &seen {
                let Some((a, b)) = clock.span(n)? else {
                    continue;
                };
                let middle = a / 2 + b / 2;
                if middle.abs_diff(time) < MAX_OFFSET_NS && b - a < MAX_SPAN_NS {
                    apart.push(time as i64 - middle as i64);
                }
            }
            apart.sort_unstable();
            match apart.get(apart.len() / 2) {
                Some(&o) if apart.len() >= 3 => clock.offset = o,
                _ => break,
            }
        }
        // Where one time stands for all files, the counter alone tells when vmstat was read.
        if fine {
            clock.drop_offset_that_explains_nothing(&seen, rec.meta.snapshot_offset_ns)?;
        }
        if clock.offset.abs() < SAME_CLOCK_NS[usize::from(!fine)] {
            clock.offset = 0;
        }
        if fine {
            clock.before_first = clock.constants_at_first(rec)?;
        } else {
            clock.lead = clock.lead_of_buddyinfo(rec, &net)?;
        }
        Ok(clock)
    }

    /// When a snapshot's buddyinfo was read, in nanoseconds of the trace's clock.
    pub fn buddyinfo(&self, snap: &Snapshot) -> Option<u64> {
        let time = snap.time_of("buddyinfo")?;
        Some(
            time.saturating_add_signed(-self.offset)
                .saturating_sub(self.lead),
        )
    }

    /// The lead under which the trace best explains how far buddyinfo and vmstat are apart.
    fn lead_of_buddyinfo(&self, rec: &Recording, net: &RunningSum) -> Result<u64> {
        let leads: Vec<u64> = (0..=LEADS.0).step_by(LEADS.1).collect();
        let mut unexplained = vec![0u64; leads.len()];
        for s in &rec.snapshots {
            // The counter dates vmstat itself, where it can.
            let (Some((free, listed)), Some(time)) = (free_pages(s)?, self.date(s)?) else {
                continue;
            };
            let then = net.at(time)?;
            for (lead, sum) in leads.iter().zip(&mut unexplained) {
                let between = net.at(time.saturating_sub(*lead))? - then;
                *sum += between.abs_diff(listed - free);
            }
        }
        let best = leads.iter().zip(unexplained).min_by_key(|l| l.1);
        Ok(best.map_or(0, |(lead, _)| *lead))
    }

    /// Whether no page was freed unseen between a mark and the first event.
    ///
    /// # Errors
    /// If the mark's vmstat cannot be read.
    pub fn begins_at(&self, mark: &Snapshot) -> Result<bool> {
        let Some((_, n)) = pgfree(mark)? else {
            return Ok(false);
        };
        let near = self.before_first.iter();
        Ok(Some(n) == self.before
            || near
                .clone()
                .any(|&(least, most)| (least..=most).contains(&n)))
    }

    /// When a snapshot's vmstat was read, from and to, in nanoseconds of the trace's clock; `None` if that is not known
    /// to within what tens of milliseconds change, or if the trace shows only some of the tasks that change it.
    ///
    /// A file's own time says it. The counter of pages freed does where one time stands for all files of a snapshot,
    /// but not where it leads far from that time: a kernel that counts a few pages less than it traces moves it by
    /// seconds where frees are rare.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn dates(&self, snap: &Snapshot) -> Result<Option<(u64, u64)>> {
        let Some((time, n)) = pgfree(snap)? else {
            return Ok(None);
        };
        if self.fine {
            return Ok(self.before.and(self.read(snap, "vmstat")));
        }
        let time = time.saturating_add_signed(-self.offset);
        let is_near = |a: u64, b: u64| {
            (time.saturating_sub(FARTHEST_NS)..=time.saturating_add(FARTHEST_NS))
                .contains(&(a / 2 + b / 2))
        };
        let span = self.span(n)?;
        Ok(span.filter(|&(a, b)| b - a < MAX_SPAN_NS && is_near(a, b)))
    }

    /// When a file of a snapshot was read, from and to, in nanoseconds of the trace's clock.
    fn read(&self, snap: &Snapshot, name: &str) -> Option<(u64, u64)> {
        let file = snap.files.iter().find(|f| f.name == name)?;
        let of = |t: u64| t.saturating_add_signed(-self.offset);
        file.time.map(|(a, b)| (of(a), of(b)))
    }

    /// When a snapshot's zoneinfo was read, in nanoseconds of the trace's clock; where it has no time of its own, it was
    /// next to vmstat.
    ///
    /// # Errors
    /// As of [`dates`](Self::dates).
    pub fn date_of_zoneinfo(&self, snap: &Snapshot) -> Result<Option<u64>> {
        let own = self.read(snap, "zoneinfo").filter(|_| self.fine);
        let own = own.map(|(a, b)| a / 2 + b / 2);
        Ok(self.date(snap)?.map(|beside| own.unwrap_or(beside)))
    }

    /// The middle of [`dates`](Self::dates).
    ///
    /// # Errors
    /// As there.
    pub fn date(&self, snap: &Snapshot) -> Result<Option<u64>> {
        Ok(self.dates(snap)?.map(|(a, b)| a / 2 + b / 2))
    }

    /// `pgfree` before the first event by each of the first snapshots within the trace, whose own times say how much of
    /// the trace they have counted.
    fn constants_at_first(&self, rec: &Recording) -> Result<Vec<(i64, i64)>> {
        let Some((first, last)) = self.freed.span().filter(|_| self.before.is_some()) else {
            return Ok(vec![]);
        };
        let mut all = vec![];
        for s in &rec.snapshots {
            let (Some((_, n)), Some((from, to))) = (pgfree(s)?, self.read(s, "vmstat")) else {
                continue;
            };
            if from >= first && to <= last {
                all.push((n - self.freed.at(to)?, n - self.freed.at(from)?));
            }
            if all.len() == NEAR_THE_BEGINNING {
                break;
            }
        }
        Ok(all)
    }

    /// By how much the counter is ahead of the trace, under the present offset: the median over snapshots.
    fn constant(&self, seen: &[(u64, i64)]) -> Result<Option<i64>> {
        let ahead = self.ahead(seen)?;
        Ok(ahead.get(ahead.len() / 2).copied())
    }

    /// By how much the counter is ahead of the trace at each snapshot, ascending.
    fn ahead(&self, seen: &[(u64, i64)]) -> Result<Vec<i64>> {
        let Some((first, last)) = self.freed.span() else {
            return Ok(vec![]);
        };
        let mut all = vec![];
        for &(time, n) in seen {
            let time = time.saturating_add_signed(-self.offset);
            if (first..=last).contains(&time) {
                all.push(n - self.freed.at(time)?);
            }
        }
        all.sort_unstable();
        Ok(all)
    }

    /// Goes back to the offset that the maker noted, unless the one that was found brings counter and trace together:
    /// a counter that runs behind the trace leads to an offset under which they are as far apart as without it.
    fn drop_offset_that_explains_nothing(&mut self, seen: &[(u64, i64)], noted: i64) -> Result<()> {
        if self.offset == noted {
            return Ok(());
        }
        let found = self.misfit(seen)?;
        let clock = std::mem::replace(&mut self.offset, noted);
        if found < self.misfit(seen)? / 2 {
            self.offset = clock;
        }
        self.before = self.constant(seen)?;
        Ok(())
    }

    /// How far counter and trace are apart over all snapshots, in pages, under the present offset.
    fn misfit(&self, seen: &[(u64, i64)]) -> Result<u64> {
        let ahead = self.ahead(seen)?;
        let middle = ahead.get(ahead.len() / 2).copied().unwrap_or(0);
        Ok(ahead.iter().map(|n| n.abs_diff(middle)).sum())
    }

    /// From when to when the counter stood at `n`.
    fn span(&self, n: i64) -> Result<Option<(u64, u64)>> {
        match self.before {
            Some(before) => self.freed.times_at(n - before),
            None => Ok(None),
        }
    }
}

/// Pages freed; and those less the pages allocated, if that is wanted.
struct Sums {
    freed: RunningSum,
    net: RunningSum,
    with_net: bool,
}

impl Tracker for Sums {
    type Error = Error;

    fn takes(&self, kind: Kind) -> bool {
        kind == Kind::Free || self.with_net && kind == Kind::Alloc
    }

    #[inline]
    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<()> {
        let change = match page {
            Some(Page::Free(block)) => block.pages() as i64,
            Some(Page::Alloc(request)) => request.block().map_or(0, |b| -(b.pages() as i64)),
            _ => 0,
        };
        if change > 0 {
            self.freed.add(at.time, change)?;
        }
        if self.with_net && change != 0 {
            self.net.add(at.time, change)?;
        }
        Ok(())
    }

    /// What the walk over the causes refuses dates nothing meanwhile.
    fn unreadable(&mut self, _: &At, _: Kind, _: Unreadable) -> Result<()> {
        Ok(())
    }
}

fn pages_freed(input: &Input<'_>, with_net: bool) -> Result<(RunningSum, RunningSum)> {
    let sum = || RunningSum::new(&input.room);
    let (freed, net) = (sum(), sum());
    let mut sums = Sums {
        freed,
        net,
        with_net,
    };
    input.walk(0..=u64::MAX, &[], &mut sums)?;
    Ok((sums.freed.finish()?, sums.net.finish()?))
}

/// Free pages of a snapshot by vmstat, and by buddyinfo.
fn free_pages(snap: &Snapshot) -> Result<Option<(i64, i64)>> {
    let (Some(vmstat), Some(_)) = (snap.file("vmstat"), snap.file("buddyinfo")) else {
        return Ok(None);
    };
    let free = VmStat::parse(vmstat)?.get("nr_free_pages");
    let listed = Host::recorded(snap)?.listed();
    Ok(free.and_then(plausible).zip(listed.and_then(plausible)))
}

/// A count as a number with a sign. One that no host reaches tells nothing: sums with it would overflow.
pub(super) fn plausible(count: u64) -> Option<i64> {
    i64::try_from(count).ok().filter(|n| *n < 1 << 60)
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

/// Whether the trace shows all tasks. If it shows only some, the others change the counters of vmstat too,
/// and these date nothing. Where the recorder does not say, the trace shows all tasks if it has events of
/// the kernel's own threads.
fn is_whole(rec: &Recording) -> bool {
    match rec.meta.facts.get("scope") {
        Some(scope) => scope == "system",
        None => rec.tasks.iter().any(|t| Role::of(t).is_kernel()),
    }
}

/// Time of a snapshot's vmstat in the snapshots' clock, and its count of pages freed.
fn pgfree(snap: &Snapshot) -> Result<Option<(u64, i64)>> {
    let (Some(text), Some(time)) = (snap.file("vmstat"), snap.time_of("vmstat")) else {
        return Ok(None);
    };
    let n = VmStat::parse(text)?.get("pgfree").and_then(plausible);
    Ok(n.map(|n| (time, n)))
}
