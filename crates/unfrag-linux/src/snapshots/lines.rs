//! Which procfs file a line of pasted text belongs to, by what is in the line.
//!
//! Invariant: a line is claimed for a file only where its form shows it, whatever file the line before belongs to; prose
//! is claimed for none.

use super::file_names::KNOWN;
use super::line::{Line, is_number, prompt};
use super::settings;

/// Internal name of a table of the kernel's `slabinfo` tool.
pub(super) const SLAB_TOOL: &str = "slabinfo of the kernel's tools";
/// Internal name of the table of `slabtop`.
pub(super) const SLABTOP: &str = "slabtop";
/// Internal name of free lists as node_exporter gives them.
pub(super) const EXPORTED_LISTS: &str = "node_buddyinfo_blocks of node_exporter";
/// Internal name of amounts as node_exporter gives them.
pub(super) const EXPORTED_AMOUNTS: &str = "node_memory of node_exporter";
/// Internal name of counters as node_exporter gives them.
pub(super) const EXPORTED_COUNTERS: &str = "node_vmstat of node_exporter";
/// Internal name of the amounts of nodes, as sysfs gives them.
pub(super) const NODE_AMOUNTS: &str = "meminfo of nodes";
/// Internal name of the free lists as the debugger `crash` prints them.
pub(super) const CRASH: &str = "kmem -f of crash";

/// Orders that a kernel has at least.
const FEWEST_ORDERS: usize = 7;

/// What came before a line.
#[derive(Default)]
pub(super) struct Context {
    /// The file that the line before belongs to.
    pub current: Option<&'static str>,
    /// The file that a heading named.
    pub named: Option<&'static str>,
    /// Types of the table of pageblocks of which rows of pagetypeinfo are; `None` where they are free lists.
    pub block_types: Option<usize>,
    /// Whether zoneinfo has lost its indentation.
    pub flat: bool,
    /// Whether the last line of a zone of zoneinfo was read.
    pub zone_over: bool,
}

/// Says what `line` is.
pub(super) fn classify(line: &str, context: &Context) -> Line {
    data(line, context)
        .or_else(|| heading(line))
        .unwrap_or(Line::Other)
}

fn data(line: &str, context: &Context) -> Option<Line> {
    let text = line.trim();
    let indented = line.starts_with([' ', '\t']);
    if let Some((zone, rest)) = zone_row(text) {
        return Some(of_zone(zone, rest, context));
    }
    for start in [
        "Page block order:",
        "Pages per block:",
        "Free pages count per migrate",
        "Number of blocks type",
        "Number of mixed blocks",
    ] {
        if text.starts_with(start) {
            return Some(Line::Of("pagetypeinfo", None));
        }
    }
    if text.starts_with("slabinfo - version:") {
        return Some(Line::Of("slabinfo", Some(String::new())));
    }
    if text.starts_with("# name ") {
        return Some(Line::Of("slabinfo", None));
    }
    if text.contains(" : tunables ") && text.contains(" : slabdata ") {
        let name = text.split_ascii_whitespace().next().unwrap_or_default();
        return Some(Line::Of("slabinfo", Some(name.to_owned())));
    }
    if text.starts_with("Linux ")
        && let Some(release) = release(text, context.named == Some("version"))
    {
        return Some(Line::Release(release));
    }
    let words: Vec<&str> = text.split_ascii_whitespace().take(32).collect();
    if words.starts_with(&["Name", "Objects", "Objsize"]) {
        return Some(Line::Of(SLAB_TOOL, Some(String::new())));
    }
    if words.starts_with(&["ZONE", "NAME", "SIZE", "FREE"])
        || words.starts_with(&["AREA", "SIZE"])
        || (words == ["NODE"] && context.current != Some(CRASH))
    {
        return Some(Line::Of(CRASH, None));
    }
    if words.starts_with(&["OBJS", "ACTIVE", "USE"]) {
        return Some(Line::Of(SLABTOP, Some(String::new())));
    }
    if let Some(line) = exported(text).or_else(|| of_node(&words)) {
        return Some(line);
    }
    if let Some(line) = settings::of_line(text).or_else(|| sysctl(text)) {
        return Some(line);
    }
    // The last line of a zone is not followed by another one of it.
    let in_zone =
        (indented || context.flat) && (!context.zone_over || text.starts_with("inactive_ratio"));
    match (context.current, &words[..]) {
        (Some("zoneinfo"), _) if in_zone => {
            return Some(Line::Of("zoneinfo", None));
        }
        (Some(SLAB_TOOL), [_, _, _, _, slabs, ..]) if slabs.contains('/') => {
            return Some(Line::Of(SLAB_TOOL, None));
        }
        (Some(SLABTOP), [objects, active, used, ..])
            if is_number(objects) && is_number(active) && used.ends_with('%') =>
        {
            return Some(Line::Of(SLABTOP, None));
        }
        (Some(CRASH), [number, ..]) if is_number(number) => {
            return Some(Line::Of(CRASH, None));
        }
        _ => {}
    }
    match words[..] {
        [name, value] if is_number(value) && name.ends_with(':') => of_meminfo(name),
        [name, value, "kB"] if is_number(value) => of_meminfo(name),
        [name, value] if is_number(value) && is_counter(name, context) => {
            Some(Line::Of("vmstat", Some(name.to_owned())))
        }
        [up, idle] if context.named == Some("uptime") && is_decimal(up) && is_decimal(idle) => {
            Some(Line::Of("uptime", Some(String::new())))
        }
        [release] if context.named == Some("version") && is_release(release) => {
            Some(Line::Release(release.to_owned()))
        }
        _ => None,
    }
}

