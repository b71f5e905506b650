//! What is to be examined: a host, a copy of one, or a moment of a recording.

use super::host_files::{FlagsPace, HostFiles};
use super::snapshots::{self, is_stdin, named};
use crate::doctor::{Evidence, Reading};
use crate::error::Result;
use crate::host::files::{self, Files as _, and_not_read};
use crate::host::{OfSnapshot, Zone};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io, thread};
use unfrag_linux::Error;
use unfrag_linux::paste::is_of_several;
use unfrag_linux::procfs::{SlabInfo, VmStat, uptime};
use unfrag_linux::recording::{Recording, Snapshot};
use unfrag_linux::segments::Window;
use unfrag_linux::snapshots::KNOWN;

/// Which moment is examined.
#[derive(Clone, Copy, Debug, Default)]
pub struct Examine<'a> {
    /// Of several snapshots, this one instead of the last.
    pub snapshot: Option<&'a str>,
    /// Seconds between two readings of this host's counters; 0 for one reading.
    pub seconds: f64,
    /// The window of a recording, or of dated copies, of which the last moment is examined, and what changed in it.
    pub window: Window,
}

/// Reads what is to be examined; the recording as well, if it is one with events.
///
/// # Errors
/// If there is nothing to examine, or it is not what a kernel writes.
pub fn evidence(path: &Path, what: &Examine) -> Result<(Evidence, Option<Recording>)> {
    if is_live(path, what)? {
        return Ok((live(path, &snapshots::name(path), what.seconds)?, None));
    }
    let (held, at) = chosen(path, what)?;
    of_chosen(path, held, at)
}

/// Whether procfs is examined as it is now, or one copy of it.
///
/// # Errors
/// If there is no such path, or a window is asked of this host.
pub(crate) fn is_live(path: &Path, what: &Examine) -> Result<bool> {
    if is_own(path) && !what.window.is_all() {
        return Err(crate::error::Error::no_window());
    }
    if is_stdin(path) {
        return Ok(false);
    }
    let meta = fs::metadata(path).map_err(|e| Error::from(e).in_file(path))?;
    Ok(meta.is_dir() && what.snapshot.is_none() && what.window.is_all() && is_procfs(path))
}

/// The evidence of the chosen snapshot of an input; the recording as well, if it is one with events.
///
/// # Errors
/// If it is not what a kernel writes.
pub(crate) fn of_chosen(
    path: &Path,
    held: snapshots::Held,
    at: usize,
) -> Result<(Evidence, Option<Recording>)> {
    let source = snapshots::name(path);
    let snapshots::Held {
        snapshots: all,
        recording,
        not_read,
        covered,
        ..
    } = held;
    let place = match all.len() {
        1 if !is_of_several(&all[at]) => source.clone(),
        _ => format!("{source}, snapshot {}", all[at].name),
    };
    let mut evidence =
        Evidence::of_snapshot(&place, &all[at]).map_err(|e| e.inside(source.as_ref()))?;
    complete(&mut evidence, &all, at, recording.as_ref());
    evidence.readings = readings(&all[..=at], &evidence.host.zones);
    // Rates between two hosts, or over a boot, are none.
    let is_read = |seconds: f64| {
        let mut all = evidence.readings.iter();
        all.any(|r| (r.seconds_before - seconds).abs() < 0.001)
    };
    if evidence.earlier.as_ref().is_some_and(|(_, s)| !is_read(*s)) {
        evidence.earlier = None;
    }
    evidence.host.unread.extend(not_read);
    evidence.covered = covered;
    Ok((evidence, recording))
}

/// The snapshots of an input, and which of them is examined.
///
/// # Errors
/// As [`evidence`].
pub(crate) fn chosen(path: &Path, what: &Examine) -> Result<(snapshots::Held, usize)> {
    let source = snapshots::name(path);
    let held = snapshots::snapshots(path, &what.window)?;
    let all = &held.snapshots;
    let at = match what.snapshot {
        Some(name) => {
            let chosen = named(all, name, &source)?;
            all.iter().position(|s| std::ptr::eq(s, chosen))
        }
        None => last_telling(all),
    };
    let at = at.ok_or_else(|| {
        Error::malformed("no snapshot in it says anything of memory")
            .in_file(source.as_ref())
            .help(format!("give a directory with a copy of /proc, an archive of such, an .unfrag file, files of procfs in one text, or nothing at all for this host{}", and_not_read(&held.not_read)))
    })?;
    Ok((held, at))
}

