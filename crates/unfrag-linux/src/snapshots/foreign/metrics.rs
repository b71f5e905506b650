//! Metrics in the text format of Prometheus, as node_exporter answers them: free blocks, zones, amounts, counters, slab
//! caches and the release.
//!
//! Invariant: a metric that is not there is in no file. Metrics of several hosts (by their label `instance`) are a list of
//! files each.

use super::free;
use super::kinds::{METRICS, Named};
use crate::procfs::slabinfo::{Cache, SlabInfo};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Metrics that are read, by how their names begin.
const READ: [&str; 6] = [
    "node_buddyinfo_blocks",
    "node_zoneinfo_",
    "node_memory_",
    "node_vmstat_",
    "node_slabinfo_",
    "node_uname_info",
];

/// A sample: the metric's name, its labels and its value.
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// The kind of a line, and its key.
pub(super) fn claim(
    text: &str,
    current: Option<&'static str>,
) -> Option<(&'static str, Option<String>)> {
    let inside = current == Some(METRICS);
    if text.starts_with("# HELP node_")
        || text.starts_with("# TYPE node_")
        || inside && text.starts_with("# HELP ")
    {
        return Some((METRICS, None));
    }
    let starts = READ.iter().any(|start| text.starts_with(start));
    if !(starts || inside && text.contains('{')) {
        return None;
    }
    let sample = sample(text)?;
    let key = starts.then(|| format!("{} {:?}", sample.name, sample.labels));
    Some((METRICS, key))
}

/// Reads `NAME{LABEL="VALUE",…} NUMBER`, with or without labels, and with or without a time after the number.
fn sample(line: &str) -> Option<Sample> {
    let line = line.trim();
    let end = line.find(['{', ' ', '\t'])?;
    let (name, rest) = line.split_at(end);
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_:".contains(&b);
    if name.is_empty() || !name.bytes().all(is_name) {
        return None;
    }
    let mut labels = BTreeMap::new();
    let mut rest = rest;
    if let Some(mut inner) = rest.strip_prefix('{') {
        loop {
            inner = inner.trim_start_matches([',', ' ']);
            if let Some(after) = inner.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, after) = inner.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.insert(label.trim().to_owned(), value);
            inner = after;
        }
    }
    let mut words = rest.split_ascii_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let has_time = words.next().is_none_or(|time| time.parse::<f64>().is_ok());
    (has_time && words.next().is_none()).then_some(Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

/// The value up to its closing quote, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            c => value.push(c),
        }
    }
    None
}

/// A value that counts something.
fn count(value: f64) -> Option<u64> {
    (0.0..9e15).contains(&value).then_some(value as u64)
}

/// What the metrics tell of one host.
#[derive(Default)]
struct Host {
    blocks: BTreeMap<(u32, String), BTreeMap<usize, u64>>,
    zones: BTreeMap<(u32, String), BTreeMap<String, u64>>,
    meminfo: Vec<(String, u64, bool)>,
    vmstat: Vec<(String, u64)>,
    slabs: BTreeMap<String, Cache>,
    release: Option<String>,
}

/// The files of each host; `None` if no metric is one that is read.
pub(super) fn hosts(text: &str) -> Option<Vec<Vec<Named>>> {
    let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
    for sample in text.lines().filter_map(sample) {
        let instance = sample.labels.get("instance").cloned().unwrap_or_default();
        hosts.entry(instance).or_default().add(&sample);
    }
    let all: Vec<Vec<Named>> = hosts
        .into_values()
        .map(Host::files)
        .filter(|f| !f.is_empty())
        .collect();
    (!all.is_empty()).then_some(all)
}

