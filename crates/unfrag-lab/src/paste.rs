//! A host as a few lines of text that can be pasted anywhere, with what the doctor says of it at their head.
//!
//! Invariant: the doctor says the same of the text as of the files that it was made of, but for what page flags tell,
//! which do not fit into it.

use crate::doctor::{Diagnosis, Evidence, examine};
use crate::error::{Error, Result};
use crate::find::evidence::{Examine, chosen, evidence, is_live, is_own, of_chosen};
use crate::find::host_files::{FlagsPace, HostFiles};
use crate::find::snapshots::is_stdin;
use crate::host::files::Files;
use crate::host::settings::SYSCTLS;
use crate::report::number::{bytes, thousands};
use std::fmt::Write as _;
use std::path::Path;
use unfrag_linux::paste::{self, Earlier, Paste};
use unfrag_linux::recording::{Snapshot, SnapshotFile};

/// Files that are told.
const FILES: [&str; 8] = [
    "buddyinfo",
    "zoneinfo",
    "pagetypeinfo",
    "meminfo",
    "vmstat",
    "slabinfo",
    "uptime",
    "version",
];

/// What tells of a host beside its numbers, and may stand in another snapshot of it.
const OF_HOST: [&str; 4] = ["version", "sysctl-vm", "thp/enabled", "thp/defrag"];

/// The text to paste of what is examined.
///
/// # Errors
/// If there is nothing to examine, or it is not what a kernel writes.
pub fn of(path: &Path, what: &Examine) -> Result<Paste> {
    if is_stdin(path) {
        return Err(
            Error::question("the text to paste is made of a file, or of this host")
                .help("write the input to a file, and give that"),
        );
    }
    let (found, mut now) = match is_live(path, what)? {
        true => (evidence(path, what)?.0, live(path)),
        false => {
            let (held, at) = chosen(path, what)?;
            let mut now = held.snapshots[at].clone();
            for other in &held.snapshots {
                let of_host = |f: &&SnapshotFile| OF_HOST.contains(&f.name.as_str());
                for file in other.files.iter().filter(of_host) {
                    if now.content(&file.name).is_none() {
                        now.files.push(file.clone());
                    }
                }
            }
            (of_chosen(path, held, at)?.0, now)
        }
    };
    // What a recording says of its kernel, where no file does.
    if let Some(release) = &found.host.release {
        now.files.retain(|f| f.name != "version");
        let text = format!("Linux version {release}\n");
        now.files.push(file("version", text.into_bytes()));
    }
    let examined = examine(&found).map_err(|e| e.inside(path))?;
    let before = Earlier {
        vmstat: found.first(),
        slabs: found.earlier_slabs.as_ref().map(|(slabs, s)| (slabs, *s)),
    };
    let head = head(&examined.diagnosis, &found);
    let paste = paste::write(&head, &now, &before);
    match paste.tells {
        true => Ok(paste),
        false => Err(
            Error::lacking("none of its numbers can be put into a text to paste").help(
                "give files of procfs as the kernel writes them, such as a copy of /proc/buddyinfo",
            ),
        ),
    }
    .map_err(|e: Error| e.in_file(path))
}

fn file(name: &str, content: Vec<u8>) -> SnapshotFile {
    SnapshotFile {
        name: name.to_owned(),
        time: None,
        content: content.into(),
    }
}

/// The files of procfs, or of one copy of it.
fn live(path: &Path) -> Snapshot {
    let files = HostFiles {
        proc: path,
        is_own: is_own(path),
        flags: FlagsPace::Never,
    };
    let sysctls = SYSCTLS.iter().map(|name| format!("sys/vm/{name}"));
    let names = FILES.iter().chain(&OF_HOST).map(|n| (*n).to_owned());
    let mut names: Vec<String> = names.chain(sysctls).collect();
    names.sort();
    names.dedup();
    let read = |name: String| Some(file(&name, files.read(&name).ok()?));
    Snapshot {
        name: ".".to_owned(),
        files: names.into_iter().filter_map(read).collect(),
    }
}

/// What it is about and how it stands, for people.
fn head(d: &Diagnosis, e: &Evidence) -> String {
    let mut out = "Memory of a Linux host".to_owned();
    let total = || Some(bytes(e.host.meminfo_bytes("MemTotal")?));
    if let Some(whole) = d.memory.whole().or_else(total) {
        let _ = write!(out, " of {whole}");
    }
    let free = d.memory.free();
    if let Some(free) = free.or_else(|| e.host.meminfo_bytes("MemFree")) {
        let _ = write!(out, ", {} free", bytes(free));
    }
    let f = &d.huge_pages;
    let ways = [
        (f.now, "at once"),
        (f.after_compaction, "after compaction"),
        (f.after_reclaim, "after dropping caches, too"),
    ];
    let known = ways
        .iter()
        .filter_map(|(n, way)| Some(format!("{} {way}", thousands((*n)?))));
    let huge: Vec<String> = known.collect();
    if !huge.is_empty() {
        let size = bytes(d.huge_page_bytes);
        let _ = write!(out, "; huge pages of {size}: {}", huge.join(", "));
    }
    out += ". It names nobody. Give all of this text to unfrag doctor, to read it.";
    out
}
