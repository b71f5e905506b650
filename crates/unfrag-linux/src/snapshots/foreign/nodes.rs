//! Files of the nodes in sysfs (`/sys/devices/system/node/node0/meminfo`, `vmstat`, `numastat`), as files of their host.
//!
//! Invariant: amounts and counters are sums over the nodes that were given, and only of what every one of them tells.
//! What each node tells is kept beside them, as `nodeN/meminfo`.

use super::kinds::{NODES, Named};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Counters of `numastat`, and their names in vmstat.
const NUMASTAT: [(&str, &str); 3] = [
    ("interleave_hit", "numa_interleave"),
    ("local_node", "numa_local"),
    ("other_node", "numa_other"),
];

/// What was read of one node, in the order of its lines.
#[derive(Default)]
struct Node {
    meminfo: Vec<(String, u64, bool)>,
    counters: Vec<(String, u64)>,
}

/// The kind of a line `Node 0 MemTotal: 5 kB`, and its key.
pub(super) fn claim(text: &str) -> Option<(&'static str, Option<String>)> {
    let (node, name, _) = amount(text)?;
    Some((NODES, Some(format!("{node}/{name}"))))
}

/// A counter of a node in the form in which [`of_text`] takes it.
pub(in crate::snapshots) fn counter(node: u32, line: &str) -> Option<(String, String)> {
    let mut words = line.split_ascii_whitespace();
    let (name, value) = (words.next()?, words.next()?);
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let is_counter =
        name.bytes().all(fits) && value.parse::<u64>().is_ok() && words.next().is_none();
    is_counter.then(|| {
        (
            format!("{node}/{name}"),
            format!("Node {node} {name} {value}"),
        )
    })
}

fn amount(text: &str) -> Option<(u32, &str, (u64, bool))> {
    let words: Vec<&str> = text.split_ascii_whitespace().take(6).collect();
    match words[..] {
        ["Node", node, name, value] => Some((
            node.parse().ok()?,
            name.strip_suffix(':')?,
            (value.parse().ok()?, false),
        )),
        ["Node", node, name, value, "kB"] => Some((
            node.parse().ok()?,
            name.strip_suffix(':')?,
            (value.parse().ok()?, true),
        )),
        _ => None,
    }
}

/// The files of the host whose nodes' lines are given.
pub(in crate::snapshots) fn of_text(text: &str) -> Option<Vec<Named>> {
    let mut nodes: BTreeMap<u32, Node> = BTreeMap::new();
    for line in text.lines() {
        if let Some((node, name, (value, is_kib))) = amount(line) {
            let node = nodes.entry(node).or_default();
            node.meminfo.push((name.to_owned(), value, is_kib));
        } else if let ["Node", node, name, value] =
            line.split_ascii_whitespace().collect::<Vec<_>>()[..]
            && let (Ok(node), Ok(value)) = (node.parse(), value.parse())
        {
            let node: &mut Node = nodes.entry(node).or_default();
            let of_numastat = NUMASTAT.iter().find(|(n, _)| *n == name);
            let name = of_numastat.map_or(name, |(_, of_vmstat)| *of_vmstat);
            // `vmstat` of newer kernels tells what `numastat` tells.
            if !node.counters.iter().any(|(n, _)| n == name) {
                node.counters.push((name.to_owned(), value));
            }
        }
    }
    let files = files(&nodes);
    (!files.is_empty()).then_some(files)
}

fn files(nodes: &BTreeMap<u32, Node>) -> Vec<Named> {
    let all: Vec<&Node> = nodes.values().collect();
    let mut files = vec![];
    let amounts = sums(&all, |n| {
        n.meminfo
            .iter()
            .map(|(name, value, _)| (name.as_str(), *value))
    });
    let is_kib = |name: &str| {
        all.iter()
            .flat_map(|n| &n.meminfo)
            .any(|(n, _, kib)| n == name && *kib)
    };
    let value = |name: &str| amounts.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
    let mut meminfo = String::new();
    for (name, value) in &amounts {
        line(&mut meminfo, name, *value, is_kib(name));
    }
    // The host's own file has this in place of `FilePages`, which counts what was swapped and is still cached too.
    if let (Some(file), Some(swap)) = (value("FilePages"), value("SwapCached")) {
        line(&mut meminfo, "Cached", file.saturating_sub(swap), true);
    }
    files.push(("meminfo".to_owned(), meminfo));
    let counters = sums(&all, |n| {
        n.counters
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
    });
    let mut vmstat = String::new();
    for (name, value) in counters {
        let _ = writeln!(vmstat, "{name} {value}");
    }
    files.push(("vmstat".to_owned(), vmstat));
    for (number, node) in nodes {
        let mut text = String::new();
        for (name, value, is_kib) in &node.meminfo {
            line(&mut text, name, *value, *is_kib);
        }
        files.push((format!("node{number}/meminfo"), text));
    }
    files.retain(|(_, text)| !text.is_empty());
    files
}

/// The sum of each number that all nodes tell.
fn sums<'a, I: Iterator<Item = (&'a str, u64)>>(
    nodes: &[&'a Node],
    of: impl Fn(&'a Node) -> I,
) -> Vec<(&'a str, u64)> {
    let telling: Vec<&Node> = nodes
        .iter()
        .copied()
        .filter(|n| of(n).next().is_some())
        .collect();
    let Some((first, others)) = telling.split_first() else {
        return vec![];
    };
    let sum = |(name, value): (&'a str, u64)| {
        let of_other = |n: &&'a Node| of(n).find(|(other, _)| *other == name).map(|(_, v)| v);
        let mut rest = others.iter().map(of_other);
        let total = rest.try_fold(value, |sum: u64, v| sum.checked_add(v?))?;
        Some((name, total))
    };
    of(first).filter_map(sum).collect()
}

fn line(out: &mut String, name: &str, value: u64, is_kib: bool) {
    let unit = if is_kib { " kB" } else { "" };
    let _ = writeln!(out, "{:<16}{value:>8}{unit}", format!("{name}:"));
}