impl Host {
    fn add(&mut self, sample: &Sample) -> Option<()> {
        let label = |name: &str| sample.labels.get(name).cloned();
        let place = || Some((label("node")?.parse().ok()?, label("zone")?));
        let name = sample.name.as_str();
        if name == "node_uname_info" {
            self.release = label("release").or(self.release.take());
        } else if name == "node_buddyinfo_blocks" {
            let order = label("size")?.parse().ok()?;
            let blocks = self.blocks.entry(place()?).or_default();
            blocks.insert(order, count(sample.value)?);
        } else if let Some(field) = name.strip_prefix("node_zoneinfo_") {
            let zone = self.zones.entry(place()?).or_default();
            zone.insert(field.to_owned(), count(sample.value)?);
        } else if let Some(field) = name.strip_prefix("node_vmstat_") {
            self.vmstat.push((field.to_owned(), count(sample.value)?));
        } else if let Some(field) = name.strip_prefix("node_slabinfo_") {
            let cache = self.slabs.entry(label("slab")?).or_default();
            let n = count(sample.value)?;
            let small = u32::try_from(n).ok();
            match field {
                "active_objects" => cache.active_objs = n,
                "objects" => cache.num_objs = n,
                "object_size_bytes" => cache.objsize = small?,
                "objects_per_slab" => cache.objperslab = small?,
                "pages_per_slab" => cache.pagesperslab = small?,
                _ => {}
            }
        } else if let Some(field) = name.strip_prefix("node_memory_")
            && !field.starts_with("numa_")
        {
            let n = count(sample.value)?;
            let (field, is_bytes) = match field.strip_suffix("_bytes") {
                Some(field) => (field, true),
                None => (field, false),
            };
            // `Active(anon)` is `Active_anon` there; `HugePages_Total` is itself.
            let field = match field.split_once('_') {
                Some((group @ ("Active" | "Inactive"), part)) => format!("{group}({part})"),
                _ => field.to_owned(),
            };
            self.meminfo
                .push((field, if is_bytes { n / 1024 } else { n }, is_bytes));
        }
        Some(())
    }

    fn files(self) -> Vec<Named> {
        let mut files: Vec<(&str, Option<String>)> = vec![];
        let (mut meminfo, mut vmstat) = (String::new(), String::new());
        for (name, value, is_kib) in &self.meminfo {
            let unit = if *is_kib { " kB" } else { "" };
            let _ = writeln!(meminfo, "{:<16}{value:>8}{unit}", format!("{name}:"));
        }
        for (name, value) in &self.vmstat {
            let _ = writeln!(vmstat, "{name} {value}");
        }
        let filled = |text: String| (!text.is_empty()).then_some(text);
        files.push(("zoneinfo", filled(zoneinfo(&self.zones))));
        files.push(("buddyinfo", free::of_orders(self.blocks)));
        files.push(("meminfo", filled(meminfo)));
        files.push(("vmstat", filled(vmstat)));
        files.push(("slabinfo", slabinfo(self.slabs)));
        files.push((
            "version",
            self.release
                .map(|r| format!("Linux version {r} (by its metrics)\n")),
        ));
        let named = files
            .into_iter()
            .filter_map(|(name, text)| Some((name.to_owned(), text?)));
        named.collect()
    }
}

/// Zones as zoneinfo; those of which free pages are not told are left out.
fn zoneinfo(zones: &BTreeMap<(u32, String), BTreeMap<String, u64>>) -> String {
    let mut out = String::new();
    for ((node, zone), fields) in zones {
        let Some(free) = fields.get("nr_free_pages") else {
            continue;
        };
        let _ = writeln!(out, "Node {node}, zone {zone:>8}\n  pages free     {free}");
        for name in ["min", "low", "high", "spanned", "present", "managed"] {
            if let Some(n) = fields.get(&format!("{name}_pages")) {
                let _ = writeln!(out, "        {name:<8} {n}");
            }
        }
    }
    out
}

/// Slab caches as slabinfo. Slabs follow from objects; caches of which either is not told are left out.
fn slabinfo(slabs: BTreeMap<String, Cache>) -> Option<String> {
    let cache = |(name, mut cache): (String, Cache)| {
        cache.num_slabs = cache.num_objs.div_ceil(u64::from(cache.objperslab).max(1));
        cache.active_slabs = cache.num_slabs;
        cache.name = name;
        (cache.objperslab > 0 && cache.pagesperslab > 0).then_some(cache)
    };
    let info = SlabInfo {
        caches: slabs.into_iter().filter_map(cache).collect(),
        ..SlabInfo::default()
    };
    (!info.caches.is_empty()).then(|| info.write())
}
