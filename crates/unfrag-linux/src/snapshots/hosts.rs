//! Trees of whole hosts, such as a sosreport or a must-gather: which of their files make the snapshot.
//!
//! A host's root is a directory with a `proc` in which files of procfs lie. Below it, only the files
//! that [`place`] names are taken: a sosreport holds many others of the same names. Outside of such a
//! root, beside a file of procfs or where there is none at all, the output of `uname -a` and `sysctl -a`
//! counts as `version` and `sysctl-vm`, and a file with a longer name, such as `buddyinfo.txt`, as what its
//! content shows.
//!
//! Invariant: for each host and file there is at most one entry; the first in the order of [`place`]'s
//! ranks is kept.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::Entry;
use super::foreign::nodes;
use super::skipped::Skipped;
use super::{KNOWN, index, logs, pasted};
use crate::procfs::uptime;

/// Files by which a `proc` of a host is known.
const OF_PROC: [&str; 6] = [
    "buddyinfo",
    "zoneinfo",
    "pagetypeinfo",
    "vmstat",
    "meminfo",
    "slabinfo",
];

/// Whether a file that is no file of procfs by its name may tell something of a host. `directory` is
/// its directory's path.
pub(super) fn is_wanted(directory: &[String], name: &str) -> bool {
    let below = |end: &[&str]| {
        directory.len() >= end.len() && directory[directory.len() - end.len()..] == *end
    };
    let write_only = ["drop_caches", "compact_memory", "stat_refresh"];
    alias(name).is_some()
        || (below(&["proc", "sys", "vm"]) && !write_only.contains(&name))
        || (below(&["mm", "transparent_hugepage"]) && ["enabled", "defrag"].contains(&name))
        || (node_of(directory).is_some() && name == "numastat")
        || is_of_sysfs(directory, name)
}

/// Files of a pool of huge pages.
const OF_POOLS: [&str; 4] = [
    "nr_hugepages",
    "free_hugepages",
    "resv_hugepages",
    "surplus_hugepages",
];

/// Other files below `/sys`, by the last two directories of each and its name.
const OF_SYSFS: [([&str; 2], &str); 3] = [
    (["mm", "lru_gen"], "enabled"),
    (["damon_reclaim", "parameters"], "enabled"),
    (["mm", "ksm"], "run"),
];

/// Whether a file is one of sysfs that keeps its path in a snapshot: of a pool of huge pages, of the host or of a node, or one
/// of [`OF_SYSFS`].
fn is_of_sysfs(directory: &[String], name: &str) -> bool {
    let Some((last, above)) = directory.split_last() else {
        return false;
    };
    let parent = above.last().map_or("", String::as_str);
    let is_pool =
        parent == "hugepages" && last.starts_with("hugepages-") && OF_POOLS.contains(&name);
    is_pool || OF_SYSFS.contains(&([parent, last], name))
}

/// The node whose files of sysfs are in a directory, and the directory that stands for its host.
fn node_of(directory: &[String]) -> Option<(u32, &[String])> {
    let (last, above) = directory.split_last()?;
    let node = last.strip_prefix("node")?.parse().ok()?;
    let ends = [
        &["sys", "devices", "system", "node"][..],
        &["system", "node"],
        &["node"],
    ];
    let end = ends
        .iter()
        .find(|end| above.len() >= end.len() && above[above.len() - end.len()..] == ***end);
    let root = end.map_or(0, |end| end.len());
    Some((node, &above[..above.len() - root]))
}

/// Files of nodes become files of their hosts, where no file of the host's `proc` tells the same.
fn with_nodes(entries: Vec<Entry>) -> Vec<Entry> {
    let mut texts: BTreeMap<Vec<String>, (String, Option<u64>)> = BTreeMap::new();
    let mut others = vec![];
    for entry in entries {
        let place = node_of(&entry.directory).map(|(node, root)| (node, root.to_vec()));
        let is_file = ["meminfo", "vmstat", "numastat"].contains(&entry.name.as_str());
        let Some((node, root)) = place.filter(|_| is_file && !logs::is_log(entry.text())) else {
            others.push(entry);
            continue;
        };
        let (text, modified) = texts.entry(root).or_default();
        *modified = (*modified).max(entry.modified);
        for line in String::from_utf8_lossy(entry.text()).lines() {
            match nodes::counter(node, line) {
                Some((_, line)) => text.push_str(&line),
                None => text.push_str(line),
            }
            text.push('\n');
        }
    }
    for (root, (text, modified)) in texts {
        let below_root = |e: &Entry, name: &str| {
            let is_there = e.directory == root
                || e.directory.strip_prefix(&root[..]) == Some(&["proc".to_owned()]);
            is_there && e.name == name
        };
        for (name, text) in nodes::of_text(&text).unwrap_or_default() {
            if !others.iter().any(|e| below_root(e, &name)) {
                others.push(Entry {
                    directory: root.clone(),
                    name,
                    modified,
                    content: text.into_bytes().into(),
                });
            }
        }
    }
    others
}

/// The file of a snapshot that the output of a command, kept under `name`, stands for.
fn alias(name: &str) -> Option<&'static str> {
    match name {
        "uname" | "uname_-a" | "uname-a" => Some("version"),
        "sysctl" | "sysctl_-a" | "sysctl-a" => Some("sysctl-vm"),
        _ => None,
    }
}

