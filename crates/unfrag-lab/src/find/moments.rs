//! Moments to inspect: of procfs, a copy of it, or snapshots.

use super::evidence::{is_own, is_procfs};
use super::host_files::{FlagsPace, HostFiles};
use super::snapshots::{self, named};
use crate::error::{Error as LabError, Result};
use crate::host::{Unread, files::and_not_read};
use crate::inspect::{self, Inspection, Moment};
use std::path::Path;
use unfrag_linux::recording::Snapshot;
use unfrag_linux::segments::Window;

/// Files of which each alone tells something of free memory.
const TELLING: [&str; 5] = [
    "buddyinfo",
    "pagetypeinfo",
    "zoneinfo",
    "unusable_index",
    "extfrag_index",
];

/// Inspects an input: one moment of it if it has one, or is asked for one by name.
///
/// # Errors
/// If there is nothing to inspect, or it is not what a kernel writes.
pub fn moments(
    path: &Path,
    name: Option<&str>,
    page_size: Option<u64>,
    window: &Window,
) -> Result<Inspection> {
    let source = snapshots::name(path);
    if is_own(path) && !window.is_all() {
        return Err(LabError::no_window());
    }
    if name.is_none()
        && window.is_all()
        && is_procfs(path)
        && TELLING.iter().any(|f| path.join(f).is_file())
    {
        let files = HostFiles {
            proc: path,
            is_own: is_own(path),
            flags: FlagsPace::Never,
        };
        let moment = inspect::moment(&source, page_size, files)
            .map_err(|e| LabError::from(e).inside(path))?;
        return Ok(Inspection {
            source,
            snapshots: vec![moment],
            not_read: vec![],
            covered: None,
        });
    }
    let held = snapshots::snapshots(path, window)?;
    let covered = held.covered;
    let (mut found, not_read) = (held.snapshots, held.not_read);
    if let Some(name) = name {
        found = vec![named(&found, name, &source)?.clone()];
    }
    let snapshots = match found.as_slice() {
        [one] => {
            vec![
                of(one, page_size)
                    .map_err(|e| LabError::from(e).inside(&Path::new(&source).join(&one.name)))?,
            ]
        }
        several => several.iter().map(|s| or_unread(s, page_size)).collect(),
    };
    if snapshots.iter().all(|m| m.zones.is_empty()) {
        let seen: Vec<Unread> = snapshots
            .iter()
            .flat_map(|m| &m.unread)
            .filter(|u| !u.why.starts_with("not in the snapshot"))
            .chain(&not_read)
            .cloned()
            .collect();
        return Err(inspect::nothing_in_it(&and_not_read(&seen))
            .in_file(source.as_ref())
            .into());
    }
    Ok(Inspection {
        source,
        snapshots,
        not_read,
        covered,
    })
}

fn of(snapshot: &Snapshot, page_size: Option<u64>) -> unfrag_linux::Result<Moment> {
    inspect::of_snapshot(snapshot, page_size)
}

/// A moment; of a snapshot that cannot be read only why.
fn or_unread(snapshot: &Snapshot, page_size: Option<u64>) -> Moment {
    of(snapshot, page_size).unwrap_or_else(|mut e| {
        let file = e.file.take().map(|f| f.display().to_string());
        Moment {
            name: snapshot.name.clone(),
            unread: vec![Unread {
                file: file.unwrap_or_default(),
                why: e.to_string(),
            }],
            ..Moment::default()
        }
    })
}
