//! Which procfs file a line of pasted text belongs to, by what is in the line.
//!
//! Invariant: a line is claimed for a file only where its form shows it; prose is claimed for none. What came before decides
//! only among the files whose form a line has.

use std::collections::BTreeSet;

use super::foreign;
use super::headings::heading;
use super::line::Line;
use super::settings;

/// What came before a line.
#[derive(Default)]
pub(super) struct Context {
    /// The file that the line before belongs to.
    pub current: Option<&'static str>,
    /// The file that a heading named.
    pub named: Option<&'static str>,
    /// Columns of the table of pageblocks that rows of pagetypeinfo are in; `None` where they are in none.
    pub blocks: Option<usize>,
    /// Whether zoneinfo has lost its indentation.
    pub flat: bool,
    /// The zone of zoneinfo that the line before belongs to.
    pub zone: ZoneSoFar,
}

/// What was seen of a zone of zoneinfo, to tell where it ends.
#[derive(Default)]
pub(super) struct ZoneSoFar {
    /// Names of its lines, but those of its per-CPU lists.
    names: BTreeSet<String>,
    /// Whether nothing but the next zone can follow.
    is_over: bool,
}

impl ZoneSoFar {
    /// Takes a line of the zone.
    pub fn add(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), value) = (words.next(), words.next()) else {
            return;
        };
        // These are the last lines of a zone; one without memory has nothing below its protection.
        self.is_over |= name == "start_pfn:" || (name == "present" && value == Some("0"));
        if !name.ends_with(':') {
            self.names.insert(name.to_owned());
        }
    }

    /// Whether a line `name number` can be one more of this zone: its counters come once, and are not those of vmstat alone.
    fn takes(&self, name: &str) -> bool {
        const OF_VMSTAT: [&str; 21] = [
            "compact_",
            "thp_",
            "allocstall",
            "pgalloc_",
            "pgfree",
            "pgfault",
            "pgmajfault",
            "pgpgin",
            "pgpgout",
            "pgscan",
            "pgsteal",
            "pgmigrate_",
            "pgskip_",
            "pgactivate",
            "pgdeactivate",
            "pswp",
            "oom_kill",
            "drop_",
            "kswapd_",
            "htlb_",
            "balloon_",
        ];
        let is_line = ["min", "low", "high", "managed", "spanned", "boost", "cma"].contains(&name);
        !self.names.contains(name)
            && (!self.is_over || is_line)
            && !OF_VMSTAT.iter().any(|start| name.starts_with(start))
    }
}

/// Says what `line` is.
pub(super) fn classify(line: &str, context: &Context) -> Line {
    data(line, context)
        .or_else(|| heading(line))
        .unwrap_or(Line::Other)
}

/// A row of allocinfo: two numbers, a place and its function.
fn place_of_source(text: &str) -> Option<(&str, &str)> {
    let (bytes, rest) = text.split_once(' ')?;
    let (calls, place) = rest.trim_start().split_once(' ')?;
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    let is_row = is_number(bytes.strip_prefix('-').unwrap_or(bytes)) && is_number(calls);
    (is_row && place.contains(" func:") && place.contains(':')).then_some((bytes, place))
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
    if text.starts_with("allocinfo - version:") {
        return Some(Line::Of("allocinfo", Some(String::new())));
    }
    if text.starts_with('#') && text.contains("<size>") && text.contains("<tag info>") {
        return Some(Line::Of("allocinfo", None));
    }
    if let Some((_, place)) = place_of_source(text) {
        return Some(Line::Of("allocinfo", Some(place.to_owned())));
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
    if let Some((kind, key)) = foreign::claim(text, context.current) {
        return Some(Line::Of(kind, key));
    }
    if let Some(line) = sysctl(text) {
        return Some(line);
    }
    if let Some((name, value)) = settings::stated(text) {
        return Some(Line::Setting(name, value));
    }
    let words: Vec<&str> = text.split_ascii_whitespace().take(16).collect();
    if context.current == Some("zoneinfo")
        && (indented || context.flat)
        && is_of_zone(&words, context)
    {
        return Some(Line::Of("zoneinfo", None));
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

/// Whether a line can be one of the zone at hand.
fn is_of_zone(words: &[&str], context: &Context) -> bool {
    match *words {
        [name, value] if is_number(value) && !name.ends_with(':') => context.zone.takes(name),
        [name, _, "kB"] => !name.ends_with(':'),
        [name, value] if is_number(value) => !name.starts_with(|c: char| c.is_ascii_uppercase()),
        // Without indentation, only the lines that every kernel has tell zoneinfo from prose.
        [first, second, ..] if context.flat => {
            ["protection:", "cpu:"].contains(&first)
                || [("pages", "free"), ("per-node", "stats"), ("vm", "stats")]
                    .contains(&(first, second))
        }
        [only] if context.flat => only == "pagesets" || is_number(only),
        [_, ..] => heading(&words.join(" ")).is_none(),
        [] => true,
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
    let columns = rest.split_ascii_whitespace().count();
    let of_blocks = context.current == Some("pagetypeinfo") && context.blocks == Some(columns);
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
    } else if of_blocks || (context.named == Some("pagetypeinfo") && context.blocks.is_none()) {
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
    other.then_some(Line::HEADING)
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

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
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