/// The name in a snapshot of the file at `path` below a host's root, and its rank among files of the
/// same name.
fn place(path: &[&str]) -> Option<(String, u32)> {
    match *path {
        ["proc", name] if KNOWN.contains(&name) => Some((name.to_owned(), 0)),
        ["sys", "kernel", "debug", "extfrag", name] if KNOWN.contains(&name) => {
            Some((name.to_owned(), 1))
        }
        [
            "sys",
            "kernel",
            "mm",
            "transparent_hugepage",
            name @ ("enabled" | "defrag"),
        ] => Some((format!("thp/{name}"), 0)),
        ["sys", ref inner @ .., name] if is_of_sysfs_path(inner, name) => {
            Some((format!("sysfs/{}/{name}", inner.join("/")), 0))
        }
        ["sos_commands", "kernel", name] => alias(name).map(|file| (file.to_owned(), 2)),
        // Made of sysfs' files of the nodes.
        [name] if name.starts_with("node") && name.ends_with("/meminfo") => {
            Some((name.to_owned(), 0))
        }
        [name] if alias(name).is_some() => alias(name).map(|file| (file.to_owned(), 3)),
        [name] if KNOWN.contains(&name) && !["uptime", "version"].contains(&name) => {
            Some((name.to_owned(), 4))
        }
        ["proc", "sys", "vm", name] => Some((format!("sys/vm/{name}"), 0)),
        _ => None,
    }
}

/// As [`is_of_sysfs`], of a path below `/sys`.
fn is_of_sysfs_path(directory: &[&str], name: &str) -> bool {
    let directory: Vec<String> = directory.iter().map(|d| (*d).to_owned()).collect();
    is_of_sysfs(&directory, name)
}

/// Why a file with the longer name of another one is not read.
const NOT_ADOPTED: &str = "not the text of one moment of that file; give it by itself";

/// Puts the files of each host into its root, under their names in a snapshot. Of what may tell something and is not read,
/// the reason goes to `skipped`.
pub(super) fn arrange(entries: Vec<Entry>, skipped: &mut Vec<Skipped>) -> Vec<Entry> {
    let mut skip = |entry: &Entry, why: &str| {
        skipped.push(Skipped {
            file: entry.path().display().to_string(),
            why: why.to_owned(),
        });
    };
    let entries = with_nodes(entries);
    let mut roots = BTreeSet::new();
    for entry in &entries {
        if let Some((last, root)) = entry.directory.split_last()
            && last == "proc"
            && OF_PROC.contains(&entry.name.as_str())
        {
            roots.insert(root.to_vec());
        }
    }
    let mut arranged = vec![];
    let mut of_hosts: BTreeMap<(Vec<String>, String), (u32, Entry)> = BTreeMap::new();
    let mut others: Vec<Entry> = vec![];
    for mut entry in entries {
        let root = (0..=entry.directory.len())
            .rev()
            .map(|n| &entry.directory[..n])
            .find(|d| roots.contains(*d))
            .map(<[String]>::to_vec);
        let Some(root) = root.filter(|_| entry.name != index::NAME && !logs::is_log(entry.text()))
        else {
            others.push(entry);
            continue;
        };
        let mut path: Vec<&str> = entry.directory[root.len()..]
            .iter()
            .map(String::as_str)
            .collect();
        path.push(&entry.name);
        let Some((name, rank)) = place(&path) else {
            continue;
        };
        if name == "uptime" && uptime::parse(entry.text()).is_err() {
            skip(&entry, "not the text of /proc/uptime");
            continue;
        }
        if rank >= 2 && !adopt(&mut entry, &name) {
            skip(&entry, NOT_ADOPTED);
            continue;
        }
        entry.name = name.clone();
        entry.directory.clone_from(&root);
        let key = (root, name);
        if of_hosts.get(&key).is_none_or(|(other, _)| rank < *other) {
            of_hosts.insert(key, (rank, entry));
        }
    }
    let names: BTreeSet<(Vec<String>, String)> = others
        .iter()
        .map(|e| (e.directory.clone(), e.name.clone()))
        .collect();
    let is_known = |name: &str| KNOWN.contains(&name);
    let directories: BTreeSet<Vec<String>> = names
        .iter()
        .filter(|(_, name)| is_known(name))
        .map(|(directory, _)| directory.clone())
        .collect();
    // Beside dated copies, a file of another name is a note on them, not a copy.
    let nothing_else = of_hosts.is_empty()
        && !others
            .iter()
            .any(|e| is_known(&e.name) || logs::is_log(e.text()));
    let mut taken = BTreeSet::new();
    for mut entry in others {
        // A name with a directory is one that was given here, such as `node0/meminfo`.
        let is_file =
            is_known(&entry.name) || entry.name == index::NAME || entry.name.contains('/');
        if !is_file && !logs::is_log(entry.text()) {
            if !nothing_else && !directories.contains(&entry.directory) {
                continue;
            }
            let Some(file) = alias(&entry.name).or(logs::file_of(&entry.name)) else {
                continue;
            };
            let key = (entry.directory.clone(), file.to_owned());
            if names.contains(&key) || taken.contains(&key) {
                let why = format!("{file} is there from another file; give each by itself");
                skip(&entry, &why);
                continue;
            }
            if !adopt(&mut entry, file) {
                skip(&entry, NOT_ADOPTED);
                continue;
            }
            taken.insert(key);
            file.clone_into(&mut entry.name);
        }
        arranged.push(entry);
    }
    arranged.extend(of_hosts.into_values().map(|(_, entry)| entry));
    arranged
}

/// Reads an entry as pasted text that holds `file` once; leaves the file's content in it.
fn adopt(entry: &mut Entry, file: &str) -> bool {
    let Ok(snapshots) = pasted::split(entry.text()) else {
        return false;
    };
    let [snapshot] = &snapshots[..] else {
        return false;
    };
    let content = snapshot.file(file).map(<[u8]>::to_vec);
    content
        .map(|content| entry.content = content.into())
        .is_some()
}
