//! Looks out of a range of Prometheus: what `/api/v1/query_range` answers, of `unfrag exporter` or of node_exporter.
//!
//! Invariant: a look has each order of each zone that it shows; what has a hole at a moment is told, and never filled. A range is
//! of one host.

use crate::error::{Error, Result};
use crate::geometry::{Geometry, PageSizeFrom};
use crate::inspect::{Moment, ZoneState};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use unfrag_linux::snapshots::day_and_time;

/// Free blocks of an order: ours, and those of node_exporter, with their label of the order.
const FREE: [(&str, &str); 2] = [
    ("unfrag_free_blocks", "order"),
    ("node_buddyinfo_blocks", "size"),
];
const PAGEBLOCKS: &str = "unfrag_pageblocks";
const PAGE_SIZE: &str = "unfrag_page_size_bytes";
const PAGEBLOCK_SIZE: &str = "unfrag_pageblock_size_bytes";

/// Orders beyond this one are none of any kernel.
const MOST_ORDER: usize = 40;

/// What is to be asked of Prometheus.
const QUERY: &str = "ask /api/v1/query_range for {__name__=~\"unfrag_free_blocks|unfrag_pageblocks|unfrag_page.*size_bytes\",instance=\"HOST\"}, or \
                     for node_buddyinfo_blocks{instance=\"HOST\"} of node_exporter";

/// What a range shows of a moment.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its date.
    pub name: String,
    /// Seconds since 1970.
    pub time: f64,
    /// Memory, or why it is not known.
    pub memory: std::result::Result<Moment, String>,
}

#[derive(Deserialize)]
struct Reply {
    status: String,
    error: Option<String>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    kind: String,
    result: serde_json::Value,
}

#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// A zone of a node.
type Zone = (u32, String);
/// A number by moment (milliseconds since 1970) and what tells it apart.
type Numbers<K> = BTreeMap<i64, BTreeMap<K, f64>>;

/// Whether bytes may be an answer of Prometheus: an object of JSON.
pub fn is_range(begin: &[u8]) -> bool {
    begin.trim_ascii_start().starts_with(b"{")
}

/// The moments of an answer of Prometheus, in order. `page_size` goes before what it tells.
///
/// # Errors
/// If it is none, an error, not of a range, of several hosts, or has no free blocks.
pub fn samples(bytes: &[u8], page_size: Option<u64>) -> Result<Vec<Sample>> {
    let all = parse(bytes)?;
    // Of both exporters ours tells more.
    let has = |name: &str| all.iter().any(|s| s.name() == name);
    let (free_name, order_label) = match FREE.iter().find(|(name, _)| has(name)) {
        Some(found) => *found,
        None => {
            let text = "the range has no series of free blocks";
            return Err(Error::lacking(text).help(QUERY));
        }
    };
    let ours = free_name == FREE[0].0;
    let is_used = |s: &&Series| {
        s.name() == free_name || ours && [PAGEBLOCKS, PAGE_SIZE, PAGEBLOCK_SIZE].contains(&s.name())
    };
    let used: Vec<&Series> = all.iter().filter(is_used).collect();
    of_one_host(&used)?;

    let mut free: Numbers<(Zone, usize)> = BTreeMap::new();
    let mut types: Numbers<(Zone, String)> = BTreeMap::new();
    let mut sizes: [Option<f64>; 2] = [None; 2];
    for series in used {
        match series.name() {
            PAGE_SIZE => sizes[0] = series.last(),
            PAGEBLOCK_SIZE => sizes[1] = series.last(),
            PAGEBLOCKS => {
                let key = (series.zone()?, series.label("migratetype")?.to_owned());
                put(&mut types, series, key)?;
            }
            _ => {
                let text = series.label(order_label)?;
                let order = text.parse().ok().filter(|o| *o <= MOST_ORDER);
                let order = order.ok_or_else(|| wrong(order_label, text))?;
                put(&mut free, series, (series.zone()?, order))?;
            }
        }
    }
    let mut orders: BTreeMap<Zone, usize> = BTreeMap::new();
    for (zone, order) in free.values().flat_map(BTreeMap::keys) {
        let most = orders.entry(zone.clone()).or_default();
        *most = (*most).max(order + 1);
    }
    let told = sizes[0].and_then(whole);
    if let (Some(asked), Some(told)) = (page_size, told.filter(|t| Some(*t) != page_size)) {
        return Err(Error::question(format!(
            "the range tells pages of {told} bytes, and {asked} were asked for"
        ))
        .help("leave the page size out: it is for ranges that do not tell it"));
    }
    let geometry = geometry(page_size, sizes);
    let moments = free.iter().map(|(&time, free)| {
        let seconds = time as f64 / 1e3;
        let name = format!("{} UTC", day_and_time(time.max(0) as u64 / 1000));
        let memory = zones(free, types.get(&time), &orders).map(|zones| Moment {
            name: name.clone(),
            page_size: geometry.page_size,
            page_size_from: geometry.page_size_from,
            huge_order: geometry.huge_order,
            pageblock_order: Some(geometry.huge_order),
            huge_page_bytes: geometry.page_size << geometry.huge_order,
            zones,
            ..Moment::default()
        });
        Sample {
            name,
            time: seconds,
            memory,
        }
    });
    Ok(moments.collect())
}

fn parse(bytes: &[u8]) -> Result<Vec<Series>> {
    let none =
        |why: String| Error::question(format!("it is no answer of Prometheus: {why}")).help(QUERY);
    let reply: Reply = serde_json::from_slice(bytes).map_err(|e| none(e.to_string()))?;
    if reply.status != "success" {
        let said = reply.error.unwrap_or(reply.status);
        return Err(
            Error::lacking(format!("Prometheus answered with an error: {said}")).help(QUERY),
        );
    }
    let data = reply.data.ok_or_else(|| none("it has no data".into()))?;
    if data.kind != "matrix" {
        let text = format!("the answer of Prometheus is a {}, and no range", data.kind);
        return Err(Error::question(text).help(QUERY));
    }
    serde_json::from_value(data.result).map_err(|e| none(e.to_string()))
}