/// What only other snapshots say: release and settings, and the counters' earlier reading.
fn complete(e: &mut Evidence, all: &[Snapshot], at: usize, recording: Option<&Recording>) {
    all.iter().for_each(|other| e.host.learn(other));
    if e.host.release.is_none() {
        e.host.release = recording
            .map(|r| r.meta.kernel_release.clone())
            .filter(|r| !r.is_empty());
    }
    let time = |s: &Snapshot| s.time_of("vmstat");
    let before = all[..at].iter().rev().find(|s| s.file("vmstat").is_some());
    if let Some(before) = before
        && let (Some(from), Some(to), Some(text)) =
            (time(before), time(&all[at]), before.file("vmstat"))
        && e.vmstat.is_some()
        // A bad earlier reading costs the rates alone.
        && let Ok(earlier) = VmStat::parse(text)
    {
        e.since(earlier, to.saturating_sub(from) as f64 / 1e9);
    }
    // Slabs grow over days: against the first reading there is.
    let slabs = |s: &Snapshot| {
        let info = SlabInfo::parse(s.file("slabinfo")?).ok()?;
        Some((s.time_of("slabinfo")?, info))
    };
    if let (Some((from, info)), Some((to, _))) = (all[..at].iter().find_map(slabs), slabs(&all[at]))
    {
        e.earlier_slabs = Some((info, to.saturating_sub(from) as f64 / 1e9));
    }
    let sites = |s: &Snapshot| {
        let info = files::allocinfo(s.file("allocinfo")?).ok()?;
        Some((s.time_of("allocinfo")?, info))
    };
    if let (Some((from, info)), Some((to, _))) = (all[..at].iter().find_map(sites), sites(&all[at]))
    {
        e.earlier_sites = Some((info, to.saturating_sub(from) as f64 / 1e9));
    }
}

/// Files of which each alone says something of memory.
const TELLING: [&str; 7] = [
    "buddyinfo",
    "zoneinfo",
    "pagetypeinfo",
    "meminfo",
    "vmstat",
    "unusable_index",
    "extfrag_index",
];

/// Files and settings that are worth an answer where nothing else is there.
const TELLING_LITTLE: [&str; 4] = ["slabinfo", "sysctl-vm", "thp/enabled", "thp/defrag"];

/// The last snapshot that says something of memory, or else of slab caches or settings.
fn last_telling(all: &[Snapshot]) -> Option<usize> {
    let last = |files: &[&str]| {
        let says = |s: &Snapshot| files.iter().any(|f| s.file(f).is_some());
        all.iter().rposition(says)
    };
    last(&TELLING).or_else(|| last(&TELLING_LITTLE))
}

/// Whether a path is this host, as it is now.
pub fn is_own(path: &Path) -> bool {
    path == Path::new("/proc")
}

/// Whether a directory is procfs, or one copy of it, in files of these names alone: others, such as `zoneinfo.gz`, are read
/// where snapshots are.
pub(crate) fn is_procfs(path: &Path) -> bool {
    let tells = |f: &&str| path.join(f).is_file();
    if !TELLING.iter().any(tells) {
        return false;
    }
    let is_other = |name: &str| {
        let of = |f: &&str| name.contains(*f) && name != *f;
        !KNOWN.contains(&name) && TELLING.iter().chain(&["slabinfo", "kpageflags"]).any(of)
    };
    let names = fs::read_dir(path).into_iter().flatten().flatten();
    path == Path::new("/proc")
        || !names
            .map(|e| e.file_name())
            .any(|n| n.to_str().is_some_and(is_other))
}

