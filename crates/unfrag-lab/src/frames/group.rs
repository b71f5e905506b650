//! The processes of a cgroup, and of those below it.
//!
//! Invariant: a process counts once.

use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// File of a cgroup that lists its processes.
const PROCS: &str = "cgroup.procs";

/// Where cgroups are, of both versions; of the first, that of memory.
const ROOTS: [&str; 3] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/memory",
];

/// The directory of a cgroup by its path, or by its name below the root of all.
///
/// # Errors
/// If there is none.
pub fn find(name: &Path) -> Result<PathBuf> {
    let below = name.strip_prefix("/").unwrap_or(name);
    let all =
        std::iter::once(name.to_owned()).chain(ROOTS.iter().map(|r| Path::new(r).join(below)));
    let mut all = all.filter(|d| d.join(PROCS).is_file());
    all.next().ok_or_else(|| {
        Error::lacking("it is neither the number of a process nor a cgroup")
            .help("give a number as ps shows it, or a cgroup such as system.slice/ssh.service")
            .in_file(name)
    })
}

/// The processes in it.
///
/// # Errors
/// If it cannot be read, or has none.
pub fn processes(group: &Path) -> Result<Vec<u32>> {
    let mut found = BTreeSet::new();
    walk(group, &mut found).map_err(|e| unfrag_linux::Error::from(e).in_file(group))?;
    match found.is_empty() {
        true => Err(Error::lacking("no process is in this cgroup")
            .help("give one that has some: systemd-cgls shows them")
            .in_file(group)),
        false => Ok(found.into_iter().collect()),
    }
}

fn walk(group: &Path, found: &mut BTreeSet<u32>) -> std::io::Result<()> {
    // Threaded cgroups do not list processes: those of the one above are all of them.
    if let Ok(text) = fs::read_to_string(group.join(PROCS)) {
        // 0 is a process of another namespace.
        let all = text.lines().filter_map(|l| l.trim().parse::<u32>().ok());
        found.extend(all.filter(|pid| *pid != 0));
    }
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            // One that went away meanwhile has no processes.
            let _ = walk(&entry.path(), found);
        }
    }
    Ok(())
}