/// A metric of node_exporter.
fn exported(text: &str) -> Option<Line> {
    let (name, value) = text.rsplit_once(' ')?;
    value.parse::<f64>().ok()?;
    let kinds = [
        ("node_buddyinfo_blocks{", EXPORTED_LISTS),
        ("node_memory_", EXPORTED_AMOUNTS),
        ("node_vmstat_", EXPORTED_COUNTERS),
    ];
    let (_, kind) = kinds.iter().find(|(start, _)| name.starts_with(start))?;
    Some(Line::Of(kind, Some(name.to_owned())))
}

/// A line of a node's meminfo, `Node 0 MemTotal: 1030924 kB`, or of a table of free lists as drgn prints it,
/// `Node 0 DMA32 6 5 7 …`.
fn of_node(words: &[&str]) -> Option<Line> {
    let ["Node", node, rest @ ..] = words else {
        return None;
    };
    if !is_number(node) {
        return None;
    }
    match rest {
        [name, value] | [name, value, "kB"] if name.ends_with(':') && is_number(value) => {
            Some(Line::Of(NODE_AMOUNTS, Some(format!("{node} {name}"))))
        }
        [zone, counts @ ..]
            if counts.len() >= FEWEST_ORDERS
                && zone.starts_with(|c: char| c.is_ascii_uppercase())
                && counts.iter().all(|n| is_number(n)) =>
        {
            let row = format!("Node {node}, zone {zone:>8} {} ", counts.join(" "));
            Some(Line::As("buddyinfo", Some(format!("{node}{zone}")), row))
        }
        _ => None,
    }
}

fn of_meminfo(name: &str) -> Option<Line> {
    let name = name.strip_suffix(':')?;
    let starts = name.starts_with(|c: char| c.is_ascii_uppercase());
    let fits = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"_()".contains(&b));
    (starts && fits).then(|| Line::Of("meminfo", Some(name.to_owned())))
}

/// `Node N, zone NAME` at the start: node and zone as they stand, and what follows.
fn zone_row(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("Node")?.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let after = rest[digits..].trim_start().strip_prefix(',')?.trim_start();
    let after = after.strip_prefix("zone")?.trim_start();
    let end = after.find([',', ' ', '\t']).unwrap_or(after.len());
    if digits == 0 || end == 0 {
        return None;
    }
    let zone_end = text.len() - after.len() + end;
    Some((&text[..zone_end], after[end..].trim()))
}

fn of_zone(zone: &str, rest: &str, context: &Context) -> Line {
    let key = Some(zone.split_ascii_whitespace().collect::<String>());
    // Free lists have more orders than there are types.
    let numbers = rest.split_ascii_whitespace().count();
    let of_blocks = context.current == Some("pagetypeinfo")
        && context.block_types.is_some_and(|types| numbers <= types);
    let first = rest.split_ascii_whitespace().next().unwrap_or("");
    if rest.is_empty() {
        Line::Of("zoneinfo", key)
    } else if rest.starts_with(',') {
        let migratetype = rest.split_ascii_whitespace().nth(2).unwrap_or("");
        Line::Of("pagetypeinfo", key.map(|zone| zone + "/" + migratetype))
    } else if first.contains('.') {
        let file = match (context.named, context.current) {
            (Some(file @ ("extfrag_index" | "unusable_index")), _)
            | (_, Some(file @ ("extfrag_index" | "unusable_index"))) => file,
            _ if is_unusable(rest) => "unusable_index",
            _ => "extfrag_index",
        };
        Line::Of(file, key)
    } else if !first.starts_with(|c: char| c.is_ascii_digit()) {
        Line::Other
    } else if of_blocks || context.named == Some("pagetypeinfo") {
        Line::Of("pagetypeinfo", None)
    } else {
        Line::Of("buddyinfo", key)
    }
}