/// Readings of snapshots before the last one, oldest first: of many, the latest, and some of those before. Those of another
/// host or boot are left out, as far as sizes of zones and uptimes tell.
fn readings(all: &[Snapshot], zones: &[Zone]) -> Vec<Reading> {
    /// Latest snapshots that are read, and as many of those before.
    const MOST: usize = 30;
    /// Nanoseconds by which the time of a boot may differ from snapshot to snapshot: files have times of whole seconds, and
    /// clocks are set.
    const NEAR: i128 = 60_000_000_000;
    let Some((last, earlier)) = all.split_last() else {
        return vec![];
    };
    let time = |s: &Snapshot| s.time_of("vmstat").or_else(|| s.time_of("buddyinfo"));
    let Some(end) = time(last) else {
        return vec![];
    };
    let booted = |s: &Snapshot| {
        let up = uptime::parse(s.file("uptime")?).ok()?;
        Some(i128::from(time(s)?) - i128::from(up))
    };
    let is_one_boot = |s: &&Snapshot| match (booted(s), booted(last)) {
        (Some(a), Some(b)) => (a - b).abs() < NEAR,
        _ => true,
    };
    let sizes = |zones: &[Zone]| -> Vec<(u32, String, Option<u64>)> {
        let one = |z: &Zone| (z.node, z.name.clone(), z.told("spanned"));
        zones.iter().map(one).collect()
    };
    let is_one_host = |r: &Reading| r.zones.is_empty() || sizes(&r.zones) == sizes(zones);
    let told: Vec<(&Snapshot, f64)> = earlier
        .iter()
        .filter(is_one_boot)
        .filter_map(|s| Some((s, end.checked_sub(time(s)?)? as f64 / 1e9)))
        .filter(|(_, before)| *before > 0.0)
        .collect();
    let (before, latest) = told.split_at(told.len().saturating_sub(MOST));
    let n = before.len().min(MOST);
    let chosen = (0..n).map(|i| before[i * before.len() / n]);
    chosen
        .chain(latest.iter().copied())
        .filter_map(|(s, before)| Reading::read(before, OfSnapshot(s)))
        .filter(is_one_host)
        .collect()
}

/// Seconds between two readings of a host that is watched.
const EVERY: f64 = 10.0;
/// A shorter watch has two readings.
const SHORT: f64 = 30.0;

/// Reads procfs, or a copy of it; of this host's own, the counters twice, or every ten seconds of a longer watch.
fn live(path: &Path, source: &str, seconds: f64) -> Result<Evidence> {
    let is_own = is_own(path);
    let begin = Instant::now();
    let mut readings: Vec<(f64, Reading)> = vec![];
    let (mut slabs, mut sites) = (None, None);
    if is_own && seconds > 0.0 {
        let parse = |name: &str| fs::read(path.join(name)).ok();
        slabs = parse("slabinfo").and_then(|t| SlabInfo::parse(&t).ok());
        sites = parse("allocinfo").and_then(|t| files::allocinfo(&t).ok());
        let steps = match seconds < SHORT {
            true => 1,
            false => (seconds / EVERY).round() as u32,
        };
        for step in 1..=steps {
            let files = |name: &str| match name {
                // It holds the lock of each zone while it counts.
                "pagetypeinfo" => Err(io::ErrorKind::NotFound.into()),
                name => HostFiles {
                    proc: path,
                    is_own,
                    flags: FlagsPace::Never,
                }
                .read(name),
            };
            let at = begin.elapsed().as_secs_f64();
            readings.extend(Reading::read(0.0, files).map(|r| (at, r)));
            let next = seconds * f64::from(step) / f64::from(steps);
            thread::sleep(Duration::from_secs_f64(
                (next - begin.elapsed().as_secs_f64()).max(0.0),
            ));
        }
    }
    let files = HostFiles {
        proc: path,
        is_own,
        flags: FlagsPace::AtOnce,
    };
    let end = begin.elapsed().as_secs_f64();
    let mut e = Evidence::read(source, files).map_err(|e| e.inside(path))?;
    if let Some((at, first)) = readings.first()
        && let Some(before) = &first.vmstat
    {
        e.since(before.clone(), end - at);
        e.earlier_slabs = slabs.map(|s| (s, end - at));
        e.earlier_sites = sites.map(|s| (s, end - at));
    }
    e.readings = readings
        .into_iter()
        .map(|(at, reading)| Reading {
            seconds_before: end - at,
            ..reading
        })
        .collect();
    Ok(e)
}
