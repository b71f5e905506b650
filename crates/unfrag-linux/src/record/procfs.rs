//! A snapshot of procfs, taken from this host.
//!
//! Invariant: each file has the times before and after its reading, of CLOCK_MONOTONIC. A file that cannot be
//! read is named with the reason.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};

use crate::content::{Content, copy};
use crate::kpageflags;
use crate::recording::{Snapshot, SnapshotFile};

/// Files of /proc taken each time.
const PROC: &[&str] = &[
    "buddyinfo",
    "pagetypeinfo",
    "zoneinfo",
    "vmstat",
    "meminfo",
    "slabinfo",
    "uptime",
];

/// Files of debugfs taken each time, where the kernel has them.
const DEBUG: &[&str] = &["extfrag_index", "unusable_index"];

/// What a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What changes from second to second.
    Counts,
    /// The counts, then the flags of every page frame.
    CountsThenFlags,
    /// Version, settings and the flags of every page frame, then the counts, so that these are as late as
    /// possible.
    FlagsThenCounts,
}

/// A file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untaken {
    /// Its name.
    pub file: String,
    /// The reason.
    pub why: String,
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Directories that a snapshot is taken from.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The root of /proc.
    pub proc: PathBuf,
    /// `extfrag` of debugfs.
    pub debug: PathBuf,
}

impl Default for Sources {
    fn default() -> Self {
        Sources {
            proc: "/proc".into(),
            debug: "/sys/kernel/debug/extfrag".into(),
        }
    }
}

impl Sources {
    /// Takes a snapshot.
    pub fn take(&self, name: &str, extent: Extent) -> (Snapshot, Vec<Untaken>) {
        let mut taking = Taking {
            files: vec![],
            untaken: vec![],
        };
        if extent == Extent::FlagsThenCounts {
            taking.file("version", &self.proc.join("version"));
            taking.settings(&self.proc.join("sys/vm"));
            taking.flags(&self.proc.join("kpageflags"));
        }
        for file in PROC {
            taking.file(file, &self.proc.join(file));
        }
        for file in DEBUG {
            taking.file(file, &self.debug.join(file));
        }
        if extent == Extent::CountsThenFlags {
            taking.flags(&self.proc.join("kpageflags"));
        }
        let snapshot = Snapshot {
            name: name.to_owned(),
            files: taking.files,
        };
        (snapshot, taking.untaken)
    }
}

/// A snapshot while it is being taken.
struct Taking {
    files: Vec<SnapshotFile>,
    untaken: Vec<Untaken>,
}

impl Taking {
    fn file(&mut self, name: &str, path: &Path) {
        let begin = monotonic();
        let read = File::open(path).and_then(|mut file| {
            let mut bytes = vec![];
            copy(&mut file, &mut bytes)?;
            Ok(bytes.into())
        });
        self.add(name, begin, read);
    }

    /// The flags of every page frame, compressed while they are read. Uncompressed they would take two
    /// thousandths of memory, and so change what they describe.
    fn flags(&mut self, path: &Path) {
        let begin = monotonic();
        let packed = File::open(path).and_then(Content::pack);
        self.add(kpageflags::NAME, begin, packed);
    }

    fn add(&mut self, name: &str, begin: u64, read: std::io::Result<Content>) {
        match read {
            Ok(content) => self.files.push(SnapshotFile {
                name: name.to_owned(),
                time: Some((begin, monotonic())),
                content,
            }),
            Err(e) => self.untaken.push(Untaken {
                file: name.to_owned(),
                why: why(&e),
            }),
        }
    }

    /// The settings below /proc/sys/vm as lines `PATH=VALUE`.
    fn settings(&mut self, dir: &Path) {
        let begin = monotonic();
        let mut names: Vec<_> = match std::fs::read_dir(dir) {
            Ok(items) => items.filter_map(|i| Some(i.ok()?.path())).collect(),
            Err(e) => {
                return self.untaken.push(Untaken {
                    file: "sysctl-vm".into(),
                    why: why(&e),
                });
            }
        };
        names.sort();
        let mut text = String::new();
        for path in names {
            // Some are for writing only.
            if let Ok(value) = std::fs::read_to_string(&path) {
                text += &format!("{}={}\n", path.display(), value.trim_end());
            }
        }
        self.files.push(SnapshotFile {
            name: "sysctl-vm".into(),
            time: Some((begin, monotonic())),
            content: text.into(),
        });
    }
}

fn why(e: &std::io::Error) -> String {
    match e.kind() {
        ErrorKind::PermissionDenied => "only root may read it".into(),
        ErrorKind::NotFound => "this kernel has none, or it is not mounted".into(),
        _ => e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_named_and_others_dated() {
        let sources = Sources {
            proc: "/proc".into(),
            debug: "/no such place".into(),
        };
        let before = monotonic();
        let (snapshot, untaken) = sources.take("now", Extent::Counts);
        let missing: Vec<_> = untaken.iter().map(|u| &u.file[..]).collect();
        assert!(missing.contains(&"extfrag_index"), "{missing:?}");
        let times: Vec<_> = snapshot.files.iter().map(|f| f.time.unwrap()).collect();
        assert!(times[0].0 >= before && times.iter().all(|(a, b)| a <= b));
        assert!(times.windows(2).all(|w| w[0].1 <= w[1].0));
        assert!(snapshot.file("buddyinfo").is_some_and(|b| !b.is_empty()));
    }

    #[test]
    fn settings_are_lines_with_their_paths() {
        let (snapshot, _) = Sources::default().take("begin", Extent::FlagsThenCounts);
        let text = String::from_utf8(snapshot.file("sysctl-vm").unwrap().to_vec()).unwrap();
        let line = text.lines().find(|l| l.contains("min_free_kbytes="));
        assert!(
            line.is_some_and(|l| l.starts_with("/proc/sys/vm/")),
            "{text}"
        );
    }
}
