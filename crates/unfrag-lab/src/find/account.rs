//! Looks at memory: of this host, of a copy of it, or of moments of a recording.
//!
//! Invariant: of several snapshots the last one with page flags is taken, unless one is named; without any flags, the last that
//! tells uses.

use super::evidence::{is_own, is_procfs};
use super::host_files::{FlagsPace, HostFiles};
use super::snapshots::{self, named};
use crate::account::growth::{Answer, answer};
use crate::account::look::Look;
use crate::error::{Error as LabError, Result};
use crate::host::files::and_not_read;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use unfrag_linux::kpageflags;
use unfrag_linux::recording::Snapshot;
use unfrag_linux::segments::{Covered, Window};

/// Files of which each tells what memory is used for.
const TELLING: [&str; 3] = ["zoneinfo", "meminfo", "vmstat"];

/// A look, and what the window of its input is.
pub struct Looked {
    /// The look.
    pub look: Look,
    /// What the window is, where one was chosen.
    pub covered: Option<Covered>,
}

/// What is asked: one look, or what grew between two.
pub struct Asked<'a> {
    /// The input.
    pub path: &'a Path,
    /// A later look at the same host.
    pub later: Option<&'a Path>,
    /// Names of snapshots: the one that is meant, or the earlier and the later one.
    pub snapshots: &'a [String],
    /// This host is looked at again after so many seconds.
    pub every: Option<f64>,
    /// The part of the input.
    pub window: Window,
    /// Bytes in a page, where no file tells it.
    pub page_size: Option<u64>,
}

/// Where the memory is and, of two looks, what grew.
///
/// # Errors
/// As [`look`] and [`two_looks`]; if more than two looks are named, or standard input twice, or the two are not of one host.
pub fn accounted(asked: &Asked) -> Result<(Answer, Option<Covered>)> {
    let Asked {
        path,
        later,
        snapshots: named,
        ref window,
        page_size,
        ..
    } = *asked;
    if let Some(seconds) = asked.every {
        let (before, after) = two_looks(path, seconds, page_size)?;
        return Ok((answer(Some(&before), &after)?, None));
    }
    let name = |at: usize| named.get(at).map(String::as_str);
    let other = match (later, named) {
        (_, [_, _, _, ..]) => {
            return Err(LabError::question("more than two snapshots are named")
                .help("name one to see it, or two to see what grew"));
        }
        (Some(later), _) if snapshots::is_stdin(later) && snapshots::is_stdin(path) => {
            return Err(LabError::question("standard input is given twice")
                .help("give a file for one of the two"));
        }
        (Some(later), _) => Some((later, name(1))),
        (None, [_, _]) if snapshots::is_stdin(path) => {
            return Err(
                LabError::question("two snapshots of standard input cannot be read")
                    .help("write it to a file, and give that"),
            );
        }
        (None, [_, second]) => Some((path, Some(second.as_str()))),
        (None, _) => None,
    };
    let first = look(path, name(0), window, page_size)?;
    let Some((later, name)) = other else {
        return Ok((answer(None, &first.look)?, first.covered));
    };
    let second = look(later, name, window, page_size)?;
    Ok((answer(Some(&first.look), &second.look)?, second.covered))
}

/// Looks at an input: as it is now, or at the snapshot of this name.
///
/// # Errors
/// If it cannot be read, or tells nothing of what memory is used for.
pub fn look(
    path: &Path,
    name: Option<&str>,
    window: &Window,
    page_size: Option<u64>,
) -> Result<Looked> {
    let source = snapshots::name(path);
    if is_own(path) && !window.is_all() {
        return Err(LabError::no_window());
    }
    if is_own(path) && name.is_some() {
        return Err(LabError::question(
            "this host has no snapshots, and one is named (--snapshot)",
        )
        .help("give a recording or a snapshot file; or leave --snapshot out to see this host"));
    }
    let is_proc = !snapshots::is_stdin(path) && path.is_dir() && is_procfs(path);
    if name.is_none() && window.is_all() && is_proc {
        return Ok(Looked {
            look: telling(of_procfs(path, &source, page_size), &source)?,
            covered: None,
        });
    }
    let held = snapshots::snapshots(path, window)?;
    let snapshot = match name {
        Some(name) => named(&held.snapshots, name, &source)?,
        None => last(&held.snapshots).ok_or_else(|| {
            let help = format!(
                "give /proc, a copy of it with zoneinfo and kpageflags, or an .unfrag file{}",
                and_not_read(&held.not_read)
            );
            LabError::lacking("no snapshot in it tells what memory is used for")
                .help(help)
                .in_file(source.as_ref())
        })?,
    };
    let place = match held.snapshots.len() {
        1 => source.clone(),
        _ => format!("{source}, snapshot {}", snapshot.name),
    };
    let mut look = Look::of_snapshot(&place, snapshot, page_size);
    held.snapshots.iter().for_each(|s| look.host.learn(s));
    look.unread.extend(held.not_read);
    Ok(Looked {
        look: telling(look, &source)?,
        covered: held.covered,
    })
}

/// Looks at this host twice, so many seconds apart.
///
/// # Errors
/// If it is not this host, or as [`look`].
pub fn two_looks(path: &Path, seconds: f64, page_size: Option<u64>) -> Result<(Look, Look)> {
    if !is_own(path) {
        return Err(LabError::question(
            "a host is looked at again as time goes by, and this is a copy",
        )
        .help("give two inputs, or two snapshots of one"));
    }
    let begin = Instant::now();
    let all = Window::default();
    let mut before = look(path, None, &all, page_size)?.look;
    let since = begin.elapsed();
    thread::sleep(Duration::from_secs_f64(seconds).saturating_sub(since));
    let second = begin.elapsed();
    let mut after = look(path, None, &all, page_size)?.look;
    before.source = "the first look".to_owned();
    before.time = Some(0);
    after.time = Some(u64::try_from(second.as_nanos()).unwrap_or(u64::MAX));
    Ok((before, after))
}

fn of_procfs(path: &Path, source: &str, page_size: Option<u64>) -> Look {
    let is_own = is_own(path);
    let files = HostFiles {
        proc: path,
        is_own,
        flags: FlagsPace::AtOnce,
    };
    match is_own {
        true => Look::live(source, &files, page_size),
        false => Look::copy(source, &files, page_size),
    }
}

fn telling(look: Look, source: &str) -> Result<Look> {
    if look.tells() {
        return Ok(look);
    }
    let help = format!(
        "zoneinfo and kpageflags tell it, or meminfo{}",
        and_not_read(&look.unread)
    );
    Err(
        LabError::lacking("it does not tell what memory is used for")
            .help(help)
            .in_file(source.as_ref()),
    )
}

/// The last snapshot with page flags, or else the last that tells something.
fn last(all: &[Snapshot]) -> Option<&Snapshot> {
    let has = |s: &Snapshot, file: &str| s.content(file).is_some();
    let with_flags = |s: &&Snapshot| has(s, kpageflags::NAME) && has(s, "zoneinfo");
    all.iter()
        .rfind(with_flags)
        .or_else(|| all.iter().rfind(|s| TELLING.iter().any(|f| has(s, f))))
}
