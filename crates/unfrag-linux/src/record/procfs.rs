//! A snapshot of procfs, taken from this host.
//!
//! Invariant: each file has the times before and after its reading, of CLOCK_MONOTONIC. A file that cannot be
//! read is named with the reason.

use std::fmt::Write as _;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};

use crate::content::{Content, copy};
use crate::kpageflags;
use crate::recording::{Snapshot, SnapshotFile};
use crate::snapshots::settings::OF_MM;

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

/// Files of /proc taken where the flags of every page frame are: they are large, and tell what changes slowly.
const PROC_SELDOM: &[&str] = &["allocinfo"];

/// Files below /proc/sys/vm that do something when they are read, or hold no setting.
const NO_SETTINGS: &[&str] = &["compact_memory", "drop_caches", "stat_refresh"];

/// Files of debugfs taken each time, where the kernel has them.
const DEBUG: &[&str] = &["extfrag_index", "unusable_index"];

/// What a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What changes from second to second.
    Counts,
    /// The counts, then the flags of every page frame.
    CountsThenFlags,
    /// Version and the flags of every page frame, then the counts, so that these are as late as possible.
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
    /// /sys/kernel/mm.
    pub mm: PathBuf,
}

impl Default for Sources {
    fn default() -> Self {
        Sources {
            proc: "/proc".into(),
            debug: "/sys/kernel/debug/extfrag".into(),
            mm: "/sys/kernel/mm".into(),
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
            taking.flags(&self.proc.join("kpageflags"));
        }
        for file in PROC {
            taking.file(file, &self.proc.join(file));
        }
        if extent != Extent::Counts {
            for file in PROC_SELDOM {
                taking.if_there(file, &self.proc.join(file));
            }
        }
        for file in DEBUG {
            taking.file(file, &self.debug.join(file));
        }
        // Each time, since somebody may change them; last, so that they keep nothing else waiting.
        taking.sysctls(&self.proc.join("sys/vm"));
        taking.settings(&self.mm);
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

    /// A file that most kernels do not have.
    fn if_there(&mut self, name: &str, path: &Path) {
        if path.exists() {
            self.file(name, path);
        }
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
    fn sysctls(&mut self, dir: &Path) {
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
        let is_setting = |path: &&PathBuf| {
            let name = path.file_name().and_then(|n| n.to_str());
            name.is_some_and(|n| !NO_SETTINGS.contains(&n))
        };
        for path in names.iter().filter(is_setting) {
            // Some are for root alone.
            if let Ok(value) = std::fs::read_to_string(path) {
                let _ = writeln!(text, "{}={}", path.display(), value.trim_end());
            }
        }
        self.add("sysctl-vm", begin, Ok(text.into()));
    }

    /// The settings of huge pages and of the lists of pages below /sys/kernel/mm, as such lines; a kernel has some of
    /// them, or none.
    fn settings(&mut self, dir: &Path) {
        let begin = monotonic();
        let mut names: Vec<String> = OF_MM.iter().map(|&name| name.into()).collect();
        let huge = "transparent_hugepage";
        for item in std::fs::read_dir(dir.join(huge))
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = item.file_name().to_string_lossy().into_owned();
            if name.starts_with("hugepages-") {
                names.push(format!("{huge}/{name}/enabled"));
            }
        }
        names.sort();
        let mut text = String::new();
        for name in names {
            if let Ok(value) = std::fs::read_to_string(dir.join(&name)) {
                text += &format!("/sys/kernel/mm/{name}={}\n", value.trim_end());
            }
        }
        if !text.is_empty() {
            self.add("settings", begin, Ok(text.into()));
        }
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
            mm: "/no such place".into(),
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

    #[test]
    fn each_snapshot_has_the_settings_and_reads_nothing_that_acts() {
        let root = std::env::temp_dir().join(format!("unfrag-settings-{}", std::process::id()));
        let put = |name: &str, value: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, value).unwrap();
        };
        put("proc/sys/vm/swappiness", "60\n");
        put("proc/sys/vm/stat_refresh", "");
        put("proc/sys/vm/compact_memory", "0\n");
        put("mm/lru_gen/enabled", "0x0007\n");
        put(
            "mm/transparent_hugepage/enabled",
            "[always] madvise never\n",
        );
        put(
            "mm/transparent_hugepage/hugepages-64kB/enabled",
            "always [inherit] madvise never\n",
        );
        put("mm/transparent_hugepage/use_zero_page", "1\n");
        let sources = Sources {
            proc: root.join("proc"),
            debug: root.join("debug"),
            mm: root.join("mm"),
        };
        for extent in [
            Extent::Counts,
            Extent::CountsThenFlags,
            Extent::FlagsThenCounts,
        ] {
            let (snapshot, _) = sources.take("s0001", extent);
            let text = |name| String::from_utf8(snapshot.file(name).unwrap().to_vec()).unwrap();
            let sysctls = text("sysctl-vm");
            assert!(
                sysctls.ends_with("/proc/sys/vm/swappiness=60\n"),
                "{sysctls}"
            );
            assert_eq!(sysctls.lines().count(), 1, "{sysctls}");
            let mm = "/sys/kernel/mm";
            let settings = [
                format!("{mm}/lru_gen/enabled=0x0007\n"),
                format!("{mm}/transparent_hugepage/enabled=[always] madvise never\n"),
                format!(
                    "{mm}/transparent_hugepage/hugepages-64kB/enabled=always [inherit] madvise never\n"
                ),
            ];
            assert_eq!(text("settings"), settings.concat());
        }
        let none = Sources {
            mm: root.join("none"),
            ..sources
        };
        let (snapshot, _) = none.take("s0001", Extent::Counts);
        assert!(snapshot.file("settings").is_none(), "a kernel without them");
        let _ = std::fs::remove_dir_all(&root);
    }
}
