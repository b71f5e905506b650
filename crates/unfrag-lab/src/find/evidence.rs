//! What is to be examined: a host, a copy of one, or a moment of a recording.

use super::host_files::{FlagsPace, HostFiles};
use super::snapshots::{self, is_stdin, named};
use crate::doctor::Evidence;
use crate::error::Result;
use crate::host::files::and_not_read;
use std::path::Path;
use std::time::Duration;
use std::{fs, thread};
use unfrag_linux::Error;
use unfrag_linux::procfs::{SlabInfo, VmStat};
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
    let source = snapshots::name(path);
    if is_own(path) && !what.window.is_all() {
        return Err(crate::error::Error::no_window());
    }
    if !is_stdin(path) {
        let meta = fs::metadata(path).map_err(|e| Error::from(e).in_file(path))?;
        if meta.is_dir() && what.snapshot.is_none() && what.window.is_all() && is_procfs(path) {
            return Ok((live(path, &source, what.seconds)?, None));
        }
    }
    let (held, at) = chosen(path, what)?;
    let snapshots::Held {
        snapshots: all,
        recording,
        not_read,
        covered,
    } = held;
    let place = match all.len() {
        1 => source.clone(),
        _ => format!("{source}, snapshot {}", all[at].name),
    };
    let mut evidence =
        Evidence::of_snapshot(&place, &all[at]).map_err(|e| e.inside(source.as_ref()))?;
    complete(&mut evidence, &all, at, recording.as_ref());
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
pub(crate) fn is_own(path: &Path) -> bool {
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

/// Reads procfs, or a copy of it; of this host's own, the counters twice.
fn live(path: &Path, source: &str, seconds: f64) -> Result<Evidence> {
    let is_own = is_own(path);
    let before = (is_own && seconds > 0.0)
        .then(|| {
            fs::read(path.join("vmstat"))
                .ok()
                .and_then(|t| VmStat::parse(&t).ok())
        })
        .flatten();
    let slabs = before
        .as_ref()
        .and_then(|_| SlabInfo::parse(&fs::read(path.join("slabinfo")).ok()?).ok());
    if before.is_some() {
        thread::sleep(Duration::from_secs_f64(seconds));
    }
    let files = HostFiles {
        proc: path,
        is_own,
        flags: FlagsPace::AtOnce,
    };
    let mut e = Evidence::read(source, files).map_err(|e| e.inside(path))?;
    if let Some(before) = before {
        e.since(before, seconds);
        e.earlier_slabs = slabs.map(|s| (s, seconds));
    }
    Ok(e)
}