impl Series {
    fn name(&self) -> &str {
        self.metric.get("__name__").map_or("", String::as_str)
    }

    fn label(&self, name: &str) -> Result<&str> {
        let label = self.metric.get(name).map(String::as_str);
        label.ok_or_else(|| {
            let text = format!("a series of {} has no label {name}", self.name());
            Error::lacking(text).help("ask for the series themselves, not for a sum of them")
        })
    }

    fn zone(&self) -> Result<Zone> {
        let node = self.label("node")?;
        let node = node.parse().map_err(|_| wrong("node", node))?;
        Ok((node, self.label("zone")?.to_owned()))
    }

    fn last(&self) -> Option<f64> {
        self.values.last().and_then(|(_, n)| n.parse().ok())
    }

    /// What tells its host from others.
    fn host(&self) -> BTreeMap<&str, &str> {
        const OWN: [&str; 6] = ["__name__", "node", "zone", "order", "size", "migratetype"];
        let labels = self.metric.iter().map(|(k, v)| (&**k, &**v));
        labels.filter(|(k, _)| !OWN.contains(k)).collect()
    }
}

fn wrong(label: &str, text: &str) -> Error {
    Error::contradiction(format!(
        "{label}={text:?} in a series is none of any kernel"
    ))
}

fn of_one_host(used: &[&Series]) -> Result<()> {
    let hosts: BTreeSet<_> = used.iter().map(|s| s.host()).collect();
    let mut hosts = hosts.iter().map(|host| {
        let labels: Vec<String> = host.iter().map(|(k, v)| format!("{k}={v:?}")).collect();
        labels.join(",")
    });
    match (hosts.next(), hosts.next()) {
        (Some(one), Some(other)) => Err(Error::question(format!(
            "the range is of several hosts, or of one that was scraped by several: {{{one}}} and {{{other}}}"
        ))
        .help("add the labels of one to the query, such as instance=\"HOST\"")),
        _ => Ok(()),
    }
}

fn put<K: Ord + Clone>(all: &mut Numbers<K>, series: &Series, key: K) -> Result<()> {
    for (time, text) in &series.values {
        let number: f64 = text.parse().map_err(|_| wrong("a value", text))?;
        if !time.is_finite() || time.abs() > 1e11 {
            return Err(wrong("a time", &time.to_string()));
        }
        // A series that ended has no number.
        if number.is_nan() {
            continue;
        }
        let of = all.entry((time * 1e3).round() as i64).or_default();
        of.insert(key.clone(), number);
    }
    Ok(())
}

/// The zones of a moment, or what has a hole.
fn zones(
    free: &BTreeMap<(Zone, usize), f64>,
    types: Option<&BTreeMap<(Zone, String), f64>>,
    orders: &BTreeMap<Zone, usize>,
) -> std::result::Result<Vec<ZoneState>, String> {
    let mut all = vec![];
    for (zone, &orders) in orders {
        let told: Vec<(usize, f64)> = (0..orders)
            .filter_map(|o| Some((o, *free.get(&(zone.clone(), o))?)))
            .collect();
        let (node, name) = zone;
        if told.is_empty() {
            // Whether most moments have it is asked of all looks together.
            continue;
        }
        if told.len() < orders {
            let there: BTreeSet<usize> = told.iter().map(|t| t.0).collect();
            let hole = (0..orders).find(|o| !there.contains(o)).unwrap_or(0);
            return Err(format!(
                "it lacks order {hole} of zone {name} of node {node}"
            ));
        }
        let blocks = told.iter().map(|(_, n)| whole(*n));
        let blocks: Option<Vec<u64>> = blocks.collect();
        let blocks = blocks.ok_or_else(|| {
            format!("zone {name} of node {node} has a number of blocks that is none")
        })?;
        let pageblocks: Option<BTreeMap<String, u64>> = types.and_then(|types| {
            let of = types.iter().filter(|((z, _), _)| z == zone);
            let of = of.map(|((_, kind), n)| Some((kind.clone(), whole(*n)?)));
            of.collect::<Option<BTreeMap<_, _>>>()
                .filter(|m| !m.is_empty())
        });
        all.push(ZoneState {
            node: *node,
            zone: name.clone(),
            free_blocks: Some(blocks),
            pageblocks,
            ..ZoneState::default()
        });
    }
    Ok(all)
}

/// A number of blocks; a mean of several moments is rounded down.
fn whole(n: f64) -> Option<u64> {
    (0.0..1e15).contains(&n).then_some(n as u64)
}

fn geometry(asked: Option<u64>, [page, pageblock]: [Option<f64>; 2]) -> Geometry {
    let power = |n: Option<f64>| n.and_then(whole).filter(|n| n.is_power_of_two());
    let usual = Geometry::default();
    let (page_size, page_size_from) = match (asked, power(page)) {
        (Some(asked), _) => (asked, PageSizeFrom::Asked),
        (None, Some(told)) => (told, PageSizeFrom::Derived),
        (None, None) => (usual.page_size, PageSizeFrom::Assumed),
    };
    let order = power(pageblock).filter(|n| *n >= page_size);
    let huge_order = order.map_or((page_size / 8).ilog2() as u8, |n| {
        (n / page_size).ilog2() as u8
    });
    Geometry {
        page_size,
        page_size_from,
        huge_order,
        ..usual
    }
}
