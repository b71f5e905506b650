//! One offset between the clock of the trace and that of the snapshots.
//!
//! Free pages of a snapshot (its buddyinfo, and the per-CPU lists of its zoneinfo) and the pages that
//! the trace saw taken up to its time add up to a constant. The offset is the one under which they do
//! so best over all snapshots: one for a whole recording, never one fitted to a snapshot. Where a
//! snapshot has but one time for all of its files, the offset contains how long before it buddyinfo
//! was read.

use unfrag_linux::Result;
use unfrag_linux::procfs::buddyinfo::BuddyInfo;
use unfrag_linux::procfs::zoneinfo::ZoneInfo;
use unfrag_linux::recording::Recording;

/// Farthest that the clocks may be apart, in nanoseconds.
const FARTHEST: i64 = 3_000_000_000;

/// Steps of the search, in nanoseconds.
const STEPS: [i64; 4] = [50_000_000, 5_000_000, 1_000_000, 200_000];

/// Most pages that one snapshot counts for.
const MOST: i64 = 4000;

/// Below this the clocks are the same.
const SAME: i64 = 3_000_000;

/// Nanoseconds to add to an event's time to get the time of the snapshots' clock.
///
/// # Errors
/// If a snapshot's vmstat cannot be read.
pub fn offset(rec: &Recording) -> Result<i64> {
    let freed = net_freed(rec);
    let (Some(&(first, _)), Some(&(last, _))) = (freed.first(), freed.last()) else { return Ok(0) };
    let mut seen = vec![];
    for snap in &rec.snapshots {
        let (Some(buddy), Some(zones), Some(time)) =
            (snap.file("buddyinfo"), snap.file("zoneinfo"), snap.time_of("buddyinfo"))
        else {
            continue;
        };
        let free: u64 = BuddyInfo::parse(buddy)?.zones.iter().map(|z| z.free_pages()).sum();
        let info = ZoneInfo::parse(zones)?;
        let held = info.zones.iter().flat_map(|z| z.pagesets.iter().flatten());
        let held: u64 = held.filter_map(|p| p.fields.get("count")).sum();
        seen.push((time as i64, (free + held) as i64));
    }
    let at = |t: i64| {
        let i = freed.partition_point(|&(time, _)| (time as i64) <= t);
        i.checked_sub(1).map_or(0, |i| freed[i].1)
    };
    let score = |offset: i64| {
        let mut rest: Vec<i64> = seen
            .iter()
            .filter(|(t, _)| (first as i64..=last as i64).contains(&(t - offset)))
            .map(|(t, n)| n - at(t - offset))
            .collect();
        if rest.len() < 3 {
            return None;
        }
        rest.sort_unstable();
        let middle = rest[rest.len() / 2];
        // A snapshot taken in the middle of a burst must not decide alone.
        Some(rest.iter().map(|r| (r - middle).abs().min(MOST)).sum::<i64>())
    };
    let mut best = 0;
    let mut width = FARTHEST;
    for step in STEPS {
        let candidates = (-width / step..=width / step).map(|k| best + k * step);
        best = candidates
            .filter_map(|o| Some((score(o)?, o.abs(), o)))
            .min()
            .map_or(best, |(_, _, o)| o);
        width = step;
    }
    Ok(if best.abs() < SAME { 0 } else { best })
}

/// Time and pages freed less pages allocated, after each event.
fn net_freed(rec: &Recording) -> Vec<(u64, i64)> {
    let ev = &rec.events;
    let signs: Vec<Option<(i64, &[u64])>> = ev
        .tables
        .iter()
        .map(|t| {
            let sign = match &t.name[..] {
                "mm_page_alloc" => -1,
                "mm_page_free" | "mm_page_free_direct" => 1,
                _ => return None,
            };
            Some((sign, t.column("order")?))
        })
        .collect();
    let failed: Vec<Option<&[u64]>> = ev.tables.iter().map(|t| t.column("pfn")).collect();
    let mut rows = vec![0usize; ev.tables.len()];
    let mut all = Vec::with_capacity(ev.len());
    let mut sum = 0;
    for (&k, &time) in ev.kind.iter().zip(&ev.time) {
        let k = usize::from(k);
        let row = rows[k];
        rows[k] += 1;
        let Some((sign, orders)) = signs[k] else { continue };
        if failed[k].is_some_and(|pfn| pfn[row] == 0 || pfn[row] == u64::MAX) {
            continue;
        }
        sum += sign << orders[row].min(20);
        all.push((time, sum));
    }
    all
}
