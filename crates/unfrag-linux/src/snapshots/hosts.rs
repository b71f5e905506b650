//! Trees of whole hosts, such as a sosreport or a must-gather: which of their files make the snapshot.
//!
//! A host's root is a directory with a `proc` in which files of procfs lie. Below it, only the files
//! that [`place`] names are taken: a sosreport holds many others of the same names. Outside of such a
//! root, beside a file of procfs or where there is none at all, the output of `uname -a` and `sysctl -a`
//! counts as `version` and `sysctl-vm`, and a file with a longer name, such as `buddyinfo.txt`, as what its
//! content shows.
//!
//! Of sysfs, the directories of nodes give meminfo and vmstat by node: their sums are those of the host, where it has none
//! of its own.
//!
//! Invariant: for each host and file there is at most one entry; the first in the order of [`place`]'s
//! ranks is kept.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::Entry;
use super::{KNOWN, foreign, index, logs, pasted};
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
        ["sos_commands", "kernel", name] => alias(name).map(|file| (file.to_owned(), 2)),
        [name] if alias(name).is_some() => alias(name).map(|file| (file.to_owned(), 3)),
        [name] if KNOWN.contains(&name) && !["uptime", "version"].contains(&name) => {
            Some((name.to_owned(), 4))
        }
        ["proc", "sys", "vm", name] => Some((format!("sys/vm/{name}"), 0)),
        _ => None,
    }
}

/// Puts the files of each host into its root, under their names in a snapshot.
pub(super) fn arrange(entries: Vec<Entry>) -> Vec<Entry> {
    let entries = with_nodes_summed(entries);
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
            continue;
        }
        if rank >= 2 && !adopt(&mut entry, &name) {
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
        let is_file = is_known(&entry.name) || entry.name == index::NAME;
        if !is_file && !logs::is_log(entry.text()) {
            if !nothing_else && !directories.contains(&entry.directory) {
                continue;
            }
            let Some(file) = alias(&entry.name).or(logs::file_of(&entry.name)) else {
                continue;
            };
            let key = (entry.directory.clone(), file.to_owned());
            if names.contains(&key) || taken.contains(&key) || !adopt(&mut entry, file) {
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

/// The directory of a host in whose tree this one is that of a node.
fn host_of_node(directory: &[String]) -> Option<Vec<String>> {
    let (last, above) = directory.split_last()?;
    let number = last.strip_prefix("node")?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let ends: [&[&str]; 3] = [
        &["sys", "devices", "system", "node"],
        &["system", "node"],
        &["node"],
    ];
    let end = ends
        .iter()
        .find(|end| above.len() >= end.len() && above[above.len() - end.len()..] == ***end);
    Some(above[..above.len() - end.map_or(0, |end| end.len())].to_vec())
}

/// Puts meminfo and vmstat of the host in the place of those of its nodes.
fn with_nodes_summed(entries: Vec<Entry>) -> Vec<Entry> {
    let mut of_nodes: BTreeMap<(Vec<String>, String), Vec<Entry>> = BTreeMap::new();
    let mut others = vec![];
    for entry in entries {
        let root = match &entry.name[..] {
            "meminfo" if entry.text().starts_with(b"Node ") => {
                Some(host_of_node(&entry.directory).unwrap_or_else(|| entry.directory.clone()))
            }
            "vmstat" => host_of_node(&entry.directory),
            _ => None,
        };
        match root {
            Some(root) => of_nodes
                .entry((root, entry.name.clone()))
                .or_default()
                .push(entry),
            None => others.push(entry),
        }
    }
    for ((directory, name), nodes) in of_nodes {
        let is_of_host = |e: &Entry| {
            let of_proc = e
                .directory
                .split_last()
                .is_some_and(|(last, root)| last == "proc" && root == directory);
            e.name == name && (e.directory == directory || of_proc)
        };
        if others.iter().any(is_of_host) {
            continue;
        }
        let texts: Vec<_> = nodes
            .iter()
            .map(|e| String::from_utf8_lossy(e.text()).into_owned())
            .collect();
        let sum = match &name[..] {
            "meminfo" => foreign::sum_of_nodes(&texts.join("\n")),
            _ => foreign::sum_of_counters(texts.iter().map(|t| &t[..])),
        };
        // What is no such file is left as it is, and said to be damaged.
        let (Some(sum), Some(first)) = (sum, nodes.first()) else {
            others.extend(nodes);
            continue;
        };
        others.push(Entry {
            directory,
            name,
            modified: first.modified,
            content: sum.into_bytes().into(),
        });
    }
    others
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