/// Whether the values begin at 0 and never fall, as those of `unusable_index`.
fn is_unusable(values: &str) -> bool {
    let values: Vec<f64> = values
        .split_ascii_whitespace()
        .map_while(|v| v.parse().ok())
        .collect();
    values.first() == Some(&0.0) && values.is_sorted()
}

/// A sysctl, as `sysctl -a` or `grep . /proc/sys/vm/*` print it. Those beside `vm` have no key.
fn sysctl(text: &str) -> Option<Line> {
    let (name, value) = text.split_once(['=', ':'])?;
    let name = name.trim();
    if name == "kernel.osrelease" && is_release(value.trim()) {
        return Some(Line::Release(value.trim().to_owned()));
    }
    let is_name = |n: &str| n.bytes().all(|b| b.is_ascii_graphic()) && !n.is_empty();
    let of_vm = name
        .strip_prefix("vm.")
        .or(name.strip_prefix("/proc/sys/vm/"));
    if of_vm.is_some_and(is_name) {
        return Some(Line::Of("sysctl-vm", None));
    }
    let others = [
        "kernel.", "net.", "fs.", "dev.", "debug.", "abi.", "user.", "crypto.", "sunrpc.",
    ];
    let other = text.contains(" = ") && others.iter().any(|o| name.starts_with(o)) && is_name(name);
    other.then(|| Line::Heading(vec![]))
}

/// The release in the text of `/proc/version` or of `uname -a`.
fn release(text: &str, named: bool) -> Option<String> {
    let words: Vec<&str> = text.split_ascii_whitespace().take(4).collect();
    let found = match words[..] {
        ["Linux", "version", release, ..] => release,
        ["Linux", _, release, ..] if named || text.contains(" #") => release,
        _ => return None,
    };
    is_release(found).then(|| found.to_owned())
}

fn is_release(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.contains('.')
        && word.bytes().all(|b| b.is_ascii_graphic())
}

fn is_decimal(word: &str) -> bool {
    word.split_once('.')
        .is_some_and(|(a, b)| is_number(a) && is_number(b))
}

fn is_counter(name: &str, context: &Context) -> bool {
    const STARTS: [&str; 12] = [
        "nr_",
        "pgpg",
        "pgfault",
        "pgalloc",
        "pgfree",
        "pgmigrate",
        "numa_",
        "compact_",
        "thp_",
        "allocstall",
        "workingset_",
        "pgscan",
    ];
    let fits = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let inside = context.current == Some("vmstat") || context.named == Some("vmstat");
    fits && (inside || STARTS.iter().any(|s| name.starts_with(s)))
}

/// A heading or prompt, with the files that it names.
fn heading(line: &str) -> Option<Line> {
    let text = line.trim();
    if text.starts_with("```") || text.starts_with("~~~") {
        return Some(Line::Heading(vec![]));
    }
    let separators = |c: char| c.is_whitespace() || "()<>\"'`;,|&[]*".contains(c);
    let named = |word: &str| {
        let word = word.trim_end_matches([':', '.']);
        let (directory, name) = word.rsplit_once('/').unwrap_or(("", word));
        let inside = ["/proc", "proc", "/extfrag", "extfrag"]
            .iter()
            .any(|d| directory.ends_with(d));
        KNOWN.iter().copied().find(|k| *k == name && inside)
    };
    let mut files: Vec<&'static str> = text.split(separators).filter_map(named).collect();
    let refused = ["ermission denied", "o such file", "not permitted"];
    if let [file] = files[..]
        && refused.iter().any(|r| text.contains(r))
    {
        return Some(Line::Refused(file));
    }
    // A heading of nothing but the name, such as `## buddyinfo` or `zoneinfo:`.
    let bare = text.trim_matches(|c: char| c.is_whitespace() || "#*=-:_`".contains(c));
    let bare = bare.strip_suffix(".txt").unwrap_or(bare);
    files.extend(KNOWN.iter().copied().filter(|k| *k == bare));
    let command = prompt(text).unwrap_or(text);
    if command.starts_with("uname") || bare == "uname" {
        files.push("version");
    }
    if command.starts_with("sysctl ") {
        files.push("sysctl-vm");
    }
    let is_heading = !files.is_empty()
        || prompt(text).is_some()
        || text.starts_with("Every ")
        || text.starts_with("------");
    is_heading.then_some(Line::Heading(files))
}
